/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */

#include "chaos/drive/answer.h"

#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

json_t *answer_json(struct bytes body)
{
    return json_loadb((const char *)body.at, body.len, 0, NULL);
}

void answer_list_deinit(struct answer_list *list)
{
    free(list->at);
}

static void list_add(struct answer_list *list, uint64_t value)
{
    if (list->count == list->cap) {
        list->cap = list->cap > 0 ? 2 * list->cap : 64;
        list->at = xrealloc(list->at, list->cap * sizeof(*list->at));
    }
    list->at[list->count++] = value;
}

/* ---- Values ---- */

uint64_t answer_number(const json_t *attribute)
{
    const json_t *number = json_object_get(attribute, "N");
    const char *text = json_string_value(number);
    size_t len = json_string_length(number);
    uint64_t value = 0;
    if (text == NULL || len == 0 || len > DECIMAL_LEN_MAX || (text[0] == '0' && len > 1))
        return ANSWER_STRANGE;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return ANSWER_STRANGE;
    }
    return value;
}

/* 0 stands for absence in a history and is no sum of ADDs of 1 either: no value of ours. */
static uint64_t register_value(const json_t *item)
{
    uint64_t value = answer_number(json_object_get(item, "v"));
    return value > 0 ? value : ANSWER_STRANGE;
}

static void see_item(const json_t *item, struct history_op *op, struct answer_list *list)
{
    if (item == NULL) {
        op->saw = HISTORY_SAW_ABSENT;
        return;
    }
    const json_t *values = json_object_get(json_object_get(item, "l"), "L");
    if (op->kind != HISTORY_READ || json_object_get(item, "l") == NULL) {
        op->saw = HISTORY_SAW_VALUE;
        op->value = register_value(item);
        return;
    }
    op->saw = HISTORY_SAW_LIST;
    if (!json_is_array(values) || json_array_size(values) > ANSWER_LIST_MAX)
        list_add(list, ANSWER_STRANGE);
    else
        for (size_t i = 0; i < json_array_size(values); i++)
            list_add(list, answer_number(json_array_get(values, i)));
    op->list_count = list->count;
}

static bool see_page(const json_t *root, struct history_op *op, struct answer_list *list,
                     json_t **ret_next)
{
    const json_t *items = json_object_get(root, "Items");
    json_t *next = json_object_get(root, "LastEvaluatedKey");
    size_t count = json_array_size(items);
    if (!json_is_array(items) || list->count + count > ANSWER_LIST_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        list_add(list, answer_number(json_object_get(json_array_get(items, i), "sk")));
    op->saw = HISTORY_SAW_LIST;
    op->list_count = list->count;
    *ret_next = json_incref(next);
    return true;
}

/* False: this is no answer to what was asked. */
static bool see(const json_t *root, struct history_op *op, struct answer_list *list,
                json_t **ret_next)
{
    const char *member = "Attributes";
    switch ((enum history_kind)op->kind) {
    case HISTORY_APPEND:
    case HISTORY_INSERT:
        return true;
    case HISTORY_SCAN:
        return see_page(root, op, list, ret_next);
    case HISTORY_READ:
        member = "Item";
        break;
    case HISTORY_ADD:
        if (json_object_get(root, member) == NULL)
            return false;
        break;
    case HISTORY_PUT:
    case HISTORY_PUT_IF:
    case HISTORY_DELETE:
        break;
    case HISTORY_KIND_COUNT:
        unreachable();
    }
    see_item(json_object_get(root, member), op, list);
    return true;
}

/* ---- Outcomes ---- */

static void set_outcome(struct history_op *op, enum history_reason reason, bool certain)
{
    bool writes = history_kind_writes((enum history_kind)op->kind);
    op->reason = (uint8_t)reason;
    op->outcome = certain || !writes ? HISTORY_FAILED : HISTORY_INFO;
    op->saw = HISTORY_SAW_NOTHING; /* also of a SCAN whose earlier pages came */
    op->list_count = 0;
}

struct bytes answer_error_type(struct bytes body, char scratch[static 64])
{
    json_t *root cleanup(answer_json_free) = answer_json(body);
    const json_t *type = json_object_get(root, "__type");
    const char *text = json_string_value(type);
    if (text == NULL)
        return BYTES_NONE;
    const char *hash = strchr(text, '#');
    snprintf(scratch, 64, "%s", hash ? hash + 1 : text);
    return bytes_text(scratch);
}

static enum history_reason reason_of_type(struct bytes type)
{
    static const struct {
        const char *type;
        enum history_reason reason;
    } known[] = {
        {"ConditionalCheckFailedException", HISTORY_REASON_CONDITION},
        {"ReplicatedWriteConflictException", HISTORY_REASON_CONFLICT},
        {"ProvisionedThroughputExceededException", HISTORY_REASON_THROTTLED},
        {"ThrottlingException", HISTORY_REASON_THROTTLED},
        {"Throttling", HISTORY_REASON_THROTTLED},
        {"RequestLimitExceeded", HISTORY_REASON_THROTTLED},
        {"LimitExceededException", HISTORY_REASON_THROTTLED},
    };
    for (size_t i = 0; i < array_len(known); i++)
        if (bytes_is(type, known[i].type))
            return known[i].reason;
    return HISTORY_REASON_REJECTED;
}

static void read_refusal(const struct http_answer *answer, struct history_op *op,
                         struct answer_list *list)
{
    char scratch[64];
    enum history_reason reason = reason_of_type(answer_error_type(answer->body, scratch));
    if (reason == HISTORY_REASON_CONDITION && op->kind != HISTORY_PUT_IF)
        reason = HISTORY_REASON_REJECTED; /* nobody set one */
    set_outcome(op, reason, true);
    if (reason != HISTORY_REASON_CONDITION)
        return;
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    see_item(json_object_get(root, "Item"), op, list);
}

static void read_success(const struct http_answer *answer, struct history_op *op,
                         struct answer_list *list, json_t **ret_next)
{
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    if (!json_is_object(root) || !see(root, op, list, ret_next)) {
        set_outcome(op, HISTORY_REASON_SERVER, false);
        return;
    }
    op->outcome = HISTORY_OK;
    op->reason = HISTORY_REASON_NONE;
    if (!history_kind_writes((enum history_kind)op->kind) && answer->body.len <= UINT32_MAX)
        op->bytes = (uint32_t)answer->body.len;
}

void answer_read(const struct http_answer *answer, struct history_op *op, struct answer_list *list,
                 json_t **ret_next)
{
    *ret_next = NULL;
    if (answer->status == 0 && !answer->sent)
        set_outcome(op, HISTORY_REASON_REFUSED, true);
    else if (answer->status == 0 && answer->timed_out)
        set_outcome(op, HISTORY_REASON_TIMEOUT, false);
    else if (answer->status == 0)
        set_outcome(op, HISTORY_REASON_DISCONNECTED, false);
    else if (answer->status == 200)
        read_success(answer, op, list, ret_next);
    else if (answer->status >= 400 && answer->status < 500)
        read_refusal(answer, op, list);
    else
        set_outcome(op, HISTORY_REASON_SERVER, false);
}

void answer_print(const struct http_answer *answer, struct buf *to)
{
    if (answer->status == 0) {
        buf_printf(to, "no answer: %s", answer->failure ? answer->failure : "unknown");
        return;
    }
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    const char *message = json_string_value(json_object_get(root, "message"));
    char scratch[64];
    struct bytes type = answer_error_type(answer->body, scratch);
    buf_printf(to, "%d %.*s%s%.300s", answer->status, (int)type.len, (const char *)type.at,
               message ? ": " : "", message ? message : "");
}
