/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. The two programs differ in their names and in core.witness_only, which makes the
 * core hold witnesses and nothing else. */

#include "region/process.h"

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "conflict/region_id.h"
#include "region/json_memory.h"
#include "region/node.h"

/* Its readers are in libc. */
__attribute__((visibility("default"))) const char *argp_program_version;

struct process {
    struct loop loop;
    struct config config;
    struct log log;
    struct node *node;
};

static void on_ready(void *context)
{
    (void)context;
    puts("ready");
    fflush(stdout);
}

static void on_drained(void *context)
{
    struct process *process = context;
    loop_stop(&process->loop);
}

/* A second signal does not wait. */
static void on_signal(void *context, int number)
{
    (void)number;
    struct process *process = context;
    static bool asked;
    if (asked)
        loop_stop(&process->loop);
    asked = true;
    node_drain(process->node);
}

static void on_round(void *context)
{
    struct process *process = context;
    loop_wake_at(&process->loop, node_round(process->node));
}

int process_run(int argc, char **argv, bool witness)
{
    json_memory_install();
    argp_program_version =
        witness ? "tidemark-witness " TIDEMARK_VERSION : "tidemark-region " TIDEMARK_VERSION;
    struct process process = {0};
    char error[1024] = "";
    if (!(witness ? config_load_witness : config_load)(argc, argv, &process.config, error,
                                                       sizeof(error))) {
        fprintf(stderr, "%s: %s\n", witness ? "tidemark-witness" : "tidemark-region", error);
        return 1;
    }
    process.log = (struct log){STDERR_FILENO, process.config.log_level,
                               region_id_name(process.config.core.region)};
    loop_init(&process.loop);
    struct node_events events = {on_ready, on_drained, &process};
    process.node =
        node_open(&process.loop, &process.config, &process.log, &events, error, sizeof(error));
    if (!process.node) {
        log_line(&process.log, TRACE_ERROR, "%s", error);
        loop_deinit(&process.loop);
        config_deinit(&process.config);
        return 1;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a full disk, not the end */
    loop_on_signal(&process.loop, on_signal, &process);
    loop_on_round(&process.loop, on_round, &process);
    loop_run(&process.loop);

    log_line(&process.log, TRACE_INFO, "stopped");
    node_close(process.node);
    loop_deinit(&process.loop);
    node_free(process.node);
    config_deinit(&process.config);
    return 0;
}
