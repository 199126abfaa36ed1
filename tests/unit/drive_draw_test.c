/* SPDX-License-Identifier: Apache-2.0 */
/* What clients are told to do next: the shares, the shape of zipfian choice, unique values, fresh
 * items; and the requests that come of it. */

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chaos/drive/draw.h"
#include "chaos/drive/figures.h"
#include "chaos/drive/request.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static void begin(struct draw *draw, uint8_t kind, uint64_t keys, struct scenario_mix mix,
                  uint64_t seed)
{
    struct scenario scenario = {
        .workload = {.kind = kind, .keys = keys, .mix = mix, .keys_chosen = SCENARIO_KEYS_UNIFORM}};
    scenario.cluster.mode = SCENARIO_STRONG;
    draw_init(draw, &scenario, seed);
}

/* ---- Order ---- */

static void test_shares(void **state)
{
    (void)state;
    struct draw draw;
    enum { DRAWS = 100000 };
    const struct scenario_mix mix = {
        .write = 0.4, .read_strong = 0.3, .read_eventual = 0.2, .erase = 0.1};
    uint32_t count[5] = {0}, read_only[5] = {0}, regions[8] = {0};
    enum draw_class class;
    begin(&draw, SCENARIO_SWAP_REGISTER, 8, mix, 1);
    for (int i = 0; i < DRAWS; i++) {
        assert_true(draw_class(&draw, true, &class));
        count[class]++;
        assert_true(draw_class(&draw, false, &class));
        read_only[class]++;
        regions[draw_region(&draw, 0x15)]++;
    }
    assert_in_range(count[DRAW_WRITE], DRAWS * 0.39, DRAWS * 0.41);
    assert_in_range(count[DRAW_READ_STRONG], DRAWS * 0.29, DRAWS * 0.31);
    assert_in_range(count[DRAW_READ_EVENTUAL], DRAWS * 0.19, DRAWS * 0.21);
    assert_in_range(count[DRAW_ERASE], DRAWS * 0.09, DRAWS * 0.11);
    assert_int_equal(count[DRAW_SCAN], 0);
    assert_int_equal(read_only[DRAW_WRITE] + read_only[DRAW_ERASE], 0);
    assert_in_range(read_only[DRAW_READ_STRONG], DRAWS * 0.59, DRAWS * 0.61);
    for (int i = 0; i < 8; i++)
        assert_in_range(regions[i], 0x15 >> i & 1 ? DRAWS * 0.32 : 0, 0x15 >> i & 1 ? DRAWS : 0);
    draw_deinit(&draw);
    begin(&draw, SCENARIO_SET, 8, (struct scenario_mix){.write = 1}, 1);
    assert_false(draw_class(&draw, false, &class));
    draw_deinit(&draw);
}

/* One seed, one order, whatever the answers; another seed, another order. */
static void test_order_is_the_seeds(void **state)
{
    (void)state;
    struct draw a, b, other;
    const struct scenario_mix mix = {.write = 0.5, .read_strong = 0.5};
    uint32_t differ = 0;
    begin(&a, SCENARIO_CAS_REGISTER, 8, mix, 42);
    begin(&b, SCENARIO_CAS_REGISTER, 8, mix, 42);
    begin(&other, SCENARIO_CAS_REGISTER, 8, mix, 43);
    for (int i = 0; i < 1000; i++) {
        enum draw_class x, y, z;
        struct draw_op op;
        assert_true(draw_class(&a, true, &x));
        assert_true(draw_class(&b, true, &y));
        assert_true(draw_class(&other, true, &z));
        assert_int_equal(x, y);
        assert_int_equal(draw_region(&a, 7), draw_region(&b, 7));
        differ += x != z;
        draw_op(&a, x, 1, &op); /* b's clients are slower */
    }
    assert_true(differ > 300);
    draw_deinit(&a);
    draw_deinit(&b);
    draw_deinit(&other);
}

/* ---- Zipf ---- */

static void test_zipf_shape(void **state)
{
    (void)state;
    enum { COUNT = 1000, DRAWS = 400000 };
    struct zipf zipf;
    struct rng rng;
    static uint32_t seen[COUNT];
    double zeta = 0;
    rng_init(&rng, 5);
    zipf_init(&zipf, COUNT);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t item = zipf_draw(&zipf, &rng);
        assert_true(item < COUNT);
        seen[item]++;
    }
    for (int i = 1; i <= COUNT; i++)
        zeta += 1 / pow(i, 0.99);
    /* The first two are exact; Gray's inverse is within a fifth beyond, by runs of ranks. */
    for (int from = 0, to = 1; from < COUNT; from = to, to = to < 2 ? to + 1 : 2 * to) {
        double expected = 0, got = 0;
        for (int i = from; i < to && i < COUNT; i++) {
            expected += DRAWS / zeta / pow(i + 1, 0.99);
            got += seen[i];
        }
        double slack = from < 2 ? 0.03 : 0.2;
        if (got < expected * (1 - slack) || got > expected * (1 + slack))
            fail_msg("ranks %d to %d: %g draws, expected %g", from, to, got, expected);
    }
}

static void test_zipf_small(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    for (uint64_t count = 1; count < 5; count++) {
        struct zipf zipf;
        uint32_t seen[5] = {0};
        zipf_init(&zipf, count);
        for (int i = 0; i < 10000; i++)
            seen[zipf_draw(&zipf, &rng)]++;
        for (uint64_t i = 0; i < 5; i++)
            assert_true((seen[i] > 0) == (i < count));
        assert_true(count == 1 || seen[0] > seen[count - 1]);
    }
}

/* ---- Operations ---- */

static void end(struct draw *draw, const struct draw_op *drawn, enum history_outcome outcome,
                enum history_saw saw, uint64_t value)
{
    struct history_op op = drawn->op;
    op.outcome = (uint8_t)outcome;
    op.saw = (uint8_t)saw;
    op.value = value;
    draw_note(draw, drawn, &op);
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        uint8_t workload;
        enum draw_class class;
        enum history_kind kind;
        bool strong, modify;
    } cases[] = {
        {SCENARIO_SWAP_REGISTER, DRAW_WRITE, HISTORY_PUT, false, false},
        {SCENARIO_SWAP_REGISTER, DRAW_READ_STRONG, HISTORY_READ, true, false},
        {SCENARIO_SWAP_REGISTER, DRAW_READ_EVENTUAL, HISTORY_READ, false, false},
        {SCENARIO_SWAP_REGISTER, DRAW_ERASE, HISTORY_DELETE, false, false},
        {SCENARIO_CAS_REGISTER, DRAW_WRITE, HISTORY_PUT_IF, false, false},
        {SCENARIO_COUNTER, DRAW_WRITE, HISTORY_ADD, false, false},
        {SCENARIO_APPEND, DRAW_WRITE, HISTORY_APPEND, false, false},
        {SCENARIO_SET, DRAW_WRITE, HISTORY_INSERT, false, false},
        {SCENARIO_SET, DRAW_SCAN, HISTORY_SCAN, true, false},
        {SCENARIO_SET, DRAW_READ_EVENTUAL, HISTORY_SCAN, false, false},
        {SCENARIO_LWW_CONFLICT, DRAW_WRITE, HISTORY_PUT, false, false},
        {SCENARIO_YCSB_A, DRAW_WRITE, HISTORY_PUT, false, false},
        {SCENARIO_YCSB_F, DRAW_WRITE, HISTORY_READ, true, true},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct draw draw;
        struct draw_op op, second;
        begin(&draw, cases[i].workload, 4, (struct scenario_mix){.write = 1}, i);
        draw_op(&draw, cases[i].class, 77, &op);
        assert_int_equal(op.op.kind, cases[i].kind);
        assert_int_equal(op.op.strong, cases[i].strong);
        assert_int_equal(op.modify, cases[i].modify);
        bool unique = cases[i].class == DRAW_WRITE && !cases[i].modify;
        assert_int_equal(op.op.written, !unique ? 0 : op.op.kind == HISTORY_ADD ? 1 : 77);
        assert_true(op.op.key < 4);
        assert_true(draw_used(&draw, op.op.key));
        assert_int_equal(draw.used_count, 1);
        if (op.modify) {
            draw_modify(&draw, &op, 78, &second);
            assert_int_equal(second.op.kind, HISTORY_PUT);
            assert_int_equal(second.op.written, 78);
            assert_int_equal(second.op.key, op.op.key);
        }
        draw_deinit(&draw);
    }
}

static void test_cas_expects_what_was_seen(void **state)
{
    (void)state;
    struct draw draw;
    struct draw_op op;
    begin(&draw, SCENARIO_CAS_REGISTER, 1, (struct scenario_mix){.write = 1}, 1);
    draw_op(&draw, DRAW_WRITE, 11, &op);
    assert_int_equal(op.op.expected, 0);
    end(&draw, &op, HISTORY_OK, HISTORY_SAW_ABSENT, 0);
    draw_op(&draw, DRAW_WRITE, 12, &op);
    assert_int_equal(op.op.expected, 11);
    end(&draw, &op, HISTORY_FAILED, HISTORY_SAW_VALUE, 99); /* a failed condition is a read */
    draw_op(&draw, DRAW_WRITE, 13, &op);
    assert_int_equal(op.op.expected, 99);
    end(&draw, &op, HISTORY_INFO, HISTORY_SAW_NOTHING, 0); /* nobody knows */
    draw_op(&draw, DRAW_READ_STRONG, 0, &op);
    end(&draw, &op, HISTORY_OK, HISTORY_SAW_ABSENT, 0);
    draw_op(&draw, DRAW_WRITE, 14, &op);
    assert_int_equal(op.op.expected, 0);
    draw_deinit(&draw);
}

/* How many operations of the class an item gets before another takes its place. */
static uint32_t life_of(uint8_t kind, enum draw_class class, enum history_outcome outcome)
{
    struct draw draw;
    struct draw_op op;
    uint32_t count = 0;
    begin(&draw, kind, 1, (struct scenario_mix){.write = 1}, 1);
    for (; count < 5000; count++) {
        draw_op(&draw, class, count + 1, &op);
        if (op.op.key != 0)
            break;
        end(&draw, &op, outcome, HISTORY_SAW_NOTHING, 0);
    }
    draw_deinit(&draw);
    return count;
}

static void test_items_are_given_up(void **state)
{
    (void)state;
    assert_int_equal(life_of(SCENARIO_CAS_REGISTER, DRAW_WRITE, HISTORY_OK), DRAW_OPS_MAX);
    assert_int_equal(life_of(SCENARIO_CAS_REGISTER, DRAW_READ_STRONG, HISTORY_OK), DRAW_OPS_MAX);
    assert_int_equal(life_of(SCENARIO_CAS_REGISTER, DRAW_WRITE, HISTORY_INFO), DRAW_INFOS_MAX);
    assert_int_equal(life_of(SCENARIO_APPEND, DRAW_WRITE, HISTORY_OK), DRAW_OPS_MAX);
    assert_int_equal(life_of(SCENARIO_APPEND, DRAW_WRITE, HISTORY_INFO), DRAW_OPS_MAX);
    assert_int_equal(life_of(SCENARIO_APPEND, DRAW_READ_STRONG, HISTORY_OK), 5000);
    assert_int_equal(life_of(SCENARIO_SET, DRAW_WRITE, HISTORY_OK), DRAW_ELEMENTS_MAX);
    assert_int_equal(life_of(SCENARIO_SET, DRAW_WRITE, HISTORY_FAILED), 5000);
    assert_int_equal(life_of(SCENARIO_SWAP_REGISTER, DRAW_WRITE, HISTORY_INFO), 5000);
    assert_int_equal(life_of(SCENARIO_COUNTER, DRAW_WRITE, HISTORY_INFO), 5000);
}

/* No more than a few at a time on one item, as the search is exponential in that. */
static void test_cas_spreads(void **state)
{
    (void)state;
    struct draw draw;
    struct draw_op ops[2 * DRAW_OPEN_MAX];
    uint32_t on[2] = {0};
    begin(&draw, SCENARIO_CAS_REGISTER, 2, (struct scenario_mix){.write = 1}, 1);
    for (size_t i = 0; i < array_len(ops); i++) {
        draw_op(&draw, DRAW_WRITE, i + 1, &ops[i]);
        on[ops[i].op.key]++;
    }
    assert_int_equal(on[0], DRAW_OPEN_MAX);
    assert_int_equal(on[1], DRAW_OPEN_MAX);
    for (size_t i = 0; i < array_len(ops); i++)
        end(&draw, &ops[i], HISTORY_OK, HISTORY_SAW_ABSENT, 0);
    assert_int_equal(draw.slots[0].open + draw.slots[1].open, 0);
    draw_deinit(&draw);
}

static void test_values_are_unique(void **state)
{
    (void)state;
    struct draw draw;
    uint64_t last = 0;
    begin(&draw, SCENARIO_SWAP_REGISTER, 1, (struct scenario_mix){.write = 1}, 1);
    for (int client = 0; client < 100; client++) {
        uint32_t number = draw_client(&draw);
        for (uint32_t n = 1; n < 50; n++) {
            assert_true(draw_value(number, n) > last); /* so never 0, and never twice */
            last = draw_value(number, n);
        }
        assert_true(draw_value(number, UINT32_MAX) < draw_value(number + 1, 1));
    }
    draw_deinit(&draw);
}

/* ---- Requests ---- */

static void expect_request(uint8_t shape, struct history_op op, const char *operation,
                           const char *body)
{
    struct request_style style = {.shape = shape, .filler = bytes_literal("abc")};
    struct buf text;
    buf_init(&text);
    assert_string_equal(request_write(&style, &op, BYTES_NONE, &text), operation);
    buf_append_u8(&text, 0);
    assert_string_equal((char *)text.at, body);
    buf_deinit(&text);
}

static void test_requests(void **state)
{
    (void)state;
    expect_request(REQUEST_REGISTER,
                   (struct history_op){.kind = HISTORY_PUT, .key = 7, .written = 4294967297},
                   "PutItem",
                   "{\"TableName\":\"tidemark-chaos\",\"Item\":{\"pk\":{\"S\":\"k7\"},\"v\":{\"N\":"
                   "\"4294967297\"},\"f\":{\"S\":\"abc\"}},\"ReturnValues\":\"ALL_OLD\"}");
    expect_request(REQUEST_REGISTER, (struct history_op){.kind = HISTORY_PUT_IF, .written = 2},
                   "PutItem",
                   "{\"TableName\":\"tidemark-chaos\",\"Item\":{\"pk\":{\"S\":\"k0\"},\"v\":{\"N\":"
                   "\"2\"},\"f\":{\"S\":\"abc\"}},\"ConditionExpression\":"
                   "\"attribute_not_exists(pk)\",\"ReturnValuesOnConditionCheckFailure\":"
                   "\"ALL_OLD\",\"ReturnValues\":\"ALL_OLD\"}");
    expect_request(
        REQUEST_SET, (struct history_op){.kind = HISTORY_INSERT, .written = 9}, "PutItem",
        "{\"TableName\":\"tidemark-chaos\",\"Item\":{\"pk\":{\"S\":\"k0\"},\"sk\":{\"N\":"
        "\"9\"},\"f\":{\"S\":\"abc\"}}}");
    expect_request(REQUEST_REGISTER, (struct history_op){.kind = HISTORY_READ, .strong = true},
                   "GetItem",
                   "{\"TableName\":\"tidemark-chaos\",\"Key\":{\"pk\":{\"S\":\"k0\"}},"
                   "\"ConsistentRead\":true}");
    expect_request(REQUEST_REGISTER, (struct history_op){.kind = HISTORY_DELETE}, "DeleteItem",
                   "{\"TableName\":\"tidemark-chaos\",\"Key\":{\"pk\":{\"S\":\"k0\"}},"
                   "\"ReturnValues\":\"ALL_OLD\"}");
}

static void test_keys(void **state)
{
    (void)state;
    static const uint32_t keys[] = {0, 1, 9, 10, 4711, UINT32_MAX};
    static const char *const wrong[] = {"",    "k",           "k01",          "7",  "K7",   "k7 ",
                                        "k-1", "k4294967296", "k99999999999", "kx", "k7k7", "k+7"};
    for (size_t i = 0; i < array_len(keys); i++) {
        struct buf text;
        uint32_t back = 1;
        buf_init(&text);
        request_write_key(keys[i], &text);
        assert_true(request_read_key(buf_view(&text), &back));
        assert_int_equal(back, keys[i]);
        buf_deinit(&text);
    }
    for (size_t i = 0; i < array_len(wrong); i++) {
        uint32_t back;
        assert_false(request_read_key(bytes_text(wrong[i]), &back));
    }
}

/* ---- Figures ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_figures(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint64_t all[COUNT];
    struct figures *figures = xcalloc(1, sizeof(*figures));
    struct rng rng;
    rng_init(&rng, 3);
    assert_int_equal(figures_quantile_ns(figures, 50), 0);
    for (int i = 0; i < COUNT; i++) {
        all[i] = rng_next(&rng) >> rng_between(&rng, 20, 63);
        struct history_op op = {.intended_ns = 7, .return_ns = 7 + all[i]};
        figures_add(figures, &op);
    }
    qsort(all, COUNT, sizeof(all[0]), by_value);
    for (uint32_t percent = 0; percent < 100; percent++) {
        uint64_t exact = all[COUNT * percent / 100], got = figures_quantile_ns(figures, percent);
        if (got > exact + exact / 16 || got + exact / 16 < exact)
            fail_msg("p%u: %" PRIu64 ", exactly %" PRIu64, percent, got, exact);
    }
    figures_add(figures,
                &(struct history_op){.outcome = HISTORY_INFO, .reason = HISTORY_REASON_TIMEOUT});
    figures_add(figures,
                &(struct history_op){.outcome = HISTORY_FAILED, .reason = HISTORY_REASON_REFUSED});
    assert_int_equal(figures->ok, COUNT);
    assert_int_equal(figures->info, 1);
    assert_int_equal(figures->failed, 1);
    assert_int_equal(figures->latency_count, COUNT);
    free(figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_order_is_the_seeds),
        cmocka_unit_test(test_zipf_shape),
        cmocka_unit_test(test_zipf_small),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_cas_expects_what_was_seen),
        cmocka_unit_test(test_items_are_given_up),
        cmocka_unit_test(test_cas_spreads),
        cmocka_unit_test(test_values_are_unique),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
