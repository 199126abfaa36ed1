/* SPDX-License-Identifier: Apache-2.0 */
/* Ledgers and RPO on a small world of last-writer-wins that knows what it loses: three regions that
 * write one item, ship versions with what their writers had seen, and note who lost to whom. Then
 * the same with one row too few, one too many, and with a region that dies with what it had not
 * shipped; and planted cases. */

#include "tests/lib/check/history_make.h"

#include "chaos/check/chain.h"
#include "chaos/check/ledgers.h"
#include "chaos/check/rpo.h"

enum { REGIONS = 3, VALUES = 40, ROUNDS = 3000 };

struct world {
    struct history history;
    uint64_t value[REGIONS]; /* what each region holds; the greater version wins */
    uint64_t seen[VALUES];   /* by value, as bits: what its writer had seen, and itself */
    uint64_t known[REGIONS]; /* bits of values that arrived there */
    uint8_t writer[VALUES];
    bool erased[VALUES]; /* it is a deletion, which the clients see as absence */
    bool erases;         /* whether there are any */
    uint32_t op[VALUES];
    struct ledgers_row rows[VALUES * VALUES];
    uint32_t row_count;
    uint64_t next, now;
};

static void note(struct world *world, uint64_t winner, uint64_t loser, uint8_t region)
{
    world->rows[world->row_count++] =
        (struct ledgers_row){.winner = world->erased[winner] ? 0 : winner,
                             .loser = world->erased[loser] ? 0 : loser,
                             .regions = 1ull << region};
}

static void world_write(struct world *world, uint8_t region)
{
    if (world->next == VALUES)
        return;
    uint64_t value = world->next++, old = world->value[region];
    world->now += 2;
    world->writer[value] = region;
    struct history_op op = make_op(HISTORY_PUT, 0, world->now, world->now + 1);
    world->erased[value] =
        world->erases && old && !world->erased[old] && world->now % 6 == 0; /* one in three */
    if (world->erased[value])
        op.kind = HISTORY_DELETE;
    else
        op.written = value;
    op.region = region;
    saw(&op, world->erased[old] ? 0 : old);
    world->op[value] = add(&world->history, &op);
    world->known[region] |= 1ull << value;
    world->seen[value] = world->known[region] | world->seen[old];
    world->value[region] = value;
}

static void world_arrive(struct world *world, uint64_t value, uint8_t to)
{
    uint64_t held = world->value[to];
    world->known[to] |= 1ull << value;
    uint64_t winner = value > held ? value : held, loser = value > held ? held : value;
    if (held && !(world->seen[winner] >> loser & 1))
        note(world, winner, loser, to);
    world->value[to] = winner;
}

/* The next of what `from` wrote arrives, in order as on one connection. False: nothing is left. */
static bool world_ship(struct world *world, uint8_t from, uint8_t to)
{
    for (uint64_t value = 1; value < world->next; value++)
        if (world->writer[value] == from && !(world->known[to] >> value & 1)) {
            world_arrive(world, value, to);
            return true;
        }
    return false;
}

static struct world *world_begin(struct rng *rng, bool erases)
{
    static struct world world;
    world = (struct world){.history = new_history(), .next = 1, .erases = erases};
    uint64_t steps = rng_between(rng, 1, 60);
    for (uint64_t i = 0; i < steps; i++) {
        uint8_t region = (uint8_t)rng_below(rng, REGIONS), to = (uint8_t)rng_below(rng, REGIONS);
        if (rng_one_in(rng, 3))
            world_write(&world, region);
        else if (region != to)
            world_ship(&world, region, to);
    }
    return &world;
}

static struct world *world_new(struct rng *rng)
{
    return world_begin(rng, false);
}

/* dead: 0, or 1 for region 0. */
static void world_settle(struct world *world, uint64_t dead)
{
    for (uint64_t value = 1; value < world->next; value++) /* survivors pass on what they have */
        for (uint8_t to = 1; to < REGIONS && dead; to++)
            if (world->writer[value] == 0 && world->known[3 - to] >> value & 1 &&
                !(world->known[to] >> value & 1))
                world_arrive(world, value, to);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint8_t from = 0; from < REGIONS; from++)
            for (uint8_t to = 0; to < REGIONS; to++)
                if (from != to && !(dead >> from & 1) && !(dead >> to & 1))
                    moved = world_ship(world, from, to) || moved;
    }
    for (uint8_t region = 0; region < REGIONS; region++)
        if (!(dead >> region & 1))
            last_look(&world->history, region, 0, world->now + 10,
                      world->erased[world->value[region]] ? 0 : world->value[region]);
}

static void judge_ledgers(const struct world *world, uint64_t dead, struct verdict *ret)
{
    struct ledgers_options options = {world->rows, world->row_count, dead};
    check_ledgers(&world->history, &options, ret);
}

static void test_a_true_ledger(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    uint64_t forks = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_new(&rng);
        world_settle(world, 0);
        struct verdict verdict;
        judge_ledgers(world, 0, &verdict);
        expect_verdict(&verdict, VERDICT_OK, "each in a ledger");
        assert_int_equal(verdict_get(&verdict, "unjudged"), 0);
        forks += verdict_get(&verdict, "forks");
        verdict_deinit(&verdict);
        history_deinit(&world->history);
    }
    assert_true(forks > ROUNDS);
}

/* The dead region's ledger is lost with it, and with what it had not shipped. */
static void test_a_ledger_less(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 6);
    uint32_t without = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_new(&rng);
        world_settle(world, 1);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < world->row_count; i++)
            if (world->rows[i].regions != 1)
                world->rows[kept++] = world->rows[i];
        world->row_count = kept;
        struct verdict verdict;
        judge_ledgers(world, 1, &verdict);
        expect_verdict(&verdict, VERDICT_OK, "");
        verdict_deinit(&verdict);
        judge_ledgers(world, 0, &verdict);
        without += verdict.kind == VERDICT_WRONG;
        verdict_deinit(&verdict);
        history_deinit(&world->history);
    }
    assert_true(without > ROUNDS / 10);
}

static void test_a_row_too_few(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    uint32_t caught = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_new(&rng);
        world_settle(world, 0);
        struct chain_forks forks;
        struct verdict verdict;
        check_chain(&world->history, &(struct chain_options){.eventual = true}, &forks, &verdict);
        verdict_deinit(&verdict);
        if (forks.count) {
            uint32_t loser = forks.at[rng_below(&rng, forks.count)].loser, kept = 0;
            uint64_t value = world->history.ops[loser].written;
            for (uint32_t i = 0; i < world->row_count; i++)
                if (world->rows[i].loser != value)
                    world->rows[kept++] = world->rows[i];
            assert_true(kept < world->row_count);
            world->row_count = kept;
            judge_ledgers(world, 0, &verdict);
            expect_verdict(&verdict, VERDICT_WRONG, "no ledger says so");
            assert_int_equal(verdict_get(&verdict, "missing"), 1);
            assert_true(names_op(&verdict, loser));
            verdict_deinit(&verdict);
            caught++;
        }
        chain_forks_deinit(&forks);
        history_deinit(&world->history);
    }
    assert_true(caught > ROUNDS / 4);
}

/* Winner and loser drawn at random: false exactly if the winner's writer knew the loser's value by
 * what was written over it, or a Region has it the other way round, and then both are. */
static void test_a_row_too_many(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    uint32_t refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_new(&rng);
        world_settle(world, 0);
        if (world->next > 2) {
            uint64_t a = rng_between(&rng, 1, world->next - 1);
            uint64_t b = rng_between(&rng, 1, world->next - 1), at = a, up = b;
            while (at && at != b)
                at = world->history.ops[world->op[at]].value;
            while (up && up != a)
                up = world->history.ops[world->op[up]].value;
            bool disputed = false;
            for (uint32_t i = 0; i < world->row_count; i++)
                disputed |= world->rows[i].winner == b && world->rows[i].loser == a;
            note(world, a, b, 1);
            struct verdict verdict;
            judge_ledgers(world, 0, &verdict);
            bool wrong = at == b || up == a;
            assert_int_equal(verdict_get(&verdict, "false_rows"), disputed ? 2 : wrong);
            refused += disputed || wrong;
            verdict_deinit(&verdict);
        }
        history_deinit(&world->history);
    }
    assert_in_range(refused, ROUNDS / 10, ROUNDS * 9 / 10);
}

/* ---- With deletions ---- */

/* Values that nobody replaced or deleted knowingly, and that are not the last. */
static uint64_t world_dropped(const struct world *world)
{
    bool replaced[VALUES] = {0};
    uint64_t count = 0;
    for (uint64_t value = 1; value < world->next; value++)
        replaced[world->history.ops[world->op[value]].value] = true;
    for (uint64_t value = 1; value < world->next; value++)
        count += !world->erased[value] && !replaced[value] && world->value[0] != value;
    return count;
}

static void test_ledgers_with_deletions(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    uint64_t forks = 0, pairs = 0, unjudged = 0, caught = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_begin(&rng, true);
        world_settle(world, 0);
        uint64_t dropped = world_dropped(world);
        struct chain_forks found;
        struct verdict verdict;
        check_chain(&world->history, &(struct chain_options){.eventual = true}, &found, &verdict);
        assert_int_equal(verdict_get(&verdict, "unjudged"), 0);
        assert_true(found.count >= dropped);
        verdict_deinit(&verdict);
        judge_ledgers(world, 0, &verdict);
        expect_verdict(&verdict, VERDICT_OK, "in a ledger");
        forks += verdict_get(&verdict, "forks");
        pairs += verdict_get(&verdict, "pairs");
        unjudged += verdict_get(&verdict, "unjudged");
        verdict_deinit(&verdict);
        for (uint32_t i = 0; i < found.count; i++) { /* and without its rows it is missed */
            uint64_t loser = world->history.ops[found.at[i].loser].written;
            uint32_t kept = 0;
            for (uint32_t j = 0; j < world->row_count; j++)
                if (world->rows[j].loser != loser)
                    world->rows[kept++] = world->rows[j];
            if (loser == 0)
                continue;
            world->row_count = kept;
            judge_ledgers(world, 0, &verdict);
            expect_verdict(&verdict, VERDICT_WRONG, "no ledger says so");
            verdict_deinit(&verdict);
            caught++;
            break;
        }
        chain_forks_deinit(&found);
        history_deinit(&world->history);
    }
    assert_true(forks > ROUNDS && caught > ROUNDS / 4);
    assert_in_range(unjudged, 1, pairs * 2 / 3);
}

/* The same with RPO: what has no rival is other, and nothing here is without. */
static void test_losses_with_deletions(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 9);
    uint64_t lww = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_begin(&rng, true);
        world_settle(world, 0);
        if (world->next > 1) {
            const struct rpo_options options = {.rows = world->rows, .row_count = world->row_count};
            struct verdict verdict;
            check_rpo(&world->history, &options, NULL, &verdict);
            expect_verdict(&verdict, VERDICT_OK, "; lost: ");
            assert_int_equal(verdict_get(&verdict, "unjudged"), 0);
            assert_true(verdict_get(&verdict, "lost_lww") >= world_dropped(world));
            lww += verdict_get(&verdict, "lost_lww");
            verdict_deinit(&verdict);
        }
        history_deinit(&world->history);
    }
    assert_true(lww > ROUNDS);
}

/* ---- RPO in the same world ---- */

static void test_losses(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 4);
    uint32_t with_unreplicated = 0, with_lww = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct world *world = world_new(&rng);
        uint64_t dead = rng_one_in(&rng, 3) ? 0 : 1, fault = world->now + 5;
        uint64_t shipped = world->known[1] | world->known[2];
        world_settle(world, dead);
        if (world->next == 1) {
            history_deinit(&world->history);
            continue;
        }
        uint64_t final = world->value[1], unreplicated = 0, lww = 0, first = UINT64_MAX;
        for (uint64_t value = 1; value < world->next; value++) {
            uint64_t at = final;
            while (at && at != value)
                at = world->history.ops[world->op[at]].value;
            bool stayed = dead && world->writer[value] == 0 && !(shipped >> value & 1);
            if (at == value)
                continue;
            unreplicated += stayed;
            lww += !stayed;
            if (stayed && world->history.ops[world->op[value]].return_ns < first)
                first = world->history.ops[world->op[value]].return_ns;
        }
        const struct rpo_death death = {fault, 0};
        struct rpo_options options = {.deaths = &death,
                                      .death_count = dead ? 1 : 0,
                                      .rows = world->rows,
                                      .row_count = world->row_count};
        struct rpo_losses losses;
        struct verdict verdict;
        check_rpo(&world->history, &options, &losses, &verdict);
        expect_verdict(&verdict, VERDICT_OK, "; lost: ");
        assert_int_equal(losses.count, unreplicated + lww);
        assert_int_equal(verdict_get(&verdict, "rpo_count"), unreplicated);
        assert_int_equal(verdict_get(&verdict, "lost_lww"), lww);
        assert_int_equal(verdict_get(&verdict, "rpo_ns"), unreplicated ? fault - first : 0);
        with_unreplicated += unreplicated > 0;
        with_lww += lww > 0;
        rpo_losses_deinit(&losses);
        verdict_deinit(&verdict);
        options.strong = true;
        check_rpo(&world->history, &options, NULL, &verdict);
        assert_int_equal(verdict.kind, unreplicated + lww ? VERDICT_WRONG : VERDICT_OK);
        verdict_deinit(&verdict);
        history_deinit(&world->history);
    }
    assert_true(with_unreplicated > ROUNDS / 10 && with_lww > ROUNDS / 10);
}

/* ---- Planted ---- */

static void expect_row(const struct history *history, struct ledgers_row row,
                       enum verdict_kind kind, const char *part)
{
    struct ledgers_options options = {&row, 1, 0};
    struct verdict verdict;
    check_ledgers(history, &options, &verdict);
    expect_verdict(&verdict, kind, part);
    verdict_deinit(&verdict);
}

static void test_planted_rows(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    put(&history, 0, 0, 3, 4, 2, 1);
    put(&history, 1, 0, 3, 4, 3, 1);
    last_look(&history, 0, 0, 9, 2);
    struct ledgers_row row = {.winner = 2, .loser = 3};
    expect_row(&history, row, VERDICT_OK, "1 write was overwritten unseen, each");
    expect_row(&history, (struct ledgers_row){.winner = 3, .loser = 2}, VERDICT_WRONG,
               "3 was lost, and no ledger says so");
    expect_row(&history, (struct ledgers_row){.winner = 2, .loser = 1}, VERDICT_WRONG,
               "1 lost to 2, but the winner was written over the loser");
    expect_row(&history, (struct ledgers_row){.winner = 1, .loser = 3}, VERDICT_WRONG,
               "the loser had seen the winner");
    expect_row(&history, (struct ledgers_row){.winner = 1, .loser = 3, .late = true}, VERDICT_OK,
               "");
    expect_row(&history, (struct ledgers_row){.winner = 2, .loser = 9}, VERDICT_WRONG,
               "nobody wrote that");
    expect_row(&history, (struct ledgers_row){.winner = 2, .loser = 3, .key = 5}, VERDICT_WRONG,
               "nobody wrote that");
    const struct ledgers_row both[] = {{.winner = 2, .loser = 3, .regions = 1},
                                       {.winner = 3, .loser = 2, .regions = 2}};
    struct ledgers_options options = {both, 2, 0};
    struct verdict verdict;
    check_ledgers(&history, &options, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "by another row it won, so Regions disagree");
    verdict_deinit(&verdict);
    options = (struct ledgers_options){NULL, 0, 1 << 1};
    check_ledgers(&history, &options, &verdict);
    expect_verdict(&verdict, VERDICT_OK, ""); /* region 1 died with it */
    verdict_deinit(&verdict);
    get(&history, 2, 0, 5, 6, 3);
    check_ledgers(&history, &options, &verdict);
    expect_verdict(&verdict, VERDICT_WRONG, "no ledger"); /* region 2 had it */
    verdict_deinit(&verdict);
    history_deinit(&history);
}

static void test_deletion_lost(void **state)
{
    (void)state;
    struct history history = new_history();
    put(&history, 0, 0, 1, 2, 1, 0);
    struct history_op op = make_op(HISTORY_DELETE, 0, 3, 4);
    saw(&op, 1);
    add(&history, &op);
    put(&history, 1, 0, 3, 4, 2, 1);
    last_look(&history, 0, 0, 9, 2);
    expect_row(&history, (struct ledgers_row){.winner = 2, .loser = 0}, VERDICT_OK, "");
    expect_row(&history, (struct ledgers_row){.winner = 2, .loser = 0, .key = 1}, VERDICT_WRONG,
               "");
    history.ops[3].value = 0;
    history.ops[3].saw = HISTORY_SAW_ABSENT; /* the deletion prevailed */
    expect_row(&history, (struct ledgers_row){.winner = 0, .loser = 2}, VERDICT_OK, "");
    history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_true_ledger),
                                       cmocka_unit_test(test_a_ledger_less),
                                       cmocka_unit_test(test_a_row_too_few),
                                       cmocka_unit_test(test_a_row_too_many),
                                       cmocka_unit_test(test_losses_with_deletions),
                                       cmocka_unit_test(test_ledgers_with_deletions),
                                       cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_planted_rows),
                                       cmocka_unit_test(test_deletion_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
