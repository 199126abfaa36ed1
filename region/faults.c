/* SPDX-License-Identifier: Apache-2.0 */
/* See faults.h. The body is a list of rules; a table says which members each kind has. Rules apply
 * in their order: of requests, the first that strikes decides; messages meet all of them. */

#include "region/faults.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "conflict/region_id.h"
#include "region/core/item_json.h"
#include "region/core/op.h"

enum { DELAY_MS_MAX = 3600000 };
_Static_assert(OP_KIND_COUNT < 64, "a set of operations is 64 bits");

static const char *const kind_names[] = {"loss",    "duplicate", "corrupt",
                                         "reorder", "clients",   "error"};
static const char *const how_names[] = {"cut", "blackhole", "refuse", "reset"};

void faults_init(struct faults *faults, uint64_t seed)
{
    *faults = (struct faults){.count = 0};
    rng_init(&faults->rng, seed);
}

/* ---- Reading ---- */

static const char *text_of(const json_t *rule, const char *name)
{
    return json_string_value(json_object_get(rule, name));
}

/* The place of the member's text in the list. False when it is missing or none of them. */
static bool read_choice(const json_t *rule, const char *name, const char *const *names,
                        size_t count, unsigned *ret)
{
    const char *text = text_of(rule, name);
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (unsigned)i;
            return true;
        }
    }
    return false;
}

static bool read_error(const json_t *json, enum api_error *ret)
{
    const char *text = text_of(json, "error");
    for (enum api_error error = API_OK + 1; text && error < API_ERROR_COUNT; error++) {
        if (strcmp(text, api_error_name(error)) == 0) {
            *ret = error;
            return true;
        }
    }
    return false;
}

static bool find_operation(struct bytes name, enum op_kind *ret)
{
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (bytes_is(name, op_name(kind))) {
            *ret = kind;
            return true;
        }
    }
    return false;
}

static bool read_operations(const json_t *json, uint64_t *ret)
{
    const json_t *list = json_object_get(json, "operations"), *at;
    size_t i;
    if (!list)
        return true;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, at)
    {
        enum op_kind kind;
        if (!json_is_string(at) || !find_operation(bytes_text(json_string_value(at)), &kind))
            return false;
        *ret |= UINT64_C(1) << kind;
    }
    return true;
}

static bool read_share(const json_t *json, double *ret)
{
    const json_t *share = json_object_get(json, "share");
    *ret = share ? json_number_value(share) : 1;
    return (!share || json_is_number(share)) && *ret > 0 && *ret <= 1;
}

static const char *read_message(const json_t *json, struct fault_rule *rule)
{
    const char *peer = text_of(json, "peer");
    const json_t *correlation = json_object_get(json, "correlation");
    rule->correlation = json_number_value(correlation);
    if (correlation &&
        (!json_is_number(correlation) || !(rule->correlation >= 0 && rule->correlation < 1)))
        return "correlation is to be from 0 to below 1";
    if (peer && (rule->peer = region_id_find(bytes_text(peer))) == REGION_ID_NONE)
        return "peer is to be the name of a Region";
    if (!read_share(json, &rule->share))
        return "share is to be above 0 and at most 1";
    const json_t *delay = json_object_get(json, "delay_ms");
    if (rule->kind != FAULTS_REORDER)
        return delay ? "only a rule of kind reorder has delay_ms" : NULL;
    json_int_t value = json_integer_value(delay);
    if (!json_is_integer(delay) || value < 1 || value > DELAY_MS_MAX)
        return "delay_ms is to be a whole number from 1 to 3600000";
    rule->delay_ms = (uint64_t)value;
    return NULL;
}

static const char *read_body(const json_t *json, struct fault_rule *rule)
{
    unsigned how;
    switch (rule->kind) {
    case FAULTS_LOSS:
    case FAULTS_DUPLICATE:
    case FAULTS_CORRUPT:
    case FAULTS_REORDER:
        return read_message(json, rule);
    case FAULTS_CLIENTS:
        if (!read_choice(json, "how", how_names, sizeof(how_names) / sizeof(*how_names), &how))
            return "how is to be cut, blackhole, refuse or reset";
        rule->how = (enum faults_how)how;
        return NULL;
    case FAULTS_ERROR:
        if (!read_error(json, &rule->error))
            return "error is to be an error's name, such as InternalServerError";
        if (!read_operations(json, &rule->operations))
            return "operations is to be a list of operations' names, such as PutItem";
        return read_share(json, &rule->share) ? NULL : "share is to be above 0 and at most 1";
    }
    return "unknown";
}

/* NULL, or what is wrong. */
static const char *read_rule(const json_t *json, struct fault_rule *rule)
{
    static const char *const members[] = {"id",       "kind", "how",   "error",      "operations",
                                          "delay_ms", "peer", "share", "correlation"};
    const char *id = text_of(json, "id");
    size_t known = 0;
    unsigned kind;
    if (!json_is_object(json))
        return "each fault is to be an object";
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        known += json_object_get(json, members[i]) != NULL;
    if (known != json_object_size(json))
        return "it has members that no fault has";
    if (!id || *id == 0 || strlen(id) > FAULTS_ID_MAX)
        return "id is to be a text of 1 to 64 bytes";
    if (!read_choice(json, "kind", kind_names, sizeof(kind_names) / sizeof(*kind_names), &kind))
        return "kind is to be loss, duplicate, corrupt, reorder, clients or error";
    *rule = (struct fault_rule){.kind = (enum faults_kind)kind};
    snprintf(rule->id, sizeof(rule->id), "%s", id);
    return read_body(json, rule);
}

static struct fault_rule *find(struct fault_rule *rules, uint32_t count,
                               const struct fault_rule *like)
{
    for (uint32_t i = 0; i < count; i++) {
        if (rules[i].kind == like->kind && strcmp(rules[i].id, like->id) == 0)
            return &rules[i];
    }
    return NULL;
}

static void replace(struct faults *faults, struct fault_rule *rules, uint32_t count,
                    uint64_t newest_connection)
{
    faults->ended_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fault_rule *before = find(faults->rules, faults->count, &rules[i]);
        rules[i].since = before ? before->since : newest_connection;
        rules[i].hits = before ? before->hits : 0;
        rules[i].closed = before ? before->closed : 0;
    }
    for (uint32_t i = 0; i < faults->count; i++) {
        if (!find(rules, count, &faults->rules[i]))
            faults->ended[faults->ended_count++] = faults->rules[i];
    }
    memcpy(faults->rules, rules, count * sizeof(*rules));
    faults->count = count;
}

bool faults_set(struct faults *faults, struct bytes body, uint64_t newest_connection,
                struct buf *error)
{
    struct fault_rule rules[FAULTS_MAX];
    json_t *root = json_loadb((const char *)body.at, body.len, JSON_REJECT_DUPLICATES, NULL), *at;
    const json_t *list = json_object_get(root, "faults");
    const char *wrong = NULL;
    size_t i, count = json_array_size(list);
    if (!json_is_array(list) || json_object_size(root) != 1)
        wrong = "a JSON object with the list `faults` is expected";
    else if (count > FAULTS_MAX)
        wrong = "at most 64 faults can be set";
    if (!wrong) {
        json_array_foreach(list, i, at)
        {
            wrong = read_rule(at, &rules[i]);
            if (!wrong && find(rules, (uint32_t)i, &rules[i]))
                wrong = "two faults of one kind have the same id";
            if (wrong)
                break;
        }
    }
    json_decref(root);
    if (wrong)
        buf_append_text(error, wrong);
    else
        replace(faults, rules, (uint32_t)count, newest_connection);
    return !wrong;
}

static void write_rules(const struct fault_rule *rules, uint32_t count, struct buf *to)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_append_text(to, i == 0 ? "{\"id\":" : ",{\"id\":");
        json_write_string(to, bytes_text(rules[i].id));
        buf_printf(to, ",\"kind\":\"%s\",\"hits\":%" PRIu64, kind_names[rules[i].kind],
                   rules[i].hits);
        if (rules[i].kind == FAULTS_CORRUPT)
            buf_printf(to, ",\"closed\":%" PRIu64, rules[i].closed);
        buf_append_u8(to, '}');
    }
}

void faults_write(const struct faults *faults, struct buf *to)
{
    buf_append_text(to, "{\"faults\":[");
    write_rules(faults->rules, faults->count, to);
    buf_append_text(to, "],\"ended\":[");
    write_rules(faults->ended, faults->ended_count, to);
    buf_append_text(to, "]}\n");
}

/* ---- Striking ---- */

/* With a correlation, strikes come in runs: a chain of two states, in which the share of those that
 * are struck stays what it is and each resembles the one before so much. (netem mixes the draws
 * instead, and then no longer strikes as often as it was told to.) */
static bool strikes(struct faults *faults, struct fault_rule *rule)
{
    double share = rule->share;
    if (rule->begun && rule->struck)
        share += rule->correlation * (1 - share);
    else if (rule->begun)
        share -= rule->correlation * share;
    rule->struck = share >= 1 || rng_unit(&faults->rng) < share;
    rule->begun = true;
    rule->hits += rule->struck;
    return rule->struck;
}

/* What a rule on clients does to one of them. */
static enum faults_verdict meet(struct fault_rule *rule, uint64_t connection)
{
    bool concerned = rule->how == FAULTS_REFUSE  ? connection > rule->since
                     : rule->how == FAULTS_RESET ? connection <= rule->since
                                                 : true;
    if (!concerned)
        return FAULTS_PASS;
    rule->hits++;
    return rule->how == FAULTS_BLACKHOLE ? FAULTS_HOLD : FAULTS_DROP;
}

enum faults_verdict faults_answer(struct faults *faults, uint64_t connection)
{
    enum faults_verdict verdict = FAULTS_PASS;
    for (uint32_t i = 0; i < faults->count && verdict == FAULTS_PASS; i++) {
        if (faults->rules[i].kind == FAULTS_CLIENTS)
            verdict = meet(&faults->rules[i], connection);
    }
    return verdict;
}

static bool concerns(const struct fault_rule *rule, struct bytes target)
{
    if (rule->operations == 0)
        return true;
    const uint8_t *dot = target.len > 0 ? memchr(target.at, '.', target.len) : NULL;
    enum op_kind kind;
    if (!dot)
        return false;
    struct bytes name = bytes_make(dot + 1, target.len - (size_t)(dot + 1 - target.at));
    return find_operation(name, &kind) && (rule->operations >> kind & 1) != 0;
}

enum faults_verdict faults_request(struct faults *faults, uint64_t connection, struct bytes target,
                                   enum api_error *ret_error)
{
    enum faults_verdict verdict = faults_answer(faults, connection);
    for (uint32_t i = 0; i < faults->count && verdict == FAULTS_PASS; i++) {
        struct fault_rule *rule = &faults->rules[i];
        if (rule->kind != FAULTS_ERROR || !concerns(rule, target) || !strikes(faults, rule))
            continue;
        *ret_error = rule->error;
        verdict = FAULTS_FAIL;
    }
    return verdict;
}

struct faults_message faults_message(struct faults *faults, uint16_t peer)
{
    struct faults_message message = {.delay_ms = 0};
    for (uint32_t i = 0; i < faults->count; i++) {
        struct fault_rule *rule = &faults->rules[i];
        if (rule->kind > FAULTS_REORDER || (rule->peer != REGION_ID_NONE && rule->peer != peer) ||
            !strikes(faults, rule))
            continue;
        message.lost |= rule->kind == FAULTS_LOSS;
        message.twice |= rule->kind == FAULTS_DUPLICATE;
        message.corrupt |= rule->kind == FAULTS_CORRUPT;
        if (rule->kind == FAULTS_CORRUPT)
            message.luck = rng_next(&faults->rng);
        if (rule->kind == FAULTS_REORDER && rule->delay_ms > message.delay_ms)
            message.delay_ms = rule->delay_ms;
    }
    return message;
}

static void count_closed(struct fault_rule *rules, uint32_t count, uint16_t peer)
{
    for (uint32_t i = 0; i < count; i++)
        if (rules[i].kind == FAULTS_CORRUPT && rules[i].hits > 0 &&
            (rules[i].peer == REGION_ID_NONE || rules[i].peer == peer))
            rules[i].closed++;
}

void faults_stream_closed(struct faults *faults, uint16_t peer)
{
    count_closed(faults->rules, faults->count, peer);
    count_closed(faults->ended, faults->ended_count, peer);
}

/* ---- Words ---- */

const char *faults_error_text(enum api_error error)
{
    switch (error) {
    case API_THROTTLED:
        return "The level of configured provisioned throughput for the table was exceeded. "
               "Consider increasing your provisioning level with the UpdateTable API.";
    case API_THROTTLING:
        return "Rate of requests exceeds the allowed throughput.";
    case API_INTERNAL:
        return "Internal server error";
    case API_UNAVAILABLE:
        return "The service is currently unavailable or busy.";
    case API_CONDITION_FAILED:
        return "The conditional request failed";
    case API_RESOURCE_NOT_FOUND:
        return "Requested resource not found";
    case API_REPLICATED_WRITE_CONFLICT:
        return "One or more items in this request are being modified by a request in another "
               "Region.";
    case API_LIMIT_EXCEEDED:
        return "Too many operations for a given subscriber.";
    case API_UNRECOGNIZED_CLIENT:
        return "The security token included in the request is invalid.";
    case API_OK:
    case API_VALIDATION:
    case API_SERIALIZATION:
    case API_UNKNOWN_OPERATION:
    case API_UNKNOWN_RESOURCE:
    case API_MISSING_TOKEN:
    case API_INCOMPLETE_SIGNATURE:
    case API_INVALID_SIGNATURE:
    case API_ACCESS_DENIED:
    case API_REQUEST_TOO_LARGE:
    case API_RESOURCE_IN_USE:
    case API_TABLE_NOT_FOUND:
    case API_GLOBAL_TABLE_NOT_FOUND:
    case API_COLLECTION_TOO_LARGE:
    case API_ERROR_COUNT:
        break;
    }
    return "The request was refused by a fault that was set on this Region.";
}
