/* SPDX-License-Identifier: Apache-2.0 */
/* Two and three Regions, whole but for sockets and disks: writes that travel, meet, lose and are
 * deleted, through cuts, crashes and full disks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"
#include "conflict/region_id.h"
#include "region/core/keyspace.h"
#include "tests/lib/core/fixture.h"

static void put(struct fixture *f, uint32_t node, const char *pk, const char *v)
{
    assert_int_equal(fixture_do(f, node, fixture_put(f, "tbl", pk, v)), API_OK);
}

static void remove_item(struct fixture *f, uint32_t node, const char *pk)
{
    assert_int_equal(fixture_do(f, node, fixture_delete(f, "tbl", pk)), API_OK);
}

static void expect_everywhere(struct fixture *f, const char *pk, const char *v)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const char *found = fixture_value(f, i, "tbl", pk);
        if (v && !found)
            fail_msg("node %u lacks %s", i, pk);
        if (v)
            assert_string_equal(found, v);
        else
            assert_null(found);
    }
}

/* Items, tombstones included, byte for byte; table numbers are the same in these tests. */
static void expect_converged(struct fixture *f)
{
    struct buf first, other;
    buf_init(&first);
    buf_init(&other);
    fixture_dump(f, 0, KEYSPACE_ITEM, &first);
    for (uint32_t i = 1; i < f->count; i++) {
        buf_reset(&other);
        fixture_dump(f, i, KEYSPACE_ITEM, &other);
        assert_int_equal(other.len, first.len);
        assert_memory_equal(other.at, first.at, first.len);
        assert_int_equal(fixture_table(f, i, "tbl")->item_count,
                         fixture_table(f, 0, "tbl")->item_count);
    }
    buf_deinit(&first);
    buf_deinit(&other);
}

static uint32_t row_count(struct fixture *f, uint32_t node, uint8_t tag)
{
    struct buf rows;
    buf_init(&rows);
    fixture_dump(f, node, tag, &rows);
    struct bytes rest = buf_view(&rows), one;
    uint32_t count = 0;
    while (bytes_take_prefixed(&rest, &one) && bytes_take_prefixed(&rest, &one))
        count++;
    buf_deinit(&rows);
    return count;
}

static void isolate(struct fixture *f, uint32_t node, bool cut)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (i == node)
            continue;
        fixture_cut(f, node, i, cut);
        fixture_cut(f, i, node, cut);
    }
}

static void writes_travel(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    put(&f, 0, "a", "1");
    put(&f, 1, "b", "2");
    put(&f, 2, "c", "3");
    fixture_run(&f);
    expect_everywhere(&f, "a", "1");
    expect_everywhere(&f, "b", "2");
    expect_everywhere(&f, "c", "3");
    remove_item(&f, 1, "a");
    fixture_run(&f);
    expect_everywhere(&f, "a", NULL);
    expect_converged(&f);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(region_counters(f.nodes[i].core).ledger_rows, 0);
    fixture_deinit(&f);
}

/* Data first, then a replica, and writes all the while. */
static void a_replica_is_filled_while_writes_go_on(void **state)
{
    (void)state;
    struct fixture f;
    char pk[16];
    fixture_init(&f, 3);
    assert_int_equal(fixture_do(&f, 0, fixture_create(&f, "tbl")), API_OK);
    for (int i = 0; i < 300; i++) {
        snprintf(pk, sizeof(pk), "old%d", i);
        put(&f, 0, pk, "v");
    }
    remove_item(&f, 0, "old7");
    for (uint32_t node = 1; node < 3; node++) {
        struct op *op = fixture_replica(&f, "tbl", true, region_id_name(f.nodes[node].region));
        fixture_send(&f, 0, op);
        for (int i = 0; i < 40; i++) {
            struct op *write;
            snprintf(pk, sizeof(pk), "%s%d", i % 2 ? "old" : "new", i);
            write = i % 5 == 3 ? fixture_delete(&f, "tbl", pk) : fixture_put(&f, "tbl", pk, "w");
            fixture_send(&f, 0, write);
            if (i % 3 == 0)
                fixture_run(&f);
        }
        fixture_advance(&f, 1500);
        assert_int_equal(op->result.error, API_OK);
        assert_int_equal(op->result.table->status, TABLE_UPDATING);
        assert_int_equal(fixture_table(&f, node, "tbl")->status, TABLE_ACTIVE);
        put(&f, node, "hello", "from there");
        fixture_advance(&f, 500);
        if (node == 1)
            assert_string_equal(fixture_value(&f, 0, "tbl", "hello"), "from there");
    }
    expect_everywhere(&f, "old1", "w");
    expect_everywhere(&f, "old299", "v");
    expect_everywhere(&f, "old7", "w");
    expect_everywhere(&f, "old3", NULL);
    const struct table *there = fixture_table(&f, 2, "tbl");
    assert_int_equal(there->replica_count, 2);
    assert_int_equal(there->mode, TABLE_EVENTUAL);
    assert_int_equal(there->stream, STREAM_BOTH);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, there->item_count);
    fixture_deinit(&f);
}

static void the_later_write_wins_and_the_loser_is_named(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    put(&f, 0, "x", "base");
    fixture_advance(&f, 500);
    isolate(&f, 1, true);
    put(&f, 0, "x", "first");
    f.wall_ms += 10;
    put(&f, 1, "x", "second");
    fixture_run(&f);
    assert_string_equal(fixture_value(&f, 2, "tbl", "x"), "first");
    isolate(&f, 1, false);
    fixture_advance(&f, 1000);
    expect_everywhere(&f, "x", "second");
    expect_converged(&f);
    for (uint32_t i = 0; i < 3; i++) {
        struct fixture_loss loss[4];
        assert_int_equal(fixture_ledger(&f, i, loss, 4), 1);
        assert_string_equal(loss[0].winner, "second");
        assert_string_equal(loss[0].loser, "first");
        assert_int_equal(loss[0].relation, RESOLVE_CONCURRENT);
        assert_int_equal(loss[0].winner_region, 9);
        assert_int_equal(loss[0].loser_region, 1);
        assert_int_equal(region_counters(f.nodes[i].core).conflicts_concurrent, 1);
    }
    fixture_deinit(&f);
}

/* A delete takes part like any write: C029. */
static void delete_against_put(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    fixture_global(&f);
    put(&f, 0, "d", "1");
    put(&f, 0, "e", "1");
    fixture_advance(&f, 500);
    isolate(&f, 1, true);
    remove_item(&f, 0, "d");
    f.wall_ms += 10;
    put(&f, 1, "d", "2");
    put(&f, 1, "e", "2");
    f.wall_ms += 10;
    remove_item(&f, 0, "e");
    isolate(&f, 1, false);
    fixture_advance(&f, 1000);
    expect_everywhere(&f, "d", "2");
    expect_everywhere(&f, "e", NULL);
    expect_converged(&f);
    struct fixture_loss loss[4];
    assert_int_equal(fixture_ledger(&f, 0, loss, 4), 2);
    assert_string_equal(loss[0].winner, "2");
    assert_string_equal(loss[0].loser, "");
    assert_string_equal(loss[1].winner, "");
    assert_string_equal(loss[1].loser, "2");
    fixture_deinit(&f);
}

/* One direction cut, the third Region between: no rerouting, and no false conflict afterwards. */
static void a_cut_link_only_stops_itself(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    fixture_cut(&f, 0, 1, true);
    put(&f, 0, "a", "1");
    put(&f, 1, "b", "2");
    fixture_run(&f);
    assert_string_equal(fixture_value(&f, 2, "tbl", "a"), "1");
    assert_string_equal(fixture_value(&f, 0, "tbl", "b"), "2");
    assert_null(fixture_value(&f, 1, "tbl", "a"));
    put(&f, 2, "a", "3"); /* has seen it; reaches node 1 before what it has seen */
    fixture_run(&f);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "3");
    struct replication_lag lag;
    assert_true(region_lag(f.nodes[0].core, fixture_table(&f, 0, "tbl"), 9, f.mono_ns, &lag));
    assert_int_equal(lag.pending, 1);
    assert_false(lag.connected);
    fixture_cut(&f, 0, 1, false);
    fixture_advance(&f, 500);
    expect_everywhere(&f, "a", "3");
    assert_int_equal(region_counters(f.nodes[1].core).ledger_rows, 0);
    assert_true(region_lag(f.nodes[0].core, fixture_table(&f, 0, "tbl"), 9, f.mono_ns, &lag));
    assert_int_equal(lag.pending, 0);
    fixture_deinit(&f);
}

/* Plain wall clocks: the Region that is ahead wins, the other's later write is acknowledged and
 * lost, at once where it has seen the winner. */
static void wall_clocks_lose_writes_aloud(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    f.config.clock_mode = HLC_WALL;
    f.nodes[1].wall_offset_ms = 5000;
    fixture_restart(&f, 0);
    fixture_restart(&f, 1);
    fixture_global(&f);
    put(&f, 1, "k", "ahead");
    fixture_run(&f);
    assert_string_equal(fixture_value(&f, 0, "tbl", "k"), "ahead");
    f.wall_ms += 100;
    put(&f, 0, "k", "late");
    fixture_advance(&f, 500);
    expect_everywhere(&f, "k", "ahead");
    expect_converged(&f);
    struct fixture_loss loss[2];
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(fixture_ledger(&f, i, loss, 2), 1);
        assert_string_equal(loss[0].loser, "late");
        assert_int_equal(loss[0].relation, RESOLVE_LATE);
    }
    fixture_deinit(&f);
}

/* The receiver's disk is full for a while: nothing is acknowledged, nothing is skipped. */
static void a_full_disk_at_the_receiver(void **state)
{
    (void)state;
    struct fixture f;
    char pk[16];
    fixture_init(&f, 2);
    fixture_global(&f);
    f.nodes[1].disk_full = true;
    for (int i = 0; i < 60; i++) {
        snprintf(pk, sizeof(pk), "k%d", i);
        put(&f, 0, pk, "v");
    }
    fixture_advance(&f, 3000);
    assert_null(fixture_value(&f, 1, "tbl", "k0"));
    struct replication_lag lag;
    assert_true(region_lag(f.nodes[0].core, fixture_table(&f, 0, "tbl"), 9, f.mono_ns, &lag));
    assert_int_equal(lag.pending, 60);
    f.nodes[1].disk_full = false;
    fixture_advance(&f, 3000);
    expect_everywhere(&f, "k0", "v");
    expect_everywhere(&f, "k59", "v");
    expect_converged(&f);
    fixture_deinit(&f);
}

static void tombstones_go_when_all_have_seen_them(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    put(&f, 0, "a", "1");
    put(&f, 0, "b", "1");
    fixture_advance(&f, 500);
    isolate(&f, 2, true);
    remove_item(&f, 0, "a");
    fixture_advance(&f, 20000);
    assert_int_equal(row_count(&f, 0, KEYSPACE_ITEM), 2); /* one that is away holds it back */
    isolate(&f, 2, false);
    for (int i = 0; i < 60; i++) {
        put(&f, (uint32_t)i % 3, "b", i % 2 ? "1" : "2"); /* the promises move on */
        fixture_advance(&f, 500);
    }
    expect_everywhere(&f, "a", NULL);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(row_count(&f, i, KEYSPACE_ITEM), 1);
    expect_converged(&f);
    fixture_deinit(&f);
}

/* Away for longer than the log is kept. */
static void a_trimmed_log_is_made_up_by_a_snapshot(void **state)
{
    (void)state;
    struct fixture f;
    char pk[16];
    fixture_init(&f, 2);
    f.config.replication.log_bytes_max = 2000;
    fixture_restart(&f, 0);
    fixture_restart(&f, 1);
    fixture_global(&f);
    for (int i = 0; i < 50; i++) {
        snprintf(pk, sizeof(pk), "k%d", i);
        put(&f, 0, pk, "old");
    }
    fixture_advance(&f, 1000);
    expect_everywhere(&f, "k49", "old");
    isolate(&f, 1, true);
    put(&f, 1, "mine", "kept"); /* not covered by the snapshot: must survive it */
    for (int i = 0; i < 200; i++) {
        snprintf(pk, sizeof(pk), "k%d", i);
        if (i % 4 == 0 && i < 50)
            remove_item(&f, 0, pk);
        else
            put(&f, 0, pk, "new");
    }
    fixture_advance(&f, 5000);
    isolate(&f, 1, false);
    fixture_advance(&f, 5000);
    expect_everywhere(&f, "k199", "new");
    expect_everywhere(&f, "k4", NULL);
    expect_everywhere(&f, "mine", "kept");
    expect_converged(&f);
    fixture_deinit(&f);
}

/* What a full log had to drop is still pending, also when nothing was ever acknowledged. */
static void a_trimmed_log_is_pending_all_the_same(void **state)
{
    (void)state;
    struct fixture f;
    char pk[16];
    fixture_init(&f, 2);
    f.config.replication.log_bytes_max = 2000;
    fixture_restart(&f, 0);
    fixture_restart(&f, 1);
    fixture_global(&f);
    fixture_cut(&f, 0, 1, true);
    for (int i = 0; i < 200; i++) {
        snprintf(pk, sizeof(pk), "k%d", i);
        put(&f, 0, pk, "new");
    }
    fixture_advance(&f, 2000);
    struct replication_lag lag;
    assert_true(region_lag(f.nodes[0].core, fixture_table(&f, 0, "tbl"), f.nodes[1].region,
                           f.mono_ns, &lag));
    assert_int_equal(lag.pending, 200);
    fixture_deinit(&f);
}

/* The last write of a replica that leaves is being taken in at one of the others when it goes, and
 * never reached the third. */
static void what_a_leaving_replica_wrote_last_reaches_all_or_none(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    fixture_cut(&f, 2, 1, true);
    f.nodes[0].hold_reads = true;
    put(&f, 2, "last", "v");
    fixture_run(&f);
    assert_int_equal(
        fixture_do(&f, 1, fixture_replica(&f, "tbl", false, region_id_name(f.nodes[2].region))),
        API_OK);
    fixture_advance(&f, 1000);
    assert_int_equal(fixture_table(&f, 0, "tbl")->replica_count, 1);
    assert_int_equal(fixture_table(&f, 1, "tbl")->replica_count, 1);
    f.nodes[0].hold_reads = false;
    fixture_release_reads(&f, 0);
    fixture_advance(&f, 1000);
    assert_string_equal(fixture_value(&f, 0, "tbl", "last"), "v");
    const char *other = fixture_value(&f, 1, "tbl", "last");
    assert_non_null(other);
    assert_string_equal(other, "v");
    fixture_deinit(&f);
}

/* Everybody writes, crashes, is cut off; then it heals, and all are equal. */
static void random_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct fixture f;
        struct rng rng;
        rng_init(&rng, seed);
        fixture_init(&f, 3);
        fixture_global(&f);
        for (int i = 0; i < 250; i++) {
            char pk[16], v[16];
            uint32_t node = (uint32_t)rng_below(&rng, 3), other = (uint32_t)rng_below(&rng, 3);
            snprintf(pk, sizeof(pk), "k%d", (int)rng_below(&rng, 12));
            snprintf(v, sizeof(v), "v%d", i);
            switch (rng_below(&rng, 20)) {
            case 0:
                fixture_kill(&f, node);
                fixture_start(&f, node);
                fixture_run(&f);
                break;
            case 1:
                if (node != other)
                    fixture_cut(&f, node, other, !f.cut[node][other]);
                break;
            case 2:
                fixture_advance(&f, rng_between(&rng, 1, 400));
                break;
            case 3:
                f.nodes[node].disk_full = !f.nodes[node].disk_full;
                break;
            case 4:
            case 5:
            case 6:
                fixture_send(&f, node, fixture_delete(&f, "tbl", pk));
                break;
            default:
                fixture_send(&f, node, fixture_put(&f, "tbl", pk, v));
                break;
            }
            if (rng_one_in(&rng, 3))
                fixture_run(&f);
        }
        for (uint32_t i = 0; i < 3; i++) {
            f.nodes[i].disk_full = false;
            for (uint32_t j = 0; j < 3; j++) {
                if (i != j)
                    fixture_cut(&f, i, j, false);
            }
        }
        fixture_advance(&f, 12000); /* and all tombstones are gone everywhere */
        expect_converged(&f);
        fixture_deinit(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_travel),
        cmocka_unit_test(a_replica_is_filled_while_writes_go_on),
        cmocka_unit_test(the_later_write_wins_and_the_loser_is_named),
        cmocka_unit_test(delete_against_put),
        cmocka_unit_test(a_cut_link_only_stops_itself),
        cmocka_unit_test(wall_clocks_lose_writes_aloud),
        cmocka_unit_test(a_full_disk_at_the_receiver),
        cmocka_unit_test(tombstones_go_when_all_have_seen_them),
        cmocka_unit_test(a_trimmed_log_is_made_up_by_a_snapshot),
        cmocka_unit_test(a_trimmed_log_is_pending_all_the_same),
        cmocka_unit_test(what_a_leaving_replica_wrote_last_reaches_all_or_none),
        cmocka_unit_test(random_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
