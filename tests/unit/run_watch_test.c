/* SPDX-License-Identifier: Apache-2.0 */
/* What a Region's process has said is not held to be so of the next one. The Region is a server of
 * a few lines, its process a sleep. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chaos/run/watch.h"
#include "conflict/base/check.h"
#include "net/exchange.h"
#include "net/server.h"

struct stage {
    struct loop loop;
    struct server *server;
    bool silent, exited;
    struct exchange *held;
    struct cluster cluster;
    struct site site;
    struct scenario scenario;
    struct outcome outcome;
    struct watch *watch;
};

static void answer(struct exchange *exchange)
{
    exchange_respond(exchange, 200, NULL, 0,
                     bytes_literal("{\"groups\": [{\"table\": \"t\", \"partition\": 0, \"leads\": "
                                   "true, \"serving\": true}]}"));
}

static void on_request(void *context, struct exchange *exchange)
{
    struct stage *stage = context;
    if (stage->silent)
        stage->held = exchange;
    else
        answer(exchange);
}

static void on_exited(void *context, int code, int number)
{
    (void)code, (void)number;
    ((struct stage *)context)->exited = true;
}

static void tick(struct stage *stage)
{
    loop_update_time(&stage->loop);
    watch_tick(stage->watch, stage->loop.mono_ns);
}

static uint32_t led(const struct stage *stage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->outcome.event_count; i++)
        count += strcmp(stage->outcome.events[i].kind, "leader") == 0;
    return count;
}

static void open_stage(struct stage *stage)
{
    static char sleep[] = "/bin/sleep", long_time[] = "1000";
    char *const argv[] = {sleep, long_time, NULL};
    const struct process_events events = {.exited = on_exited, .context = stage};
    const struct server_limits limits = server_limits_default();
    const struct server_handler handler = {.request = on_request, .context = stage};
    char error[256];
    *stage = (struct stage){.silent = false};
    loop_init(&stage->loop);
    stage->server =
        server_listen(&stage->loop, "127.0.0.1:0", &limits, NULL, &handler, error, sizeof(error));
    if (stage->server == NULL)
        fail_msg("%s", error);
    snprintf(stage->site.dial, sizeof(stage->site.dial), "127.0.0.1:%u",
             server_port(stage->server));
    const struct client_config client = {.address = stage->site.dial};
    stage->site.name = "us-east-1";
    stage->site.admin = client_new(&stage->loop, &client);
    stage->site.process = process_start(&stage->loop, argv, &events);
    assert_non_null(stage->site.process);
    stage->site.state = SITE_RUNNING;
    stage->site.starts = 1;
    stage->cluster.sites = &stage->site;
    stage->cluster.site_count = 1;
    scenario_init(&stage->scenario);
    outcome_init(&stage->outcome, &stage->scenario);
    stage->watch = watch_new(&stage->cluster, &stage->outcome);
}

static void close_stage(struct stage *stage)
{
    watch_free(stage->watch);
    client_free(stage->site.admin);
    server_close(stage->server);
    process_signal(stage->site.process, SIGKILL);
    while (!stage->exited)
        uv_run(&stage->loop.uv, UV_RUN_ONCE);
    loop_deinit(&stage->loop);
    outcome_deinit(&stage->outcome);
    scenario_deinit(&stage->scenario);
}

/* Asks, and waits for the answer. */
static void hear(struct stage *stage, uint64_t leaders)
{
    tick(stage);
    while (watch_leaders(stage->watch) != leaders)
        uv_run(&stage->loop.uv, UV_RUN_ONCE);
    tick(stage);
}

static void test_dead_and_started_again(void **state)
{
    struct stage stage;
    (void)state;
    open_stage(&stage);
    hear(&stage, 1);
    assert_int_equal(led(&stage), 1);
    stage.silent = true;
    stage.site.state = SITE_DEAD;
    tick(&stage);
    assert_int_equal(watch_leaders(stage.watch), 0);
    stage.site.state = SITE_RUNNING;
    stage.site.starts = 2;
    tick(&stage);
    tick(&stage);
    assert_int_equal(watch_leaders(stage.watch), 0);
    assert_int_equal(watch_leader_of(stage.watch, NULL), SCENARIO_REGION_NONE);
    assert_int_equal(led(&stage), 1);
    close_stage(&stage);
}

/* So quickly that nobody saw it dead; and what the former one still says comes after that. */
static void test_started_again_unseen(void **state)
{
    struct stage stage;
    (void)state;
    open_stage(&stage);
    stage.silent = true;
    tick(&stage);
    while (stage.held == NULL)
        uv_run(&stage.loop.uv, UV_RUN_ONCE);
    stage.site.starts = 2;
    tick(&stage);
    struct exchange *late = stage.held;
    stage.held = NULL;
    answer(late);
    while (stage.held == NULL) { /* until it is asked again, the answer has come */
        uv_run(&stage.loop.uv, UV_RUN_ONCE);
        tick(&stage);
    }
    assert_int_equal(watch_leaders(stage.watch), 0);
    assert_int_equal(led(&stage), 0);
    stage.silent = false;
    answer(stage.held);
    hear(&stage, 1);
    assert_int_equal(led(&stage), 1);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dead_and_started_again),
                                       cmocka_unit_test(test_started_again_unseen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
