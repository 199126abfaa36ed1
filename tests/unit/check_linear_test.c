/* SPDX-License-Identifier: Apache-2.0 */
/* The search against all orders of small random histories, right ones and wrong ones; the window it
 * shows; and that it ends within its bound. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/check/linear.h"
#include "conflict/base/alloc.h"
#include "conflict/base/rng.h"

enum { OPS = 6, ROUNDS = 20000, STEPS = 1000000 };

static bool twin_apply(const struct linear_op *op, bool *present, int64_t *value)
{
    bool unknown = op->ret == UINT64_MAX, holds;
    switch (op->kind) {
    case LINEAR_READ:
        return unknown || (*present == op->present && (!*present || *value == op->value));
    case LINEAR_PUT:
        *present = true, *value = op->argument;
        return true;
    case LINEAR_IF:
        holds = *present == op->expected_present && (!*present || *value == op->expected);
        if (holds)
            *present = true, *value = op->argument;
        return unknown || holds == op->ok;
    case LINEAR_ADD:
        *value = (*present ? *value : 0) + op->argument, *present = true;
        return !op->observed || *value == op->value;
    case LINEAR_DELETE:
        holds = *present == op->expected_present && (!*present || *value == op->expected);
        *present = false;
        return !op->observed || holds;
    }
    return false;
}

/* Some order of all that returned, and of any of what did not, fits. */
static bool twin(const struct linear_op *ops, uint32_t count, uint32_t done, bool present,
                 int64_t value)
{
    bool complete = true;
    for (uint32_t i = 0; i < count; i++)
        complete = complete && (done >> i & 1 || ops[i].ret == UINT64_MAX);
    if (complete)
        return true;
    for (uint32_t i = 0; i < count; i++) {
        bool may = !(done >> i & 1);
        for (uint32_t j = 0; j < count && may; j++)
            may = done >> j & 1 || ops[j].ret > ops[i].call;
        bool after = present;
        int64_t number = value;
        if (may && twin_apply(&ops[i], &after, &number) &&
            twin(ops, count, done | 1u << i, after, number))
            return true;
    }
    return false;
}

static struct linear_op draw_op(struct rng *rng, const uint64_t *times)
{
    struct linear_op op = {.kind = (enum linear_kind)rng_below(rng, 5),
                           .call = times[0] < times[1] ? times[0] : times[1],
                           .ret = times[0] < times[1] ? times[1] : times[0]};
    op.argument = (int64_t)rng_below(rng, 3);
    op.expected = (int64_t)rng_below(rng, 3);
    op.value = (int64_t)rng_below(rng, 4);
    op.expected_present = rng_one_in(rng, 2);
    op.present = rng_one_in(rng, 2);
    op.ok = rng_one_in(rng, 2);
    op.observed = rng_one_in(rng, 2);
    if (rng_one_in(rng, 5)) {
        op.ret = UINT64_MAX;
        op.observed = false;
    }
    return op;
}

static void test_against_all_orders(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 11);
    int violated = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t count = (uint32_t)rng_between(&rng, 1, OPS);
        uint64_t times[2 * OPS];
        for (uint32_t i = 0; i < 2 * count; i++)
            times[i] = i + 1;
        for (uint32_t i = 0; i < 2 * count; i++) {
            uint64_t j = rng_below(&rng, 2 * count), kept = times[i];
            times[i] = times[j];
            times[j] = kept;
        }
        struct linear_op ops[OPS];
        for (uint32_t i = 0; i < count; i++)
            ops[i] = draw_op(&rng, &times[2 * i]);
        bool right = twin(ops, count, 0, false, 0);
        struct linear_window window;
        enum linear_verdict verdict = linear_check(ops, count, STEPS, &window);
        assert_int_equal(verdict, right ? LINEAR_OK : LINEAR_VIOLATED);
        violated += !right;
        if (!right)
            assert_true(window.from < window.to);
    }
    assert_in_range(violated, ROUNDS / 10, ROUNDS * 9 / 10);
}

static struct linear_op op(enum linear_kind kind, uint64_t call, uint64_t ret, int64_t number)
{
    return (struct linear_op){.kind = kind,
                              .call = call,
                              .ret = ret,
                              .argument = number,
                              .value = number,
                              .present = true,
                              .name = call};
}

static void test_window(void **state)
{
    (void)state;
    /* A long right history, and in its middle one read of what was overwritten before it began. */
    struct linear_op ops[200];
    for (uint32_t i = 0; i < 100; i++) {
        ops[2 * i] = op(LINEAR_PUT, 10 * i + 1, 10 * i + 3, i);
        ops[2 * i + 1] = op(LINEAR_READ, 10 * i + 5, 10 * i + 7, i == 60 ? 59 : i);
    }
    struct linear_window window;
    assert_int_equal(linear_check(ops, 200, STEPS, &window), LINEAR_VIOLATED);
    assert_in_range(window.from, 591, 603);
    assert_in_range(window.to, 605, 607);
    struct buf text = {0};
    linear_print(ops, 200, window, &text);
    buf_append_u8(&text, '\0');
    assert_non_null(strstr((char *)text.at, "605 to 607: read 59"));
    assert_null(strstr((char *)text.at, "read 61"));
    buf_deinit(&text);
    ops[121].value = 60;
    assert_int_equal(linear_check(ops, 200, STEPS, &window), LINEAR_OK);
}

/* Two reads that no one value explains, whatever was before them. */
static void test_window_of_reads(void **state)
{
    (void)state;
    struct linear_op ops[] = {op(LINEAR_PUT, 1, 2, 5), op(LINEAR_PUT, 3, 4, 4),
                              op(LINEAR_READ, 5, 6, 4), op(LINEAR_READ, 7, 8, 5),
                              op(LINEAR_READ, 9, 10, 5)};
    struct linear_window window;
    assert_int_equal(linear_check(ops, 5, STEPS, &window), LINEAR_VIOLATED);
    assert_in_range(window.from, 5, 6);
    assert_in_range(window.to, 7, 8);
}

/* Twenty writes at once and a read of what none of them wrote: every subset is a state. */
static void test_bound(void **state)
{
    (void)state;
    struct linear_op ops[21];
    for (uint32_t i = 0; i < 20; i++)
        ops[i] = op(LINEAR_ADD, i + 1, 100 + i, 1 << i);
    ops[20] = op(LINEAR_READ, 50, 90, -1);
    struct linear_window window;
    assert_int_equal(linear_check(ops, 21, 1000, &window), LINEAR_UNKNOWN);
}

/* Ten clients on one item, with a right history of conditional writes over few values. */
static uint32_t draw_cas(struct linear_op *ops, uint32_t count, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    bool present = false;
    int64_t value = 0;
    uint64_t ends[10] = {0};
    for (uint32_t i = 0; i < count; i++) { /* i is also when it happens: times are around it */
        uint32_t client = 0;
        for (uint32_t j = 1; j < 10; j++)
            client = ends[j] < ends[client] ? j : client;
        uint64_t moment = 1000 * ((uint64_t)i + 20);
        uint64_t call = moment - rng_below(&rng, 8000), ret = moment + rng_below(&rng, 8000) + 1;
        call = call > ends[client] ? call : ends[client] + 1;
        if (call > moment)
            call = moment;
        ends[client] = ret;
        struct linear_op *op = &ops[i];
        *op = (struct linear_op){.call = 4 * call + 1, .ret = 4 * ret + 3, .name = i};
        op->kind = rng_one_in(&rng, 3) ? LINEAR_READ : rng_one_in(&rng, 3) ? LINEAR_PUT : LINEAR_IF;
        op->argument = (int64_t)rng_below(&rng, 5);
        op->expected = (int64_t)rng_below(&rng, 5);
        op->expected_present = true;
        op->present = present;
        op->value = value;
        op->ok = present && value == op->expected;
        if (op->kind == LINEAR_PUT || (op->kind == LINEAR_IF && op->ok))
            present = true, value = op->argument;
    }
    return count;
}

static void test_two_thousand(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static struct linear_op ops[COUNT];
    struct linear_budget budget = {.steps_max = 5000000, .memory_max = 256u << 20};
    struct linear_window window;
    for (uint64_t seed = 1; seed < 5; seed++) {
        draw_cas(ops, COUNT, seed);
        assert_int_equal(linear_check_within(ops, COUNT, &budget, &window), LINEAR_OK);
    }
    ops[1500].kind = LINEAR_READ;
    ops[1500].present = true;
    ops[1500].value = 77;
    assert_int_equal(linear_check_within(ops, COUNT, &budget, &window), LINEAR_VIOLATED);
    assert_true(window.from <= ops[1500].ret && window.to >= ops[1500].call);
}

/* The budget of memory holds, and what was asked is not answered. */
static void test_memory(void **state)
{
    (void)state;
    struct linear_op ops[21];
    for (uint32_t i = 0; i < 20; i++)
        ops[i] = op(LINEAR_ADD, i + 1, 100 + i, 1 << i);
    ops[20] = op(LINEAR_READ, 50, 90, -1);
    struct linear_window window;
    struct linear_budget budget = {.steps_max = UINT64_MAX, .memory_max = 1 << 20};
    assert_int_equal(linear_check_within(ops, 21, &budget, &window), LINEAR_UNKNOWN);
    budget.memory_max = 0;
    assert_int_equal(linear_check_within(ops, 21, &budget, &window), LINEAR_UNKNOWN);
    ops[16] = ops[20];
    budget = (struct linear_budget){.steps_max = 50000000, .memory_max = 64u << 20};
    assert_int_equal(linear_check_within(ops, 17, &budget, &window), LINEAR_VIOLATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all_orders), cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_of_reads),    cmocka_unit_test(test_bound),
        cmocka_unit_test(test_two_thousand),       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
