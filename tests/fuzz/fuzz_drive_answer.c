/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that clients of a chaos run get: the first byte chooses the operation, the second the
 * status, the rest is the body. Whatever it is, it can be recorded, and an answer that is not sure
 * never becomes certain. */

#include "chaos/drive/answer.h"
#include "conflict/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    static const int statuses[] = {200, 400, 500, 0, 302, 429};
    if (len < 2)
        return 0;
    struct history_op op = {.kind = (uint8_t)(at[0] % HISTORY_KIND_COUNT), .return_ns = 1};
    struct http_answer answer = {.status = statuses[at[1] % array_len(statuses)],
                                 .body = bytes_make(at + 2, len - 2),
                                 .sent = true};
    struct answer_list list = {0};
    struct buf text;
    json_t *next;
    bool names = op.kind == HISTORY_PUT || op.kind == HISTORY_PUT_IF || op.kind == HISTORY_APPEND ||
                 op.kind == HISTORY_INSERT;
    op.written = names ? 1 : 0;
    answer_read(&answer, &op, &list, &next);
    check(history_op_fault(&op) == NULL);
    check(op.list_count == 0 || op.list_count == list.count);
    check(next == NULL || (op.kind == HISTORY_SCAN && op.outcome == HISTORY_OK));
    if (history_kind_writes((enum history_kind)op.kind) &&
        (answer.status < 200 || answer.status > 499))
        check(op.outcome == HISTORY_INFO);
    json_decref(next);
    buf_init(&text);
    answer_print(&answer, &text);
    buf_deinit(&text);
    answer_list_deinit(&list);
    return 0;
}
