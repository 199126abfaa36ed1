/* SPDX-License-Identifier: Apache-2.0 */
/* A diagram is well-formed whatever was logged, shows the window before the violation and nothing
 * after it, and tells what was lost from what arrived. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "chaos/sim/diagram.h"
#include "conflict/base/rng.h"

enum { DEPTH_MAX = 16 };

static const char *const lanes[] = {"us-east-1", "eu-west-1", "<&\">", "d"};

/* ---- A reader of XML that knows enough to refuse what is not well-formed ---- */

static const char *read_attributes(const char *at)
{
    for (;;) {
        while (*at == ' ' || *at == '\n')
            at++;
        if (*at == '>' || *at == '/')
            return at;
        assert_true(isalpha((unsigned char)*at));
        while (*at && *at != '=' && *at != '>')
            at++;
        assert_int_equal(at[0], '=');
        assert_int_equal(at[1], '"');
        for (at += 2; *at != '"'; at++)
            assert_true(*at && *at != '<');
        at++;
    }
}

static void check_well_formed(const char *at)
{
    char names[DEPTH_MAX][16];
    int depth = 0;
    for (; *at; at++) {
        if (*at == '&')
            assert_true(strncmp(at, "&lt;", 4) == 0 || strncmp(at, "&gt;", 4) == 0 ||
                        strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&quot;", 6) == 0);
        assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
        if (*at != '<')
            continue;
        char name[16];
        int len = 0;
        bool closes = at[1] == '/';
        for (at += closes ? 2 : 1; isalpha((unsigned char)*at); at++)
            name[len++] = *at;
        name[len] = 0;
        assert_true(len > 0);
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(names[--depth], name);
            assert_int_equal(*at, '>');
            continue;
        }
        at = read_attributes(at);
        if (*at == '/')
            at++;
        else
            memcpy(names[depth++], name, sizeof(name));
        assert_int_equal(*at, '>');
        assert_true(depth < DEPTH_MAX);
    }
    assert_int_equal(depth, 0);
}

static uint32_t count_of(const char *in, const char *what)
{
    uint32_t count = 0;
    for (; (in = strstr(in, what)) != NULL; in += strlen(what))
        count++;
    return count;
}

static char *draw(const struct sim_log *log, const struct sim_told *told, const char *violation,
                  struct buf *to)
{
    const struct sim_diagram diagram = {.title = "a <title> & more",
                                        .violation = violation,
                                        .lanes = lanes,
                                        .lane_count = 4,
                                        .log = log,
                                        .told = told};
    sim_diagram_write(&diagram, to);
    buf_append_u8(to, 0);
    check_well_formed((const char *)to->at);
    return (char *)to->at;
}

/* ---- Tests ---- */

static void an_empty_log(void **state)
{
    (void)state;
    struct sim_log log;
    struct sim_told told = {0};
    struct buf svg = {0};
    sim_log_init(&log, UINT64_MAX);
    draw(&log, &told, "nothing was ever said", &svg);
    buf_deinit(&svg);
    sim_log_deinit(&log);
}

static void what_is_lost_and_what_arrives(void **state)
{
    (void)state;
    struct sim_log log;
    struct sim_told told = {
        .violated_ns = 1000,
        .faults = {{.from_ns = 100, .to_ns = 500, .node = 1, .text = "cut <1>"},
                   {.from_ns = 5000, .to_ns = 6000, .node = 2, .text = "tomorrow"}},
        .fault_count = 2};
    struct buf svg = {0};
    sim_log_init(&log, UINT64_MAX);
    sim_log_message(&log, 100, 200, false, 0, 1, "arrives");
    sim_log_message(&log, 300, 400, true, 1, 0, "is lost");
    sim_log_message(&log, 500, 2000, false, 1, 2, "on its way");
    sim_log_message(&log, 600, 700, false, 1, 2, "Heartbeat");
    sim_log_mark(&log, 800, 2, "dies & %d", 7);
    sim_log_message(&log, 1001, 1002, false, 0, 1, "afterwards");
    const char *text = draw(&log, &told, "wrong", &svg);
    assert_int_equal(count_of(text, "marker-end"), 1);
    assert_int_equal(count_of(text, "stroke-dasharray"), 2);
    assert_int_equal(count_of(text, "l8,8m0,-8l-8,8"), 1);
    assert_non_null(strstr(text, "dies &amp; 7"));
    assert_null(strstr(text, "afterwards"));
    assert_null(strstr(text, "Heartbeat"));
    assert_int_equal(count_of(text, "cut &lt;1&gt;"), 2); /* the band's name and its title */
    assert_null(strstr(text, "tomorrow"));
    buf_deinit(&svg);
    sim_log_deinit(&log);
}

static void heartbeats_are_left_out(void **state)
{
    (void)state;
    struct sim_log log;
    struct sim_told told = {.violated_ns = 100000};
    struct buf svg = {0};
    sim_log_init(&log, UINT64_MAX);
    sim_log_mark(&log, 0, 0, "the beginning");
    for (uint32_t i = 1; i <= 500; i++) {
        sim_log_message(&log, 10 * i, 10 * i + 5, false, 0, 1, "Append t1 7+0 c7");
        sim_log_message(&log, 10 * i + 5, 10 * i + 9, false, 1, 0, "AppendResp t1 ok d7");
    }
    sim_log_message(&log, 9000, 9001, false, 0, 1, "Append t1 7+1 c7");
    sim_log_message(&log, 9002, 9003, false, 0, 1, "Append t1 7+0 c7");
    sim_log_message(&log, 9004, 9005, false, 0, 1, "Batch");
    sim_log_message(&log, 9006, 9007, false, 0, 1, "Batch");
    const char *text = draw(&log, &told, "wrong", &svg);
    assert_non_null(strstr(text, "the beginning"));
    assert_int_equal(count_of(text, ">Append t1 7+0 c7<"), 2);
    assert_int_equal(count_of(text, ">Append t1 7+1 c7<"), 1);
    assert_int_equal(count_of(text, ">AppendResp t1 ok d7<"), 1);
    assert_int_equal(count_of(text, ">Batch<"), 2);
    buf_deinit(&svg);
    sim_log_deinit(&log);
}

/* The last of them before the violation, however many there were. */
static void a_log_that_went_round(void **state)
{
    (void)state;
    struct sim_log log;
    struct sim_told told = {.violated_ns = 3 * SIM_LOG_MAX};
    struct buf svg = {0};
    sim_log_init(&log, told.violated_ns);
    for (uint32_t i = 0; i < 4 * SIM_LOG_MAX; i++)
        sim_log_mark(&log, i, i % 4, "mark %u.", i);
    const char *text = draw(&log, &told, "wrong", &svg);
    char last[32], first[32], before[32];
    snprintf(last, sizeof(last), "mark %u.", 3 * SIM_LOG_MAX);
    snprintf(first, sizeof(first), "mark %u.", 3 * SIM_LOG_MAX - SIM_DIAGRAM_ENTRIES_MAX + 1);
    snprintf(before, sizeof(before), "mark %u.", 3 * SIM_LOG_MAX - SIM_DIAGRAM_ENTRIES_MAX);
    assert_non_null(strstr(text, last));
    assert_non_null(strstr(text, first));
    assert_null(strstr(text, before));
    buf_deinit(&svg);
    sim_log_deinit(&log);
}

static void anything_at_all(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    for (int round = 0; round < 300; round++) {
        struct sim_log log;
        struct sim_told told = {.violated_ns = rng_below(&rng, 2000)};
        struct buf svg = {0};
        sim_log_init(&log, UINT64_MAX);
        for (uint64_t i = rng_below(&rng, 300); i > 0; i--) {
            char text[SIM_LOG_TEXT_MAX];
            for (size_t j = 0; j < sizeof(text); j++)
                text[j] = (char)rng_below(&rng, 256);
            text[rng_below(&rng, sizeof(text))] = 0;
            text[sizeof(text) - 1] = 0;
            uint64_t at = rng_below(&rng, 2000);
            if (rng_one_in(&rng, 3))
                sim_log_mark(&log, at, (uint32_t)rng_below(&rng, 6), "%s", text);
            else
                sim_log_message(&log, at, at + rng_below(&rng, 500), rng_one_in(&rng, 2),
                                (uint32_t)rng_below(&rng, 6), (uint32_t)rng_below(&rng, 6), text);
        }
        for (; told.fault_count < rng_below(&rng, SIM_TOLD_FAULTS_MAX); told.fault_count++)
            told.faults[told.fault_count] =
                (struct sim_told_fault){.from_ns = rng_below(&rng, 2000),
                                        .to_ns = rng_below(&rng, 3000),
                                        .node = (uint8_t)rng_below(&rng, 9),
                                        .text = "<fault>"};
        draw(&log, &told, rng_one_in(&rng, 2) ? "wrong" : NULL, &svg);
        buf_deinit(&svg);
        sim_log_deinit(&log);
    }
}

static void names_of_bytes_that_are_no_message(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 4);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[64];
        size_t len = rng_below(&rng, sizeof(bytes));
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)rng_below(&rng, rng_one_in(&rng, 2) ? 256 : 12);
        void (*const names[])(struct bytes, char[SIM_LOG_TEXT_MAX]) = {
            sim_log_name_stream, sim_log_name_groups, sim_log_name_envelope};
        for (int i = 0; i < 3; i++) {
            char text[SIM_LOG_TEXT_MAX] = "";
            names[i](bytes_make(bytes, len), text);
            assert_true(strlen(text) > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_log),
        cmocka_unit_test(what_is_lost_and_what_arrives),
        cmocka_unit_test(heartbeats_are_left_out),
        cmocka_unit_test(a_log_that_went_round),
        cmocka_unit_test(anything_at_all),
        cmocka_unit_test(names_of_bytes_that_are_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
