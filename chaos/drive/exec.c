/* SPDX-License-Identifier: Apache-2.0 */
/* A user's own program in place of our clients. It finds the cluster where every AWS SDK looks, in
 * its environment, and runs under a keeper, so that what it started ends with it. It is started
 * once, by the first phase that is not idle, and may end when it likes: the phases go on. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/drive/drive_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { KILL_AFTER_MS = 5000, EXIT_NOT_STARTED = 127 };

/* ---- Environment ---- */

struct environment { /* owned; NULL at the end */
    char **at;
    uint32_t count;
};

static void set(struct environment *environment, const char *name, const char *value)
{
    struct buf text;
    buf_init(&text);
    buf_printf(&text, "%s=%s", name, value);
    buf_append_u8(&text, 0);
    size_t len = strlen(name) + 1;
    environment->at =
        xrealloc(environment->at, (environment->count + 2) * sizeof(*environment->at));
    uint32_t at = 0;
    while (at < environment->count && strncmp(environment->at[at], (char *)text.at, len) != 0)
        at++;
    if (at == environment->count)
        environment->count++;
    else
        free(environment->at[at]);
    environment->at[at] = (char *)text.at;
    environment->at[environment->count] = NULL;
}

static void set_default(struct environment *environment, const char *name, const char *value)
{
    if (getenv(name) == NULL)
        set(environment, name, value);
}

static void build(const struct drive *drive, struct environment *environment)
{
    const struct scenario_cluster *cluster = &drive->config.scenario->cluster;
    const char *door = drive->config.door ? drive->config.door : "";
    char text[300], seed[24];
    struct buf names cleanup(buf_deinit);
    buf_init(&names);
    for (char **at = environ; *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        if (equals == NULL)
            continue;
        char *name = xstrndup(*at, (size_t)(equals - *at));
        set(environment, name, equals + 1);
        free(name);
    }
    snprintf(text, sizeof(text), "http://%s", door);
    set(environment, "AWS_ENDPOINT_URL", text);
    set(environment, "AWS_ENDPOINT_URL_DYNAMODB", text);
    set(environment, "AWS_REGION", cluster->region[0].name);
    set(environment, "AWS_DEFAULT_REGION", cluster->region[0].name); /* older SDKs */
    set_default(environment, "AWS_ACCESS_KEY_ID", "tidemark");       /* any will do */
    set_default(environment, "AWS_SECRET_ACCESS_KEY", "tidemark");
    snprintf(text, sizeof(text), "http://%s", drive->config.control ? drive->config.control : "");
    set(environment, "TIDEMARK_CONTROL", text);
    for (uint8_t place = 0; place < drive->data_count; place++)
        buf_printf(&names, "%s%s", place > 0 ? "," : "", cluster->region[place].name);
    buf_append_u8(&names, 0);
    set(environment, "TIDEMARK_REGIONS", (const char *)names.at);
    snprintf(seed, sizeof(seed), "%" PRIu64, drive->config.seed);
    set(environment, "TIDEMARK_SEED", seed);
}

/* ---- The program ---- */

static void ended(struct drive *drive, int code)
{
    drive->process_runs = false;
    drive->process_ended = true;
    drive->exit_code = code;
    uv_timer_stop(&drive->kill_timer);
    drive_check_stopped(drive);
}

/* What the keeper has ended with is what the program has. */
static void on_child(uv_signal_t *handle, int number)
{
    (void)number;
    struct drive *drive = handle->data;
    int status;
    if (!drive->process_runs || waitpid(drive->keeper.pid, &status, WNOHANG) != drive->keeper.pid)
        return;
    keeper_close(&drive->keeper);
    ended(drive, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void start_failed(struct drive *drive, int fd, int reason)
{
    dprintf(fd, "%s can't be started: %s\n", drive->workload->exec[0], strerror(reason));
    ended(drive, EXIT_NOT_STARTED);
}

void exec_start(struct drive *drive)
{
    if (drive->process_used)
        return;
    drive->process_used = true;
    const char *path = drive->config.output;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : STDERR_FILENO;
    if (fd < 0) {
        dprintf(STDERR_FILENO, "%s can't be written: %s\n", path, strerror(errno));
        ended(drive, EXIT_NOT_STARTED);
        return;
    }
    struct environment environment = {NULL, 0};
    build(drive, &environment);
    const struct keeper_config config = {
        .argv = (char *const *)(uintptr_t)drive->workload->exec,
        .environment = environment.at,
        .output = fd,
        .output_max = drive->config.output_max > 0 ? drive->config.output_max : KEEPER_OUTPUT_MAX};
    check(uv_signal_start(&drive->child, on_child, SIGCHLD) == 0);
    int reason = keeper_start(&config, &drive->keeper);
    drive->process_runs = reason == 0;
    if (reason != 0)
        start_failed(drive, fd, reason);
    if (path != NULL)
        close(fd);
    for (uint32_t i = 0; i < environment.count; i++)
        free(environment.at[i]);
    free(environment.at);
}

static void on_kill_timer(uv_timer_t *timer)
{
    struct drive *drive = timer->data;
    if (drive->process_runs)
        keeper_kill(&drive->keeper);
}

void exec_stop(struct drive *drive)
{
    if (!drive->process_runs)
        return;
    keeper_ask(&drive->keeper);
    check(uv_timer_start(&drive->kill_timer, on_kill_timer, KILL_AFTER_MS, 0) == 0);
}

void exec_free(struct drive *drive)
{
    if (!drive->process_runs)
        return;
    keeper_kill(&drive->keeper);
    waitpid(drive->keeper.pid, NULL, 0);
    keeper_close(&drive->keeper);
}

bool drive_exited(const struct drive *drive, int *ret_code)
{
    if (drive->process_ended)
        *ret_code = drive->exit_code;
    return drive->process_ended;
}
