/* SPDX-License-Identifier: Apache-2.0 */
/* Strong tables made, written and dissolved at random, while Regions crash, are cut off, hang on
 * their disks or lose them: in the end the table is whole, and so is all that was acknowledged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "conflict/region_id.h"
#include "tests/lib/core/fixture_strong.h"

struct story {
    struct fixture f;
    struct rng rng;
    const char *names[3];
    struct op *op;        /* an UpdateTable that has not been answered, or the last one */
    struct op *puts[400]; /* of different keys, "k<index>" */
    uint32_t put_count;
    uint32_t made, dissolved, lost, kept;
};

static bool all_full(const struct story *story)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct region *core = story->f.nodes[i].core;
        if (!core || region_group_count(core) != story->f.config.partitions_per_table)
            return false;
        for (uint32_t j = 0; j < region_group_count(core); j++) {
            if (region_group_at(core, j).standing != CONSENSUS_FULL)
                return false;
        }
    }
    return true;
}

static void update_somewhere(struct story *story)
{
    struct fixture *f = &story->f;
    uint32_t node = (uint32_t)rng_below(&story->rng, 3);
    const char *first = story->names[(node + 1) % 3], *second = story->names[(node + 2) % 3];
    bool witness = rng_one_in(&story->rng, 2);
    if (!f->nodes[node].core || !f->nodes[node].ready)
        return;
    const struct table *table = fixture_table(f, node, "tbl");
    bool strong = table && table->mode == TABLE_STRONG;
    if (strong) {
        uint16_t held = table->witness;
        const char *data = held ? region_id_name(table->replicas[0].region) : first;
        story->op = fixture_dissolve(f, "tbl", data, held ? NULL : second,
                                     held ? region_id_name(held) : NULL);
    } else {
        story->op = witness ? fixture_strong(f, "tbl", first, NULL, second)
                            : fixture_strong(f, "tbl", first, second, NULL);
    }
    fixture_send(f, node, story->op);
}

static void put_somewhere(struct story *story)
{
    uint32_t node = (uint32_t)rng_below(&story->rng, 3);
    struct fixture *f = &story->f;
    if (!f->nodes[node].core || story->put_count == array_len(story->puts))
        return;
    const struct table *table = fixture_table(f, node, "tbl");
    if (!table || table->mode != TABLE_STRONG)
        return; /* a regional one is to stay empty, so that it can become strong again */
    char pk[16];
    snprintf(pk, sizeof(pk), "k%u", story->put_count);
    struct op *op = fixture_put(f, "tbl", pk, "1");
    story->puts[story->put_count++] = op;
    fixture_send(f, node, op);
}

/* The last Region that has the table alone forgets its items: another round can begin. */
static void empty_regional(struct story *story)
{
    struct fixture *f = &story->f;
    for (uint32_t node = 0; node < 3; node++) {
        const struct table *table = f->nodes[node].core ? fixture_table(f, node, "tbl") : NULL;
        if (!table || table->mode != TABLE_REGIONAL || table->replica_count || table->witness)
            continue;
        for (uint32_t i = 0; i < story->put_count; i++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%u", i);
            struct op *op = story->puts[i];
            bool acknowledged = fixture_replied(f, op) && op->result.error == API_OK;
            if (acknowledged && !fixture_value(f, node, "tbl", pk))
                fail_msg("%s is lost", pk);
            story->kept += acknowledged;
            accept(f, node, fixture_delete(f, "tbl", pk));
        }
        story->put_count = 0;
        story->dissolved++;
        return;
    }
}

/* One disk at a time, and none while it may be the only one: not before the last one has been
 * rebuilt, and not while the table comes or goes. */
static bool may_lose_disk(const struct story *story)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct table *table =
            story->f.nodes[i].core ? fixture_table(&story->f, i, "tbl") : NULL;
        if (table && (table->status != TABLE_ACTIVE || table->mode != TABLE_STRONG))
            return false;
    }
    bool asked = story->op && !fixture_replied(&story->f, story->op);
    return !asked && all_full(story);
}

static void fault(struct story *story)
{
    struct fixture *f = &story->f;
    uint32_t node = (uint32_t)rng_below(&story->rng, 3);
    uint32_t other = (node + 1 + (uint32_t)rng_below(&story->rng, 2)) % 3;
    switch (rng_below(&story->rng, 5)) {
    case 0: {
        bool lose = rng_one_in(&story->rng, 2) && may_lose_disk(story);
        if (f->nodes[node].core)
            fixture_kill(f, node);
        if (lose) {
            fixture_lose_disk(f, node);
            story->lost++;
        }
        story->op = NULL; /* it may have died with its Region */
        return;
    }
    case 1:
        fixture_cut(f, node, other, true);
        return;
    case 2:
        f->nodes[node].hold_disk = f->nodes[node].core != NULL;
        return;
    case 3:
        fixture_sync(f, node, (uint32_t)rng_below(&story->rng, 5));
        return;
    default:
        if (f->nodes[node].batches)
            fixture_fail(f, node);
        return;
    }
}

static void heal(struct story *story)
{
    struct fixture *f = &story->f;
    for (uint32_t i = 0; i < 3; i++) {
        f->nodes[i].hold_disk = false;
        if (!f->nodes[i].core)
            fixture_start(f, i);
        else
            fixture_sync(f, i, UINT32_MAX);
        for (uint32_t j = 0; j < 3; j++) {
            if (i != j)
                fixture_cut(f, i, j, false);
        }
    }
    fixture_advance(f, 12000);
}

/* Everything at rest: strong in all Regions, or regional in one, with all that was acknowledged. */
static void expect_whole(struct story *story)
{
    struct fixture *f = &story->f;
    uint32_t strong = 0, regional = 0, groups = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const struct table *table = fixture_table(f, i, "tbl");
        groups += region_group_count(f->nodes[i].core);
        if (!table)
            continue;
        assert_int_equal(table->status, TABLE_ACTIVE);
        strong += table->mode == TABLE_STRONG;
        regional += table->mode == TABLE_REGIONAL;
    }
    if (regional == 0 && strong > 0) {
        assert_true(strong >= 2);
        assert_int_equal(groups, 3 * f->config.partitions_per_table);
        assert_true(all_full(story));
        story->made++;
    } else {
        assert_int_equal(regional, 1);
        assert_int_equal(strong + groups, 0);
        for (uint32_t i = 0; i < 3; i++)
            expect_no_strong_rows(f, i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        const struct table *table = fixture_table(f, i, "tbl");
        for (uint32_t j = 0; table && j < story->put_count; j++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%u", j);
            struct op *op = story->puts[j];
            if (fixture_replied(f, op) && op->result.error == API_OK &&
                !fixture_value(f, i, "tbl", pk))
                fail_msg("%s is lost at node %u", pk, i);
        }
    }
}

static void whatever_happens(void **state)
{
    (void)state;
    uint32_t made = 0, dissolved = 0, lost = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct story *story = xcalloc(1, sizeof(*story));
        story->names[0] = "us-east-1";
        story->names[1] = EUROPE;
        story->names[2] = JAPAN;
        rng_init(&story->rng, seed);
        fixture_init(&story->f, 3);
        create(&story->f, 0, "tbl");
        for (uint32_t round = 0; round < 4; round++) {
            for (uint32_t i = 0; i < 25; i++) {
                uint64_t what = rng_below(&story->rng, 10);
                if (what < 2)
                    update_somewhere(story);
                else if (what < 6)
                    put_somewhere(story);
                else if (what < 8)
                    fault(story);
                else if (what < 9 && !story->f.nodes[i % 3].core)
                    fixture_start(&story->f, i % 3);
                fixture_advance(&story->f, 50 * rng_below(&story->rng, 12));
            }
            heal(story);
            expect_whole(story);
            empty_regional(story);
        }
        made += story->made;
        dissolved += story->dissolved;
        lost += story->lost;
        kept += story->kept;
        fixture_deinit(&story->f);
        free(story);
    }
    print_message("strong %u, regional %u, disks lost %u, acknowledged and kept %u\n", made,
                  dissolved, lost, kept);
    assert_true(made > 10 && dissolved > 10 && lost > 3 && kept > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
