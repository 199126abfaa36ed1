/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WITNESS_MESSAGE_TEXT_H
#define TESTS_WITNESS_MESSAGE_TEXT_H

/* A message of a strong group as one line; members are a, b and c. */

#include "witness/consensus_wire.h"

void message_print(const struct consensus_message *m, struct buf *to);

#endif
