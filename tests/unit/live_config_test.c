/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's settings: good files and options are taken, and what is refused names file, line and
 * field. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos/live/config.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static bool load(const char *yaml, struct config *config, struct buf *error)
{
    char path[] = "/tmp/tidemark-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
    close(fd);
    config_init(config);
    bool good = config_load(config, path, error) && config_check(config, error);
    buf_append_u8(error, 0);
    unlink(path);
    return good;
}

static void a_whole_file_is_taken(void **state)
{
    (void)state;
    struct config config;
    struct buf error = {0};
    assert_true(load("regions: [eu-west-1, us-west-2]\n"
                     "port: 9000\n"
                     "control: 127.0.0.1:9474\n"
                     "listen: 0.0.0.0\n"
                     "data: /tmp/somewhere\n"
                     "durability: os\n"
                     "clock: wall\n"
                     "log_level: info\n"
                     "seed: 99\n"
                     "links:\n"
                     "  - {from: eu-west-1, to: us-west-2, delay_ms: 70, jitter_ms: 5}\n"
                     "  - {from: us-west-2, to: eu-west-1, delay_ms: 80}\n",
                     &config, &error));
    assert_int_equal(config.region_count, 2);
    assert_string_equal(region_id_name(config.regions[0]), "eu-west-1");
    assert_int_equal(config.port, 9000);
    assert_string_equal(config.control, "127.0.0.1:9474");
    assert_string_equal(config.listen, "0.0.0.0");
    assert_string_equal(config.data, "/tmp/somewhere");
    assert_int_equal(config.durability, DURABILITY_OS);
    assert_int_equal(config.clock, CLOCK_WALL);
    assert_string_equal(config.log_level, "info");
    assert_int_equal(config.seed, 99);
    assert_int_equal(config.link_count, 2);
    assert_int_equal(config.links[0].delay_ms, 70);
    assert_int_equal(config.links[0].jitter_ms, 5);
    assert_int_equal(config.links[1].jitter_ms, 0);
    assert_string_equal(region_id_name(config.links[1].to), "eu-west-1");
    config_deinit(&config);
    buf_deinit(&error);
}

static void what_is_left_out_keeps_its_default(void **state)
{
    (void)state;
    struct config config;
    struct buf error = {0};
    assert_true(load("durability: os\n", &config, &error));
    assert_int_equal(config.region_count, 3);
    assert_int_equal(config.port, 8000);
    assert_string_equal(config.control, "127.0.0.1:8474");
    assert_string_equal(config.listen, "127.0.0.1");
    assert_null(config.data);
    config_deinit(&config);
    buf_deinit(&error);
}

static void witnesses_and_strong_tables(void **state)
{
    (void)state;
    struct config config;
    struct buf error = {0};
    if (!load("regions: [us-east-1, eu-west-1]\n"
              "witness: [us-west-2, ap-south-1]\n"
              "links:\n"
              "  - {from: us-east-1, to: us-west-2, delay_ms: 70}\n"
              "mrsc:\n"
              "  conflict: serialize\n"
              "  election_ms: 300\n"
              "  placement_ms: 0\n",
              &config, &error))
        fail_msg("%s", (const char *)error.at);
    assert_int_equal(config.region_count, 2);
    assert_int_equal(config.witness_count, 2);
    assert_string_equal(region_id_name(config.witnesses[1]), "ap-south-1");
    assert_true(config.mrsc_serialize);
    unsigned set = 0;
    for (uint32_t i = 0; i < STRONG_LIMIT_COUNT; i++) {
        set += config.mrsc[i].set;
        if (strcmp(config_mrsc_name(i), "mrsc.election-ms") == 0)
            assert_int_equal(config.mrsc[i].value, 300);
    }
    assert_int_equal(set, 2);
    buf_reset(&error);
    assert_true(config_set_witness(&config, "us-west-1", &error));
    assert_int_equal(config.witness_count, 1);
    assert_true(config_set_mrsc_conflict(&config, "aws", &error));
    assert_false(config.mrsc_serialize);
    config_deinit(&config);
    buf_deinit(&error);
}

static void bad_files_are_refused_by_line_and_field(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *told[2];
    } cases[] = {
        {"port: 8000\nregion: [us-east-1]\n", {"region", "line: 2"}},
        {"port: 8000\nlinks:\n  - {from: us-east-1, to: eu-west-1, delay: 4}\n",
         {"delay", "line: 3"}},
        {"links:\n  - {from: us-east-1, to: eu-west-1,\n     delay_ms: soon}\n",
         {"delay_ms", "line: 3"}},
        {"links:\n  - {to: eu-west-1}\n", {"from", "line: 2"}},
        {"regions: us-east-1\n", {"regions", "line: 1"}},
        {"regions: []\n", {"regions", "line: 1"}},
        {"port: 70000\n", {"70000", ":1: port"}},
        {"regions: [us-east-1, us-east-1]\n", {"us-east-1", "twice"}},
        {"regions: [moon-north-1]\n", {"moon-north-1", "expected"}},
        {"port: 1\ndurability: maybe\n", {"maybe", ":2: durability"}},
        {"clock: sundial\n", {"sundial", "hybrid"}},
        {"listen: example\n", {"example", "IP"}},
        {"control: 127.0.0.1\n", {"127.0.0.1", "IP:PORT"}},
        {"log_level: loud\n", {"loud", "expected debug, info, warn or error"}},
        {"seed: -4\n", {"-4", "whole number"}},
        {"witness: us-east-2\n", {"witness", "line: 1"}},
        {"witness: [us-east-1]\n", {"us-east-1", "under regions and under witness"}},
        {"port: 1\nwitness: [us-east-2, us-east-2]\n", {":2: witness", "twice"}},
        {"witness: [moon-north-1]\n", {":1: witness", "moon-north-1"}},
        {"mrsc: {conflict: maybe}\n", {":1: mrsc", "serialize"}},
        {"mrsc:\n  heartbeat_ms: 5\n",
         {":1: mrsc", "mrsc.heartbeat-ms: expected a number from 10"}},
        {"mrsc:\n  patience: 5\n", {"patience", "line: 2"}},
        {"mrsc:\n  retry_ms: soon\n", {"retry_ms", "line: 2"}},
        {"regions: [us-east-1]\nwitness: [us-west-2]\nport: 65533\nlinks:\n"
         "  - {from: us-west-2, to: sa-east-1}\n",
         {"sa-east-1", "no link"}},
        {"port: 65533\nwitness: [us-west-2]\n", {"65533", "room for 4"}},
        {"port: 65534\n", {"65534", "room"}},
        {"links:\n  - {from: us-east-1, to: us-east-1}\n", {"us-east-1", "no link"}},
        {"links:\n  - {from: us-east-1, to: sa-east-1}\n", {"sa-east-1", "no link"}},
        {"port: [\n", {"tidemark-config", ""}},
        {"a: &a [*a, *a]\n", {"tidemark-config", ""}},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct config config;
        struct buf error = {0};
        bool good = load(cases[i].yaml, &config, &error);
        if (good)
            fail_msg("case %zu was taken", i);
        for (size_t j = 0; j < 2; j++)
            if (strstr((const char *)error.at, cases[i].told[j]) == NULL)
                fail_msg("case %zu does not tell '%s': %s", i, cases[i].told[j],
                         (const char *)error.at);
        config_deinit(&config);
        buf_deinit(&error);
    }
}

static void a_file_that_is_not_there_is_told(void **state)
{
    (void)state;
    struct config config;
    struct buf error = {0};
    config_init(&config);
    assert_false(config_load(&config, "/nonexistent/file.yaml", &error));
    buf_append_u8(&error, 0);
    assert_non_null(strstr((const char *)error.at, "/nonexistent/file.yaml"));
    config_deinit(&config);
    buf_deinit(&error);
}

static void whole_numbers_only(void **state)
{
    (void)state;
    uint64_t value;
    assert_true(parse_whole("0", 10, &value) && value == 0);
    assert_true(parse_whole("10", 10, &value) && value == 10);
    assert_true(parse_whole("18446744073709551615", UINT64_MAX, &value) && value == UINT64_MAX);
    static const char *const bad[] = {
        "", "11", "-1", "+1", " 1", "1 ", "0x1", "1.0", "99999999999999"};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(parse_whole(bad[i], 10, &value));
    assert_false(parse_whole("18446744073709551616", UINT64_MAX, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_taken),
        cmocka_unit_test(what_is_left_out_keeps_its_default),
        cmocka_unit_test(witnesses_and_strong_tables),
        cmocka_unit_test(bad_files_are_refused_by_line_and_field),
        cmocka_unit_test(a_file_that_is_not_there_is_told),
        cmocka_unit_test(whole_numbers_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
