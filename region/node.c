/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the parts: the server's callbacks to API, admin routes and peers; the driver's effects to
 * whoever performs them. */

#include "region/node.h"

#include <stdio.h>
#include <sys/random.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "net/server.h"
#include "region/admin.h"
#include "region/clock.h"
#include "region/driver.h"
#include "region/faults.h"
#include "region/metrics.h"
#include "region/peers.h"
#include "region/serve.h"
#include "region/store_open.h"

enum drain_state { SERVING, DRAINING, SETTLING, DRAINED };

struct node {
    struct loop *loop;
    const struct config *config;
    const struct log *log;
    struct node_events events;
    struct region_config core; /* config's, with what is this process's own */
    struct clock clock;
    struct metrics metrics;
    struct faults faults;
    struct admin admin;
    struct store *store;
    struct server *server, *peer_server; /* peer_server: NULL when peers use `server` */
    struct peers *peers;
    struct serve *serve;
    struct driver *driver;
    enum drain_state drain;
};

/* ---- The driver's effects ---- */

static void on_ready(void *context)
{
    struct node *node = context;
    node->admin.ready = true;
    serve_begin(node->serve, node->driver);
    const struct region *core = driver_core(node->driver);
    if (node->core.witness_only)
        log_line(node->log, TRACE_INFO, "witness on port %u, %u groups, %u peers", node_port(node),
                 region_group_count(core), node->config->peer_count);
    else
        log_line(node->log, TRACE_INFO, "serving on port %u, %u tables, %u peers", node_port(node),
                 region_table_count(core), node->config->peer_count);
    if (node->events.ready)
        node->events.ready(node->events.context);
}

static void on_reply(void *context, uint64_t token, struct op *op)
{
    serve_reply(((struct node *)context)->serve, token, op);
}

static void on_send(void *context, uint16_t peer, enum region_channel channel, struct bytes message)
{
    peers_send(((struct node *)context)->peers, peer, channel, message);
}

static void on_close(void *context, uint16_t peer, enum region_channel channel, const char *reason)
{
    peers_close(((struct node *)context)->peers, peer, channel, reason);
}

static void on_call_peer(void *context, uint16_t peer, uint64_t id, struct bytes body)
{
    peers_call(((struct node *)context)->peers, peer, id, body);
}

static void on_call_reply(void *context, uint64_t token, struct bytes body)
{
    peers_call_reply(((struct node *)context)->peers, token, body);
}

static void on_taken(void *context, const struct region_input *in, uint64_t tag)
{
    peers_taken(((struct node *)context)->peers, in, tag);
}

/* ---- The server's callbacks ---- */

static void on_request(void *context, struct exchange *exchange)
{
    struct node *node = context;
    const struct http_request *request = exchange_request(exchange);
    /* The common case first: no admin route is a POST. */
    if (bytes_is(request->method, "POST") || !admin_handle(&node->admin, exchange))
        serve_request(node->serve, exchange);
}

static void on_refuse(void *context, int status, struct buf *body, const char **ret_content_type)
{
    (void)context;
    serve_refuse(status, body, ret_content_type);
}

static bool on_grpc(void *context, struct grpc_call *call, struct bytes path)
{
    return peers_accept(((struct node *)context)->peers, call, path);
}

static bool listen_on_ports(struct node *node, char *error, size_t error_len)
{
    const struct config *config = node->config;
    struct server_handler handler = {on_request, on_refuse, on_grpc, node};
    struct server_tls tls = {config->tls_certificate, config->tls_key};
    node->server = server_listen(node->loop, config->listen, &config->server, &tls, &handler, error,
                                 error_len);
    if (!node->server)
        return false;
    if (!config->peer_listen)
        return true;
    struct server_tls plain = {NULL, NULL};
    node->peer_server = server_listen(node->loop, config->peer_listen, &config->server, &plain,
                                      &handler, error, error_len);
    return node->peer_server != NULL;
}

/* ---- Life ---- */

static void start_driver(struct node *node)
{
    const struct config *config = node->config;
    node->driver = driver_new(&(struct driver_config){
        .loop = node->loop,
        .core = &node->core,
        .store = node->store,
        .clock = &node->clock,
        .metrics = &node->metrics,
        .sync = config->sync,
        .group_bytes_max = config->group_bytes_max,
        .events = {on_ready, on_reply, on_send, on_close, on_call_peer, on_call_reply, on_taken,
                   node},
    });
    node->admin = (struct admin){
        .config = config,
        .loop = node->loop,
        .log = node->log,
        .clock = &node->clock,
        .store = node->store,
        .driver = node->driver,
        .serve = node->serve,
        .faults = &node->faults,
        .peers = node->peers,
        .metrics = &node->metrics,
        .server = node->server,
    };
    peers_start(node->peers, node->driver);
}

struct node *node_open(struct loop *loop, const struct config *config, const struct log *log,
                       const struct node_events *events, char *error, size_t error_len)
{
    struct node *node = xcalloc(1, sizeof(*node));
    node->loop = loop;
    node->config = config;
    node->log = log;
    node->events = *events;
    clock_set(&node->clock, loop->mono_ns, config->clock_offset_ms, config->clock_rate_ppm);
    uint64_t seeds[4];
    check(getrandom(seeds, sizeof(seeds), 0) == (ssize_t)sizeof(seeds));
    node->core = config->core;
    node->core.seed = node->core.replication.seed = seeds[0];
    node->core.trace = node->core.replication.trace = log_trace(log);
    node->serve = serve_new(config, loop, &node->metrics, seeds[1]);
    node->peers = peers_new(loop, config, log, seeds[2]);
    faults_init(&node->faults, seeds[3]);
    serve_set_faults(node->serve, &node->faults);
    peers_set_faults(node->peers, &node->faults);

    struct store_leveldb_config store = {.directory = config->data,
                                         .cache_bytes = config->cache_bytes,
                                         .write_buffer_bytes = config->write_buffer_bytes,
                                         .trace = log_trace(log)};
    enum store_damage damage = config->discard_damaged_store || config->core.witness_only
                                   ? STORE_DISCARD_DAMAGE
                                   : STORE_REFUSE_DAMAGE;
    /* The port first: whoever finds it taken must not touch the data. */
    if (!listen_on_ports(node, error, error_len) ||
        !(node->store = store_open(&store, damage, log, error, error_len))) {
        node_close(node);
        node_free(node);
        return NULL;
    }
    start_driver(node);
    return node;
}

uint16_t node_port(const struct node *node)
{
    return server_port(node->server);
}

uint64_t node_requests(const struct node *node)
{
    return server_stats(node->server).requests;
}

static void settle(struct node *node)
{
    /* Whoever still waits for an answer has been cut off by the server's drain. */
    if (node->drain != SETTLING || !driver_idle(node->driver))
        return;
    node->drain = DRAINED;
    if (node->events.drained)
        node->events.drained(node->events.context);
}

uint64_t node_round(struct node *node)
{
    peers_round(node->peers);
    driver_round(node->driver);
    settle(node);
    uint64_t driver_ns = driver_deadline(node->driver);
    uint64_t peers_ns = peers_deadline(node->peers);
    return driver_ns < peers_ns ? driver_ns : peers_ns;
}

static void on_server_drained(void *context)
{
    struct node *node = context;
    if (node->drain == DRAINING)
        node->drain = SETTLING;
    loop_wake_at(node->loop, 0);
}

void node_drain(struct node *node)
{
    if (node->drain != SERVING)
        return;
    node->drain = DRAINING;
    log_line(node->log, TRACE_INFO, "stopping: finishing %u requests", serve_pending(node->serve));
    peers_stop(node->peers);
    if (node->peer_server)
        server_close(steal(&node->peer_server));
    server_drain(node->server, node->config->drain_ms, on_server_drained, node);
    if (server_stats(node->server).connections == 0)
        on_server_drained(node);
}

void node_close(struct node *node)
{
    peers_stop(node->peers);
    serve_abort(node->serve);
    if (node->peer_server)
        server_close(steal(&node->peer_server));
    if (node->server)
        server_close(steal(&node->server));
    driver_free(steal(&node->driver));
    if (node->store)
        node->store->ops->free(steal(&node->store));
}

void node_free(struct node *node)
{
    serve_free(node->serve);
    peers_free(node->peers);
    free(node);
}
