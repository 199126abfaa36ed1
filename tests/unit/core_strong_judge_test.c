/* SPDX-License-Identifier: Apache-2.0 */
/* A start over the rows of a consensus group, damaged in every way: it gives what is right, and
 * says so when something that was durable is gone. Whatever the judge says, a member starts from
 * it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "region/core/strong_rows.h"
#include "tests/lib/strong_rows.h"

enum { ROWS_MAX = 64 };

/* A group's rows, and what they once were. */
struct disk {
    struct buf slots[2], base, rows[ROWS_MAX + 1]; /* by index; empty: not there */
    struct consensus_entry entries[ROWS_MAX + 1];
    uint64_t base_index, base_term, last;
    struct consensus_hard hard;
    uint64_t generation;
};

static void disk_hard(struct disk *disk)
{
    struct buf *slot = &disk->slots[++disk->generation % 2];
    buf_reset(slot);
    strong_hard_encode(&disk->hard, disk->generation, slot);
}

static void disk_base(struct disk *disk, uint64_t index, uint64_t term)
{
    disk->base_index = index;
    disk->base_term = term;
    if (disk->last < index)
        disk->last = index;
    for (uint64_t i = 1; i <= index; i++)
        buf_reset(&disk->rows[i]);
    buf_reset(&disk->base);
    strong_base_encode(index, term, &disk->base);
}

/* One write: entries from `from` on, what was there before goes. */
static void disk_append(struct disk *disk, uint64_t from, uint32_t count, uint64_t term,
                        uint64_t synced)
{
    for (uint64_t i = from; i <= disk->last; i++)
        buf_reset(&disk->rows[i]);
    for (uint64_t i = from; i < from + count; i++) {
        check(i <= ROWS_MAX);
        disk->entries[i] = (struct consensus_entry){.index = i,
                                                    .term = term,
                                                    .kind = CONSENSUS_WRITE,
                                                    .origin = (uint8_t)(i % 3),
                                                    .seq = i,
                                                    .payload = bytes_literal("payload")};
        strong_log_encode(&disk->entries[i], synced, &disk->rows[i]);
    }
    disk->last = from + count - 1;
}

static void disk_deinit(struct disk *disk)
{
    buf_deinit(&disk->slots[0]);
    buf_deinit(&disk->slots[1]);
    buf_deinit(&disk->base);
    for (int i = 0; i <= ROWS_MAX; i++)
        buf_deinit(&disk->rows[i]);
}

static void flip(struct buf *row, size_t bit)
{
    row->at[bit / 8 % row->len] ^= (uint8_t)(1 << bit % 8);
}

/* Reads the rows as a start does. */
static void disk_find(const struct disk *disk, struct strong_found *found,
                      struct consensus_start *ret)
{
    strong_found_init(found);
    for (int i = 0; i < 2; i++) {
        if (disk->slots[i].len)
            strong_found_hard(found, buf_view(&disk->slots[i]));
    }
    if (disk->base.len)
        strong_found_base(found, buf_view(&disk->base));
    for (uint64_t i = 1; i <= ROWS_MAX; i++) {
        if (disk->rows[i].len)
            strong_found_log(found, i, buf_view(&disk->rows[i]));
    }
    *ret = (struct consensus_start){.incarnation = 2};
    strong_found_judge(found, ret);
}

/* Whatever the judge says, the member takes it; *ret_standing is what it then is. */
static enum consensus_standing start_member(const struct consensus_start *start)
{
    const struct consensus_config config = {
        .place = {.partition = 1},
        .epoch = 1,
        .seed = 1,
        .heartbeat_ns = 100000000,
        .election_ns = 500000000,
        .election_ns_max = 1000000000,
        .request_timeout_ns = 2000000000,
        .retry_ns = 200000000,
        .batch_bytes_max = 1 << 18,
        .inflight_bytes_max = 1 << 20,
        .log_bytes_max = 1 << 24,
        .frame_bytes_max = 1 << 21,
        .pending_max = 16,
        .evaluate_max = 16,
        .trim_entries = 64,
    };
    struct consensus *member = consensus_new(&config);
    struct consensus_output out;
    struct consensus_start copy = *start;
    copy.applied_index = copy.base_index;
    copy.applied_term = copy.base_term;
    struct consensus_input in = {.kind = CONSENSUS_START, .mono_ns = 1, .start = &copy};
    consensus_step(member, &in, &out);
    enum consensus_standing standing = consensus_status(member).standing;
    consensus_free(member);
    return standing;
}

/* Base 10, entries 11 to 16; what was written up to 14 is known to have become durable. */
static void disk_sample(struct disk *disk)
{
    *disk = (struct disk){.hard = {.term = 3, .voted_for = 1, .incarnation = 1, .boot = 1}};
    disk_hard(disk);
    disk->hard.boot++;
    disk_hard(disk);
    disk_base(disk, 10, 2);
    disk_append(disk, 11, 2, 2, 10);
    disk_append(disk, 13, 2, 3, 12);
    disk_append(disk, 15, 2, 3, 14);
}

static void expect(const struct disk *disk, bool found, uint64_t last, uint64_t damaged_upto)
{
    struct strong_found at;
    struct consensus_start start;
    disk_find(disk, &at, &start);
    assert_int_equal(start.found, found);
    assert_int_equal(start.base_index + start.entry_count, last);
    assert_int_equal(start.damaged_upto, damaged_upto);
    for (uint32_t i = 0; i < start.entry_count; i++)
        assert_entry_equal(&start.entries[i], &disk->entries[start.entries[i].index]);
    if (found)
        assert_hard_equal(&start.hard, &disk->hard);
    bool empty = !disk->slots[0].len && !disk->slots[1].len && !disk->base.len && !at.last_index;
    assert_int_equal(at.hard_damaged, !found && !empty);
    enum consensus_standing standing = start_member(&start);
    assert_int_equal(standing, !found         ? CONSENSUS_REBUILDING
                               : damaged_upto ? CONSENSUS_RECOVERING
                                              : CONSENSUS_FULL);
    strong_found_deinit(&at);
}

static void a_clean_log_is_given_whole(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    expect(&disk, true, 16, 0);
    disk_base(&disk, 16, 3); /* all trimmed */
    expect(&disk, true, 16, 0);
    disk_deinit(&disk);

    /* A group that was just made has one slot and no base. */
    disk = (struct disk){.hard = consensus_hard_initial(1)};
    disk_hard(&disk);
    expect(&disk, true, 0, 0);
    disk_base(&disk, 0, 0); /* somebody has written since: where is that hard state? */
    expect(&disk, false, 0, 0);
    disk_deinit(&disk);

    /* A new disk has nothing. */
    disk = (struct disk){0};
    expect(&disk, false, 0, 0);
    disk_deinit(&disk);
}

static void rows_below_the_base_do_not_matter(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    buf_reset(&disk.base);
    strong_base_encode(13, 3, &disk.base);
    disk.base_index = 13;
    flip(&disk.rows[12], 40);
    expect(&disk, true, 16, 0);
    disk_deinit(&disk);
}

static void a_torn_tail_is_no_damage(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    buf_reset(&disk.rows[15]);
    buf_reset(&disk.rows[16]);
    expect(&disk, true, 14, 0);
    disk_deinit(&disk);

    /* A write that cut the log knew of more than was left. */
    disk_sample(&disk);
    disk.hard.term = 4;
    disk_hard(&disk);
    disk_append(&disk, 13, 2, 4, 16);
    expect(&disk, true, 14, 0);
    buf_reset(&disk.rows[13]);
    buf_reset(&disk.rows[14]);
    expect(&disk, true, 12, 0);
    disk_deinit(&disk);
}

static void a_hole_is_damage(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    buf_reset(&disk.rows[13]); /* and 14, which 15 vouches for, is given up behind it */
    expect(&disk, true, 12, 16);
    disk_deinit(&disk);

    disk_sample(&disk);
    buf_reset(&disk.rows[14]);
    buf_reset(&disk.rows[16]);
    expect(&disk, true, 13, 15);
    disk_deinit(&disk);

    disk_sample(&disk);
    buf_reset(&disk.rows[11]);
    expect(&disk, true, 10, 16);
    disk_deinit(&disk);
}

static void an_unreadable_row_is_damage_wherever_it_is(void **state)
{
    (void)state;
    for (uint64_t at = 11; at <= 16; at++) {
        struct disk disk;
        disk_sample(&disk);
        flip(&disk.rows[at], 57);
        expect(&disk, true, at - 1, 16);
        disk_deinit(&disk);
    }
}

static void a_lost_base_is_damage_without_an_end(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    flip(&disk.base, 13);
    disk.base_index = 0;
    expect(&disk, true, 0, UINT64_MAX);
    buf_reset(&disk.base);
    expect(&disk, true, 0, UINT64_MAX);
    for (uint64_t i = 11; i <= 16; i++)
        buf_reset(&disk.rows[i]);
    expect(&disk, true, 0, UINT64_MAX);
    disk_deinit(&disk);
}

static void a_hard_state_that_may_be_older_is_not_found(void **state)
{
    (void)state;
    for (int slot = 0; slot < 2; slot++) {
        struct disk disk;
        disk_sample(&disk);
        flip(&disk.slots[slot], 20);
        expect(&disk, false, 16, 0);
        buf_reset(&disk.slots[slot]);
        expect(&disk, false, 16, 0);
        disk_deinit(&disk);
    }
    struct disk disk;
    disk_sample(&disk);
    buf_reset(&disk.slots[0]); /* slots that were not written in turn */
    strong_hard_encode(&disk.hard, 8, &disk.slots[0]);
    expect(&disk, false, 16, 0);
    disk_deinit(&disk);

    disk = (struct disk){.hard = consensus_hard_initial(1)};
    disk_hard(&disk);
    buf_append_text(&disk.slots[0], "unreadable"); /* beside the first one */
    expect(&disk, false, 0, 0);
    disk_deinit(&disk);

    disk_sample(&disk);
    disk_append(&disk, 17, 1, 4, 16); /* a term that the hard state does not know */
    expect(&disk, false, 17, 0);
    buf_reset(&disk.rows[12]);
    expect(&disk, false, 11, 17);
    disk_deinit(&disk);
}

static void terms_never_fall(void **state)
{
    (void)state;
    struct disk disk;
    disk_sample(&disk);
    disk.entries[16].term = 2;
    buf_reset(&disk.rows[16]);
    strong_log_encode(&disk.entries[16], 14, &disk.rows[16]);
    expect(&disk, true, 15, 16);
    disk_deinit(&disk);
}

static void an_unreadable_range_hides_the_end(void **state)
{
    (void)state;
    struct disk disk;
    struct strong_found found;
    struct consensus_start start;
    disk_sample(&disk);
    disk_find(&disk, &found, &start);
    found.unreadable = true;
    strong_found_judge(&found, &start);
    assert_true(start.found);
    assert_int_equal(start.entry_count, 6);
    assert_int_equal(start.damaged_upto, UINT64_MAX);
    assert_int_equal(start_member(&start), CONSENSUS_RECOVERING);
    strong_found_deinit(&found);
    disk_deinit(&disk);
}

/* ---- A random twin ---- */

/* Writes as a member does: entries, cuts, trims, terms, each with how far the log was durable. */
static void disk_draw(struct disk *disk, struct rng *rng)
{
    *disk = (struct disk){.hard = {.term = 1, .voted_for = CONSENSUS_NOBODY, .incarnation = 1}};
    disk_hard(disk);
    disk->hard.boot = 1;
    disk_hard(disk);
    disk_base(disk, 0, 0);
    uint64_t writes = rng_below(rng, 12), durable = 0;
    for (uint64_t i = 0; i < writes; i++) {
        if (rng_one_in(rng, 3)) {
            disk->hard.term++;
            disk_hard(disk);
        }
        if (rng_one_in(rng, 4) && disk->last > disk->base_index) {
            uint64_t to = rng_between(rng, disk->base_index + 1, disk->last);
            disk_base(disk, to, disk->entries[to].term);
        }
        uint64_t from = disk->last + 1;
        if (rng_one_in(rng, 4) && disk->last > disk->base_index)
            from = rng_between(rng, disk->base_index + 1, disk->last);
        if (durable >= from)
            durable = from - 1;
        disk_append(disk, from, 1 + (uint32_t)rng_below(rng, 4), disk->hard.term, durable);
        durable = rng_between(rng, durable, disk->last);
    }
}

struct damage {
    bool hard, base, any;
    bool row[ROWS_MAX + 1];
    uint64_t must_see; /* the last index that rows which were left still speak of, or 0 */
};

static bool damage_row(struct buf *row, struct rng *rng, uint64_t of)
{
    if (!row->len || !rng_one_in(rng, of))
        return false;
    if (rng_one_in(rng, 2))
        buf_reset(row);
    else
        flip(row, rng_below(rng, 8 * row->len));
    return true;
}

static struct damage disk_damage(struct disk *disk, struct rng *rng)
{
    struct damage damage = {0};
    damage.hard |= damage_row(&disk->slots[0], rng, 20);
    damage.hard |= damage_row(&disk->slots[1], rng, 20);
    damage.base = damage_row(&disk->base, rng, 20);
    uint64_t of = 1 + rng_below(rng, 40);
    for (uint64_t i = 1; i <= disk->last; i++)
        damage.row[i] = damage_row(&disk->rows[i], rng, of);
    for (uint64_t i = 1; i <= disk->last; i++) {
        struct consensus_entry entry;
        uint64_t synced;
        if (disk->rows[i].len)
            damage.must_see = i;
        if (strong_log_decode(i, buf_view(&disk->rows[i]), &entry, &synced) &&
            synced > damage.must_see)
            damage.must_see = synced;
    }
    return damage;
}

/* The first entry that is not as it was; the one behind the last if all are. */
static uint64_t first_lost(const struct disk *disk, const struct damage *damage)
{
    uint64_t i = disk->base_index + 1;
    while (i <= disk->last && !damage->row[i])
        i++;
    return i;
}

static void nothing_that_was_durable_is_silently_missing(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    uint32_t clean = 0, recovering = 0, rebuilding = 0;
    for (int round = 0; round < 6000; round++) {
        struct disk disk;
        struct strong_found found;
        struct consensus_start start;
        disk_draw(&disk, &rng);
        struct damage damage = disk_damage(&disk, &rng);
        disk_find(&disk, &found, &start);
        uint64_t lost = first_lost(&disk, &damage);
        uint64_t last = start.base_index + start.entry_count;
        assert_int_equal(start.found, !damage.hard);
        if (damage.base) {
            assert_int_equal(start.entry_count == 0 && start.damaged_upto == UINT64_MAX,
                             start.found || disk.base.len || found.hard.boot > 0);
        } else {
            assert_int_equal(start.base_index, disk.base_index);
            assert_int_equal(last, lost - 1);
            assert_int_equal(start.damaged_upto, damage.must_see >= lost ? damage.must_see : 0);
            for (uint32_t i = 0; i < start.entry_count; i++)
                assert_entry_equal(&start.entries[i], &disk.entries[disk.base_index + 1 + i]);
        }
        enum consensus_standing standing = start_member(&start);
        clean += standing == CONSENSUS_FULL;
        recovering += standing == CONSENSUS_RECOVERING;
        rebuilding += standing == CONSENSUS_REBUILDING;
        strong_found_deinit(&found);
        disk_deinit(&disk);
    }
    assert_true(clean > 100 && recovering > 100 && rebuilding > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_log_is_given_whole),
        cmocka_unit_test(rows_below_the_base_do_not_matter),
        cmocka_unit_test(a_torn_tail_is_no_damage),
        cmocka_unit_test(a_hole_is_damage),
        cmocka_unit_test(an_unreadable_row_is_damage_wherever_it_is),
        cmocka_unit_test(a_lost_base_is_damage_without_an_end),
        cmocka_unit_test(a_hard_state_that_may_be_older_is_not_found),
        cmocka_unit_test(terms_never_fall),
        cmocka_unit_test(an_unreadable_range_hides_the_end),
        cmocka_unit_test(nothing_that_was_durable_is_silently_missing),
    };
    return cmocka_run_group_tests_name("core/strong_judge", tests, NULL, NULL);
}
