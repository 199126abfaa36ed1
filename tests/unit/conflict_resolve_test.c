/* SPDX-License-Identifier: Apache-2.0 */
/* Last writer wins. The laws of the join on random versions; and a small world of three Regions
 * that remember exactly who had seen what, against which every relation is checked. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conflict/base/rng.h"
#include "conflict/hlc.h"
#include "conflict/region_id.h"
#include "conflict/resolve.h"

static const struct record *join(const struct record *a, const struct record *b)
{
    return resolve(a, b).winner == RESOLVE_INCOMING ? b : a;
}

static void joins_in_any_order(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < 50000; i++) {
        struct record r[3] = {0};
        for (int n = 0; n < 3; n++) {
            r[n].kind = RECORD_PUT;
            r[n].version = (struct version){rng_below(&rng, 3), (uint16_t)rng_between(&rng, 1, 3),
                                            rng_between(&rng, 1, 3)};
        }
        struct version ab = join(&r[0], &r[1])->version, ba = join(&r[1], &r[0])->version;
        assert_int_equal(version_compare(ab, ba), 0);
        struct version left = join(join(&r[0], &r[1]), &r[2])->version;
        struct version right = join(&r[0], join(&r[1], &r[2]))->version;
        assert_int_equal(version_compare(left, right), 0);
        assert_ptr_equal(join(&r[0], &r[0]), &r[0]);
        assert_int_equal(resolve(&r[0], &r[0]).relation, RESOLVE_DUPLICATE);
    }
    struct record first = {.kind = RECORD_PUT, .version = {1, 1, 1}};
    assert_int_equal(resolve(NULL, &first).winner, RESOLVE_INCOMING);
    assert_int_equal(resolve(NULL, &first).relation, RESOLVE_SUCCESSION);
}

enum { REGIONS = 3, WRITES_MAX = 60 };

struct write {
    struct record record;
    uint64_t
        seen; /* bit per write: all that its writer had applied or overwritten, closed over time */
};

struct world {
    struct write writes[WRITES_MAX];
    uint32_t count;
    struct vv vv[REGIONS];
    uint64_t seen[REGIONS];          /* writes applied, with all that those had seen */
    int stored[REGIONS];             /* write, or -1 */
    uint32_t next[REGIONS][REGIONS]; /* of whose log, in writes[] */
    struct hlc clock[REGIONS];
};

static void world_write(struct world *world, int at, uint64_t wall)
{
    struct write *write = &world->writes[world->count];
    struct record *record = &write->record;
    int stored = world->stored[at];
    uint64_t after = stored >= 0 ? world->writes[stored].record.version.hlc : 0;
    record->kind = RECORD_PUT;
    record->dep = world->vv[at];
    if (stored >= 0) {
        const struct record *old = &world->writes[stored].record;
        assert_true(vv_join(&record->dep, &old->dep));
        assert_true(vv_raise(&record->dep, old->version.origin, old->version.seq));
    }
    uint16_t origin = (uint16_t)(at + 1);
    record->version = (struct version){hlc_tick(&world->clock[at], wall, after), origin,
                                       vv_get(&world->vv[at], origin) + 1};
    write->seen = world->seen[at];
    assert_true(vv_raise(&world->vv[at], origin, record->version.seq));
    world->seen[at] |= (uint64_t)1 << world->count;
    if (stored < 0 || resolve(&world->writes[stored].record, record).winner == RESOLVE_INCOMING)
        world->stored[at] = (int)world->count;
    world->count++;
}

static void check_pair(const struct world *world, int stored, int incoming)
{
    const struct write *s = &world->writes[stored], *i = &world->writes[incoming];
    struct resolution got = resolve(&s->record, &i->record);
    bool incoming_wins = version_compare(i->record.version, s->record.version) > 0;
    assert_int_equal(got.winner, incoming_wins ? RESOLVE_INCOMING : RESOLVE_STORED);
    int winner = incoming_wins ? incoming : stored, loser = incoming_wins ? stored : incoming;
    bool winner_saw = world->writes[winner].seen >> loser & 1;
    bool loser_saw = world->writes[loser].seen >> winner & 1;
    enum resolve_relation want = winner_saw  ? RESOLVE_SUCCESSION
                                 : loser_saw ? RESOLVE_LATE
                                             : RESOLVE_CONCURRENT;
    assert_int_equal(got.relation, want);
}

/* One log entry of one Region comes in at another; what its writer had seen is not seen by that. */
static void world_ship(struct world *world, int from, int to)
{
    uint32_t *next = &world->next[to][from];
    while (*next < world->count && world->writes[*next].record.version.origin != from + 1)
        ++*next;
    if (*next == world->count)
        return;
    int incoming = (int)(*next)++, stored = world->stored[to];
    const struct record *record = &world->writes[incoming].record;
    if (stored >= 0)
        check_pair(world, stored, incoming);
    assert_true(vv_raise(&world->vv[to], record->version.origin, record->version.seq));
    if (stored < 0 || resolve(&world->writes[stored].record, record).winner == RESOLVE_INCOMING)
        world->stored[to] = incoming;
    world->seen[to] |= (uint64_t)1 << incoming;
}

/* A writer has seen what its Region has applied, and what the item that it overwrites had seen. */
static void world_close(struct world *world, int at)
{
    if (world->stored[at] >= 0)
        world->seen[at] |= world->writes[world->stored[at]].seen;
}

static void relations_are_what_happened(void **state)
{
    (void)state;
    uint32_t found[4] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct world world = {0};
        enum hlc_mode mode = rng_one_in(&rng, 2) ? HLC_WALL : HLC_HYBRID;
        uint64_t skew[REGIONS];
        for (int i = 0; i < REGIONS; i++) {
            hlc_init(&world.clock[i], mode, 500, 0);
            skew[i] = rng_below(&rng, 50);
            world.stored[i] = -1;
        }
        for (uint64_t step = 0; step < 100 && world.count < WRITES_MAX; step++) {
            int at = (int)rng_below(&rng, REGIONS), from = (int)rng_below(&rng, REGIONS);
            if (rng_one_in(&rng, 3)) {
                uint64_t seen = world.seen[at];
                world_close(&world, at);
                world_write(&world, at, 1000 + step + skew[at]);
                /* Seen through the overwritten item is seen by this write, not by the Region. */
                world.seen[at] = seen | (uint64_t)1 << (world.count - 1);
            } else if (from != at) {
                int stored = world.stored[at];
                world_ship(&world, from, at);
                if (stored >= 0 && world.stored[at] >= 0)
                    found[resolve(&world.writes[stored].record,
                                  &world.writes[world.stored[at]].record)
                              .relation]++;
            }
        }
    }
    assert_true(found[RESOLVE_SUCCESSION] > 100);
    assert_true(found[RESOLVE_CONCURRENT] > 100);
}

static void late_is_the_plain_clocks_doing(void **state)
{
    (void)state;
    struct record fast = {.kind = RECORD_PUT, .version = {hlc_make(9000, 0), 1, 1}};
    struct record slow = {.kind = RECORD_DELETE, .version = {hlc_make(1000, 0), 2, 1}};
    assert_int_equal(resolve(&fast, &slow).relation, RESOLVE_CONCURRENT);
    assert_true(vv_raise(&slow.dep, 1, 1));
    assert_int_equal(resolve(&fast, &slow).winner, RESOLVE_STORED);
    assert_int_equal(resolve(&fast, &slow).relation, RESOLVE_LATE);
    assert_int_equal(resolve(&slow, &fast).winner, RESOLVE_INCOMING);
    assert_int_equal(resolve(&slow, &fast).relation, RESOLVE_LATE);
}

static void ties_go_to_the_greater_region(void **state)
{
    (void)state;
    struct record low = {.kind = RECORD_PUT, .version = {5, 1, 9}};
    struct record high = {.kind = RECORD_PUT, .version = {5, 2, 1}};
    assert_int_equal(resolve(&low, &high).winner, RESOLVE_INCOMING);
    assert_int_equal(resolve(&high, &low).winner, RESOLVE_STORED);
}

/* What a Region wrote before it lost its disk it has seen only if it came back to it. */
static void a_lost_disk_has_seen_nothing(void **state)
{
    (void)state;
    struct record before = {.kind = RECORD_PUT, .version = {1, 7, version_epoch_base(1) + 5}};
    struct record after = {.kind = RECORD_PUT, .version = {2, 7, version_epoch_base(2) + 1}};
    assert_int_equal(resolve(&before, &after).winner, RESOLVE_INCOMING);
    assert_int_equal(resolve(&before, &after).relation, RESOLVE_CONCURRENT);
    assert_true(vv_raise(&after.dep, 7, version_epoch_base(1) + 4));
    assert_int_equal(resolve(&before, &after).relation, RESOLVE_CONCURRENT);
    assert_true(vv_raise(&after.dep, 7, version_epoch_base(1) + 5));
    assert_int_equal(resolve(&before, &after).relation, RESOLVE_SUCCESSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_in_any_order),
        cmocka_unit_test(relations_are_what_happened),
        cmocka_unit_test(late_is_the_plain_clocks_doing),
        cmocka_unit_test(ties_go_to_the_greater_region),
        cmocka_unit_test(a_lost_disk_has_seen_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
