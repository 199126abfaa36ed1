/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is a pair of sockets and two chains, one a direction. As long as a chain has nothing
 * to do, bytes go from one socket's read straight to the other's write; only what the receiver
 * can't take at once, or what a toxic holds, is copied. Reading stops while a chain is full: a slow
 * receiver slows its sender, and memory stays bounded.
 *
 *     opener ══ end[0] ── way[UPSTREAM]   chain ──► end[1] ══ peer
 *                    ◄── way[DOWNSTREAM] chain ──
 */

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "chaos/live/proxy_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define NS_PER_MS UINT64_C(1000000)

/* ---- Closing ---- */

static void pair_unuse(struct pair *pair)
{
    check(pair->uses > 0);
    if (--pair->uses > 0)
        return;
    for (int i = 0; i < 2; i++)
        chain_deinit(&pair->way[i].chain);
    free(pair);
}

static void on_closed(uv_handle_t *handle)
{
    pair_unuse(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct pair *pair = handle->data;
    close(pair->timer_fd);
    pair_unuse(pair);
}

/* A close with a zero linger time is a reset, whatever state the socket is in. */
static void close_end(uv_tcp_t *tcp, bool reset)
{
    int fd;
    if (reset && uv_fileno((uv_handle_t *)tcp, &fd) == 0) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    uv_close((uv_handle_t *)tcp, on_closed);
}

void pair_close(struct pair *pair, bool reset)
{
    struct proxy *proxy = pair->proxy;
    if (proxy == NULL)
        return;
    for (int i = 0; i < 2; i++)
        proxy->counts.blocked_bytes += pair->way[i].chain.dropped;
    proxy->counts.connections--;
    pair->proxy = NULL;
    list_remove(&pair->link);
    if (pair->timed)
        uv_close((uv_handle_t *)&pair->timer, on_timer_closed);
    close_end(&pair->end[0], reset);
    close_end(&pair->end[1], reset);
}

/* What has been sent and will not be delivered: in our chains, and in the kernel's buffers before
 * us. */
uint64_t pair_undelivered(struct pair *pair)
{
    uint64_t total = 0;
    for (int i = 0; i < 2; i++) {
        int fd, unread = 0;
        total += pair->way[i].chain.data;
        if (uv_fileno((uv_handle_t *)&pair->end[i], &fd) == 0 && ioctl(fd, FIONREAD, &unread) == 0)
            total += (uint64_t)unread;
    }
    return total;
}

/* ---- Moving bytes ---- */

static void way_flush(struct way *way);

static int way_index(const struct way *way)
{
    return way == &way->pair->way[0] ? 0 : 1;
}

static uv_stream_t *way_source(struct way *way)
{
    return (uv_stream_t *)&way->pair->end[way_index(way)];
}

static uv_stream_t *way_target(struct way *way)
{
    return (uv_stream_t *)&way->pair->end[1 - way_index(way)];
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct pair *pair = handle->data;
    *ret = uv_buf_init((char *)pair->proxy->loop->scratch, LOOP_SCRATCH_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer);

static void way_update_reading(struct way *way)
{
    bool wanted = way->pair->connected && !way->ended && !chain_full(&way->chain);
    if (wanted == way->reading)
        return;
    way->reading = wanted;
    if (wanted)
        uv_read_start(way_source(way), on_alloc, on_read);
    else
        uv_read_stop(way_source(way));
}

static void on_timer(uv_poll_t *timer, int status, int events);

/* libuv's own timers count whole milliseconds, so a delay of 20 would be one of 21 at every hop.
 * Only a pair that holds something back has a timer of the kernel's. */
static bool pair_make_timer(struct pair *pair)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0)
        return false;
    if (uv_poll_init(&pair->proxy->loop->uv, &pair->timer, fd) != 0) {
        close(fd);
        return false;
    }
    pair->timer.data = pair;
    pair->timer_fd = fd;
    pair->timed = true;
    pair->uses++;
    check(uv_poll_start(&pair->timer, UV_READABLE, on_timer) == 0);
    return true;
}

static void pair_arm(struct pair *pair, uint64_t deadline_ns)
{
    if (deadline_ns == pair->timer_ns)
        return;
    struct itimerspec at = {0};
    if (deadline_ns != UINT64_MAX) { /* what is due already is due in a moment; 0 would disarm */
        at.it_value.tv_sec = (time_t)(deadline_ns / (1000 * NS_PER_MS));
        at.it_value.tv_nsec = (long)(deadline_ns % (1000 * NS_PER_MS)) + (deadline_ns == 0);
    }
    check(timerfd_settime(pair->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0);
    pair->timer_ns = deadline_ns;
}

void pair_step(struct pair *pair)
{
    struct proxy *proxy = pair->proxy;
    uint64_t deadline_ns = UINT64_MAX;
    for (int i = 0; i < 2 && pair->proxy != NULL; i++) {
        struct way *way = &pair->way[i];
        chain_pump(&way->chain, proxy->loop->mono_ns);
        proxy->counts.blocked_bytes += way->chain.dropped;
        way->chain.dropped = 0;
        if (way->chain.reset) {
            pair_close(pair, true);
            return;
        }
        way_flush(way);
        if (pair->proxy == NULL)
            return;
        way_update_reading(way);
        uint64_t due_ns = chain_deadline(&way->chain);
        if (due_ns < deadline_ns)
            deadline_ns = due_ns;
    }
    if (pair->proxy == NULL)
        return;
    if (!pair->timed && deadline_ns == UINT64_MAX)
        return;
    if (pair->timed || pair_make_timer(pair))
        pair_arm(pair, deadline_ns);
    else /* out of descriptors, as when a connection can't be accepted */
        pair_close(pair, true);
}

static void on_timer(uv_poll_t *timer, int status, int events)
{
    (void)status, (void)events;
    struct pair *pair = timer->data;
    uint64_t fired;
    if (pair->proxy == NULL || read(pair->timer_fd, &fired, sizeof(fired)) != sizeof(fired))
        return;
    pair->timer_ns = UINT64_MAX;
    loop_update_time(pair->proxy->loop);
    pair_step(pair);
}

static void on_written(uv_write_t *request, int status)
{
    struct way *way = request->data;
    uint64_t written = 0;
    for (uint32_t i = 0; i < way->batch_count; i++) {
        written += way->batch[i]->len;
        chain_give_back(&way->chain, way->batch[i]);
    }
    way->batch_count = 0;
    if (way->pair->proxy == NULL)
        return;
    loop_refresh_time(way->pair->proxy->loop);
    if (status != 0) {
        pair_close(way->pair, true);
        return;
    }
    way->pair->proxy->counts.passed_bytes[way_index(way)] += written;
    pair_step(way->pair);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    (void)status;
    struct way *way = request->data;
    if (way->pair->proxy != NULL && way->pair->way[0].shut && way->pair->way[1].shut)
        pair_close(way->pair, false);
}

static void way_write(struct way *way)
{
    uv_buf_t buffers[BATCH_MAX];
    for (uint32_t i = 0; i < way->batch_count; i++)
        buffers[i] = uv_buf_init((char *)way->batch[i]->data, way->batch[i]->len);
    way->write.data = way;
    if (uv_write(&way->write, way_target(way), buffers, way->batch_count, on_written) != 0) {
        for (uint32_t i = 0; i < way->batch_count; i++)
            chain_give_back(&way->chain, way->batch[i]);
        way->batch_count = 0;
        pair_close(way->pair, true);
    }
}

/* Writes what may be written; one write at a time, so that a batch is as large as the backlog. */
static void way_flush(struct way *way)
{
    while (way->batch_count == 0 && way->pair->connected && !list_empty(&way->chain.out)) {
        struct segment *head = container_of(way->chain.out.next, struct segment, link);
        if (head->kind == SEGMENT_DATA) {
            while (way->batch_count < BATCH_MAX && !list_empty(&way->chain.out)) {
                head = container_of(way->chain.out.next, struct segment, link);
                if (head->kind != SEGMENT_DATA)
                    break;
                way->batch[way->batch_count++] = chain_take(&way->chain);
            }
            way_write(way);
            return;
        }
        enum segment_kind kind = head->kind;
        chain_give_back(&way->chain, chain_take(&way->chain));
        if (kind == SEGMENT_CLOSE) {
            pair_close(way->pair, false);
            return;
        }
        if (!way->shut) {
            way->shut = true;
            way->shutdown.data = way;
            if (uv_shutdown(&way->shutdown, way_target(way), on_shut) != 0) {
                pair_close(way->pair, true);
                return;
            }
        }
    }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct pair *pair = stream->data;
    if (pair->proxy == NULL || count == 0)
        return;
    struct proxy *proxy = pair->proxy;
    loop_update_time(proxy->loop); /* to the microsecond, as delays count from here */
    struct way *way = &pair->way[stream == (uv_stream_t *)&pair->end[0] ? 0 : 1];
    if (count < 0 && count != UV_EOF) { /* a reset passes on as a reset */
        pair_close(pair, true);
        return;
    }
    if (count == UV_EOF) {
        way->ended = true;
        way->reading = false;
        uv_read_stop(stream);
        chain_push_end(&way->chain, proxy->loop->mono_ns);
        pair_step(pair);
        return;
    }
    struct bytes data = bytes_make(buffer->base, (size_t)count);
    if (chain_clear(&way->chain)) {
        uv_buf_t whole = uv_buf_init(buffer->base, (unsigned)count);
        int written = uv_try_write(way_target(way), &whole, 1);
        if (written > 0) {
            proxy->counts.passed_bytes[way_index(way)] += (uint64_t)written;
            data = bytes_make(data.at + written, data.len - (size_t)written);
        } else if (written != UV_EAGAIN) {
            pair_close(pair, true);
            return;
        }
        if (data.len == 0)
            return;
    }
    chain_push(&way->chain, data, proxy->loop->mono_ns);
    pair_step(pair);
}

/* ---- Opening ---- */

static void on_connected(uv_connect_t *request, int status)
{
    struct pair *pair = request->data;
    if (pair->proxy == NULL)
        return;
    if (status != 0) {
        pair_close(pair, true);
        return;
    }
    uv_tcp_nodelay(&pair->end[1], 1);
    pair->connected = true;
    pair_step(pair);
}

static void pair_connect(struct pair *pair, const struct sockaddr *to)
{
    pair->connect.data = pair;
    if (uv_tcp_connect(&pair->connect, &pair->end[1], to, on_connected) != 0)
        pair_close(pair, true);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct pair *pair = request->data;
    if (pair->proxy != NULL) {
        if (status == 0)
            pair_connect(pair, found->ai_addr);
        else
            pair_close(pair, true);
    }
    uv_freeaddrinfo(found);
    pair_unuse(pair);
}

void pair_open(struct pair *pair)
{
    struct proxy *proxy = pair->proxy;
    struct sockaddr_storage to;
    if (address_numeric(&proxy->upstream, &to)) {
        pair_connect(pair, (const struct sockaddr *)&to);
        return;
    }
    char port[8];
    snprintf(port, sizeof(port), "%u", proxy->upstream.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    pair->resolve.data = pair;
    pair->uses++;
    if (uv_getaddrinfo(&proxy->loop->uv, &pair->resolve, on_resolved, proxy->upstream.host, port,
                       &hints) != 0) {
        pair_close(pair, true);
        pair_unuse(pair);
    }
}

struct pair *pair_new(struct proxy *proxy)
{
    struct pair *pair = xcalloc(1, sizeof(*pair));
    uv_loop_t *uv = &proxy->loop->uv;
    pair->proxy = proxy;
    pair->uses = 2;
    pair->timer_ns = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        check(uv_tcp_init(uv, &pair->end[i]) == 0);
        pair->end[i].data = pair;
        pair->way[i].pair = pair;
        chain_init(&pair->way[i].chain, &proxy->rng);
        list_each(link, spare, &proxy->toxics[i]) chain_add(
            &pair->way[i].chain, container_of(link, struct toxic, link), proxy->loop->mono_ns);
    }
    list_append(&proxy->pairs, &pair->link);
    proxy->counts.connections++;
    return pair;
}
