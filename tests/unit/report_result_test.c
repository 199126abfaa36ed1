/* SPDX-License-Identifier: Apache-2.0 */
/* result.json is as its schema says, the schema in the tree is the one that its table makes (with
 * REWRITE=1 it is written anew), and junit.xml tells CI the same. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "chaos/report/report.h"
#include "conflict/base/check.h"
#include "tests/lib/report/markup.h"
#include "tests/lib/report/outcomes.h"

#define SCHEMA "chaos/report/result.schema.json"

/* ---- As much of JSON Schema as ours uses; what it does not know fails ---- */

static bool is_type(const json_t *value, const char *type)
{
    if (strcmp(type, "object") == 0)
        return json_is_object(value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value);
    if (strcmp(type, "string") == 0)
        return json_is_string(value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    if (strcmp(type, "null") == 0)
        return json_is_null(value);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value);
    assert_string_equal(type, "number");
    return json_is_number(value);
}

static void validate(const json_t *value, const json_t *schema, const char *path);

static void validate_type(const json_t *value, const json_t *types, const char *path)
{
    bool good = json_is_string(types) && is_type(value, json_string_value(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        good = good || is_type(value, json_string_value(json_array_get(types, i)));
    if (!good)
        fail_msg("%s has another type", path);
}

static void validate_enum(const json_t *value, const json_t *choices, const char *path)
{
    for (size_t i = 0; i < json_array_size(choices); i++)
        if (json_equal(value, json_array_get(choices, i)))
            return;
    fail_msg("%s is none of its choices", path);
}

static void validate_object(const json_t *value, const json_t *schema, const char *path)
{
    const char *key;
    json_t *member;
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *more = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        if (json_object_get(value, json_string_value(json_array_get(required, i))) == NULL)
            fail_msg("%s lacks %s", path, json_string_value(json_array_get(required, i)));
    json_object_foreach((json_t *)value, key, member)
    {
        char below[512];
        snprintf(below, sizeof(below), "%s.%s", path, key);
        const json_t *known = json_object_get(properties, key);
        if (known == NULL && !json_is_object(more))
            fail_msg("%s is not in the schema", below);
        validate(member, known != NULL ? known : more, below);
    }
}

static void validate(const json_t *value, const json_t *schema, const char *path)
{
    if (json_object_get(schema, "type") != NULL)
        validate_type(value, json_object_get(schema, "type"), path);
    if (json_object_get(schema, "enum") != NULL)
        validate_enum(value, json_object_get(schema, "enum"), path);
    if (json_is_object(value))
        validate_object(value, schema, path);
    for (size_t i = 0; i < json_array_size(value); i++)
        validate(json_array_get(value, i), json_object_get(schema, "items"), path);
}

static json_t *result_of(const struct outcome *outcome)
{
    struct buf text = {0};
    report_result(outcome, &text);
    json_t *json = json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    buf_deinit(&text);
    assert_non_null(json);
    return json;
}

/* ---- Tests ---- */

static void the_schema_is_current(void **state)
{
    (void)state;
    struct buf made = {0}, kept = {0};
    report_result_schema(&made);
    if (getenv("REWRITE") != NULL) {
        FILE *file = fopen(SCHEMA, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(made.at, 1, made.len, file), made.len);
        assert_int_equal(fclose(file), 0);
    }
    FILE *file = fopen(SCHEMA, "re");
    assert_non_null(file);
    kept.len = fread(buf_reserve(&kept, 1 << 20), 1, 1 << 20, file);
    fclose(file);
    if (!bytes_equal(buf_view(&made), buf_view(&kept)))
        fail_msg("%s is not what the table makes: run this test with REWRITE=1", SCHEMA);
    buf_deinit(&made);
    buf_deinit(&kept);
}

static void results_are_as_the_schema_says(void **state)
{
    (void)state;
    struct buf text = {0};
    report_result_schema(&text);
    json_t *schema = json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(schema);
    for (enum outcomes_kind kind = 0; kind < OUTCOMES_HUGE; kind++) {
        struct sample_run run;
        outcomes_make(kind, &run);
        json_t *result = result_of(&run.outcome);
        validate(result, schema, outcomes_name(kind));
        json_decref(result);
        outcomes_free(&run);
    }
    json_decref(schema);
    buf_deinit(&text);
}

static json_int_t number(const json_t *json, const char *object, const char *key)
{
    const json_t *value = json_object_get(json_object_get(json, object), key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void results_hold_the_figures(void **state)
{
    (void)state;
    struct sample_run run;
    outcomes_make(OUTCOMES_LOST, &run);
    json_t *result = result_of(&run.outcome);
    assert_string_equal(json_string_value(json_object_get(result, "result")), "wrong");
    assert_int_equal(json_integer_value(json_object_get(result, "exit")), 1);
    uint32_t lost = 0, forks = 0;
    for (uint32_t i = 0; i < run.outcome.losses.count; i++)
        lost += run.outcome.losses.at[i].class == RPO_UNREPLICATED;
    for (uint32_t i = 0; i < run.outcome.forks.count; i++)
        forks += !run.outcome.forks.at[i].late;
    assert_true(lost > 0 && forks > 0);
    assert_int_equal(number(result, "rpo", "count"), lost);
    assert_int_equal(number(result, "lost_updates", "count"), forks);
    json_int_t total = 0;
    const json_t *operations = json_object_get(result, "operations");
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const json_t *row = json_array_get(operations, i);
        total += json_integer_value(json_object_get(row, "ok")) +
                 json_integer_value(json_object_get(row, "failed")) +
                 json_integer_value(json_object_get(row, "info"));
    }
    assert_int_equal(total, run.outcome.history.count);
    assert_int_equal(json_array_size(json_object_get(result, "rto")), run.outcome.rto.count);
    json_decref(result);
    outcomes_free(&run);
}

static void numbers_that_json_cannot_hold_are_still_told(void **state)
{
    (void)state;
    struct sample_run run;
    outcomes_make(OUTCOMES_PASS, &run);
    run.outcome.seed = UINT64_MAX - 1;
    run.outcome.expects[0].actual = 1 / 0.0;
    json_t *result = result_of(&run.outcome);
    assert_string_equal(json_string_value(json_object_get(json_object_get(result, "run"), "seed")),
                        "18446744073709551614");
    const json_t *expect = json_array_get(json_object_get(result, "expectations"), 0);
    assert_true(json_is_null(json_object_get(expect, "actual")));
    json_decref(result);
    outcomes_free(&run);
}

static uint32_t count_of(const struct buf *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = (const char *)text->at; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void junit_of(enum outcomes_kind kind, struct buf *to)
{
    struct sample_run run;
    size_t at;
    buf_reset(to);
    outcomes_make(kind, &run);
    report_junit(&run.outcome, to);
    const char *fault = markup_fault(buf_view(to), &at);
    if (fault != NULL)
        fail_msg("%s at %zu: %s", outcomes_name(kind), at, fault);
    outcomes_free(&run);
    buf_append_u8(to, 0);
}

static void junit_tells_wrong_from_broken_from_unknown(void **state)
{
    (void)state;
    static const struct {
        enum outcomes_kind kind;
        uint32_t failures, errors, skipped;
        const char *has;
    } cases[] = {
        {OUTCOMES_PASS, 0, 0, 0, "tests=\"8\""},
        {OUTCOMES_ILLEGAL, 3, 0, 0, "message=\"table 0, key"},
        {OUTCOMES_SLOW, 2, 0, 0, "<failure type=\"slow\""},
        {OUTCOMES_DUD, 0, 1, 0, "fault loss (process.kill) did not take effect"},
        {OUTCOMES_UNKNOWN, 0, 0, 1, ": there was nothing to measure"},
        {OUTCOMES_EMPTY, 0, 0, 0, "failures=\"0\""},
    };
    struct buf text = {0};
    for (size_t i = 0; i < array_len(cases); i++) {
        char totals[128];
        junit_of(cases[i].kind, &text);
        snprintf(totals, sizeof(totals), "failures=\"%u\" errors=\"%u\" skipped=\"%u\"",
                 cases[i].failures, cases[i].errors, cases[i].skipped);
        const char *name = outcomes_name(cases[i].kind);
        if (count_of(&text, totals) != 2 || count_of(&text, "<failure ") != cases[i].failures ||
            count_of(&text, "<error ") != cases[i].errors ||
            count_of(&text, "<skipped ") != cases[i].skipped || count_of(&text, cases[i].has) == 0)
            fail_msg("%s: expected %s and %s in %s", name, totals, cases[i].has,
                     (const char *)text.at);
    }
    junit_of(OUTCOMES_ILLEGAL, &text);
    assert_true(count_of(&text, "\nus-east-") >= 2); /* the counterexample, line by line */
    junit_of(OUTCOMES_HOSTILE, &text);
    assert_int_equal(count_of(&text, "<script"), 0);
    junit_of(OUTCOMES_LOST, &text);
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_is_current),
        cmocka_unit_test(results_are_as_the_schema_says),
        cmocka_unit_test(results_hold_the_figures),
        cmocka_unit_test(numbers_that_json_cannot_hold_are_still_told),
        cmocka_unit_test(junit_tells_wrong_from_broken_from_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
