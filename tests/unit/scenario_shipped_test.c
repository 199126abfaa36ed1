/* SPDX-License-Identifier: Apache-2.0 */
/* What is in chaos/scenarios: each file is read, says what it teaches, and is short enough for a
 * laptop; and the published schema is the one that the reader's tables make. With REWRITE=1 in the
 * environment the schema is written anew. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "chaos/scenario/scenario.h"
#include "conflict/base/check.h"

#define SCHEMA "chaos/scenario/scenario.schema.json"

static const char *const must_ship[] = {
    "region-loss-eventual",   "region-loss-strong", "one-way-cut",
    "isolated-region",        "slow-link",          "flapping-link",
    "leader-freeze",          "clock-ahead",        "disk-full",
    "fsync-errors",           "rolling-restart",    "evacuation-and-return",
    "split-writes-both-sides"};

static void read_file(const char *path, struct buf *to)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail_msg("%s is not there", path);
    to->len = fread(buf_reserve(to, 1 << 20), 1, 1 << 20, file);
    fclose(file);
}

/* The comment at the top teaches and says what to look for. */
static void check_comment(const char *path)
{
    struct buf text = {0};
    read_file(path, &text);
    buf_append_u8(&text, 0);
    const char *at = (const char *)text.at;
    if (strncmp(at, "# What it teaches: ", 19) != 0 || strstr(at, "\n# What to look for: ") == NULL)
        fail_msg("%s has no comment that says what it teaches and what to look for", path);
    buf_deinit(&text);
}

static void check_shipped(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "chaos/scenarios/%s", name);
    struct scenario scenario;
    struct buf error = {0};
    scenario_init(&scenario);
    if (!scenario_load(&scenario, path, &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    if (strncmp(scenario.name, name, strlen(scenario.name)) != 0 ||
        strcmp(name + strlen(scenario.name), ".yaml") != 0)
        fail_msg("%s is named %s", path, scenario.name);
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < scenario.phase_count; i++)
        sum_ns += scenario.phases[i].for_ns;
    const struct scenario_phase *last = &scenario.phases[scenario.phase_count - 1];
    if (sum_ns < UINT64_C(10000000000) || sum_ns > UINT64_C(22000000000) || !last->has_until ||
        *scenario.about == 0 || scenario.expect.count == 0)
        fail_msg("%s: too short, too long, or without about, end or expectations", path);
    check_comment(path);
    scenario_deinit(&scenario);
    buf_deinit(&error);
}

static void every_shipped_scenario_is_sound(void **state)
{
    (void)state;
    DIR *directory = opendir("chaos/scenarios");
    assert_non_null(directory);
    uint32_t count = 0, found = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strstr(entry->d_name, ".yaml") == NULL)
            continue;
        check_shipped(entry->d_name);
        count++;
        for (size_t i = 0; i < array_len(must_ship); i++)
            found += strncmp(entry->d_name, must_ship[i], strlen(must_ship[i])) == 0;
    }
    closedir(directory);
    assert_true(count >= 12);
    assert_int_equal(found, array_len(must_ship));
}

static void the_published_schema_is_up_to_date(void **state)
{
    (void)state;
    struct buf made = {0}, published = {0};
    scenario_schema_write(&made);
    if (getenv("REWRITE") != NULL) {
        FILE *file = fopen(SCHEMA, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(made.at, 1, made.len, file), made.len);
        fclose(file);
    }
    read_file(SCHEMA, &published);
    if (!bytes_equal(buf_view(&made), buf_view(&published)))
        fail_msg("%s is not what the tables make: run this test with REWRITE=1", SCHEMA);
    buf_deinit(&made);
    buf_deinit(&published);
}

/* Not one verb, parameter or metric may be missing from it. */
static void the_schema_has_everything(void **state)
{
    (void)state;
    struct buf made = {0};
    scenario_schema_write(&made);
    json_t *schema = json_loadb((const char *)made.at, made.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(schema);
    json_t *phases = json_object_get(json_object_get(schema, "properties"), "phases");
    json_t *faults =
        json_object_get(json_object_get(json_object_get(phases, "items"), "properties"), "faults");
    json_t *verbs = json_object_get(json_object_get(faults, "items"), "oneOf");
    assert_int_equal(json_array_size(verbs), SCENARIO_VERB_COUNT);
    for (uint32_t i = 0; i < SCENARIO_VERB_COUNT; i++) {
        json_t *properties = json_object_get(json_array_get(verbs, i), "properties");
        json_t *name = json_object_get(json_object_get(properties, "do"), "const");
        assert_string_equal(json_string_value(name), scenario_verb_info(i)->name);
    }
    json_t *expect = json_object_get(json_object_get(schema, "properties"), "expect");
    assert_int_equal(json_object_size(json_object_get(expect, "properties")),
                     SCENARIO_METRIC_COUNT);
    json_decref(schema);
    buf_deinit(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_scenario_is_sound),
        cmocka_unit_test(the_published_schema_is_up_to_date),
        cmocka_unit_test(the_schema_has_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
