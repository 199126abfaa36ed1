/* SPDX-License-Identifier: Apache-2.0 */
/* The console's files and who may have them, and what a chaos run lets it show: asked over real
 * sockets, of a cluster whose only region is down. */

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/live/console.h"
#include "chaos/live/control.h"
#include "chaos/live/runs.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/client.h"

static const char safari[] = "Mozilla/5.0 (Macintosh)";

/* ---- Who may ask ---- */

static void browsers_are_let_in_to_ours_alone(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *host, *origin, *fetch; /* Sec-Fetch-Site, -Mode and -Dest */
        bool allowed;
    } visits[] = {
        {"GET", "/", "127.0.0.1:8474", NULL, "none", true},
        {"GET", "/", "localhost:8474", NULL, "same-origin", true},
        /* A link elsewhere is followed; a script elsewhere may not fetch, frame or probe. */
        {"GET", "/", "localhost:8474", NULL, "cross-site navigate document", true},
        {"GET", "/", "localhost:8474", NULL, "cross-site", false},
        {"GET", "/", "localhost:8474", NULL, "cross-site navigate iframe", false},
        {"GET", "/", "localhost:8474", NULL, "cross-site no-cors image", false},
        {"GET", "/", "localhost:8474", "http://evil.example", NULL, false},
        {"GET", "/", "localhost:8474", "http://evil.example", "none", false},
        {"GET", "/", "localhost:8474", "null", NULL, false},
        {"GET", "/console.mjs", "localhost:8474", "http://evil.example", "cross-site", false},
        {"GET", "/console.mjs", "localhost:8474", NULL, "cross-site no-cors script", false},
        {"GET", "/console.mjs", "localhost:8474", "http://localhost:8474", "same-origin", true},
        {"GET", "/v1/status", "localhost:8474", NULL, "cross-site navigate document", false},
        {"GET", "/v1/runs/a/b", "localhost:8474", NULL, "cross-site navigate document", false},
        {"GET", "/v1/runs/a/b", "localhost:8474", NULL, "same-origin navigate document", true},
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
    static const char *const names[] = {"sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"};
    struct control control = {.answers = 0};
    assert_true(address_parse(bytes_literal("127.0.0.1:8474"), &control.address));
    for (size_t i = 0; i < array_len(visits); i++) {
        struct http_header headers[5] = {{bytes_literal("user-agent"), bytes_text(safari)}};
        struct http_request request = {.method = bytes_text(visits[i].method),
                                       .path = bytes_text(visits[i].path),
                                       .host = bytes_text(visits[i].host),
                                       .headers = headers,
                                       .header_count = 1};
        if (visits[i].origin != NULL)
            headers[request.header_count++] =
                (struct http_header){bytes_literal("origin"), bytes_text(visits[i].origin)};
        char fetch[64];
        snprintf(fetch, sizeof(fetch), "%s", visits[i].fetch == NULL ? "" : visits[i].fetch);
        char *rest = visits[i].fetch == NULL ? NULL : fetch, *part;
        for (int j = 0; (part = strsep(&rest, " ")) != NULL; j++)
            headers[request.header_count++] =
                (struct http_header){bytes_text(names[j]), bytes_text(part)};
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
    char runs[64]; /* directory; made by the test that needs it */
    int status;
    struct buf body;
    char policy[300];
};

static json_t *show_faults(void *context)
{
    (void)context;
    return json_pack("[{s:s, s:s}]", "id", "f1", "verb", "link_cut");
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
    fixture->run = (struct control_run){.faults = show_faults, .context = fixture};
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
    json_t *region = json_array_get(json_object_get(told, "regions"), 0);
    assert_true(json_is_null(json_object_get(region, "clock_offset_ms")));
    json_decref(told);
    fixture->control->run = &fixture->run;
    told = console_answer(fixture);
    json_t *fault = json_array_get(json_object_get(told, "faults"), 0);
    assert_string_equal(json_string_value(json_object_get(fault, "verb")), "link_cut");
    json_decref(told);
    /* The status is what it was. */
    assert_int_equal(ask(fixture, "/v1/status"), 200);
    told = json_loadb((const char *)fixture->body.at, fixture->body.len, 0, NULL);
    assert_int_equal(json_object_size(told), 4);
    json_decref(told);
}

/* ---- Runs that have ended ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void make_run(const struct fixture *fixture, const char *name, const char *time,
                     const char *result, const char *page)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", fixture->runs, name);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    snprintf(path, sizeof(path), "%s/%s/%s", fixture->runs, name, time);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/%s/result.json", fixture->runs, name, time);
    if (result != NULL)
        write_file(path, result);
    snprintf(path, sizeof(path), "%s/%s/%s/report.html", fixture->runs, name, time);
    if (page != NULL)
        write_file(path, page);
}

static void make_runs(struct fixture *fixture)
{
    snprintf(fixture->runs, sizeof(fixture->runs), "/tmp/tidemark-runs-XXXXXX");
    assert_non_null(mkdtemp(fixture->runs));
    fixture->control->runs = fixture->runs;
}

static void remove_runs(const struct fixture *fixture)
{
    assert_int_equal(nftw(fixture->runs, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static json_t *list_runs(struct fixture *fixture)
{
    assert_int_equal(ask(fixture, "/v1/runs"), 200);
    json_t *runs = json_loadb((const char *)fixture->body.at, fixture->body.len, 0, NULL);
    assert_true(json_is_array(runs));
    return runs;
}

static const char *member(json_t *runs, size_t index, const char *name)
{
    const char *text = json_string_value(json_object_get(json_array_get(runs, index), name));
    assert_non_null(text);
    return text;
}

static const char lost_page[] = "<!doctype html><title>lost</title>";
#define RESULT(result, verdict)                                                                    \
    "{\n \"version\": 1,\n \"result\": \"" result "\",\n \"exit\": 0,\n \"verdict\": \"" verdict   \
    "\",\n \"run\": {\n  \"scenario\": \"x\""

static void runs_are_listed_newest_first(void **state)
{
    struct fixture *fixture = *state;
    fixture->control->runs = "/tmp/tidemark-there-is-no-such-directory";
    json_t *runs = list_runs(fixture);
    assert_int_equal(json_array_size(runs), 0);
    json_decref(runs);
    assert_int_equal(ask(fixture, "/v1/report"), 404);
    make_runs(fixture);
    make_run(fixture, "split", "20260101T000000Z", RESULT("pass", "pass: \\\"all\\\" is well"),
             "<p>old</p>");
    make_run(fixture, "loss", "20260102T000000Z", RESULT("wrong", "wrong: lost"), lost_page);
    make_run(fixture, "loss", "20251231T000000Z", RESULT("slow", "slow"), "<p>oldest</p>");
    make_run(fixture, "loss", "20260103T000000Z", NULL, lost_page); /* it goes on */
    make_run(fixture, "loss", "20260104T000000Z", RESULT("pass", "pass"), NULL);
    make_run(fixture, "loss", "20260105T000000Z", "{\"result\":", lost_page);
    make_run(fixture, "loss", "20260106T000000Z", "", lost_page);
    make_run(fixture, "loss", "20260107T000000Z", "{,\n \"run\":", lost_page);
    runs = list_runs(fixture);
    assert_int_equal(json_array_size(runs), 3);
    assert_string_equal(member(runs, 0, "name"), "loss");
    assert_string_equal(member(runs, 0, "result"), "wrong");
    assert_string_equal(member(runs, 1, "verdict"), "pass: \"all\" is well");
    assert_string_equal(member(runs, 2, "time"), "20251231T000000Z");
    assert_int_equal(ask(fixture, member(runs, 1, "report")), 200);
    assert_true(bytes_is(buf_view(&fixture->body), "<p>old</p>"));
    json_decref(runs);
    assert_int_equal(ask(fixture, "/v1/report"), 200);
    assert_true(bytes_is(buf_view(&fixture->body), lost_page));
    for (int i = 0; i < 3 * RUNS_MAX; i++) {
        char time[32];
        snprintf(time, sizeof(time), "20270101T0000%02dZ", i);
        make_run(fixture, "many", time, RESULT("pass", "pass"), lost_page);
    }
    runs = list_runs(fixture);
    assert_int_equal(json_array_size(runs), RUNS_MAX);
    assert_string_equal(member(runs, 0, "time"), "20270101T000059Z");
    assert_string_equal(member(runs, RUNS_MAX - 1, "time"), "20270101T000040Z");
    json_decref(runs);
    remove_runs(fixture);
}

static void a_report_is_shown_without_rights(void **state)
{
    struct fixture *fixture = *state;
    make_runs(fixture);
    make_run(fixture, "loss", "20260102T000000Z", RESULT("wrong", "wrong: lost"), lost_page);
    assert_int_equal(ask(fixture, "/v1/runs/loss/20260102T000000Z"), 200);
    assert_true(bytes_is(buf_view(&fixture->body), lost_page));
    assert_non_null(strstr(fixture->policy, "sandbox"));
    assert_null(strstr(fixture->policy, "allow-same-origin"));
    remove_runs(fixture);
}

/* Nothing outside of the directory is shown, and nothing that isn't a plain file in it. */
static void a_path_leads_nowhere_else(void **state)
{
    struct fixture *fixture = *state;
    static const char *const paths[] = {
        "/v1/runs/../secret",
        "/v1/runs/%2e%2e/secret",
        "/v1/runs/loss/..",
        "/v1/runs/loss/%2e%2e%2fout",
        "/v1/runs/loss/..%2f..%2fetc",
        "/v1/runs/%2f/etc",
        "/v1/runs/loss/",
        "/v1/runs//20260102T000000Z",
        "/v1/runs/loss/linked",
        "/v1/runs/link/real",
        "/v1/runs/loss/pipe",
        "/v1/runs/loss/huge",
        "/v1/runs/loss/directory",
        "/v1/runs/loss/linked-page",
        "/v1/runs/loss/none",
        "/v1/runs/loss/a/b",
        "/v1/runs/loss/real.old",
        "/v1/runs/loss/real%2f.",
        "/v1/runs/loss/real/.",
        "/v1/runs/loss/%00",
    };
    char path[256], other[256];
    make_runs(fixture);
    snprintf(other, sizeof(other), "%s/secret", fixture->runs);
    make_run(fixture, "loss", "real", RESULT("pass", "pass"), lost_page);
    make_run(fixture, "loss", "real.old", RESULT("pass", "pass"), lost_page);
    make_run(fixture, "loss", "pipe", RESULT("pass", "pass"), NULL);
    make_run(fixture, "loss", "huge", RESULT("pass", "pass"), lost_page);
    make_run(fixture, "loss", "directory", RESULT("pass", "pass"), NULL);
    make_run(fixture, "loss", "linked-page", RESULT("pass", "pass"), NULL);
    write_file(other, "secret");
    snprintf(path, sizeof(path), "%s/link", fixture->runs);
    assert_int_equal(symlink("loss", path), 0);
    snprintf(path, sizeof(path), "%s/loss/linked", fixture->runs);
    assert_int_equal(symlink("real", path), 0);
    snprintf(path, sizeof(path), "%s/loss/pipe/report.html", fixture->runs);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof(path), "%s/loss/directory/report.html", fixture->runs);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/loss/linked-page/report.html", fixture->runs);
    assert_int_equal(symlink(other, path), 0);
    snprintf(path, sizeof(path), "%s/loss/huge/report.html", fixture->runs);
    assert_int_equal(truncate(path, INT64_C(1) << 34), 0);
    assert_int_equal(ask(fixture, "/v1/runs/loss/real"), 200);
    for (size_t i = 0; i < array_len(paths); i++)
        if (ask(fixture, paths[i]) != 404)
            fail_msg("%s: %d", paths[i], fixture->status);
    remove_runs(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(browsers_are_let_in_to_ours_alone),
        cmocka_unit_test_setup_teardown(files_come_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_are_listed_newest_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_report_is_shown_without_rights, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_leads_nowhere_else, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
