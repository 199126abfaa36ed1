/* SPDX-License-Identifier: Apache-2.0 */
/* The programs are those of the build directory that the test lies in. */

#include "tests/lib/inject/grounds.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

enum { PULSE_MS = 2, ASK_MS_MAX = 5000 };

#define AUTHORIZATION                                                                              \
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/%s/dynamodb/aws4_request, "                  \
    "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="                          \
    "0000000000000000000000000000000000000000000000000000000000000000"

/* ---- Requests ---- */

static struct client_request *
send_request(struct grounds *grounds, uint32_t place, struct client *client, const char *method,
             const char *path, const char *operation, const char *body,
             void (*done)(void *, const struct http_answer *), void *context)
{
    char target[96], authorization[300];
    snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation == NULL ? "" : operation);
    snprintf(authorization, sizeof(authorization), AUTHORIZATION,
             grounds->cluster.sites[place].name);
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("application/x-amz-json-1.0")},
        {bytes_literal("x-amz-target"), bytes_text(target)},
        {bytes_literal("x-amz-date"), bytes_literal("20260101T000000Z")},
        {bytes_literal("authorization"), bytes_text(authorization)},
    };
    struct client_call call = {.method = bytes_text(method),
                               .path = bytes_text(path),
                               .headers = headers,
                               .header_count = operation == NULL ? 1 : 4,
                               .body = bytes_text(body),
                               .timeout_ms = ASK_MS_MAX};
    return client_send(client, &call, done, context);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct grounds *grounds = context;
    size_t len =
        answer->body.len < sizeof(grounds->body) - 1 ? answer->body.len : sizeof(grounds->body) - 1;
    grounds->answered = true;
    grounds->status = answer->status;
    memcpy(grounds->body, answer->body.len == 0 ? (const uint8_t *)"" : answer->body.at, len);
    grounds->body[len] = 0;
}

static bool is_answered(void *context)
{
    return ((struct grounds *)context)->answered;
}

int grounds_ask(struct grounds *grounds, uint32_t place, const char *method, const char *path,
                const char *operation, const char *body)
{
    struct site *site = &grounds->cluster.sites[place];
    grounds->answered = false;
    send_request(grounds, place, operation == NULL ? site->admin : site->door, method, path,
                 operation, body, on_answer, grounds);
    grounds_run_until(grounds, is_answered, grounds);
    return grounds->status;
}

int grounds_api(struct grounds *grounds, uint32_t place, const char *operation, const char *body)
{
    return grounds_ask(grounds, place, "POST", "/", operation, body);
}

void grounds_await(struct grounds *grounds, uint32_t place, const char *operation, const char *body,
                   const char *part)
{
    while (grounds_api(grounds, place, operation, body) != 200 ||
           strstr(grounds->body, part) == NULL)
        if (strstr(grounds->body, "ValidationException") != NULL)
            fail_msg("%s: %s", operation, grounds->body);
}

/* ---- The load ---- */

static void on_written(void *context, const struct http_answer *answer)
{
    __typeof__(((struct grounds *)0)->client[0]) *client = context;
    client->busy = false;
    client->good += answer->status == 200;
    client->bad += answer->status != 200;
    if (answer->status != 200)
        snprintf(client->last, sizeof(client->last), "%.*s", (int)answer->body.len,
                 (const char *)answer->body.at);
}

static void on_pulse(uv_timer_t *timer)
{
    struct grounds *grounds = timer->data;
    for (uint32_t i = 0; i < grounds->scenario.cluster.data_count && grounds->load; i++) {
        char body[200];
        if (grounds->client[i].busy)
            continue;
        grounds->client[i].busy = true;
        snprintf(body, sizeof(body),
                 "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"load-%u-%llu\"}}}", i,
                 (unsigned long long)grounds->written++ % 50);
        send_request(grounds, i, grounds->cluster.sites[i].door, "POST", "/", "PutItem", body,
                     on_written, &grounds->client[i]);
    }
}

/* ---- Running ---- */

struct waiting {
    struct grounds *grounds;
    bool (*reached)(void *context);
    void *context;
};

static void on_round(void *context)
{
    struct waiting *waiting = context;
    if (waiting->reached(waiting->context))
        loop_stop(&waiting->grounds->loop);
}

void grounds_run_until(struct grounds *grounds, bool (*reached)(void *context), void *context)
{
    struct waiting waiting = {grounds, reached, context};
    if (reached(context))
        return;
    loop_on_round(&grounds->loop, on_round, &waiting);
    loop_run(&grounds->loop);
    loop_on_round(&grounds->loop, NULL, NULL);
}

static void on_changed(void *context, struct site *site, const char *line)
{
    struct grounds *grounds = context;
    uint8_t place = (uint8_t)site->index;
    (void)line;
    if (grounds->inject == NULL)
        return;
    if (site->state == SITE_RUNNING)
        inject_serves(grounds->inject, place);
    if (site->state == SITE_DEAD || site->state == SITE_RUNNING)
        outcome_event(&grounds->outcome, grounds->loop.mono_ns, place,
                      site->state == SITE_DEAD ? "down" : "up", "%s", "");
}

static bool all_run(void *context)
{
    const struct grounds *grounds = context;
    for (uint32_t i = 0; i < grounds->cluster.site_count; i++)
        if (grounds->cluster.sites[i].state != SITE_RUNNING)
            return false;
    return true;
}

static bool all_stopped(void *context)
{
    return cluster_stopped(&((struct grounds *)context)->cluster);
}

/* ---- Faults ---- */

const struct scenario_fault *grounds_fault(struct grounds *grounds, const char *id)
{
    for (uint32_t i = 0; i < grounds->scenario.phase_count; i++)
        for (uint32_t j = 0; j < grounds->scenario.phases[i].fault_count; j++)
            if (strcmp(grounds->scenario.phases[i].faults[j].id, id) == 0)
                return &grounds->scenario.phases[i].faults[j];
    fail_msg("no fault '%s'", id);
    return NULL;
}

const struct outcome_fault *grounds_told(struct grounds *grounds, const char *id)
{
    for (uint32_t i = grounds->outcome.fault_count; i-- > 0;)
        if (strcmp(grounds->outcome.faults[i].id, id) == 0)
            return &grounds->outcome.faults[i];
    return NULL;
}

void grounds_begin(struct grounds *grounds, const char *id)
{
    inject_begin(grounds->inject, grounds_fault(grounds, id));
    const struct outcome_fault *told = grounds_told(grounds, id);
    if (told->refused)
        fail_msg("%s: refused: %s", id, told->evidence);
}

/* Evidence is there once a fault is over. */
static bool is_over(void *context)
{
    return *((const struct outcome_fault *)context)->evidence != 0;
}

static const struct outcome_fault *await_over(struct grounds *grounds, const char *id)
{
    const struct outcome_fault *told = grounds_told(grounds, id);
    grounds_run_until(grounds, is_over, (void *)told);
    return told;
}

const struct outcome_fault *grounds_undo(struct grounds *grounds, const char *id)
{
    inject_undo(grounds->inject, id);
    return await_over(grounds, id);
}

const struct outcome_fault *grounds_prove(struct grounds *grounds, const char *id)
{
    for (int i = 0;; i++) {
        grounds_begin(grounds, id);
        const struct outcome_fault *told = await_over(grounds, id);
        if (told->effective || i == 20) {
            print_message("    %s [%s]: %s\n", id, told->target, told->evidence);
            if (!told->effective)
                fail_msg("%s was never effective: %s", id, told->evidence);
            return told;
        }
    }
}

struct healing {
    bool done, good;
    char error[512];
};

static void on_healed(void *context, bool good, const char *error)
{
    struct healing *healing = context;
    healing->done = true;
    healing->good = good;
    snprintf(healing->error, sizeof(healing->error), "%s", error == NULL ? "" : error);
}

static bool is_healed(void *context)
{
    return ((struct healing *)context)->done;
}

void grounds_heal(struct grounds *grounds)
{
    struct healing healing = {.done = false};
    inject_heal(grounds->inject, UINT64_C(60000000000), on_healed, &healing);
    grounds_run_until(grounds, is_healed, &healing);
    if (!healing.good)
        fail_msg("not healed: %s", healing.error);
    assert_int_equal(inject_active(grounds->inject), 0);
}

/* ---- Life ---- */

static uint64_t leaders(void *context)
{
    (void)context;
    return 1;
}

/* Whoever says that it leads most groups. */
static uint8_t leader_of(void *context, const char *table)
{
    struct grounds *grounds = context;
    uint8_t best = SCENARIO_REGION_NONE;
    uint32_t most = 0;
    (void)table;
    for (uint8_t i = 0; i < grounds->scenario.cluster.data_count; i++) {
        uint32_t count = 0;
        if (grounds->cluster.sites[i].state != SITE_RUNNING ||
            grounds_ask(grounds, i, "GET", "/tidemark/status", NULL, "") != 200)
            continue;
        for (const char *at = grounds->body; (at = strstr(at, "\"leads\":true")) != NULL; at++)
            count++;
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return best;
}

static void make_table(struct grounds *grounds, bool strong)
{
    const struct scenario_cluster *cluster = &grounds->scenario.cluster;
    char body[600];
    grounds_await(grounds, 0, "CreateTable",
                  "{\"TableName\":\"tab\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
                  "\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{"
                  "\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}]}",
                  "TableName");
    grounds_await(grounds, 0, "DescribeTable", "{\"TableName\":\"tab\"}",
                  "\"TableStatus\":\"ACTIVE\"");
    if (strong) {
        snprintf(
            body, sizeof(body),
            "{\"TableName\":\"tab\",\"MultiRegionConsistency\":\"STRONG\",\"ReplicaUpdates\":[{"
            "\"Create\":{\"RegionName\":\"%s\"}},{\"Create\":{\"RegionName\":\"%s\"}}]}",
            cluster->region[1].name, cluster->region[2].name);
        grounds_await(grounds, 0, "UpdateTable", body, "TableName");
    }
    for (uint32_t i = 1; i < cluster->data_count && !strong; i++) {
        snprintf(
            body, sizeof(body),
            "{\"TableName\":\"tab\",\"ReplicaUpdates\":[{\"Create\":{\"RegionName\":\"%s\"}}]}",
            cluster->region[i].name);
        grounds_await(grounds, 0, "UpdateTable", body, "TableName");
        grounds_await(grounds, i, "DescribeTable", "{\"TableName\":\"tab\"}",
                      "\"TableStatus\":\"ACTIVE\"");
        grounds_await(grounds, 0, "DescribeTable", "{\"TableName\":\"tab\"}",
                      "\"TableStatus\":\"ACTIVE\"");
    }
    for (uint32_t i = 0; i < cluster->data_count; i++)
        grounds_await(grounds, i, "PutItem",
                      "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"first\"}}}", "");
}

static void programs_directory(char ret[4096])
{
    ssize_t len = readlink("/proc/self/exe", ret, 4000);
    check(len > 0);
    ret[len] = 0;
    snprintf(strrchr(ret, '/') + 1, 4, "../");
}

void grounds_open(struct grounds *grounds, const char *text, bool strong)
{
    struct buf error;
    char programs[4096];
    *grounds = (struct grounds){.load = false};
    buf_init(&error);
    scenario_init(&grounds->scenario);
    if (!scenario_read(&grounds->scenario, "test.yaml", bytes_text(text), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    outcome_init(&grounds->outcome, &grounds->scenario);
    snprintf(grounds->data, sizeof(grounds->data), "/tmp/tidemark-inject-XXXXXX");
    assert_non_null(mkdtemp(grounds->data));
    snprintf(grounds->journal, sizeof(grounds->journal), "%s/journal", grounds->data);
    config_init(&grounds->config);
    grounds->config.port = 0;
    grounds->config.durability = (enum durability)grounds->scenario.cluster.durability;
    grounds->config.log_level = "error";
    grounds->config.region_count = grounds->scenario.cluster.data_count;
    for (uint32_t i = 0; i < grounds->config.region_count; i++)
        grounds->config.regions[i] = grounds->scenario.cluster.region[i].id;
    loop_init(&grounds->loop);
    check(uv_timer_init(&grounds->loop.uv, &grounds->pulse) == 0);
    grounds->pulse.data = grounds;
    uv_timer_start(&grounds->pulse, on_pulse, PULSE_MS, PULSE_MS);
    programs_directory(programs);
    if (!cluster_init(&grounds->cluster, &grounds->loop, &grounds->config, programs, grounds->data,
                      on_changed, grounds, &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    struct inject_config config = {.loop = &grounds->loop,
                                   .cluster = &grounds->cluster,
                                   .scenario = &grounds->scenario,
                                   .outcome = &grounds->outcome,
                                   .journal = grounds->journal,
                                   .seed = 1,
                                   .leaders = leaders,
                                   .leader_of = leader_of,
                                   .context = grounds};
    grounds->inject = inject_new(&config);
    if (!cluster_start(&grounds->cluster, &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    buf_deinit(&error);
    grounds_run_until(grounds, all_run, grounds);
    make_table(grounds, strong);
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        grounds->client[i].index = i;
    grounds->load = true;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

void grounds_close(struct grounds *grounds)
{
    grounds->load = false;
    cluster_stop(&grounds->cluster);
    grounds_run_until(grounds, all_stopped, grounds);
    inject_free(grounds->inject);
    assert_int_not_equal(access(grounds->journal, F_OK), 0);
    cluster_deinit(&grounds->cluster);
    uv_timer_stop(&grounds->pulse);
    uv_close((uv_handle_t *)&grounds->pulse, NULL);
    loop_deinit(&grounds->loop);
    outcome_deinit(&grounds->outcome);
    scenario_deinit(&grounds->scenario);
    config_deinit(&grounds->config);
    assert_int_equal(nftw(grounds->data, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
