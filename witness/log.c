/* SPDX-License-Identifier: Apache-2.0 */
/* An array whose front is given up as the base advances; the rest moves down when more than half of
 * it is free, so a trim costs constant time on average. */

#include "witness/log.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void consensus_log_init(struct consensus_log *log)
{
    *log = (struct consensus_log){0};
}

static struct consensus_log_slot *slot(const struct consensus_log *log, uint64_t index)
{
    check(index > log->base_index);
    check(index - log->base_index <= log->count);
    return &log->at[log->head + (uint32_t)(index - log->base_index - 1)];
}

static void drop(struct consensus_log *log, uint64_t index)
{
    free((void *)slot(log, index)->entry.payload.at);
}

void consensus_log_deinit(struct consensus_log *log)
{
    consensus_log_truncate(log, log->base_index + 1);
    free(log->at);
    *log = (struct consensus_log){0};
}

uint64_t consensus_log_last(const struct consensus_log *log)
{
    return log->base_index + log->count;
}

uint64_t consensus_log_term(const struct consensus_log *log, uint64_t index)
{
    return index == log->base_index ? log->base_term : slot(log, index)->entry.term;
}

bool consensus_log_has(const struct consensus_log *log, uint64_t index, uint64_t term)
{
    return index >= log->base_index && index <= consensus_log_last(log) &&
           consensus_log_term(log, index) == term;
}

const struct consensus_entry *consensus_log_get(const struct consensus_log *log, uint64_t index)
{
    return &slot(log, index)->entry;
}

static uint64_t end_of(const struct consensus_log *log, uint64_t index)
{
    return index == log->base_index ? log->base_end : slot(log, index)->end;
}

static void make_room(struct consensus_log *log)
{
    if (log->head + log->count < log->cap)
        return;
    if (log->head > log->cap / 2) {
        memmove(log->at, log->at + log->head, log->count * sizeof(*log->at));
        log->head = 0;
        return;
    }
    check(log->cap < UINT32_MAX / 2);
    log->cap = log->cap ? log->cap * 2 : 16;
    log->at = xrealloc(log->at, log->cap * sizeof(*log->at));
}

void consensus_log_append(struct consensus_log *log, const struct consensus_entry *entry)
{
    uint64_t last = consensus_log_last(log);
    check(entry->index == last + 1);
    check(entry->term >= consensus_log_term(log, last));
    uint64_t end = end_of(log, last) + entry->payload.len;
    make_room(log);
    struct consensus_log_slot *to = &log->at[log->head + log->count++];
    to->entry = *entry;
    to->end = end;
    to->entry.payload = BYTES_NONE;
    if (entry->payload.len) {
        uint8_t *copy = xmalloc(entry->payload.len);
        memcpy(copy, entry->payload.at, entry->payload.len);
        to->entry.payload = bytes_make(copy, entry->payload.len);
    }
}

void consensus_log_truncate(struct consensus_log *log, uint64_t from)
{
    check(from > log->base_index);
    while (consensus_log_last(log) >= from) {
        drop(log, consensus_log_last(log));
        log->count--;
    }
}

void consensus_log_trim(struct consensus_log *log, uint64_t upto)
{
    uint64_t term = consensus_log_term(log, upto), end = end_of(log, upto);
    while (log->base_index < upto) {
        drop(log, log->base_index + 1);
        log->head++;
        log->count--;
        log->base_index++;
    }
    log->base_term = term;
    log->base_end = end;
    if (log->count == 0)
        log->head = 0;
}

void consensus_log_reset(struct consensus_log *log, uint64_t index, uint64_t term)
{
    consensus_log_truncate(log, log->base_index + 1);
    log->head = 0;
    log->base_index = index;
    log->base_term = term;
}

uint64_t consensus_log_bytes(const struct consensus_log *log, uint64_t after, uint64_t upto)
{
    check(after <= upto);
    return end_of(log, upto) - end_of(log, after);
}
