/* SPDX-License-Identifier: Apache-2.0 */
/* Two of three: any two such sets share a member, on which everything else rests. */

#include "witness/quorum.h"

#include "conflict/base/check.h"

uint64_t quorum_durable(const uint64_t durable[CONSENSUS_MEMBERS],
                        const bool counts[CONSENSUS_MEMBERS])
{
    uint64_t first = 0, second = 0;
    for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
        uint64_t index = counts[i] ? durable[i] : 0;
        if (index > first) {
            second = first;
            first = index;
        } else if (index > second) {
            second = index;
        }
    }
    return second;
}

uint64_t quorum_everywhere(const uint64_t durable[CONSENSUS_MEMBERS],
                           const bool counts[CONSENSUS_MEMBERS],
                           const enum consensus_kind kinds[CONSENSUS_MEMBERS])
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
        uint64_t index = counts[i] ? durable[i] : 0;
        if (kinds[i] == CONSENSUS_DATA && index < least)
            least = index;
    }
    check(least < UINT64_MAX);
    return least;
}

bool quorum_elected(uint8_t voters)
{
    return (voters & (voters - 1)) != 0; /* more than one bit */
}

bool quorum_up_to_date(uint64_t last_term, uint64_t last_index, uint64_t than_term,
                       uint64_t than_index)
{
    return last_term != than_term ? last_term > than_term : last_index >= than_index;
}
