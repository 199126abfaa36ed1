/* SPDX-License-Identifier: Apache-2.0 */
/* The listening side of a proxy: which connections come in, what a cut does to those that are, and
 * which toxics there are. What happens to the bytes is in pair.c. */

#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "chaos/live/proxy_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { BACKLOG = 128 };
#define NS_PER_MS UINT64_C(1000000)

struct proxy_listener {
    uv_tcp_t tcp;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    check(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

/* ---- Listening ---- */

static void on_connection(uv_stream_t *stream, int status)
{
    struct proxy *proxy = stream->data;
    if (status != 0 || proxy == NULL)
        return;
    loop_refresh_time(proxy->loop);
    struct pair *pair = pair_new(proxy);
    bool accepted = uv_accept(stream, (uv_stream_t *)&pair->end[0]) == 0;
    bool open = proxy->enabled && !proxy->refuses;
    if (!accepted || !open || proxy->counts.connections > PROXY_CONNECTIONS_MAX) {
        if (accepted && !open) {
            proxy->counts.blocked_connections++;
            proxy->counts.blocked_bytes += pair_undelivered(pair);
        }
        pair_close(pair, true);
        return;
    }
    uv_tcp_nodelay(&pair->end[0], 1);
    pair_open(pair);
}

static void on_listener_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct proxy_listener, tcp));
}

static void stop_listening(struct proxy *proxy)
{
    if (proxy->listener == NULL)
        return;
    proxy->listener->tcp.data = NULL;
    uv_close((uv_handle_t *)&proxy->listener->tcp, on_listener_closed);
    proxy->listener = NULL;
}

static int start_listening(struct proxy *proxy)
{
    struct sockaddr_storage at;
    if (proxy->listener != NULL)
        return 0;
    if (proxy->hold_fd < 0) {
        int held = address_hold(&proxy->listen);
        if (held < 0)
            return held;
        proxy->hold_fd = held;
    }
    check(address_numeric(&proxy->listen, &at));
    proxy->listener = xcalloc(1, sizeof(*proxy->listener));
    check(uv_tcp_init(&proxy->loop->uv, &proxy->listener->tcp) == 0);
    proxy->listener->tcp.data = proxy;
    int failed = uv_tcp_bind(&proxy->listener->tcp, (const struct sockaddr *)&at, 0);
    if (failed == 0)
        failed = uv_listen((uv_stream_t *)&proxy->listener->tcp, BACKLOG, on_connection);
    if (failed != 0)
        stop_listening(proxy);
    return failed;
}

static void release_port(struct proxy *proxy)
{
    stop_listening(proxy);
    if (proxy->hold_fd >= 0)
        close(proxy->hold_fd);
    proxy->hold_fd = -1;
}

/* ---- The proxy ---- */

void proxy_set_init(struct proxy_set *set, struct loop *loop, uint64_t seed)
{
    *set = (struct proxy_set){.loop = loop, .seed = seed};
    list_init(&set->proxies);
}

void proxy_set_deinit(struct proxy_set *set)
{
    list_each(link, spare, &set->proxies) proxy_free(container_of(link, struct proxy, link));
}

struct proxy *proxy_find(struct proxy_set *set, const char *name)
{
    list_each(link, spare, &set->proxies)
    {
        struct proxy *proxy = container_of(link, struct proxy, link);
        if (strcmp(proxy->name, name) == 0)
            return proxy;
    }
    return NULL;
}

/* A proxy's draws depend on the seed and its name only, not on what other proxies there are. */
static uint64_t seed_of(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ seed;
    for (; *name != 0; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return hash;
}

struct proxy *proxy_new(struct proxy_set *set, const char *name, const struct address *listen,
                        const struct address *upstream, bool is_link)
{
    struct proxy *proxy = xcalloc(1, sizeof(*proxy));
    proxy->set = set;
    proxy->loop = set->loop;
    proxy->name = xstrdup(name);
    proxy->listen = *listen;
    proxy->upstream = *upstream;
    proxy->is_link = is_link;
    proxy->hold_fd = -1;
    rng_init(&proxy->rng, seed_of(set->seed, name));
    list_init(&proxy->toxics[0]);
    list_init(&proxy->toxics[1]);
    list_init(&proxy->pairs);
    list_append(&set->proxies, &proxy->link);
    set->count++;
    return proxy;
}

void proxy_free(struct proxy *proxy)
{
    proxy_disable(proxy);
    release_port(proxy);
    for (int i = 0; i < 2; i++)
        list_each(link, spare, &proxy->toxics[i])
            toxic_free(container_of(link, struct toxic, link));
    list_remove(&proxy->link);
    proxy->set->count--;
    free(proxy->name);
    free(proxy);
}

int proxy_enable(struct proxy *proxy)
{
    int failed = start_listening(proxy);
    proxy->enabled = failed == 0;
    return failed;
}

struct proxy_instant proxy_disable(struct proxy *proxy)
{
    proxy->enabled = false;
    if (!proxy->is_link)
        stop_listening(proxy);
    list_each(link, spare, &proxy->pairs)
    {
        struct pair *pair = container_of(link, struct pair, link);
        proxy->counts.blocked_connections++;
        proxy->counts.blocked_bytes += pair_undelivered(pair);
        pair_close(pair, true);
    }
    return (struct proxy_instant){.wall_ms = clock_ns(CLOCK_REALTIME) / NS_PER_MS,
                                  .mono_ns = clock_ns(CLOCK_MONOTONIC)};
}

uint64_t proxy_held(const struct proxy *proxy)
{
    uint64_t held = 0;
    list_each(link, spare, &proxy->pairs)
    {
        const struct pair *pair = container_of(link, struct pair, link);
        held += pair->way[0].chain.data + pair->way[1].chain.data;
    }
    return held;
}

void proxy_move(struct proxy *proxy, const struct address *listen, const struct address *upstream)
{
    proxy_disable(proxy);
    release_port(proxy);
    proxy->listen = *listen;
    proxy->upstream = *upstream;
}

/* ---- Toxics ---- */

struct toxic *proxy_find_toxic(struct proxy *proxy, const char *name)
{
    for (int i = 0; i < 2; i++) {
        list_each(link, spare, &proxy->toxics[i])
        {
            struct toxic *toxic = container_of(link, struct toxic, link);
            if (strcmp(toxic->name, name) == 0)
                return toxic;
        }
    }
    return NULL;
}

/* Tells every connection's chain, and lets what follows from it happen. */
static void tell_chains(struct proxy *proxy, struct toxic *toxic,
                        void (*tell)(struct chain *, const struct toxic *, uint64_t))
{
    loop_update_time(proxy->loop);
    list_each(link, spare, &proxy->pairs)
    {
        struct pair *pair = container_of(link, struct pair, link);
        tell(&pair->way[toxic->stream].chain, toxic, proxy->loop->mono_ns);
        pair_step(pair);
    }
}

void proxy_add_toxic(struct proxy *proxy, struct toxic *toxic)
{
    list_append(&proxy->toxics[toxic->stream], &toxic->link);
    tell_chains(proxy, toxic, chain_add);
}

void proxy_update_toxic(struct proxy *proxy, struct toxic *toxic)
{
    tell_chains(proxy, toxic, chain_update);
}

void proxy_remove_toxic(struct proxy *proxy, struct toxic *toxic)
{
    tell_chains(proxy, toxic, chain_remove);
    toxic_free(toxic);
}
