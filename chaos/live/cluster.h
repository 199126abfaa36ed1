/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CLUSTER_H
#define LIVE_CLUSTER_H

/* The regions of one `tidemark up` and the links between them: what is running, what is cut, and
 * the changes a person or a test asks for. A link is up unless it was cut by name or one of its
 * ends is isolated: the two causes are kept apart, so that `rejoin` undoes `isolate` and nothing
 * else. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/live/config.h"
#include "chaos/live/process.h"
#include "chaos/live/proxy.h"
#include "conflict/base/list.h"
#include "net/client.h"
#include "net/loop.h"

enum region_state { SITE_STARTING, SITE_RUNNING, SITE_PAUSED, SITE_DEAD };

/* One region as the harness sees it: a process, a port, two clients. */
struct site {
    struct cluster *cluster;
    uint32_t index;
    const char *name;       /* static */
    bool witness;           /* a tidemark-witness */
    struct address address; /* where it listens */
    char dial[ADDRESS_MAX]; /* where we reach it */
    int hold_fd;            /* keeps its port while it is dead */
    enum region_state state;
    bool isolated;
    bool restarting;         /* start again once it has ended */
    bool discard_damaged;    /* the next start may set a damaged store aside */
    bool end_expected;       /* we killed it, or are stopping */
    struct process *process; /* NULL while dead */
    /* What the next start is given: variables of its environment, borrowed (process.h), and how far
     * its clock is ahead. */
    const char *const *environment;
    int64_t clock_offset_ms, clock_rate_ppm;
    uint64_t starts;      /* of processes, so far */
    struct client *door;  /* for clients' requests */
    struct client *admin; /* for our own, never behind theirs */
    struct list waits;    /* struct cluster_wait */
};

struct cluster_link {
    struct site *from, *to;
    struct proxy *proxy;
    bool cut;                   /* by name */
    struct proxy_instant since; /* of the present state; zero: since the start */
};

struct cluster {
    struct loop *loop;
    const struct config *config;
    char *programs;     /* directory of tidemark-region and tidemark-witness, with its slash */
    char *data;         /* directory, absolute or as given */
    struct site *sites; /* the regions, then the witnesses */
    uint32_t site_count;
    struct cluster_link *links; /* site_count * (site_count - 1), by from, then to */
    uint32_t link_count;
    struct proxy_set proxies; /* links first, then those that users make */
    int log_fd;               /* what the processes log goes there; 0: to our standard error */
    bool stopping, killing;
    uv_timer_t stop_timer;
    void (*changed)(void *context, struct site *site, const char *line);
    void *changed_context;
};

/* Told once the region is dead or running, as asked, or can't become so. */
struct cluster_wait {
    struct list link;
    enum region_state wanted; /* SITE_RUNNING or SITE_DEAD */
    void (*done)(struct cluster_wait *wait, bool reached);
};

/* Takes ports and makes links; starts nothing. `changed` comes after each change of a region's
 * state, with a line for the user, or NULL, when it ended by itself. False: error says why. */
bool cluster_init(struct cluster *cluster, struct loop *loop, const struct config *config,
                  const char *programs, const char *data,
                  void (*changed)(void *context, struct site *site, const char *line),
                  void *changed_context, struct buf *error);
bool cluster_start(struct cluster *cluster, struct buf *error);
/* Asks every process to end, after five seconds makes it; `changed` tells of each. A second call
 * does not wait. */
void cluster_stop(struct cluster *cluster);
bool cluster_stopped(const struct cluster *cluster);
void cluster_deinit(struct cluster *cluster);

struct site *cluster_find(struct cluster *cluster, struct bytes name);
/* The index of the given region id, or -1. */
struct cluster_link *cluster_find_link(struct cluster *cluster, const struct site *from,
                                       const struct site *to);
/* Names of all regions, with commas; of the witnesses, too, or only of those that serve clients. */
void cluster_names(const struct cluster *cluster, bool witnesses, struct buf *ret);

const char *site_state_name(enum region_state state);
/* Each returns false when the region's state does not allow it; the reason is in `error`. */
bool site_kill(struct site *site, struct buf *error);
bool site_signal(struct site *site, int signal, struct buf *error); /* one that shall end it */
bool site_pause(struct site *site, struct buf *error);
bool site_resume(struct site *site, struct buf *error);
bool site_restart(struct site *site, struct buf *error);
/* `wait` is the caller's until done. */
void site_wait(struct site *site, struct cluster_wait *wait);
void site_isolate(struct site *site, bool isolated);

/* The names of the toxics that are a link's own shape. */
#define LINK_DELAY_TOXIC "delay"
#define LINK_LIMIT_TOXIC "limit"
void link_cut(struct cluster_link *link, bool cut);
bool link_is_up(const struct cluster_link *link);
/* Sets, changes or (0, 0) removes the latency of the way from `from` to `to`. */
void link_delay(struct cluster_link *link, uint64_t delay_ms, uint64_t jitter_ms);
/* The same, of any distribution. */
void link_shape(struct cluster_link *link, uint64_t delay_ns, uint64_t jitter_ns,
                enum delay_distribution distribution);
/* Sets, changes or (0) removes a bound on its bytes a second, on the way there. */
void link_limit(struct cluster_link *link, uint64_t rate_bytes);
/* The latency that its toxics add on the way there. */
uint64_t link_delay_ms(const struct cluster_link *link);
/* Every proxy enabled, every toxic gone, nothing isolated. Returns 0 or the first negative errno.
 */
int cluster_reset(struct cluster *cluster);
/* A link's proxy was enabled or disabled by its Toxiproxy name. */
void cluster_proxy_switched(struct cluster *cluster, struct proxy *proxy, bool enabled);

#endif
