/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_ADDRESS_H
#define LIVE_ADDRESS_H

/* Addresses in the forms that people write ("127.0.0.1:8000", "[::1]:8000", "localhost:0",
 * ":8000"), and ports that stay ours. A port is held by a socket that is bound and never listens:
 * nobody else is given that port, connecting to it is refused, and the one who is meant to may
 * still listen on it. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

enum { ADDRESS_MAX = 300, ADDRESS_HOST_MAX = 256 };

struct address {
    char host[ADDRESS_HOST_MAX]; /* without brackets; "127.0.0.1" when it was left out */
    uint16_t port;
};

/* The reason for a refusal is `address_expected`. */
bool address_parse(struct bytes text, struct address *ret);
extern const char address_expected[];
/* Writes host:port, with brackets where the host needs them. */
void address_print(const struct address *address, char ret[ADDRESS_MAX]);
/* Numeric hosts and "localhost" only: needs no resolver. */
bool address_numeric(const struct address *address, struct sockaddr_storage *ret);
bool address_is_loopback(const struct address *address);
/* As who is on this machine reaches it, if it means all interfaces. */
void address_make_dialled(struct address *address);
/* Of a socket address that libuv gave. */
void address_from_socket(const struct sockaddr_storage *from, struct address *ret);

/* Binds; port 0 takes a free one and writes it back. Returns the descriptor, or a negative errno.
 */
int address_hold(struct address *address);

#endif
