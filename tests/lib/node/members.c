/* SPDX-License-Identifier: Apache-2.0 */
/* See members.h. */

#include "tests/lib/node/members.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "tests/lib/scratch.h"

static const char *const region_names[NODES] = {"us-east-1", "eu-west-1"};

/* ---- Running ---- */

static void on_ready(void *context)
{
    ((struct member *)context)->ready = true;
}

static void on_drained(void *context)
{
    ((struct member *)context)->drained = true;
}

static void on_round(void *context)
{
    struct fixture *fixture = context;
    uint64_t next_ns = UINT64_MAX;
    for (int i = 0; i < NODES; i++) {
        if (!fixture->at[i].node)
            continue;
        uint64_t due_ns = node_round(fixture->at[i].node);
        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    loop_wake_at(&fixture->loop, next_ns);
}

void members_run_until(struct fixture *fixture, const bool *done)
{
    while (!*done)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
}

/* A port that was free a moment ago: nodes must know each other's before they start. */
static uint16_t free_port(void)
{
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    check(probe >= 0);
    check(bind(probe, (struct sockaddr *)&at, sizeof(at)) == 0);
    check(getsockname(probe, (struct sockaddr *)&at, &len) == 0);
    close(probe);
    return ntohs(at.sin_port);
}

static void configure(struct member *member, const struct member *peer, const char *region,
                      const char *peer_region)
{
    char arguments[4][128];
    snprintf(arguments[0], sizeof(arguments[0]), "--region=%s", region);
    snprintf(arguments[1], sizeof(arguments[1]), "--listen=%s", member->address);
    snprintf(arguments[2], sizeof(arguments[2]), "--data=%s", member->directory);
    snprintf(arguments[3], sizeof(arguments[3]), "--peer=%s=%s", peer_region, peer->address);
    char *argv[] = {(char *)"test",
                    arguments[0],
                    arguments[1],
                    arguments[2],
                    arguments[3],
                    (char *)"--durability=os",
                    (char *)"--set=heartbeat-ms=20",
                    (char *)"--log-level=error",
                    NULL};
    char error[512] = "";
    if (!config_load(array_len(argv) - 1, argv, &member->config, error, sizeof(error)))
        fail_msg("%s", error);
    member->log = (struct log){STDERR_FILENO, TRACE_ERROR, region};
}

void member_start(struct member *member)
{
    char error[512] = "";
    struct node_events events = {on_ready, on_drained, member};
    member->ready = member->drained = false;
    member->node = node_open(&member->fixture->loop, &member->config, &member->log, &events, error,
                             sizeof(error));
    if (!member->node)
        fail_msg("%s", error);
    members_run_until(member->fixture, &member->ready);
}

static void settle(struct fixture *fixture)
{
    for (int i = 0; i < 20; i++)
        uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
}

void member_stop(struct member *member)
{
    if (!member->node)
        return;
    struct node *node = member->node;
    member->node = NULL;
    node_close(node);
    settle(member->fixture); /* sockets are closed in later rounds */
    node_free(node);
}

int members_setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    loop_init(&fixture->loop);
    loop_on_round(&fixture->loop, on_round, fixture);
    buf_init(&fixture->body);
    for (int i = 0; i < NODES; i++) {
        struct member *member = &fixture->at[i];
        member->fixture = fixture;
        snprintf(member->directory, sizeof(member->directory), "/tmp/tidemark-node-XXXXXX");
        check(mkdtemp(member->directory) != NULL);
        snprintf(member->address, sizeof(member->address), "127.0.0.1:%u", free_port());
    }
    for (int i = 0; i < NODES; i++) {
        struct member *member = &fixture->at[i];
        configure(member, &fixture->at[1 - i], region_names[i], region_names[1 - i]);
        member->client =
            client_new(&fixture->loop, &(struct client_config){.address = member->address,
                                                               .connections_max = 4,
                                                               .waiting_max = 100,
                                                               .connect_ms_max = 2000,
                                                               .answer_bytes_max = 1 << 25});
    }
    member_start(&fixture->at[0]);
    *state = fixture;
    return 0;
}

int members_teardown(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < NODES; i++) {
        client_free(fixture->at[i].client);
        member_stop(&fixture->at[i]);
    }
    loop_deinit(&fixture->loop);
    for (int i = 0; i < NODES; i++) {
        config_deinit(&fixture->at[i].config);
        remove_directory(fixture->at[i].directory);
    }
    buf_deinit(&fixture->body);
    free(fixture);
    return 0;
}

/* ---- Asking ---- */

static void keep_header(const struct http_answer *answer, const char *name, char *to, size_t to_len)
{
    struct bytes value = http_answer_header(answer, name);
    snprintf(to, to_len, "%.*s", (int)value.len, (const char *)value.at);
}

void members_on_answer(void *context, const struct http_answer *answer)
{
    struct fixture *fixture = context;
    fixture->answered = true;
    fixture->status = answer->status;
    buf_reset(&fixture->body);
    buf_append_bytes(&fixture->body, answer->body);
    buf_append_u8(&fixture->body, 0);
    keep_header(answer, "x-amzn-requestid", fixture->request_id, sizeof(fixture->request_id));
    keep_header(answer, "x-amz-crc32", fixture->crc32, sizeof(fixture->crc32));
    keep_header(answer, "server", fixture->server, sizeof(fixture->server));
    keep_header(answer, "content-type", fixture->type, sizeof(fixture->type));
}

const char *members_body(const struct fixture *fixture)
{
    return (const char *)fixture->body.at;
}

void member_ask(struct member *member, const char *method, const char *path,
                const struct http_header *headers, uint32_t header_count, const char *body)
{
    struct fixture *fixture = member->fixture;
    struct client_call call = {.method = bytes_text(method),
                               .path = bytes_text(path),
                               .headers = headers,
                               .header_count = header_count,
                               .body = bytes_text(body)};
    fixture->answered = false;
    client_send(member->client, &call, members_on_answer, fixture);
    members_run_until(fixture, &fixture->answered);
}

int member_call(struct member *member, const char *operation, const char *body)
{
    char target[64], authorization[160];
    snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation);
    snprintf(authorization, sizeof(authorization),
             "AWS4-HMAC-SHA256 Credential=test/20260101/%s/dynamodb/aws4_request, "
             "SignedHeaders=host;x-amz-date, Signature=00",
             region_id_name(member->config.core.region));
    struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("application/x-amz-json-1.0")},
        {bytes_literal("x-amz-target"), bytes_text(target)},
        {bytes_literal("x-amz-date"), bytes_literal("20260101T000000Z")},
        {bytes_literal("authorization"), bytes_text(authorization)},
    };
    member_ask(member, "POST", "/", headers, array_len(headers), body);
    return member->fixture->status;
}

void member_expect_ok(struct member *member, const char *operation, const char *body)
{
    if (member_call(member, operation, body) != 200)
        fail_msg("%s: %d %s", operation, member->fixture->status, members_body(member->fixture));
}

void member_await(struct member *member, const char *operation, const char *body, const char *part)
{
    do
        member_call(member, operation, body);
    while (member->fixture->status != 200 || !strstr(members_body(member->fixture), part));
}

void member_create_table(struct member *member)
{
    member_expect_ok(member, "CreateTable", CREATE_TABLE);
    member_await(member, "DescribeTable", "{\"TableName\":\"orders\"}",
                 "\"TableStatus\":\"ACTIVE\"");
}

json_t *members_parse_body(const struct fixture *fixture)
{
    json_t *root = json_loads(members_body(fixture), JSON_REJECT_DUPLICATES, NULL);
    if (!root)
        fail_msg("not JSON: %s", members_body(fixture));
    return root;
}
