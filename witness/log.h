/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_LOG_H
#define WITNESS_LOG_H

/* The entries after a base, in memory, payloads included: what may still have to be sent or
 * applied. What is at or before the base has been dropped; of it, only the base's own index and
 * term are known. */

#include <stdbool.h>
#include <stdint.h>

#include "witness/consensus.h"

struct consensus_log_slot {
    struct consensus_entry entry; /* payload owned */
    uint64_t end;                 /* payload bytes up to and with this entry, ever */
};

struct consensus_log {
    uint64_t base_index, base_term, base_end;
    struct consensus_log_slot *at; /* at[head] is the entry after the base */
    uint32_t head, count, cap;
};

void consensus_log_init(struct consensus_log *log);
void consensus_log_deinit(struct consensus_log *log);
uint64_t consensus_log_last(const struct consensus_log *log);
/* index is of the base or of an entry. */
uint64_t consensus_log_term(const struct consensus_log *log, uint64_t index);
bool consensus_log_has(const struct consensus_log *log, uint64_t index, uint64_t term);
/* Must be there. */
const struct consensus_entry *consensus_log_get(const struct consensus_log *log, uint64_t index);
/* Copies the payload; entry->index is the next one. */
void consensus_log_append(struct consensus_log *log, const struct consensus_entry *entry);
/* Drops entries from `from` on. */
void consensus_log_truncate(struct consensus_log *log, uint64_t from);
/* Makes upto, which is there, the base. */
void consensus_log_trim(struct consensus_log *log, uint64_t upto);
/* Drops everything and begins after index. */
void consensus_log_reset(struct consensus_log *log, uint64_t index, uint64_t term);
/* Payload bytes in (after, upto], both of the base or of an entry. */
uint64_t consensus_log_bytes(const struct consensus_log *log, uint64_t after, uint64_t upto);

#endif
