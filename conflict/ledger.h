/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_LEDGER_H
#define CONFLICT_LEDGER_H

/* The lost-write ledger: one entry for each version that last-writer-wins threw away although its
 * writer was told "200". An entry's identity is (table, key, winner's version, loser's version), so
 * every Region that meets the pair writes the same one, and a reader that joins the Regions'
 * ledgers counts it once.
 *
 * Row key: see region/core/keyspace.h. Row value: encoded below, checksummed. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/record.h"
#include "conflict/resolve.h"

struct ledger_entry {
    uint64_t detected_wall_ms; /* on the detecting Region's clock */
    enum resolve_relation relation;
    bool clock_suspect; /* the winner's time was ahead of the detecting Region's clock by more than
                           the limit: lost to skew */
    struct bytes key;
    struct record winner; /* key unset; both images whole */
    struct record loser;
};

void ledger_encode(const struct ledger_entry *entry, struct buf *to);
/* Views into from. */
bool ledger_decode(struct bytes from, struct ledger_entry *ret);

#endif
