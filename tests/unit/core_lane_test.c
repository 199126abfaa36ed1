/* SPDX-License-Identifier: Apache-2.0 */
/* Idle lanes as a cache: what it saves is counted in READ effects, and what it may never change,
 * the answers, is compared with a Region that has none. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "region/core/keyspace.h"
#include "tests/lib/core/fixture.h"

static void begin(struct fixture *f, uint32_t regions, uint64_t cache_bytes)
{
    fixture_init(f, regions);
    f->config.item_cache_bytes_max = cache_bytes;
    for (uint32_t i = 0; i < regions; i++)
        fixture_restart(f, i);
}

static void create(struct fixture *f, const char *name)
{
    assert_int_equal(fixture_do(f, 0, fixture_create(f, name)), API_OK);
}

static void put(struct fixture *f, const char *table, const char *pk, const char *v)
{
    assert_int_equal(fixture_do(f, 0, fixture_put(f, table, pk, v)), API_OK);
}

/* How many READs a write takes that only looks: its condition fails. */
static uint64_t reads_of(struct fixture *f, const char *table, const char *pk)
{
    uint64_t before = f->reads;
    struct op *op = fixture_put(f, table, pk, "x");
    fixture_condition(op, "attribute_exists(nowhere)");
    assert_int_equal(fixture_do(f, 0, op), API_CONDITION_FAILED);
    return f->reads - before;
}

static void a_settled_key_is_not_read_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 1 << 20);
    create(&f, "tbl");
    uint64_t before = f.reads;
    put(&f, "tbl", "a", "1");
    assert_int_equal(f.reads - before, 1);
    put(&f, "tbl", "a", "2");
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "2");
    assert_int_equal(fixture_do(&f, 0, fixture_delete(&f, "tbl", "a")), API_OK);
    assert_null(fixture_value(&f, 0, "tbl", "a"));
    struct op *absent = fixture_put(&f, "tbl", "a", "3");
    fixture_condition(absent, "attribute_not_exists(pk)");
    assert_int_equal(fixture_do(&f, 0, absent), API_OK);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "3");
    assert_int_equal(f.reads - before, 1);
    /* Also a key that has only been looked at, and what a restart remembers is the store's. */
    assert_int_equal(reads_of(&f, "tbl", "b"), 1);
    assert_int_equal(reads_of(&f, "tbl", "b"), 0);
    fixture_restart(&f, 0);
    assert_int_equal(reads_of(&f, "tbl", "a"), 1);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "3");
    fixture_deinit(&f);
}

static void what_rests_longest_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 8192);
    create(&f, "tbl");
    put(&f, "tbl", "first", "v");
    put(&f, "tbl", "read", "v");
    put(&f, "tbl", "written", "v");
    for (int i = 0; i < 200; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "k%d", i);
        put(&f, "tbl", pk, "v");
        if (i % 4 == 0) {
            uint64_t before = f.reads;
            assert_string_equal(fixture_value(&f, 0, "tbl", "read"), "v");
            put(&f, "tbl", "written", "v");
            assert_int_equal(f.reads - before, 0);
        }
    }
    assert_int_equal(reads_of(&f, "tbl", "k199"), 0);
    assert_int_equal(reads_of(&f, "tbl", "first"), 1);
    /* More than all the room there is: it is not kept, and takes nothing with it. */
    char large[9000];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    put(&f, "tbl", "large", large);
    assert_int_equal(reads_of(&f, "tbl", "large"), 1);
    assert_string_equal(fixture_value(&f, 0, "tbl", "large"), large);
    assert_int_equal(reads_of(&f, "tbl", "written"), 0);
    fixture_deinit(&f);
}

static void no_room_keeps_nothing(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 0);
    create(&f, "tbl");
    put(&f, "tbl", "a", "1");
    assert_int_equal(reads_of(&f, "tbl", "a"), 1);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    fixture_deinit(&f);
}

/* A write in flight may be in the store already, so only the store tells what is durable. */
static void a_key_in_flight_is_read_from_the_store(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 1 << 20);
    create(&f, "tbl");
    put(&f, "tbl", "a", "1");
    f.nodes[0].hold_disk = true;
    fixture_send(&f, 0, fixture_put(&f, "tbl", "a", "2"));
    fixture_run(&f);
    uint64_t before = f.reads;
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    assert_int_equal(f.reads - before, 1);
    fixture_sync(&f, 0, UINT32_MAX);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "2");
    assert_int_equal(f.reads - before, 1);
    fixture_deinit(&f);
}

static void a_full_disk_leaves_what_was_durable(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 1 << 20);
    create(&f, "tbl");
    put(&f, "tbl", "a", "1");
    f.nodes[0].hold_disk = true;
    fixture_send(&f, 0, fixture_put(&f, "tbl", "a", "2"));
    fixture_send(&f, 0, fixture_put(&f, "tbl", "a", "3"));
    fixture_send(&f, 0, fixture_put(&f, "tbl", "new", "1"));
    fixture_run(&f);
    fixture_sync(&f, 0, 1);
    fixture_fail(&f, 0);
    f.nodes[0].hold_disk = false;
    uint64_t before = f.reads;
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "2");
    assert_null(fixture_value(&f, 0, "tbl", "new"));
    struct op *fresh = fixture_put(&f, "tbl", "new", "2");
    fixture_condition(fresh, "attribute_not_exists(pk)");
    assert_int_equal(fixture_do(&f, 0, fresh), API_OK);
    assert_int_equal(f.reads - before, 0);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 2);
    fixture_deinit(&f);
}

static void a_dropped_table_is_forgotten(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1, 1 << 20);
    create(&f, "tbl");
    create(&f, "other");
    put(&f, "tbl", "a", "1");
    put(&f, "other", "a", "2");
    /* One lane is busy when the table goes, and comes to rest only afterwards. */
    f.nodes[0].hold_reads = true;
    struct op *late = fixture_put(&f, "tbl", "late", "v");
    fixture_send(&f, 0, late);
    assert_int_equal(fixture_do(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "tbl")), API_OK);
    create(&f, "tbl");
    f.nodes[0].hold_reads = false;
    fixture_release_reads(&f, 0);
    fixture_run(&f); /* to the end of the erasure */
    assert_int_equal(late->result.error, API_RESOURCE_NOT_FOUND);
    assert_null(fixture_value(&f, 0, "tbl", "a"));
    assert_int_equal(reads_of(&f, "other", "a"), 0);
    assert_string_equal(fixture_value(&f, 0, "other", "a"), "2");
    fixture_deinit(&f);
}

/* What a peer writes, and what a collection removes, goes by the lanes too. */
static void peers_and_collections_are_seen(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2, 1 << 20);
    fixture_global(&f);
    put(&f, "tbl", "a", "1");
    fixture_advance(&f, 500);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "1");
    put(&f, "tbl", "a", "2");
    fixture_advance(&f, 500);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "2");
    assert_int_equal(fixture_do(&f, 1, fixture_delete(&f, "tbl", "a")), API_OK);
    fixture_advance(&f, 500);
    assert_null(fixture_value(&f, 0, "tbl", "a"));
    fixture_advance(&f, 20000); /* past the tombstone's grace */
    for (uint32_t node = 0; node < 2; node++) {
        struct buf rows;
        buf_init(&rows);
        fixture_dump(&f, node, KEYSPACE_ITEM, &rows);
        assert_int_equal(rows.len, 0);
        buf_deinit(&rows);
        assert_null(fixture_value(&f, node, "tbl", "a"));
    }
    /* Were the tombstone still believed in, its removal would be counted a second time. */
    put(&f, "tbl", "a", "3");
    fixture_advance(&f, 500);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "3");
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 1);
    assert_int_equal(fixture_table(&f, 1, "tbl")->item_count, 1);
    fixture_deinit(&f);
}

/* ---- Against a twin without a cache ---- */

enum { TWIN_STEPS = 400, TWIN_KEYS = 12 };

static struct op *draw(struct fixture *f, uint64_t what, const char *pk, const char *v)
{
    struct op *op;
    switch (what) {
    case 0:
        return fixture_delete(f, "tbl", pk);
    case 1:
        op = fixture_put(f, "tbl", pk, v);
        fixture_condition(op, "attribute_not_exists(pk)");
        return op;
    case 2:
        op = fixture_put(f, "tbl", pk, v);
        fixture_condition(op, "attribute_exists(pk)");
        return op;
    default:
        return fixture_put(f, "tbl", pk, v);
    }
}

static void compare(struct fixture *twins)
{
    struct buf rows[2];
    for (uint32_t i = 0; i < 2; i++) {
        buf_init(&rows[i]);
        fixture_dump(&twins[i], 0, KEYSPACE_ITEM, &rows[i]);
    }
    assert_true(bytes_equal(buf_view(&rows[0]), buf_view(&rows[1])));
    for (uint32_t i = 0; i < TWIN_KEYS; i++) {
        char pk[8];
        snprintf(pk, sizeof(pk), "k%u", i);
        const char *a = fixture_value(&twins[0], 0, "tbl", pk);
        const char *b = fixture_value(&twins[1], 0, "tbl", pk);
        assert_int_equal(a == NULL, b == NULL);
        if (a)
            assert_string_equal(a, b);
    }
    for (uint32_t i = 0; i < 2; i++)
        buf_deinit(&rows[i]);
}

static void run_twins(uint64_t seed, uint64_t cache_bytes)
{
    struct fixture twins[2];
    struct rng rng;
    rng_init(&rng, seed);
    begin(&twins[0], 1, 0);
    begin(&twins[1], 1, cache_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        create(&twins[i], "tbl");
        twins[i].nodes[0].hold_disk = true;
    }
    for (uint32_t step = 0; step < TWIN_STEPS; step++) {
        char pk[8], v[16];
        snprintf(pk, sizeof(pk), "k%u", (uint32_t)rng_between(&rng, 0, TWIN_KEYS - 1));
        snprintf(v, sizeof(v), "v%u", step);
        uint64_t what = rng_between(&rng, 0, 5), disk = rng_between(&rng, 0, 11);
        uint32_t durable = (uint32_t)rng_between(&rng, 1, 4);
        struct op *ops[2];
        for (uint32_t i = 0; i < 2; i++) {
            ops[i] = draw(&twins[i], what, pk, v);
            fixture_send(&twins[i], 0, ops[i]);
            fixture_run(&twins[i]);
            if (disk < 5)
                fixture_sync(&twins[i], 0, durable);
            else if (disk == 5 && twins[i].nodes[0].batches)
                fixture_fail(&twins[i], 0);
            else if (disk == 6)
                fixture_sync(&twins[i], 0, UINT32_MAX);
        }
        assert_int_equal(ops[0]->result.error, ops[1]->result.error);
        assert_int_equal(fixture_replied(&twins[0], ops[0]) == 0,
                         fixture_replied(&twins[1], ops[1]) == 0);
        if (step % 16 == 0)
            compare(twins);
    }
    for (uint32_t i = 0; i < 2; i++)
        fixture_sync(&twins[i], 0, UINT32_MAX);
    compare(twins);
    assert_true(twins[1].reads < twins[0].reads);
    for (uint32_t i = 0; i < 2; i++)
        fixture_deinit(&twins[i]);
}

static void answers_are_those_of_a_twin_without(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run_twins(seed, 1 << 20);
        run_twins(seed, 1500); /* a few keys, so that they come and go */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_settled_key_is_not_read_again),
        cmocka_unit_test(what_rests_longest_goes_first),
        cmocka_unit_test(no_room_keeps_nothing),
        cmocka_unit_test(a_key_in_flight_is_read_from_the_store),
        cmocka_unit_test(a_full_disk_leaves_what_was_durable),
        cmocka_unit_test(a_dropped_table_is_forgotten),
        cmocka_unit_test(peers_and_collections_are_seen),
        cmocka_unit_test(answers_are_those_of_a_twin_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
