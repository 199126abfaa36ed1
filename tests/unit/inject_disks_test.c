/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of disks on a real cluster: each reaches the calls that LevelDB makes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/inject/inject_internal.h"
#include "chaos/shim/disk.h"
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

static bool has_failed(void *context)
{
    (void)context;
    return grounds.client[0].bad > 0;
}

static bool is_told(void *context)
{
    return *grounds_told(&grounds, context)->evidence != 0;
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

/* ---- Disks ---- */

static const char disks[] = HEAD("eventual", "fsync") FAULT("full",
                                                            "do: disk.full, region: us-east-1")
    FAULT("slow",
          "do: disk.slow, region: us-east-1, delay: 2ms, jitter: 1ms, calls: sync, for: 200ms")
        FAULT("slow-read",
              "do: disk.slow, region: us-east-1, delay: 1ms, files: tables, calls: read")
            FAULT("fsync", "do: disk.fsync_error, region: us-east-1")
                FAULT("io", "do: disk.io_error, region: us-east-1, files: log, calls: write")
                    FAULT("torn", "do: disk.torn_write, region: us-east-1")
                        FAULT("flip", "do: disk.bitflip, region: us-west-2, files: log, bits: 3")
                            FAULT("wipe", "do: disk.wipe, region: us-east-2") FAULT(
                                "power", "do: process.kill, region: us-east-1, lose_unsynced: true")
                                FAULT("start", "do: process.start, region: us-east-1")
                                    FAULT("rarely", "do: disk.slow, region: us-east-1, delay: "
                                                    "300us, calls: sync, percent: 20, for: 400ms")
                                        FAULT("cut", "do: disk.truncate, region: us-west-2, files: "
                                                     "log, size: 10")
                                            FAULT("end", "do: process.kill, region: us-west-2")
                                                FAULT("ruin",
                                                      "do: disk.truncate, region: us-west-2, "
                                                      "files: manifest, size: 64KiB")
                                                    FAULT("again",
                                                          "do: process.start, region: us-west-2");

static const char careless[] =
    HEAD("eventual", "os") FAULT("killed", "do: process.kill, region: us-east-1")
        FAULT("power", "do: process.kill, region: us-east-1, lose_unsynced: true");

static int open_disks(void **state)
{
    (void)state;
    grounds_open(&grounds, disks, false);
    return 0;
}

static int open_careless(void **state)
{
    (void)state;
    grounds_open(&grounds, careless, false);
    return 0;
}

static bool has_succeeded(void *context)
{
    (void)context;
    return grounds.client[0].good > 0;
}

/* Writes fail and the process lives; with space again it goes on by itself. */
static void a_disk_is_full(void **state)
{
    (void)state;
    pid_t pid = process_pid(grounds.cluster.sites[0].process);
    grounds.client[0].bad = 0;
    grounds_begin(&grounds, "full");
    grounds_run_until(&grounds, has_failed, NULL);
    const struct outcome_fault *told = grounds_undo(&grounds, "full");
    print_message("    full: %s; clients saw %.100s\n", told->evidence, grounds.client[0].last);
    assert_true(told->effective);
    grounds.client[0].good = 0;
    grounds_run_until(&grounds, has_succeeded, NULL);
    assert_int_equal(process_pid(grounds.cluster.sites[0].process), pid);
}

static void restart_first(void)
{
    grounds_begin(&grounds, "start");
    grounds_run_until(&grounds, is_told, (void *)"start");
    assert_true(grounds_told(&grounds, "start")->effective);
}

/* Each ends the process: what could not be written must not be believed. */
static void failing_calls_end_the_process(void **state)
{
    (void)state;
    static const char *const ids[] = {"fsync", "io", "torn"};
    struct site *site = &grounds.cluster.sites[0];
    for (int i = 0; i < 3; i++) {
        grounds_begin(&grounds, ids[i]);
        grounds_run_until(&grounds, is_dead, site);
        /* Over by itself when the Region is started (torn), or by its undoing. */
        const struct outcome_fault *told = grounds_undo(&grounds, ids[i]);
        print_message("    %s: %s\n", ids[i], told->evidence);
        assert_true(told->effective);
        if (site->state == SITE_DEAD && site->process == NULL)
            restart_first();
        grounds_run_until(&grounds, runs, site);
        grounds.client[0].good = 0;
        grounds_run_until(&grounds, has_succeeded, NULL);
    }
}

/* Tables are read through mappings: a restart makes a table of the log, and reads of items that are
 * in no cache then touch it. */
static void reads_of_tables_are_seen(void **state)
{
    (void)state;
    grounds_begin(&grounds, "slow-read");
    const struct outcome_fault *told = NULL;
    for (bool seen = false; !seen;) {
        restart_now(&grounds.cluster.sites[0]);
        for (int i = 0; i < 50; i++) {
            char body[120];
            snprintf(body, sizeof(body),
                     "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"load-0-%d\"}}}", i);
            grounds_await(&grounds, 0, "GetItem", body, "");
        }
        char path[160];
        struct disk_control *control = test_calloc(1, sizeof(*control));
        snprintf(path, sizeof(path), "%s/us-east-1.disk", grounds.data);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(control, sizeof(*control), 1, file), 1);
        fclose(file);
        seen = control->mapped_reads > 0;
        print_message("    shim: %llu reads, %llu of mapped pieces, %llu writes, %llu syncs\n",
                      (unsigned long long)control->reads, (unsigned long long)control->mapped_reads,
                      (unsigned long long)control->writes, (unsigned long long)control->syncs);
        assert_true(control->writes > 0 && control->syncs > 0 && control->reads > 0);
        assert_int_equal(control->overwrites, 0);
        test_free(control);
    }
    told = grounds_undo(&grounds, "slow-read");
    print_message("    slow-read: %s\n", told->evidence);
    assert_true(told->effective);
}

static void a_slow_disk_is_slow(void **state)
{
    (void)state;
    grounds_prove(&grounds, "slow");
    /* A share of the calls is slowed, and the others are not. */
    const struct disk_control *control = disk_control(grounds.inject->places[0].disk);
    uint64_t before = atomic_load(&control->syncs);
    const struct outcome_fault *told = grounds_prove(&grounds, "rarely");
    uint64_t slowed = strtoull(told->evidence, NULL, 10);
    assert_true(slowed > 0 && slowed < atomic_load(&control->syncs) - before);
}

/* With fsync, a power cut loses nothing that was acknowledged. */
static void power_loses_nothing_that_is_synced(void **state)
{
    (void)state;
    grounds_await(&grounds, 0, "PutItem",
                  "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"kept\"},\"v\":{\"S\":\"x\"}}}",
                  "");
    grounds_begin(&grounds, "power");
    grounds_run_until(&grounds, is_dead, &grounds.cluster.sites[0]);
    const struct outcome_fault *told = grounds_undo(&grounds, "power");
    print_message("    power: %s\n", told->evidence);
    assert_true(told->effective);
    grounds_await(&grounds, 0, "GetItem",
                  "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"kept\"}}}", "\"v\"");
}

static const struct outcome_loss *last_loss(void)
{
    assert_true(grounds.outcome.disk_loss_count > 0);
    return &grounds.outcome.disk_losses[grounds.outcome.disk_loss_count - 1];
}

static void files_are_struck(void **state)
{
    (void)state;
    grounds_prove(&grounds, "flip");
    assert_string_equal(grounds_prove(&grounds, "cut")->evidence, "10 bytes cut off");
    grounds_begin(&grounds, "wipe");
    grounds_run_until(&grounds, is_dead, &grounds.cluster.sites[1]);
    const struct outcome_fault *told = grounds_undo(&grounds, "wipe");
    print_message("    wipe: %s\n", told->evidence);
    assert_true(told->effective);
    grounds_run_until(&grounds, runs, &grounds.cluster.sites[1]);
    const struct outcome_loss *loss = last_loss();
    assert_int_equal(loss->region, 1);
    assert_int_equal(loss->why, OUTCOME_LOSS_WIPED);
    assert_true(loss->kept && loss->at_ns >= told->from_ns);
}

static bool is_discarded(void *context)
{
    (void)context;
    return grounds.outcome.disk_loss_count > 0 && last_loss()->why == OUTCOME_LOSS_DISCARDED;
}

/* A Region that refuses its damaged store begins empty, and that is told as the loss it is. */
static void a_store_that_is_set_aside_is_lost(void **state)
{
    (void)state;
    struct site *site = &grounds.cluster.sites[2];
    grounds_begin(&grounds, "end");
    grounds_run_until(&grounds, is_dead, site);
    uint64_t dead_ns = grounds.outcome.events[grounds.outcome.event_count - 1].at_ns;
    grounds_begin(&grounds, "ruin");
    grounds_begin(&grounds, "again");
    grounds_run_until(&grounds, is_discarded, NULL);
    const struct outcome_loss *loss = last_loss();
    assert_int_equal(loss->region, 2);
    assert_int_equal(loss->at_ns, dead_ns);
    assert_true(loss->kept); /* it was dead when it was damaged: what it had is known */
    assert_true(grounds.outcome.lost_regions & 4);
    assert_int_equal(grounds.outcome.lost_ns, dead_ns);
    bool told = false;
    for (uint32_t i = 0; i < grounds.outcome.event_count; i++)
        told |= strcmp(grounds.outcome.events[i].kind, "lost") == 0 &&
                strstr(grounds.outcome.events[i].text, "set aside") != NULL;
    assert_true(told);
    char path[160];
    snprintf(path, sizeof(path), "%s/us-west-2.lost/CURRENT", grounds.data);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/us-west-2.damaged-1", grounds.data);
    assert_int_equal(access(path, F_OK), 0);
    grounds_run_until(&grounds, runs, site);
    /* Whole from now on. */
    uint32_t count = grounds.outcome.disk_loss_count;
    restart_now(site);
    assert_int_equal(grounds.outcome.disk_loss_count, count);
    grounds_await(&grounds, 2, "PutItem",
                  "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"anew\"}}}", "");
}

#define LONELY "{\"TableName\":\"lonely\","

static void make_lonely(void)
{
    grounds_await(&grounds, 0, "CreateTable",
                  LONELY "\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{\"AttributeName\":"
                         "\"pk\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{"
                         "\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}]}",
                  "TableName");
    grounds_await(&grounds, 0, "PutItem",
                  LONELY "\"Item\":{\"pk\":{\"S\":\"a\"},\"v\":{\"S\":\"x\"}}}", "");
}

/* Without fsync a power cut loses what was acknowledged, and that no other Region has; a process
 * that is only killed loses nothing. */
static void power_loses_what_is_not_synced(void **state)
{
    (void)state;
    make_lonely();
    grounds_begin(&grounds, "killed");
    grounds_run_until(&grounds, is_dead, &grounds.cluster.sites[0]);
    assert_true(grounds_undo(&grounds, "killed")->effective);
    grounds_run_until(&grounds, runs, &grounds.cluster.sites[0]);
    grounds_await(&grounds, 0, "GetItem", LONELY "\"Key\":{\"pk\":{\"S\":\"a\"}}}", "\"v\"");
    grounds_await(&grounds, 0, "PutItem",
                  LONELY "\"Item\":{\"pk\":{\"S\":\"b\"},\"v\":{\"S\":\"x\"}}}", "");
    grounds_begin(&grounds, "power");
    grounds_run_until(&grounds, is_dead, &grounds.cluster.sites[0]);
    const struct outcome_fault *told = grounds_undo(&grounds, "power");
    print_message("    power: %s\n", told->evidence);
    assert_true(told->effective);
    assert_null(strstr(told->evidence, " 0 unsynced bytes"));
    assert_int_equal(last_loss()->why, OUTCOME_LOSS_UNSYNCED);
    assert_int_equal(grounds.outcome.disk_loss_count, 1);
    grounds_run_until(&grounds, runs, &grounds.cluster.sites[0]);
    grounds_api(&grounds, 0, "GetItem", LONELY "\"Key\":{\"pk\":{\"S\":\"b\"}}}");
    assert_null(strstr(grounds.body, "\"v\""));
}

int main(void)
{
    const struct CMUnitTest on_disks[] = {
        cmocka_unit_test(a_disk_is_full),
        cmocka_unit_test(a_slow_disk_is_slow),
        cmocka_unit_test(failing_calls_end_the_process),
        cmocka_unit_test(power_loses_nothing_that_is_synced),
        cmocka_unit_test(reads_of_tables_are_seen),
        cmocka_unit_test(a_store_that_is_set_aside_is_lost),
        cmocka_unit_test(files_are_struck),
    };
    const struct CMUnitTest without_care[] = {cmocka_unit_test(power_loses_what_is_not_synced)};
    return cmocka_run_group_tests_name("disks", on_disks, open_disks, close_grounds) +
           cmocka_run_group_tests_name("careless", without_care, open_careless, close_grounds);
}
