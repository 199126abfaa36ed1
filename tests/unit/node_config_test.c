/* SPDX-License-Identifier: Apache-2.0 */
/* Flags and files: what they set, and that each mistake is refused with the place and the name. */

#include "region/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

enum { ARGUMENTS_MAX = 16 };

struct fixture {
    char path[64]; /* of the file */
    struct config config;
    char error[1024];
};

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/tidemark-config-XXXXXX");
    int file = mkstemp(fixture->path);
    check(file >= 0);
    close(file);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    config_deinit(&fixture->config);
    unlink(fixture->path);
    free(fixture);
    return 0;
}

/* The arguments end with NULL. */
static bool load(struct fixture *fixture, ...)
{
    char *arguments[ARGUMENTS_MAX + 1] = {(char *)"tidemark-region"};
    int count = 1;
    va_list list;
    va_start(list, fixture);
    for (char *at = va_arg(list, char *); at; at = va_arg(list, char *)) {
        check(count < ARGUMENTS_MAX);
        arguments[count++] = at;
    }
    va_end(list);
    config_deinit(&fixture->config);
    fixture->error[0] = '\0';
    return config_load(count, arguments, &fixture->config, fixture->error, sizeof(fixture->error));
}

static bool load_file(struct fixture *fixture, const char *text)
{
    FILE *file = fopen(fixture->path, "w");
    check(file != NULL);
    fputs(text, file);
    fclose(file);
    return load(fixture, "--config", fixture->path, NULL);
}

static void expect_error(const struct fixture *fixture, const char *part)
{
    if (!strstr(fixture->error, part))
        fail_msg("expected \"%s\" in \"%s\"", part, fixture->error);
}

static void test_flags(void **state)
{
    struct fixture *fixture = *state;
    const struct config *config = &fixture->config;
    assert_true(load(fixture, "--region", "eu-west-1", "--data=/d", "--peer=us-east-1=127.0.0.1:1",
                     "--peer=us-west-2=[::1]:2", "--durability=os", "--clock=wall",
                     "--clock-offset-ms=-250", "--partitions=7", "--strict-credentials",
                     "--set=heartbeat-ms=50", "--log-level=warn", NULL));
    assert_int_equal(config->core.region, region_id_find(bytes_text("eu-west-1")));
    assert_string_equal(config->data, "/d");
    assert_string_equal(config->listen, "127.0.0.1:8000");
    assert_int_equal(config->peer_count, 2);
    assert_string_equal(config->peers[1].address, "[::1]:2");
    assert_int_equal(config->core.peers[0], region_id_find(bytes_text("us-east-1")));
    assert_int_equal(config->core.replication.peers[1], region_id_find(bytes_text("us-west-2")));
    assert_int_equal(config->core.replication.peer_count, 2);
    assert_false(config->sync);
    assert_int_equal(config->core.clock_mode, HLC_WALL);
    assert_int_equal(config->clock_offset_ms, -250);
    assert_int_equal(config->core.partitions_per_table, 7);
    assert_true(config->strict_credentials);
    assert_int_equal(config->core.replication.heartbeat_ms, 50);
    assert_int_equal(config->log_level, TRACE_WARN);
}

static void test_defaults(void **state)
{
    struct fixture *fixture = *state;
    const struct config *config = &fixture->config;
    assert_true(load(fixture, "--region=us-east-1", "--data=/d", NULL));
    assert_true(config->sync);
    assert_false(config->strict_credentials);
    assert_int_equal(config->core.clock_mode, HLC_HYBRID);
    assert_int_equal(config->core.partitions_per_table, 4);
    assert_int_equal(config->core.replication.window_bytes_max, 4 << 20);
    assert_int_equal(config->core.tables_max, 2500);
    assert_int_equal(config->server.connections_max, server_limits_default().connections_max);
    assert_int_equal(config->log_level, TRACE_INFO);
}

static void test_file_and_flags_over_it(void **state)
{
    struct fixture *fixture = *state;
    const struct config *config = &fixture->config;
    const char *text = "region: ap-northeast-1\n"
                       "data: /from/file\n"
                       "peer:\n"
                       "  - us-east-1=127.0.0.1:8001\n"
                       "  - eu-west-1=127.0.0.1:8002\n"
                       "durability: os\n"
                       "connections-max: 12\n"
                       "strict-credentials: true\n"
                       "window-bytes-max: 1048576\n";
    assert_true(load_file(fixture, text));
    assert_string_equal(config->data, "/from/file");
    assert_int_equal(config->peer_count, 2);
    assert_false(config->sync);
    assert_int_equal(config->server.connections_max, 12);
    assert_int_equal(config->core.replication.window_bytes_max, 1 << 20);
    assert_true(load(fixture, "--durability=fsync", "--config", fixture->path, "--data=/from/flag",
                     "--peer=eu-west-1=127.0.0.1:9", NULL));
    assert_true(config->sync);
    assert_string_equal(config->data, "/from/flag");
    assert_int_equal(config->peer_count, 2);
    assert_string_equal(config->peers[1].address, "127.0.0.1:9");
}

static void test_strong_tables(void **state)
{
    struct fixture *fixture = *state;
    const struct strong_config *strong = &fixture->config.core.strong;
    assert_true(load(fixture, "--region=us-east-1", "--data=/d", NULL));
    assert_int_equal(strong->conflict, STRONG_CONFLICT_AWS);
    assert_int_equal(strong->heartbeat_ms, 100);
    assert_int_equal(strong->election_ms, 500);
    assert_int_equal(strong->log_bytes_max, 16 << 20);
    assert_false(fixture->config.core.witness_only);
    assert_false(fixture->config.discard_damaged_store);

    /* The section has names of its own, next to those at the top. */
    assert_true(load_file(fixture, "region: us-east-1\n"
                                   "data: /d\n"
                                   "mrsc:\n"
                                   "  conflict: serialize\n"
                                   "  heartbeat-ms: 20\n"
                                   "  placement-ms: 0\n"
                                   "heartbeat-ms: 50\n"
                                   "discard-damaged-store: true\n"));
    assert_int_equal(strong->conflict, STRONG_CONFLICT_SERIALIZE);
    assert_int_equal(strong->heartbeat_ms, 20);
    assert_int_equal(strong->placement_ms, 0);
    assert_int_equal(strong->retry_ms, 200);
    assert_int_equal(fixture->config.core.replication.heartbeat_ms, 50);
    assert_true(fixture->config.discard_damaged_store);
    assert_true(load(fixture, "--config", fixture->path, "--mrsc.conflict=aws",
                     "--set=mrsc.election-ms=70", NULL));
    assert_int_equal(strong->conflict, STRONG_CONFLICT_AWS);
    assert_int_equal(strong->heartbeat_ms, 20);
    assert_int_equal(strong->election_ms, 70);
}

static void test_a_witness(void **state)
{
    struct fixture *fixture = *state;
    char *arguments[] = {(char *)"tidemark-witness", (char *)"--region=us-west-2",
                         (char *)"--data=/d", (char *)"--peer=us-east-1=127.0.0.1:1", NULL};
    assert_true(config_load_witness(4, arguments, &fixture->config, fixture->error,
                                    sizeof(fixture->error)));
    assert_true(fixture->config.core.witness_only);
    assert_int_equal(fixture->config.core.peer_count, 1);
}

static void test_bad_flags(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *flag, *part;
    } cases[] = {
        {"--region=mars-north-1", "--region: expected the name of an AWS Region"},
        {"--listen=8000", "--listen: expected HOST:PORT, got \"8000\""},
        {"--listen=127.0.0.1:99999", "--listen: expected HOST:PORT"},
        {"--peer=eu-west-1", "--peer: expected REGION=HOST:PORT"},
        {"--peer=us-east-1=127.0.0.1:1", "--peer names this Region itself"},
        {"--durability=none", "--durability: expected fsync or os, got \"none\""},
        {"--clock=atomic", "--clock: expected hybrid or wall"},
        {"--clock-offset-ms=1h", "--clock-offset-ms: expected milliseconds"},
        {"--partitions=0", "--partitions: expected a number from 1 to 64, got \"0\""},
        {"--partitions=65", "--partitions: expected a number from 1 to 64"},
        {"--log-level=loud", "--log-level: expected debug, info, warn or error"},
        {"--set=no-such-limit=1", "--set: expected NAME=VALUE"},
        {"--set=heartbeat-ms", "--set: expected NAME=VALUE"},
        {"--set=heartbeat-ms=never", "heartbeat-ms: expected a number"},
        {"--tls-key=/k", "belong together"},
        {"--set=batch-bytes-max=2000000", "batch-bytes-max must not be above frame-bytes-max"},
        {"--config=/nonexistent/file", "/nonexistent/file"},
        {"--mrsc.conflict=lww", "--mrsc.conflict: expected serialize or aws, got \"lww\""},
        {"--set=mrsc.heartbeat-ms=1", "mrsc.heartbeat-ms: expected a number from 10 to 10000"},
        {"--set=mrsc.heartbeat-ms=300", "at least twice mrsc.heartbeat-ms"},
        {"--set=mrsc.election-ms-max=400", "must not be above mrsc.election-ms-max"},
        {"--set=mrsc.retry-ms=5000", "must not be above mrsc.request-timeout-ms"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        assert_false(load(fixture, "--region=us-east-1", "--data=/d", cases[i].flag, NULL));
        expect_error(fixture, cases[i].part);
    }
    assert_false(load(fixture, "--data=/d", NULL));
    expect_error(fixture, "--region is required");
    assert_false(load(fixture, "--region=us-east-1", NULL));
    expect_error(fixture, "--data is required");
}

static void test_bad_files(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text, *line, *part;
    } cases[] = {
        {"region: us-east-1\ndata: /d\nregoin: x\n", ":3: regoin", "no such key"},
        {"region: us-east-1\ndata:\n  - /d\n", "line: 3", "data"},
        {"region: us-east-1\npeer: eu-west-1=127.0.0.1:1\n", "line: 2", "peer"},
        {"region: us-east-1\ndata: /d\nheartbeat-ms: soon\n", ":3: heartbeat-ms", "\"soon\""},
        {"region: us-east-1\ndata: /d\npartitions: 1000\n", ":3: partitions", "from 1 to 64"},
        {"data: /d\nregion: nowhere\n", ":2: region", "\"nowhere\""},
        {"data: /d\nregion: us-east-1\npeer:\n  - eu-west-1\n", ":3: peer", "REGION=HOST:PORT"},
        {"region: us-east-1\ndata: [\n", "", ""},
        {"- a\n", "", ""},
        {"region: us-east-1\nmrsc: serialize\n", "line: 2", "mrsc"},
        {"mrsc:\n  conflict: aws\n  lease-ms: 3\n", ":3: lease-ms", "no such key"},
        {"mrsc:\n  conflict: both\n", ":2: mrsc.conflict", "\"both\""},
        {"heartbeat-ms: 50\nmrsc:\n  heartbeat-ms: x\n", ":3: mrsc.heartbeat-ms", "\"x\""},
        {"region: us-east-1\nmrsc: {retry-ms: -1}\n", ":2: mrsc.retry-ms", "\"-1\""},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        assert_false(load_file(fixture, cases[i].text));
        expect_error(fixture, fixture->path);
        expect_error(fixture, cases[i].line);
        expect_error(fixture, cases[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_and_flags_over_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strong_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_witness, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_flags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
