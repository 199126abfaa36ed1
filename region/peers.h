/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_PEERS_H
#define REGION_PEERS_H

/* The other Regions. To each we keep one connection, on which we open the stream that carries our
 * log and the one that carries what we say to the strong groups, and make control calls; from each
 * we accept the same. So a link that is cut one way stops exactly what one Region says to the
 * other. Opaque messages pass between these and the core. */

#include "net/grpc.h"
#include "net/loop.h"
#include "region/config.h"
#include "region/driver.h"
#include "region/faults.h"
#include "region/log.h"

struct peers;

/* config and log outlive the peers. */
struct peers *peers_new(struct loop *loop, const struct config *config, const struct log *log,
                        uint64_t seed);
/* What messages to peers meet; NULL, as at first: nothing. */
void peers_set_faults(struct peers *peers, struct faults *faults);
/* Starts connecting; what comes goes to the driver. */
void peers_start(struct peers *peers, struct driver *driver);
/* Ends all streams and calls; nothing reaches the driver afterwards. */
void peers_stop(struct peers *peers);
/* After the loop has let go of the connections. */
void peers_free(struct peers *peers);

/* server_handler.grpc */
bool peers_accept(struct peers *peers, struct grpc_call *call, struct bytes path);

/* driver_events */
void peers_send(struct peers *peers, uint16_t peer, enum region_channel channel,
                struct bytes message);
void peers_close(struct peers *peers, uint16_t peer, enum region_channel channel,
                 const char *reason);
void peers_call(struct peers *peers, uint16_t peer, uint64_t id, struct bytes body);
void peers_call_reply(struct peers *peers, uint64_t token, struct bytes body);
void peers_taken(struct peers *peers, const struct region_input *in, uint64_t tag);

/* Once a round, before the driver's. */
void peers_round(struct peers *peers);
uint64_t peers_deadline(const struct peers *peers);

/* Bytes that wait to be sent to this peer, on all streams. */
uint64_t peers_queued(const struct peers *peers, uint16_t peer);
/* Messages to this peer's strong groups that were dropped for want of room. */
uint64_t peers_groups_dropped(const struct peers *peers, uint16_t peer);

#endif
