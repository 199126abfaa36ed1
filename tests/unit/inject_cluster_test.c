/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of links, Regions, processes and clocks on a real cluster, as a scenario has them: begun,
 * seen to take effect, undone. The load never rests, so that what strikes has something to hit; a
 * fault that missed it is begun again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/inject/grounds.h"

#define HEAD(mode, durability)                                                                     \
    "name: t\n"                                                                                    \
    "cluster: {mode: " mode ", durability: " durability                                            \
    ", regions: [us-east-1, us-east-2, us-west-2], links: {default: {rtt: 2ms}}}\n"                \
    "workload: {kind: swap-register}\n"                                                            \
    "phases:\n"                                                                                    \
    "  - name: all\n"                                                                              \
    "    for: 1s\n"                                                                                \
    "    faults:\n"
#define FAULT(id, rest) "      - {at: 0s, id: " id ", " rest "}\n"

static struct grounds grounds;

static int close_grounds(void **state)
{
    (void)state;
    grounds_close(&grounds);
    return 0;
}

/* ---- Links ---- */

static const char links[] = HEAD("eventual", "os") FAULT(
    "cut", "do: link.cut, from: us-east-1, to: us-east-2, direction: both, for: 200ms")
    FAULT("hole", "do: link.blackhole, from: us-east-1, to: us-east-2, for: 200ms") FAULT(
        "reset", "do: link.reset, from: all, to: us-east-2")
        FAULT("resets", "do: link.reset, from: all, to: all, period: 50ms, for: 200ms") FAULT(
            "delay", "do: link.delay, from: us-east-1, to: us-east-2, delay: 20ms, jitter: 5ms, "
                     "distribution: paretonormal, for: 200ms")
            FAULT(
                "jitter",
                "do: link.jitter, from: us-east-1, to: us-east-2, jitter: 5ms, for: "
                "200ms") FAULT("narrow",
                               "do: link.bandwidth, from: us-east-1, to: us-east-2, rate: 50KB/s, "
                               "for: 200ms") FAULT("flap", "do: link.flap, from: us-east-1, to: "
                                                           "us-east-2, period: 60ms, for: 300ms")
                FAULT("loss",
                      "do: link.loss, from: us-east-1, to: us-east-2, percent: 50, for: 400ms")
                    FAULT(
                        "twice",
                        "do: link.duplicate, from: us-east-1, to: all, percent: 50, "
                        "for: 400ms") FAULT("damage",
                                            "do: link.corrupt, from: us-east-1, to: all, percent: "
                                            "5, correlation: 20, direction: both, for: 1s")
                        FAULT("fine", "do: link.delay, from: us-east-1, to: us-east-2, delay: "
                                      "700us, jitter: 150us, for: 200ms")
                            FAULT("late", "do: link.reorder, from: us-east-1, to: us-east-2, "
                                          "percent: 50, delay: 5ms, "
                                          "direction: both, for: 400ms")
                                FAULT("swizzle", "do: partition, shape: swizzle, for: 600ms") FAULT(
                                    "one",
                                    "do: partition, shape: one, region: us-east-2, for: 200ms")
                                    FAULT(
                                        "halves",
                                        "do: partition, shape: halves, how: blackhole, for: 200ms")
                                        FAULT("deaf", "do: partition, shape: asymmetric, region: "
                                                      "us-west-2, for: 200ms")
                                            FAULT("pause",
                                                  "do: replication.pause, region: us-east-1")
                                                FAULT(
                                                    "cut-forever",
                                                    "do: link.cut, from: us-east-1, to: us-west-2")
                                                    FAULT("cut-again",
                                                          "do: link.cut, from: all, to: us-west-2")
                                                        FAULT("undo",
                                                              "do: undo, fault: cut-forever");

static int open_links(void **state)
{
    (void)state;
    grounds_open(&grounds, links, false);
    return 0;
}

static void links_are_struck(void **state)
{
    (void)state;
    static const char *const ids[] = {"cut",    "hole", "reset",  "resets", "delay",  "jitter",
                                      "narrow", "flap", "loss",   "twice",  "damage", "fine",
                                      "late",   "one",  "halves", "deaf",   "swizzle"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        grounds_prove(&grounds, ids[i]);
    assert_int_equal(inject_active(grounds.inject), 0);
}

/* What is written while it holds does not come, and comes afterwards without being written again.
 */
static void a_pause_holds_and_delivers(void **state)
{
    (void)state;
    grounds_begin(&grounds, "pause");
    grounds_await(&grounds, 0, "PutItem",
                  "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"held\"},\"v\":{\"S\":\"x\"}}}",
                  "");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(grounds_api(&grounds, 1, "GetItem",
                                     "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"held\"}}}"),
                         200);
        assert_null(strstr(grounds.body, "\"v\""));
    }
    const struct outcome_fault *told = grounds_undo(&grounds, "pause");
    print_message("    pause: %s\n", told->evidence);
    assert_true(told->effective);
    grounds_await(&grounds, 1, "GetItem",
                  "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"held\"}}}", "\"v\"");
}

/* Two cuts of one link: it is up again when both have ended, and healing twice does no harm. */
static void cuts_are_counted(void **state)
{
    (void)state;
    struct cluster *cluster = &grounds.cluster;
    const struct cluster_link *link =
        cluster_find_link(cluster, &cluster->sites[0], &cluster->sites[2]);
    grounds_begin(&grounds, "cut-forever");
    grounds_begin(&grounds, "cut-again");
    assert_int_equal(inject_active(grounds.inject), 2);
    assert_false(link_is_up(link));
    grounds_begin(&grounds, "undo");
    assert_false(link_is_up(link));
    assert_int_equal(inject_active(grounds.inject), 1);
    grounds_heal(&grounds);
    assert_true(link_is_up(link));
    grounds_heal(&grounds);
    assert_true(grounds_told(&grounds, "cut-again")->to_ns > 0);
}

/* "All faults undone" is true of what others did by the control API, too, and it is said. */
static void what_others_did_is_healed(void **state)
{
    (void)state;
    struct cluster *cluster = &grounds.cluster;
    struct cluster_link *link = cluster_find_link(cluster, &cluster->sites[0], &cluster->sites[1]);
    struct buf error = {0};
    uint32_t told = 0, before = grounds.outcome.event_count;
    assert_int_equal(inject_active(grounds.inject), 0);
    link_cut(link, true);
    proxy_add_toxic(link->proxy, toxic_new(TOXIC_TIMEOUT, TOXIC_UPSTREAM, "theirs"));
    site_isolate(&cluster->sites[2], true);
    assert_true(site_pause(&cluster->sites[1], &error));
    assert_true(inject_active(grounds.inject) >= 3); /* so that the run's end heals it */
    grounds_heal(&grounds);
    assert_true(link_is_up(link));
    assert_null(proxy_find_toxic(link->proxy, "theirs"));
    assert_false(cluster->sites[2].isolated);
    assert_int_equal(cluster->sites[1].state, SITE_RUNNING);
    for (uint32_t i = before; i < grounds.outcome.event_count; i++)
        told += strstr(grounds.outcome.events[i].text, "no fault of this run") != NULL;
    assert_int_equal(told, 4);
    buf_deinit(&error);
}

/* ---- Regions ---- */

static const char regions[] = HEAD("eventual", "os") FAULT("block",
                                                           "do: client.block, region: us-east-1")
    FAULT("hold", "do: client.block, region: us-east-1, how: blackhole")
        FAULT("refuse", "do: client.block, region: us-east-1, how: refuse") FAULT(
            "reset", "do: client.block, region: us-east-1, how: reset")
            FAULT("errors", "do: api.error, region: all, percent: 50, operations: [PutItem]") FAULT(
                "never", "do: api.error, region: all, operations: [DescribeLimits], for: 100ms")
                FAULT("throttle", "do: api.throttle, region: us-east-2") FAULT(
                    "ahead", "do: clock.offset, region: us-east-1, offset: 1500ms")
                    FAULT("step", "do: clock.step, region: us-east-1, offset: -500ms") FAULT(
                        "back", "do: clock.step, region: us-east-1, offset: -1500ms")
                        FAULT("fast", "do: clock.rate, region: us-east-2, ppm: 100000") FAULT(
                            "strobe",
                            "do: clock.strobe, region: us-west-2, offset: 200ms, period: 100ms, "
                            "for: 400ms") FAULT("right", "do: clock.reset, region: us-east-1")
                            FAULT("kill", "do: process.kill, region: us-east-1")
                                FAULT("start", "do: process.start, region: us-east-1")
                                    FAULT("restart", "do: process.restart, region: us-east-2, "
                                                     "signal: TERM, down: 20ms")
                                        FAULT("freeze", "do: process.pause, region: us-west-2")
                                            FAULT("thaw", "do: process.resume, region: us-west-2")
                                                FAULT("undo", "do: undo, fault: errors")
                                                    FAULT("again", "do: process.restart, region: "
                                                                   "us-east-2, down: 20ms")
                                                        FAULT("loop",
                                                              "do: process.restart-loop, region: "
                                                              "us-east-2, period: 1s, down: 50ms")
                                                            FAULT("hiccup",
                                                                  "do: process.hiccup, region: "
                                                                  "us-west-2, period: 60ms, for: "
                                                                  "300ms");

static int open_regions(void **state)
{
    (void)state;
    grounds_open(&grounds, regions, false);
    return 0;
}

static bool has_failed(void *context)
{
    (void)context;
    return grounds.client[0].bad > 0;
}

/* Clients are kept out, peers and admin are not. */
static void clients_are_blocked(void **state)
{
    (void)state;
    static const char *const ids[] = {"block", "hold", "refuse", "reset"};
    static const char put[] = "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"b\"}}}";
    for (size_t i = 0; i < 4; i++) {
        grounds_begin(&grounds, ids[i]);
        /* Held, or asked again by the client on a connection of its own: nobody sees it fail. */
        bool silent = strcmp(ids[i], "hold") == 0 || strcmp(ids[i], "reset") == 0;
        grounds.client[0].bad = 0;
        if (strcmp(ids[i], "refuse") == 0) { /* what is open goes on */
            grounds_await(&grounds, 0, "PutItem", put, "");
            struct client_config fresh = {.address = grounds.cluster.sites[0].dial,
                                          .connections_max = 1,
                                          .waiting_max = 10,
                                          .connect_ms_max = 2000,
                                          .answer_bytes_max = 1 << 20};
            struct client *open = grounds.cluster.sites[0].door;
            bool seen = false;
            while (!seen) { /* until the rule is there */
                grounds.cluster.sites[0].door = client_new(&grounds.loop, &fresh);
                seen = grounds_api(&grounds, 0, "PutItem", put) != 200;
                client_free(grounds.cluster.sites[0].door);
            }
            grounds.cluster.sites[0].door = open;
            assert_int_equal(grounds_api(&grounds, 0, "PutItem", put), 200);
        } else if (!silent) {
            grounds_run_until(&grounds, has_failed, NULL);
        } else {
            char own[64];
            snprintf(own, sizeof(own), "\"id\":\"%s\"", ids[i]);
            while (strstr(grounds.body, own) == NULL ||
                   strstr(grounds.body, "\"clients\",\"hits\":0") != NULL)
                grounds_ask(&grounds, 0, "GET", "/tidemark/faults", NULL, "");
        }
        assert_int_equal(grounds_ask(&grounds, 0, "GET", "/tidemark/status", NULL, ""), 200);
        const struct outcome_fault *told = grounds_undo(&grounds, ids[i]);
        print_message("    %s: %s\n", ids[i], told->evidence);
        assert_true(told->effective);
        assert_int_equal(grounds_api(&grounds, 0, "PutItem", put), 200);
    }
}

static bool has_error(void *context)
{
    return strstr(grounds.client[1].last, context) != NULL;
}

static void requests_are_answered_with_errors(void **state)
{
    (void)state;
    grounds_begin(&grounds, "errors");
    grounds_run_until(&grounds, has_error, (void *)"dynamodb.v20120810#InternalServerError");
    assert_true(grounds_undo(&grounds, "errors")->effective);
    grounds_begin(&grounds, "throttle");
    grounds_run_until(&grounds, has_error, (void *)"ProvisionedThroughputExceededException");
    assert_int_equal(grounds_api(&grounds, 0, "ListTables", "{}"), 200);
    assert_true(grounds_undo(&grounds, "throttle")->effective);
}

static bool is_told(void *context)
{
    return *grounds_told(&grounds, context)->evidence != 0;
}

/* A fault that hits nothing says so. */
static void what_hits_nothing_is_ineffective(void **state)
{
    (void)state;
    grounds_begin(&grounds, "never");
    grounds_run_until(&grounds, is_told, (void *)"never");
    assert_false(grounds_told(&grounds, "never")->effective);
    assert_string_equal(grounds_told(&grounds, "never")->evidence,
                        "0 requests answered with the error");
}

static void told_so(const char *id, bool refused, const char *evidence)
{
    inject_begin(grounds.inject, grounds_fault(&grounds, id));
    grounds_run_until(&grounds, is_told, (void *)(uintptr_t)id);
    assert_int_equal(grounds_told(&grounds, id)->refused, refused);
    assert_false(grounds_told(&grounds, id)->effective);
    assert_string_equal(grounds_told(&grounds, id)->evidence, evidence);
}

/* Nor does an end of nothing, or a second strike at what is being struck, pass for a fault. */
static void an_end_of_nothing_is_ineffective(void **state)
{
    (void)state;
    told_so("undo", false, "there was nothing to end");
    told_so("right", false, "there was nothing to end");
    told_so("start", true, "it runs already");
    told_so("thaw", true, "it is not paused");
    grounds_begin(&grounds, "restart"); /* a signal that takes its time */
    told_so("again", true, "another fault is ending it just now");
    grounds_run_until(&grounds, is_told, (void *)"restart");
    assert_true(grounds_told(&grounds, "restart")->effective);
}

static void await_offset(uint32_t place, const char *offset)
{
    while (grounds_ask(&grounds, place, "GET", "/tidemark/status", NULL, "") != 200 ||
           strstr(grounds.body, offset) == NULL)
        continue;
}

static bool runs(void *context)
{
    return ((struct site *)context)->state == SITE_RUNNING;
}

static bool is_dead(void *context)
{
    return ((struct site *)context)->state == SITE_DEAD;
}

static uint64_t starts_before;

static bool runs_anew(void *context)
{
    return ((struct site *)context)->starts > starts_before && runs(context);
}

/* By nobody's fault. */
static void restart_now(struct site *site)
{
    struct buf error;
    buf_init(&error);
    starts_before = site->starts;
    assert_true(site_restart(site, &error));
    grounds_run_until(&grounds, runs_anew, site);
    buf_deinit(&error);
}

static void clocks_are_moved(void **state)
{
    (void)state;
    grounds_begin(&grounds, "ahead");
    await_offset(0, "\"offset_ms\":1500");
    /* One that brings it back to what is right has moved it all the same. */
    grounds_begin(&grounds, "back");
    await_offset(0, "\"offset_ms\":0");
    assert_true(grounds_undo(&grounds, "back")->effective);
    assert_string_equal(grounds_told(&grounds, "back")->evidence,
                        "offset read back: 0 ms, and 1500 ms before");
    await_offset(0, "\"offset_ms\":1500");
    grounds_begin(&grounds, "step");
    await_offset(0, "\"offset_ms\":1000");
    grounds_begin(&grounds, "fast");
    await_offset(1, "\"rate_ppm\":100000");
    /* A process that comes up has its clock from the start. */
    restart_now(&grounds.cluster.sites[0]);
    assert_int_equal(grounds_ask(&grounds, 0, "GET", "/tidemark/status", NULL, ""), 200);
    assert_non_null(strstr(grounds.body, "\"offset_ms\":1000"));
    grounds_begin(&grounds, "right");
    await_offset(0, "\"offset_ms\":0,");
    assert_true(grounds_undo(&grounds, "ahead")->effective);
    assert_true(grounds_undo(&grounds, "step")->effective);
    assert_true(grounds_undo(&grounds, "fast")->effective);
    await_offset(1, "\"rate_ppm\":0");
    grounds_prove(&grounds, "strobe");
}

static void processes_are_struck(void **state)
{
    (void)state;
    struct site *sites = grounds.cluster.sites;
    grounds_begin(&grounds, "kill");
    grounds_run_until(&grounds, is_dead, &sites[0]);
    inject_begin(grounds.inject, grounds_fault(&grounds, "kill"));
    assert_true(grounds_told(&grounds, "kill")->refused);
    grounds_begin(&grounds, "start");
    grounds_run_until(&grounds, is_told, (void *)"start");
    assert_int_equal(sites[0].state, SITE_RUNNING);
    assert_true(grounds_told(&grounds, "start")->effective);
    grounds_prove(&grounds, "restart");
    assert_int_equal(sites[1].state, SITE_RUNNING);
    grounds_begin(&grounds, "freeze");
    assert_int_equal(sites[2].state, SITE_PAUSED);
    assert_int_equal(access(grounds.journal, R_OK), 0);
    grounds_begin(&grounds, "thaw");
    grounds_run_until(&grounds, is_told, (void *)"freeze");
    assert_true(grounds_told(&grounds, "freeze")->effective);
    assert_int_equal(sites[2].state, SITE_RUNNING);
    grounds_prove(&grounds, "hiccup");
    assert_int_equal(sites[2].state, SITE_RUNNING);
    grounds_begin(&grounds, "kill");
    grounds_heal(&grounds);
    assert_int_equal(sites[0].state, SITE_RUNNING);
}

static bool started_thrice(void *context)
{
    return ((struct site *)context)->starts >= starts_before + 3;
}

/* Round after round, and whole when it is over, whichever part of a round that cuts off. */
static void a_restart_loop_goes_round(void **state)
{
    (void)state;
    struct site *site = &grounds.cluster.sites[1];
    starts_before = site->starts;
    grounds_begin(&grounds, "loop");
    grounds_run_until(&grounds, started_thrice, site);
    const struct outcome_fault *told = grounds_undo(&grounds, "loop");
    print_message("    loop: %s\n", told->evidence);
    assert_true(told->effective);
    assert_int_equal(site->state, SITE_RUNNING);
}

int main(void)
{
    const struct CMUnitTest on_links[] = {
        cmocka_unit_test(links_are_struck),
        cmocka_unit_test(a_pause_holds_and_delivers),
        cmocka_unit_test(cuts_are_counted),
        cmocka_unit_test(what_others_did_is_healed),
    };
    const struct CMUnitTest on_regions[] = {
        cmocka_unit_test(clients_are_blocked),
        cmocka_unit_test(requests_are_answered_with_errors),
        cmocka_unit_test(what_hits_nothing_is_ineffective),
        cmocka_unit_test(an_end_of_nothing_is_ineffective),
        cmocka_unit_test(clocks_are_moved),
        cmocka_unit_test(processes_are_struck),
        cmocka_unit_test(a_restart_loop_goes_round),
    };
    return cmocka_run_group_tests_name("links", on_links, open_links, close_grounds) +
           cmocka_run_group_tests_name("regions", on_regions, open_regions, close_grounds);
}
