/* SPDX-License-Identifier: Apache-2.0 */
/* A workload that is a program of the user's (exec): what it prints is beside the reports, and when
 * it ends by itself, that is told at once. One that ends well has done its work: the phases go on
 * without it. One that gives up ends the run, as it drives nothing and so shows nothing; unless the
 * scenario says which exit code is right. */

#include <stdio.h>
#include <string.h>

#include "chaos/live/text.h"
#include "chaos/report/text.h"
#include "chaos/run/run_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { TAIL_BYTES = 4096, TAIL_LINES = 12 };
/* Exit codes of shells, and of our keeper (chaos/drive/keeper.c), for what did not even begin. */
enum { NOT_A_PROGRAM = 126, NOT_FOUND = 127 };

static bool is_program(const struct run *run)
{
    return run->scenario->workload.kind == SCENARIO_EXEC;
}

char *program_log(const struct run *run)
{
    return is_program(run) ? text_new("%s/exec.log", run->output.directory) : NULL;
}

static bool code_is_expected(const struct run *run)
{
    for (uint32_t i = 0; i < run->scenario->expect.count; i++)
        if (run->scenario->expect.at[i].metric == METRIC_EXIT_CODE)
            return true;
    return false;
}

static uint32_t faults_to_come(const struct run *run)
{
    const struct scenario *scenario = run->scenario;
    uint32_t count = 0;
    for (uint32_t i = run->timeline.phase; i < scenario->phase_count; i++)
        count += scenario->phases[i].fault_count;
    return count - run->timeline.fault;
}

void program_tick(struct run *run)
{
    int code;
    if (!is_program(run) || run->program_told || !drive_exited(run->drive, &code))
        return;
    run->program_told = true;
    if (code != 0 && !code_is_expected(run)) {
        if (code == NOT_FOUND || code == NOT_A_PROGRAM)
            run_fail(run, "the workload's program could not be started (exit code %d); %s says why",
                     code, run->program_log);
        else
            run_fail(run,
                     "the workload's program ended by itself with exit code %d; expect `exit_code` "
                     "if that is right",
                     code);
        return;
    }
    char rest[64] = "";
    uint32_t left = faults_to_come(run);
    if (left > 0)
        snprintf(rest, sizeof(rest), "; %u fault%s still to begin without it", left,
                 left == 1 ? " is" : "s are");
    outcome_event(&run->outcome, run->loop.mono_ns, SCENARIO_REGION_NONE, "note",
                  "the workload's program has ended with exit code %d%s", code, rest);
}

/* ---- The end of what it printed ---- */

static const char *last_lines(const char *text, size_t len)
{
    const char *at = text + len;
    if (len > 0 && at[-1] == '\n')
        at--;
    for (int lines = 0; at > text; at--)
        if (at[-1] == '\n' && ++lines == TAIL_LINES)
            break;
    return at;
}

/* It may print anything, so it is not let at the terminal as it is. */
static void print_tail(FILE *from)
{
    char text[TAIL_BYTES];
    struct buf clean = {0};
    if (fseek(from, -TAIL_BYTES, SEEK_END) != 0)
        rewind(from); /* it is shorter */
    size_t len = fread(text, 1, sizeof(text), from);
    const char *at = last_lines(text, len);
    text_clean(bytes_make(at, (size_t)(text + len - at)), &clean);
    char *rest = clean.len == 0 ? xstrdup("nothing") : xstrndup((const char *)clean.at, clean.len);
    for (char *line, *lines = rest; (line = strsep(&lines, "\n")) != NULL;)
        if (lines != NULL || *line != 0)
            fprintf(stderr, "  | %s\n", line);
    free(rest);
    buf_deinit(&clean);
}

void program_conclude(const struct run *run)
{
    char *path = program_log(run);
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    if (file == NULL) {
        free(path);
        return;
    }
    if (run->program_told && run->outcome.exit_code != 0 && run->outcome.exit != OUTCOME_PASS) {
        fflush(stdout);
        fprintf(stderr, "the program ended with exit code %d; the last it printed:\n",
                run->outcome.exit_code);
        print_tail(file);
    }
    printf("output: %s\n", path);
    fclose(file);
    free(path);
}
