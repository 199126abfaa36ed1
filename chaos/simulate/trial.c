/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */

#include "chaos/simulate/trial.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/run/measure.h"
#include "chaos/run/outcome.h"
#include "chaos/simulate/play.h"
#include "chaos/simulate/report.h"
#include "conflict/base/check.h"

const char *subject_name(const struct subject *subject)
{
    return subject->world ? subject->world->name : subject->scenario->name;
}

struct trial *trial_new(void)
{
    void *at =
        mmap(NULL, sizeof(struct trial), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    return at;
}

struct trial *trial_free(struct trial *trial)
{
    if (trial)
        munmap(trial, sizeof(*trial));
    return NULL;
}

/* ---- In the child ---- */

static void run_world(const struct sim_world *world, const struct sim_replay *replay,
                      struct trial *to)
{
    struct sim_result result;
    world->run(replay, &result);
    to->violated = result.violation != NULL;
    snprintf(to->violation, sizeof(to->violation), "%s", result.violation ? result.violation : "");
    snprintf(to->key, sizeof(to->key), "%s", to->violation);
    if (result.detail.len)
        snprintf(to->detail, sizeof(to->detail), "%.*s", (int)result.detail.len,
                 (const char *)result.detail.at);
    to->hash = result.hash;
    to->events = result.events;
    to->virtual_ns = result.virtual_ns;
    memcpy(to->figures, result.figures, sizeof(to->figures));
    to->told = result.told;
    buf_deinit(&result.detail);
}

static void print_expects(const struct outcome *outcome, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->expect_count; i++) {
        const struct outcome_expect *expect = &outcome->expects[i];
        buf_printf(to, "  %-4s %s",
                   !expect->known  ? "?"
                   : expect->holds ? "ok"
                                   : "NO",
                   expect->expect->text);
        buf_append_text(to, expect->known ? ", is " : ", nothing to measure");
        if (expect->known)
            measure_print((enum scenario_metric)expect->expect->metric, expect->actual, to);
        buf_append_text(to, "\n");
    }
    for (uint32_t i = 0; i < outcome->check_count; i++) {
        const struct verdict *verdict = &outcome->checks[i].verdict;
        if (verdict->kind != VERDICT_OK)
            buf_printf(to, "  %s: %s: %.*s\n", outcome->checks[i].name, verdict_text(verdict->kind),
                       (int)verdict->text.len, (const char *)verdict->text.at);
    }
    for (uint32_t i = 0; i < outcome->fault_count; i++)
        if (!outcome->faults[i].effective)
            buf_printf(to, "  %s hit nothing: %s\n", outcome->faults[i].id,
                       outcome->faults[i].evidence);
}

/* Which checkers and expectations failed: numbers may differ from run to run. */
static void make_key(const struct outcome *outcome, struct buf *to)
{
    for (uint32_t i = 0; i < outcome->check_count; i++)
        if (outcome->checks[i].verdict.kind == VERDICT_WRONG)
            buf_printf(to, "%s;", outcome->checks[i].name);
    for (uint32_t i = 0; i < outcome->expect_count; i++)
        if (outcome->expects[i].known && !outcome->expects[i].holds)
            buf_printf(to, "%s;", outcome->expects[i].expect->text);
}

static void run_scenario(const struct subject *subject, const struct sim_replay *replay,
                         struct trial *to)
{
    struct outcome outcome;
    struct play_figures figures;
    struct buf text = {0};
    outcome_init(&outcome, subject->scenario);
    play_scenario(subject->scenario, replay, &outcome, &figures);
    if (subject->report != NULL)
        to->unwritten =
            !simulate_report(&outcome, subject->scenario_file, subject->again, subject->report);
    print_expects(&outcome, &text);
    snprintf(to->detail, sizeof(to->detail), "%.*s", (int)text.len,
             text.len ? (const char *)text.at : "");
    buf_reset(&text);
    make_key(&outcome, &text);
    snprintf(to->key, sizeof(to->key), "%d %.*s", (int)outcome.exit, (int)text.len,
             text.len ? (const char *)text.at : "");
    snprintf(to->violation, sizeof(to->violation), "%s", outcome.verdict);
    to->violated = outcome.exit != OUTCOME_PASS;
    to->exit_code = (int)outcome.exit;
    to->hash = figures.hash;
    to->events = figures.events;
    to->virtual_ns = figures.virtual_ns;
    to->told = figures.told;
    buf_deinit(&text);
    outcome_deinit(&outcome);
}

/* ---- Around it ---- */

static void note_abort(struct trial *trial, int signal)
{
    static const char *const what = "a core's own check failed";
    trial->aborted = trial->violated = true;
    trial->exit_code = OUTCOME_WRONG;
    snprintf(trial->violation, sizeof(trial->violation), "%s (%s)", what, strsignal(signal));
    snprintf(trial->key, sizeof(trial->key), "%s", what);
    trial->told.violated_ns = 0;
    if (trial->log.count)
        trial->told.violated_ns = trial->entries[(trial->log.count - 1) % SIM_LOG_MAX].at_ns;
}

void trial_run(const struct subject *subject, const struct sim_replay *replay, bool logged,
               uint64_t until_ns, struct trial *ret)
{
    struct sim_replay own = *replay;
    memset(ret, 0, offsetof(struct trial, entries));
    ret->log = (struct sim_log){.until_ns = until_ns, .at = ret->entries};
    own.log = logged ? &ret->log : NULL;
    own.drawn = &ret->told;
    fflush(NULL);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        if (subject->world)
            run_world(subject->world, &own, ret);
        else
            run_scenario(subject, &own, ret);
        fflush(NULL);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
    if (WIFSIGNALED(status))
        note_abort(ret, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) /* a sanitizer's word */
        note_abort(ret, SIGABRT);
}
