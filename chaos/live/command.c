/* SPDX-License-Identifier: Apache-2.0 */
/* A command becomes one request, and its answer a few lines. Which regions and links there are,
 * only the cluster knows, so its refusals are passed on in its own words. */

#include "chaos/live/command.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/live/address.h"
#include "chaos/live/config.h"
#include "chaos/live/render.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/client.h"

enum { ANSWER_MS_MAX = 120000, PATH_MAX_LEN = 256 };
#define DEFAULT_CONTROL "127.0.0.1:8474"

struct asking {
    struct loop loop;
    const struct command_options *options;
    const char *control;
    void (*render)(json_t *answer, struct buf *to);
    int exit_code;
};

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tidemark: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_FAILED;
}

/* ---- Asking ---- */

static void print_answer(struct asking *asking, const struct http_answer *answer, json_t *json)
{
    struct bytes note = http_answer_header(answer, "x-tidemark-note");
    if (note.len > 0 && !asking->options->json)
        fprintf(stderr, "tidemark: %.*s\n", (int)note.len, (const char *)note.at);
    if (asking->options->json) {
        json_dumpf(json, stdout, JSON_INDENT(2));
        fputc('\n', stdout);
        return;
    }
    struct buf to;
    buf_init(&to);
    asking->render(json, &to);
    fwrite(to.at, 1, to.len, stdout);
    buf_deinit(&to);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct asking *asking = context;
    json_t *json = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    const char *error = json_string_value(json_object_get(json, "error"));
    if (answer->status == 0)
        asking->exit_code = fail("no cluster answers at %s (%s): start one with `tidemark up`, or "
                                 "name its control address with --control or TIDEMARK_CONTROL",
                                 asking->control, answer->failure);
    else if (answer->status != 200 || json == NULL)
        asking->exit_code = fail("%s", error != NULL ? error
                                                     : "the answer is not one of Tidemark's: "
                                                       "is this its control address?");
    else
        print_answer(asking, answer, json);
    json_decref(json);
    loop_stop(&asking->loop);
}

/* "http://host:port/", "host:port" or a name that needs a resolver, to numbers. */
static bool find_control(const char *text, char ret[ADDRESS_MAX])
{
    struct address address;
    struct sockaddr_storage numeric;
    struct bytes from = bytes_text(text);
    if (bytes_starts_with(from, bytes_literal("http://")))
        from = bytes_make(from.at + 7, from.len - 7);
    if (from.len > 0 && from.at[from.len - 1] == '/')
        from.len--;
    if (!address_parse(from, &address))
        return false;
    if (!address_numeric(&address, &numeric)) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
        if (getaddrinfo(address.host, NULL, &hints, &found) != 0)
            return false;
        uint16_t port = address.port;
        struct sockaddr_storage first = {0};
        memcpy(&first, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
        address_from_socket(&first, &address);
        address.port = port;
    } else if (strcmp(address.host, "localhost") == 0) {
        snprintf(address.host, sizeof(address.host), "127.0.0.1");
    }
    address_print(&address, ret);
    return true;
}

static int ask(const struct command_options *options, const char *method, const char *path,
               const char *body, void (*render)(json_t *, struct buf *))
{
    char control[ADDRESS_MAX];
    const char *named = options->control;
    if (named == NULL)
        named = getenv("TIDEMARK_CONTROL");
    if (named == NULL || *named == 0)
        named = DEFAULT_CONTROL;
    if (!find_control(named, control)) {
        fail("'%s' is no control address: expected HOST:PORT or http://HOST:PORT, such as " //
             DEFAULT_CONTROL,
             named);
        return EXIT_USAGE;
    }
    struct asking asking = {.options = options, .control = control, .render = render};
    loop_init(&asking.loop);
    const struct client_config config = {.address = control,
                                         .connections_max = 1,
                                         .waiting_max = 1,
                                         .connect_ms_max = 5000,
                                         .answer_bytes_max = UINT64_C(1) << 30};
    struct client *client = client_new(&asking.loop, &config);
    const struct http_header headers[] = {
        {bytes_literal("host"), bytes_text(control)},
        {bytes_literal("user-agent"), bytes_literal("tidemark/" TIDEMARK_VERSION)},
        {bytes_literal("content-type"), bytes_literal("application/json")},
    };
    const struct client_call call = {.method = bytes_text(method),
                                     .path = bytes_text(path),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .body = bytes_text(body),
                                     .timeout_ms = ANSWER_MS_MAX};
    client_send(client, &call, on_answer, &asking);
    loop_run(&asking.loop);
    client_free(client);
    loop_deinit(&asking.loop);
    return asking.exit_code;
}

/* ---- Commands ---- */

static bool among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* Names go into a path: only what a region's name is made of. */
static bool plain(const char *word)
{
    return *word != 0 && strlen(word) < 64 &&
           strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(word);
}

static int usage(const char *expected, const char *came)
{
    fprintf(stderr, "tidemark: expected %s; came '%s'. `tidemark help` tells more.\n", expected,
            came);
    return EXIT_USAGE;
}

static int run_link(const struct command_options *options, const char *const *words, int count)
{
    static const char *const verbs[] = {"cut", "heal", "delay"};
    static const char form[] = "tidemark link cut|heal A B, or tidemark link delay A B MS";
    char path[PATH_MAX_LEN], body[64] = "";
    if (count < 2 || !among(words[1], verbs, array_len(verbs)))
        return usage(form, count < 2 ? "no verb" : words[1]);
    bool delay = strcmp(words[1], "delay") == 0;
    if (count < 4)
        return usage(form, "too few words");
    if (count != (delay ? 5 : 4))
        return usage(form, delay && count == 4 ? "no delay" : "too many words");
    for (int i = 2; i < 4; i++)
        if (!plain(words[i]))
            return usage("the name of a region, such as us-east-1", words[i]);
    if (delay) {
        uint64_t delay_ms;
        if (!parse_whole(words[4], 3600000, &delay_ms))
            return usage("a delay in whole milliseconds, at most 3600000", words[4]);
        snprintf(body, sizeof(body), "{\"delay_ms\":%llu}", (unsigned long long)delay_ms);
    }
    snprintf(path, sizeof(path), "/v1/links/%s/%s/%s", words[2], words[3], words[1]);
    return ask(options, "POST", path, body, render_link);
}

static int run_region(const struct command_options *options, const char *const *words, int count)
{
    static const char *const verbs[] = {"kill", "pause", "resume", "restart", "isolate", "rejoin"};
    static const char form[] = "tidemark region kill|pause|resume|restart|isolate|rejoin REGION";
    static const char discard[] = "{\"discard_damaged_store\":true}";
    char path[PATH_MAX_LEN];
    if (count < 2 || !among(words[1], verbs, array_len(verbs)))
        return usage(form, count < 2 ? "no verb" : words[1]);
    if (count != 3)
        return usage(form, count < 3 ? "no region" : words[3]);
    if (!plain(words[2]))
        return usage("the name of a region, such as us-east-1", words[2]);
    snprintf(path, sizeof(path), "/v1/regions/%s/%s", words[2], words[1]);
    return ask(options, "POST", path, options->discard_damaged_store ? discard : "", render_region);
}

int command_run(const struct command_options *options, const char *const *words, int word_count)
{
    const char *command = words[0];
    bool restart =
        word_count > 1 && strcmp(command, "region") == 0 && strcmp(words[1], "restart") == 0;
    if (options->discard_damaged_store && !restart)
        return usage(
            "--discard-damaged-store with tidemark up or tidemark region restart REGION only",
            command);
    if (strcmp(command, "link") == 0)
        return run_link(options, words, word_count);
    if (strcmp(command, "region") == 0)
        return run_region(options, words, word_count);
    bool status = strcmp(command, "status") == 0;
    if (!status && strcmp(command, "conflicts") != 0)
        return usage("one of up, status, conflicts, link, region, version, help", command);
    if (word_count > 1)
        return usage(status ? "tidemark status" : "tidemark conflicts", words[1]);
    return status ? ask(options, "GET", "/v1/status", "", render_status)
                  : ask(options, "GET", "/v1/conflicts", "", render_conflicts);
}
