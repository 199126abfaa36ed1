/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DOOR_H
#define LIVE_DOOR_H

/* The front door: one port for all regions. SDKs take one endpoint for a service and sign for a
 * region, so the signature says which region a request is for, else the Host, else it is the first
 * region and the answer says so. Request and answer pass unchanged. A dead region drops the
 * connection and a paused one hangs, as they would without the door. */

#include "chaos/live/cluster.h"
#include "net/server.h"

struct door;

/* NULL: error says why. */
struct door *door_open(struct cluster *cluster, const char *address, struct buf *error);
uint16_t door_port(const struct door *door);
void door_close(struct door *door);

enum door_choice { DOOR_FOUND, DOOR_ASSUMED, DOOR_MISMATCH, DOOR_UNKNOWN, DOOR_WITNESS };

/* Where a request goes. `signed_for` and `named` are the regions that the signature and the Host
 * name. */
enum door_choice door_choose(struct cluster *cluster, const struct http_request *request,
                             struct bytes *ret_signed_for, struct bytes *ret_named,
                             struct site **ret);

#endif
