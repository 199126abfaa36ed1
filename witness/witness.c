/* SPDX-License-Identifier: Apache-2.0 */
/* What may be forgotten. The rule that makes a witness safe: it drops a payload only when every
 * data member has that entry durably, as the leader says; never because it is committed, or old. A
 * commit by one data member and the witness leaves two copies of the payload, and losing either
 * member must leave one.
 *
 * A data member drops what its items hold durably. It keeps entries for a slower data member, but
 * only up to a bound: beyond, that member gets a snapshot. A witness has no items to make one of,
 * so at its bound it takes no more. */

#include "witness/consensus_internal.h"

static uint64_t held(const struct consensus *c)
{
    return consensus_log_bytes(&c->log, c->log.base_index, last_index(c));
}

/* At the bound a member says so, and the leader evaluates nothing that would need its room. But
 * what is in the leader's log by then must still fit, or a group whose other data member rebuilds
 * could never let it count again. What only this member can help to commit is not committed, so the
 * leader could not drop it, and its own log has the same bound: as much again, and once more for
 * proposals that were being evaluated. */
bool consensus_full(const struct consensus *c)
{
    return held(c) > c->config.log_bytes_max;
}

bool consensus_room_for(const struct consensus *c, uint64_t bytes)
{
    return bytes == 0 || held(c) == 0 || held(c) + bytes <= 3 * c->config.log_bytes_max;
}

void consensus_trim(struct consensus *c)
{
    uint64_t upto = min_u64(min_u64(c->all_durable, c->commit), c->durable);
    bool crowded = held(c) > c->config.log_bytes_max / 4 * 3;
    if (!is_witness(c)) {
        upto = min_u64(upto, c->stable);
        if (crowded)
            upto = min_u64(c->stable, c->durable);
    }
    upto = min_u64(upto, c->unwritten - 1);
    if (upto <= c->log.base_index)
        return;
    if (upto - c->log.base_index < c->config.trim_entries && !crowded)
        return;
    consensus_log_trim(&c->log, upto);
    c->base_dirty = true;
}
