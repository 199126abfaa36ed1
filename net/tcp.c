/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp.h. The usual write is one uv_try_write of the whole buffer, with no request and no
 * allocation; only when the kernel takes less does the rest become a uv_write, during which new
 * output gathers again. */

#include "net/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static void handle_closed(uv_handle_t *handle)
{
    struct tcp *tcp = container_of(handle, struct tcp, handle);
    buf_deinit(&tcp->writing);
    buf_deinit(&tcp->out);
    tcp->owner->gone(tcp);
}

void tcp_close(struct tcp *tcp)
{
    if (tcp->closing)
        return;
    tcp->closing = true;
    loop_task_cancel(&tcp->flush);
    buf_reset(&tcp->out);
    loop_give_buf(tcp->loop, &tcp->out);
    uv_close((uv_handle_t *)&tcp->handle, handle_closed);
}

static void write_done(uv_write_t *write, int status)
{
    struct tcp *tcp = container_of(write, struct tcp, write);
    tcp->write_busy = false;
    buf_reset(&tcp->writing);
    loop_give_buf(tcp->loop, &tcp->writing);
    if (tcp->closing)
        return;
    tcp->progress_ms = uv_now(&tcp->loop->uv);
    if (status < 0) {
        tcp->owner->failed(tcp, uv_strerror(status));
        return;
    }
    tcp_wake(tcp);
}

/* The kernel took `sent` bytes of out; libuv gets the rest. */
static bool write_rest(struct tcp *tcp, size_t sent)
{
    check(!tcp->write_busy);
    struct buf spare = loop_take_buf(tcp->loop);
    tcp->writing = tcp->out;
    tcp->out = spare;
    uv_buf_t run = uv_buf_init((char *)tcp->writing.at + sent, (unsigned)(tcp->writing.len - sent));
    int status = uv_write(&tcp->write, (uv_stream_t *)&tcp->handle, &run, 1, write_done);
    if (status < 0) {
        tcp->owner->failed(tcp, uv_strerror(status));
        return false;
    }
    tcp->write_busy = true;
    tcp->progress_ms = uv_now(&tcp->loop->uv);
    return true;
}

/* Offers out to the kernel; false when the connection broke. */
static bool write_out(struct tcp *tcp)
{
    uv_buf_t run = uv_buf_init((char *)tcp->out.at, (unsigned)tcp->out.len);
    int sent = uv_try_write((uv_stream_t *)&tcp->handle, &run, 1);
    if (sent == UV_EAGAIN)
        sent = 0;
    if (sent < 0) {
        tcp->owner->failed(tcp, uv_strerror(sent));
        return false;
    }
    if ((size_t)sent < tcp->out.len)
        return write_rest(tcp, (size_t)sent);
    buf_reset(&tcp->out);
    return true;
}

static void shutdown_done(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown;
    (void)status; /* the other side has gone already: reading tells */
}

static void flush_task(struct loop_task *task)
{
    struct tcp *tcp = container_of(task, struct tcp, flush);
    while (!tcp->write_busy && !tcp->closing) {
        tcp->owner->fill(tcp);
        if (tcp->closing || tcp->out.len == 0)
            break;
        if (!write_out(tcp))
            return;
    }
    if (tcp->closing)
        return;
    if (tcp->out.len == 0)
        loop_give_buf(tcp->loop, &tcp->out);
    if (tcp->finishing && !tcp->shut && !tcp->write_busy && tcp->out.len == 0) {
        tcp->shut = true;
        uv_shutdown(&tcp->shutdown, (uv_stream_t *)&tcp->handle, shutdown_done);
    }
    tcp->owner->flushed(tcp);
}

void tcp_init(struct tcp *tcp, struct loop *loop, const struct tcp_owner *owner)
{
    *tcp = (struct tcp){.loop = loop, .owner = owner};
    check(uv_tcp_init(&loop->uv, &tcp->handle) == 0);
    loop_task_init(&tcp->flush, flush_task);
    tcp->progress_ms = uv_now(&loop->uv);
}

static void connect_done(uv_connect_t *connect, int status)
{
    struct tcp *tcp = container_of(connect, struct tcp, connect);
    if (tcp->closing)
        return;
    loop_refresh_time(tcp->loop);
    if (status < 0) {
        tcp->owner->failed(tcp, uv_strerror(status));
        return;
    }
    tcp_start(tcp);
    if (!tcp->closing)
        tcp->owner->connected(tcp);
}

void tcp_connect(struct tcp *tcp, const struct sockaddr *address)
{
    int status = uv_tcp_connect(&tcp->connect, &tcp->handle, address, connect_done);
    if (status < 0)
        tcp->owner->failed(tcp, uv_strerror(status));
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *run)
{
    (void)suggested;
    struct tcp *tcp = container_of(handle, struct tcp, handle);
    size_t len = 0;
    uint8_t *at = tcp->owner->space(tcp, &len);
    *run = uv_buf_init((char *)at, (unsigned)len);
}

static void read_done(uv_stream_t *stream, ssize_t len, const uv_buf_t *run)
{
    (void)run;
    struct tcp *tcp = container_of(stream, struct tcp, handle);
    loop_refresh_time(tcp->loop);
    if (len == UV_EOF) {
        tcp->reading = false;
        uv_read_stop(stream);
        tcp->owner->ended(tcp);
    } else if (len < 0) {
        tcp->owner->failed(tcp, uv_strerror((int)len));
    } else if (len > 0) {
        tcp->owner->received(tcp, (size_t)len);
    }
}

void tcp_start(struct tcp *tcp)
{
    uv_tcp_nodelay(&tcp->handle, 1);
    tcp_read(tcp, true);
}

void tcp_read(struct tcp *tcp, bool on)
{
    if (tcp->closing || tcp->reading == on)
        return;
    tcp->reading = on;
    if (!on) {
        uv_read_stop((uv_stream_t *)&tcp->handle);
        return;
    }
    int status = uv_read_start((uv_stream_t *)&tcp->handle, give_space, read_done);
    if (status < 0)
        tcp->owner->failed(tcp, uv_strerror(status));
}

void tcp_wake(struct tcp *tcp)
{
    if (tcp->closing)
        return;
    if (tcp->out.cap == 0)
        tcp->out = loop_take_buf(tcp->loop);
    loop_soon(tcp->loop, &tcp->flush);
}

void tcp_finish(struct tcp *tcp)
{
    if (tcp->finishing)
        return;
    tcp->finishing = true;
    tcp_wake(tcp);
}

bool tcp_address(const char *text, struct sockaddr_storage *ret_address)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof(host))
        return false;
    size_t len = (size_t)(colon - text);
    memcpy(host, text, len);
    host[len] = '\0';
    char *name = host;
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        name = host + 1;
    }
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0' ||
        strtol(colon + 1, NULL, 10) > 65535)
        return false;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(name, colon + 1, &hints, &found) != 0)
        return false;
    /* 127.0.0.1 before ::1 for "localhost": our servers listen there. */
    const struct addrinfo *best = found;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        if (at->ai_family == AF_INET) {
            best = at;
            break;
        }
    *ret_address = (struct sockaddr_storage){0};
    memcpy(ret_address, best->ai_addr, best->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

void tcp_address_text(const struct sockaddr *address, char *text, size_t text_len)
{
    char host[64] = "?";
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
        uv_ip6_name(in6, host, sizeof(host));
        snprintf(text, text_len, "[%s]:%u", host, ntohs(in6->sin6_port));
        return;
    }
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)(const void *)address;
    uv_ip4_name(in4, host, sizeof(host));
    snprintf(text, text_len, "%s:%u", host, ntohs(in4->sin_port));
}
