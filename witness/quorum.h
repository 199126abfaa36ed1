/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WITNESS_QUORUM_H
#define WITNESS_QUORUM_H

/* Who has a majority, and what is committed: arithmetic on three numbers, and nothing else. */

#include <stdbool.h>
#include <stdint.h>

#include "witness/consensus.h"

/* The greatest index that two members have durably, of those that count; 0 when fewer than two do.
 */
uint64_t quorum_durable(const uint64_t durable[CONSENSUS_MEMBERS],
                        const bool counts[CONSENSUS_MEMBERS]);
/* The greatest index that every data member has durably; 0 when one of them does not count. */
uint64_t quorum_everywhere(const uint64_t durable[CONSENSUS_MEMBERS],
                           const bool counts[CONSENSUS_MEMBERS],
                           const enum consensus_kind kinds[CONSENSUS_MEMBERS]);
/* voters is a set of 1 << member. */
bool quorum_elected(uint8_t voters);
/* Raft's rule (thesis, 3.6.1): the later last term, then the longer log. */
bool quorum_up_to_date(uint64_t last_term, uint64_t last_index, uint64_t than_term,
                       uint64_t than_index);

#endif
