/* SPDX-License-Identifier: Apache-2.0 */
/* The console's files and who may have them, and what a chaos run lets it show: asked over real
 * sockets, of a cluster whose only region is down. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/live/console.h"
#include "chaos/live/control.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/client.h"

static const char safari[] = "Mozilla/5.0 (Macintosh)";

/* ---- Who may ask ---- */

static void browsers_are_let_in_to_ours_alone(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *host, *origin, *fetch_site;
        bool allowed;
    } visits[] = {
        {"GET", "/", "127.0.0.1:8474", NULL, "none", true},
        {"GET", "/", "localhost:8474", NULL, "cross-site", true},
        {"GET", "/?from=readme", "localhost:8474", NULL, NULL, true},
        {"HEAD", "/console.css", "localhost:8474", NULL, "same-origin", true},
        {"GET", "/", "evil.example:8474", NULL, "none", false},
        {"GET", "/proxies", "localhost:8474", NULL, "same-origin", false},
        {"POST", "/", "localhost:8474", NULL, "same-origin", false},
        {"POST", "/reset", "localhost:8474", NULL, "same-origin", false},
        {"GET", "/v1", "localhost:8474", NULL, "same-origin", false},
        {"GET", "/%761/status", "localhost:8474", NULL, "same-origin", false},
        {"GET", "/v1/status", "localhost:8474", NULL, "same-origin", true},
        {"GET", "/v1/status", "localhost:8474", NULL, "none", true},
        {"GET", "/v1/status", "localhost:8474", NULL, NULL, true},
        {"GET", "/v1/status", "localhost:8474", NULL, "same-site", false},
        {"GET", "/v1/status", "evil.example:8474", NULL, "same-origin", false},
        {"GET", "/v1/status", "localhost:8474", "http://evil.example", NULL, false},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", NULL, "same-origin", true},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", "http://localhost:8474", NULL, true},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", NULL, "none", false},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", NULL, NULL, false},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", NULL, "cross-site", false},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", "http://127.0.0.1:8474", NULL, false},
        {"POST", "/v1/links/a/b/cut", "localhost:8474", "null", "same-origin", false},
    };
    struct control control = {.answers = 0};
    assert_true(address_parse(bytes_literal("127.0.0.1:8474"), &control.address));
    for (size_t i = 0; i < array_len(visits); i++) {
        struct http_header headers[3] = {{bytes_literal("user-agent"), bytes_text(safari)}};
        struct http_request request = {.method = bytes_text(visits[i].method),
                                       .path = bytes_text(visits[i].path),
                                       .host = bytes_text(visits[i].host),
                                       .headers = headers,
                                       .header_count = 1};
        if (visits[i].origin != NULL)
            headers[request.header_count++] =
                (struct http_header){bytes_literal("origin"), bytes_text(visits[i].origin)};
        if (visits[i].fetch_site != NULL)
            headers[request.header_count++] = (struct http_header){
                bytes_literal("sec-fetch-site"), bytes_text(visits[i].fetch_site)};
        if ((control_suspicion(&control, &request) == NULL) != visits[i].allowed)
            fail_msg("visit %zu", i);
    }
}

/* ---- Over sockets ---- */

struct fixture {
    struct loop loop;
    struct site site;
    struct cluster cluster;
    struct control_run run;
    struct control *control;
    struct client *client;
    char report[64]; /* path */
    int status;
    struct buf body;
    char policy[300];
};

static json_t *show_faults(void *context)
{
    (void)context;
    return json_pack("[{s:s, s:s}]", "id", "f1", "verb", "link_cut");
}

static json_t *show_report(void *context)
{
    (void)context;
    return json_pack("{s:s, s:s}", "name", "isolated-region", "verdict", "pass");
}

static const char *show_report_path(void *context)
{
    struct fixture *fixture = context;
    return fixture->report[0] == 0 ? NULL : fixture->report;
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    struct buf error;
    char address[ADDRESS_MAX];
    buf_init(&error);
    buf_init(&fixture->body);
    loop_init(&fixture->loop);
    fixture->site = (struct site){.cluster = &fixture->cluster,
                                  .name = "us-east-1",
                                  .dial = "127.0.0.1:1",
                                  .state = SITE_DEAD};
    fixture->cluster =
        (struct cluster){.loop = &fixture->loop, .sites = &fixture->site, .site_count = 1};
    fixture->run = (struct control_run){.faults = show_faults,
                                        .report = show_report,
                                        .report_path = show_report_path,
                                        .context = fixture};
    fixture->control = control_open(&fixture->cluster, "127.0.0.1:0", &error);
    assert_non_null(fixture->control);
    address_print(&fixture->control->address, address);
    const struct client_config config = {.address = address,
                                         .connections_max = 1,
                                         .waiting_max = 1,
                                         .connect_ms_max = 10000,
                                         .answer_bytes_max = 1024 * 1024};
    fixture->client = client_new(&fixture->loop, &config);
    buf_deinit(&error);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    client_free(fixture->client);
    control_close(fixture->control);
    loop_deinit(&fixture->loop);
    buf_deinit(&fixture->body);
    free(fixture);
    return 0;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct fixture *fixture = context;
    struct bytes policy = http_answer_header(answer, "content-security-policy");
    fixture->status = answer->status;
    buf_reset(&fixture->body);
    buf_append_bytes(&fixture->body, answer->body);
    snprintf(fixture->policy, sizeof(fixture->policy), "%.*s", (int)policy.len,
             (const char *)policy.at);
    loop_stop(&fixture->loop);
}

static int ask(struct fixture *fixture, const char *path)
{
    const struct http_header host = {bytes_literal("host"), bytes_literal("localhost")};
    const struct client_call call = {.method = bytes_literal("GET"),
                                     .path = bytes_text(path),
                                     .headers = &host,
                                     .header_count = 1,
                                     .timeout_ms = 60000};
    fixture->loop.stopping = false;
    client_send(fixture->client, &call, on_answer, fixture);
    loop_run(&fixture->loop);
    return fixture->status;
}

static void files_come_whole(void **state)
{
    struct fixture *fixture = *state;
    assert_true(console_file_count >= 4);
    for (uint32_t i = 0; i < console_file_count; i++) {
        const struct console_file *file = &console_files[i];
        assert_int_equal(ask(fixture, file->path), 200);
        assert_true(bytes_equal(buf_view(&fixture->body), file->content));
        assert_non_null(strstr(fixture->policy, "default-src 'none'"));
        assert_null(strstr(fixture->policy, "unsafe"));
    }
    assert_int_equal(ask(fixture, "/index.html"), 404);
}

static json_t *console_answer(struct fixture *fixture)
{
    assert_int_equal(ask(fixture, "/v1/console"), 200);
    json_t *told = json_loadb((const char *)fixture->body.at, fixture->body.len, 0, NULL);
    assert_non_null(told);
    return told;
}

static void a_run_is_shown(void **state)
{
    struct fixture *fixture = *state;
    json_t *told = console_answer(fixture);
    assert_int_equal(json_array_size(json_object_get(told, "faults")), 0);
    assert_true(json_is_array(json_object_get(told, "faults")));
    assert_true(json_is_null(json_object_get(told, "report")));
    json_t *region = json_array_get(json_object_get(told, "regions"), 0);
    assert_true(json_is_null(json_object_get(region, "clock_offset_ms")));
    json_decref(told);
    fixture->control->run = &fixture->run;
    told = console_answer(fixture);
    json_t *fault = json_array_get(json_object_get(told, "faults"), 0);
    assert_string_equal(json_string_value(json_object_get(fault, "verb")), "link_cut");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(told, "report"), "verdict")), "pass");
    json_decref(told);
    /* The status is what it was. */
    assert_int_equal(ask(fixture, "/v1/status"), 200);
    told = json_loadb((const char *)fixture->body.at, fixture->body.len, 0, NULL);
    assert_int_equal(json_object_size(told), 4);
    json_decref(told);
}

static void a_report_is_shown_without_rights(void **state)
{
    struct fixture *fixture = *state;
    static const char page[] = "<!doctype html><title>lost</title>";
    assert_int_equal(ask(fixture, "/v1/report"), 404);
    fixture->control->run = &fixture->run;
    assert_int_equal(ask(fixture, "/v1/report"), 404);
    snprintf(fixture->report, sizeof(fixture->report), "/tmp/tidemark-report-XXXXXX");
    int fd = mkstemp(fixture->report);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, page, sizeof(page) - 1), sizeof(page) - 1);
    close(fd);
    assert_int_equal(ask(fixture, "/v1/report"), 200);
    assert_true(bytes_is(buf_view(&fixture->body), page));
    assert_non_null(strstr(fixture->policy, "sandbox"));
    assert_null(strstr(fixture->policy, "allow-same-origin"));
    unlink(fixture->report);
    assert_int_equal(ask(fixture, "/v1/report"), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(browsers_are_let_in_to_ours_alone),
        cmocka_unit_test_setup_teardown(files_come_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_report_is_shown_without_rights, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
