/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments of other tools, from sample files as those tools take them, against the whole text
 * that they become or the whole list of what is refused. With REWRITE=1 in the environment the
 * expected texts are written anew, and the difference is reviewed like code. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "chaos/scenario/import.h"
#include "conflict/base/check.h"

static void read_file(const char *path, struct buf *to)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail_msg("%s is not there", path);
    to->len = fread(buf_reserve(to, 1 << 20), 1, 1 << 20, file);
    fclose(file);
}

static void compare(const char *path, const struct buf *made)
{
    struct buf expected = {0};
    if (getenv("REWRITE") != NULL) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(made->at, 1, made->len, file), made->len);
        fclose(file);
    }
    read_file(path, &expected);
    if (!bytes_equal(buf_view(made), buf_view(&expected)))
        fail_msg("not as in %s, but:\n%.*s", path, (int)made->len, (const char *)made->at);
    buf_deinit(&expected);
}

typedef bool import_function(const char *file, struct bytes text,
                             const struct import_options *options, struct buf *to,
                             struct buf *error);

static void import_sample(import_function *import, const char *name, const char *expected,
                          const struct import_options *options, bool wanted)
{
    char path[256];
    struct buf text = {0}, to = {0}, error = {0};
    snprintf(path, sizeof(path), "tests/scenario/%s", name);
    read_file(path, &text);
    bool good = import(name, buf_view(&text), options, &to, &error);
    if (good != wanted)
        fail_msg("%s: %.*s", name, (int)error.len, (const char *)error.at);
    assert_int_equal(good ? error.len : to.len, 0);
    snprintf(path, sizeof(path), "tests/scenario/%s", expected);
    compare(path, good ? &to : &error);
    buf_deinit(&text);
    buf_deinit(&to);
    buf_deinit(&error);
}

static const struct import_options standard = {
    .stop_if = "error_rate: '>0.5 for 30s'", .names = {{"db-west", "eu-west-1"}}, .name_count = 1};

static void a_fis_template(void **state)
{
    (void)state;
    import_sample(scenario_import_fis, "fis_pause.json", "fis_pause.yaml", &standard, true);
}

static void a_wrong_fis_template(void **state)
{
    (void)state;
    struct import_options options = {0};
    import_sample(scenario_import_fis, "fis_wrong.json", "fis_wrong.txt", &options, false);
}

static void chaos_mesh_manifests(void **state)
{
    (void)state;
    import_sample(scenario_import_chaos_mesh, "mesh.yaml", "mesh.scenario.yaml", &standard, true);
}

static void wrong_chaos_mesh_manifests(void **state)
{
    (void)state;
    import_sample(scenario_import_chaos_mesh, "mesh_wrong.yaml", "mesh_wrong.txt", &standard,
                  false);
}

/* What is imported is a scenario whose faults are at the right times. */
static void fis_times_follow_start_after(void **state)
{
    (void)state;
    struct buf text = {0}, to = {0}, error = {0};
    struct scenario scenario;
    read_file("tests/scenario/fis_pause.json", &text);
    assert_true(scenario_import_fis("fis_pause.json", buf_view(&text), &standard, &to, &error));
    scenario_init(&scenario);
    assert_true(scenario_read(&scenario, "x.yaml", buf_view(&to), &error));
    const struct scenario_phase *phase = &scenario.phases[1];
    assert_int_equal(phase->for_ns, UINT64_C(480000000000)); /* 1 + 5 + 2 minutes */
    for (uint32_t i = 0; i < phase->fault_count; i++) {
        const struct scenario_fault *fault = &phase->faults[i];
        if (fault->verb == VERB_REPLICATION_PAUSE) {
            assert_int_equal(fault->at_ns, UINT64_C(60000000000));
            assert_int_equal(fault->for_ns, UINT64_C(300000000000));
            assert_int_equal(fault->region, 1);
        } else if (fault->verb == VERB_LINK_BLACKHOLE) {
            assert_int_equal(fault->at_ns, UINT64_C(360000000000));
        } else if (fault->verb == VERB_API_ERROR) {
            assert_int_equal(fault->at_ns, UINT64_C(90000000000));
            assert_string_equal(fault->error, "ServiceUnavailableException");
        }
    }
    assert_int_equal(scenario.stop_if.count, 1);
    scenario_deinit(&scenario);
    buf_deinit(&text);
    buf_deinit(&to);
    buf_deinit(&error);
}

static void refuse(import_function *import, const char *text, const char *wanted)
{
    struct buf to = {0}, error = {0};
    assert_false(import("x", bytes_text(text), &standard, &to, &error));
    buf_append_u8(&error, 0);
    if (strstr((const char *)error.at, wanted) == NULL)
        fail_msg("wanted %s, got %s", wanted, (const char *)error.at);
    buf_deinit(&to);
    buf_deinit(&error);
}

static void what_is_no_experiment(void **state)
{
    (void)state;
    refuse(scenario_import_fis, "", "the file is empty");
    refuse(scenario_import_fis, "[]", "expected an experiment template");
    refuse(scenario_import_fis, "{}", "expected a mapping 'actions'");
    refuse(scenario_import_fis, "{\"actions\": {}}", "there is no fault in it");
    refuse(scenario_import_fis,
           "{\"actions\": {\"w\": {\"actionId\": \"aws:fis:wait\", \"parameters\": {\"duration\": "
           "\"PT1M\"}}}}",
           "there is no fault in it");
    refuse(scenario_import_fis,
           "{\"actions\": {\"w\": {\"actionId\": \"aws:dynamodb:global-table-pause-replication\", "
           "\"parameters\": {\"duration\": \"PT1M\"}, \"targets\": {\"Tables\": \"t\"}}}, "
           "\"targets\": {\"t\": {\"resourceArns\": [\"arn:aws:dynamodb:sa-east-1:1:table/x\"]}}}",
           "its Region is none of the cluster's");
    refuse(scenario_import_fis, "{\"actions\": &a {\"x\": *a}}", "anchors and aliases");
    refuse(scenario_import_chaos_mesh, "kind: NetworkChaos", "the key 'apiVersion' is missing");
    refuse(scenario_import_chaos_mesh, "{}\n---\n{}", "the key 'kind' is missing");
    /* Beyond what a scenario bears, though each part is what the tool would take. */
    refuse(scenario_import_chaos_mesh,
           "{apiVersion: chaos-mesh.org/v1alpha1, kind: NetworkChaos, spec: {action: delay, mode: "
           "all, selector: {namespaces: [us-east-1]}, delay: {latency: 2h}}}",
           "its parts do not make a scenario");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fis_template),
        cmocka_unit_test(a_wrong_fis_template),
        cmocka_unit_test(chaos_mesh_manifests),
        cmocka_unit_test(wrong_chaos_mesh_manifests),
        cmocka_unit_test(fis_times_follow_start_after),
        cmocka_unit_test(what_is_no_experiment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
