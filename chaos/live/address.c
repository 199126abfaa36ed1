/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting and printing of addresses, and the holding of ports. The holder works because Linux
 * lets two sockets with SO_REUSEADDR share a port as long as only one of them listens, and never
 * gives a bound port to a socket that asked for any. */

#include "chaos/live/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

const char address_expected[] = "expected HOST:PORT with a port from 0 to 65535";

static bool parse_port(struct bytes text, uint16_t *ret)
{
    uint32_t port = 0;
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(text.at[i] - '0');
    }
    if (port > 65535)
        return false;
    *ret = (uint16_t)port;
    return true;
}

bool address_parse(struct bytes text, struct address *ret)
{
    if (text.len == 0 || memchr(text.at, 0, text.len) != NULL)
        return false;
    const uint8_t *colon = memrchr(text.at, ':', text.len);
    if (colon == NULL)
        return false;
    struct bytes host = bytes_make(text.at, (size_t)(colon - text.at));
    struct bytes port = bytes_make(colon + 1, text.len - host.len - 1);
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = bytes_make(host.at + 1, host.len - 2);
    else if (memchr(host.at, ':', host.len) != NULL)
        return false;
    /* Go reads an empty host as every interface; we listen on loopback unless told otherwise. */
    if (host.len == 0)
        host = bytes_literal("127.0.0.1");
    struct address address = {.port = 0};
    if (host.len >= sizeof(address.host) || !parse_port(port, &address.port))
        return false;
    memcpy(address.host, host.at, host.len);
    *ret = address;
    return true;
}

void address_print(const struct address *address, char ret[ADDRESS_MAX])
{
    bool bracket = strchr(address->host, ':') != NULL;
    snprintf(ret, ADDRESS_MAX, bracket ? "[%s]:%u" : "%s:%u", address->host, address->port);
}

bool address_numeric(const struct address *address, struct sockaddr_storage *ret)
{
    const char *host = strcmp(address->host, "localhost") == 0 ? "127.0.0.1" : address->host;
    memset(ret, 0, sizeof(*ret));
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(address->port);
        return true;
    }
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
    if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(address->port);
        return true;
    }
    return false;
}

bool address_is_loopback(const struct address *address)
{
    struct sockaddr_storage socket_address;
    if (!address_numeric(address, &socket_address))
        return false;
    if (socket_address.ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&socket_address;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&socket_address;
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) != 0;
}

void address_make_dialled(struct address *address)
{
    if (strcmp(address->host, "0.0.0.0") == 0)
        snprintf(address->host, sizeof(address->host), "127.0.0.1");
    else if (strcmp(address->host, "::") == 0)
        snprintf(address->host, sizeof(address->host), "::1");
}

void address_from_socket(const struct sockaddr_storage *from, struct address *ret)
{
    *ret = (struct address){.port = 0};
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &four->sin_addr, ret->host, sizeof(ret->host));
        ret->port = ntohs(four->sin_port);
    } else {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
        inet_ntop(AF_INET6, &six->sin6_addr, ret->host, sizeof(ret->host));
        ret->port = ntohs(six->sin6_port);
    }
}

int address_hold(struct address *address)
{
    struct sockaddr_storage at;
    if (!address_numeric(address, &at))
        return -EADDRNOTAVAIL;
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int on = 1;
    socklen_t len = sizeof(at);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, (const struct sockaddr *)&at,
             at.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) !=
            0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        int failure = -errno;
        close(fd);
        return failure;
    }
    struct address bound;
    address_from_socket(&at, &bound);
    address->port = bound.port;
    return fd;
}
