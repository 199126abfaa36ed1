/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_PLAY_INTERNAL_H
#define SIMULATE_PLAY_INTERNAL_H

/* play.c is a run's course; play_table.c makes the tables and says when all are equal; play_load.c
 * is the clients, play_request.c what they ask and are told; play_verbs.c the faults, play_links.c
 * what they do to messages; play_end.c what is looked at when all is over. */

#include "chaos/drive/draw.h"
#include "chaos/run/outcome.h"
#include "chaos/sim/cluster.h"
#include "chaos/sim/workload.h"
#include "chaos/simulate/play.h"

enum {
    EVENT_DUE = SIM_USER, /* open loop: the next operation is due */
    EVENT_CLIENT,         /* closed loop: id begins its next */
    EVENT_SUBMIT,         /* id: a request reaches its Region, if that runs */
    EVENT_TIMEOUT,        /* id: a request's time is over; generation: its serial number */
    EVENT_FAULT,          /* id begins */
    EVENT_FAULT_STEP,     /* id has something to do again; generation: of its beginning */
    EVENT_FAULT_END,      /* id; generation likewise */
    EVENT_START,          /* node is started */
    EVENT_SAMPLE
};

static const uint64_t ms = 1000000, second = 1000000000;

enum { REQUESTS_MAX = 1 << 16 };

struct play_client {
    uint8_t place;
    uint32_t number, values;
    bool busy, idle; /* idle: closed loop, and nothing it may do in this phase */
    uint64_t rest_ns;
    uint64_t free_ns; /* when its last answer has reached it */
};

struct play_request {
    struct arena arena;
    struct op *op;
    uint64_t serial; /* 0: free */
    uint32_t client; /* UINT32_MAX: of the last look */
    uint8_t place;
    bool submitted; /* the Region has it */
    bool over;      /* the client waits no more */
    struct draw_op drawn;
    struct history_op noted;
};

struct play_due {
    uint64_t intended_ns;
    enum draw_class class;
};

struct play_queue { /* of due operations that wait for a client: a ring */
    struct play_due *at;
    uint32_t first, count, cap;
};

struct play_fault {
    const struct scenario_fault *spec;
    struct outcome_fault *told;
    uint8_t number; /* of the replay; 64: it always happens */
    bool active, odd;
    uint64_t generation;                 /* counts its beginnings */
    uint32_t steps;                      /* of this one, the first included */
    uint64_t hits;                       /* of this one: what it was seen to strike */
    uint64_t luck;                       /* of a swizzle */
    uint8_t pairs[SCENARIO_REGIONS_MAX]; /* [from]: set of receivers */
    uint8_t regions;
    struct { /* with a correlation, a message's fate hangs on the last one's; sets of receivers */
        uint8_t begun, struck;
    } last[SCENARIO_REGIONS_MAX]; /* [from] */
};

struct play_way { /* what faults do to what one Region sends to another */
    bool cut, hole;
    uint64_t rate_bytes;
    uint64_t free_ns; /* when the last byte is through */
};

struct play {
    const struct scenario *scenario;
    const struct sim_replay *replay;
    struct outcome *outcome;
    struct sim_cluster cluster;
    bool strong;
    uint8_t data_count;

    /* Load. */
    struct draw draw;
    struct play_client *clients;
    uint32_t client_count;
    struct play_queue due[SCENARIO_REGIONS_MAX];
    uint64_t base_ns, due_count;
    bool running, due_scheduled;
    uint8_t writers;
    char *filler;
    uint64_t filler_len;
    struct play_request **requests;
    uint32_t request_count; /* of the array */
    uint32_t *free_requests;
    uint32_t free_count, under_way, looking;
    uint64_t next_serial, operations;
    uint32_t *look_again; /* keys whose last look failed */
    uint32_t look_again_count;

    /* Faults. */
    struct play_fault *faults;
    uint32_t fault_count;
    struct play_way ways[SCENARIO_REGIONS_MAX][SCENARIO_REGIONS_MAX];

    /* The course. */
    uint64_t since_ns[SCENARIO_EXPECTS_MAX]; /* a limit of stop_if is broken; 0: it is not */
    uint64_t leaders;
    uint32_t equal_looks;
    bool stopped;
    struct op *asked; /* of the control plane */
    bool asking;
    struct arena asking_arena;
};

static inline uint64_t now_of(const struct play *play)
{
    return play->cluster.sim.now_ns;
}
static inline bool play_node_up(const struct play *play, uint32_t node)
{
    return play->cluster.nodes[node].core != NULL && play->cluster.nodes[node].ready;
}
void play_later(struct play *play, uint64_t at_ns, int kind, uint64_t id, uint64_t generation);
/* Runs until the time, unless the run was stopped. */
void play_run(struct play *play, uint64_t until_ns);

/* play_table.c */
/* False: it could not be made, and outcome.harness says so. */
bool play_table_make(struct play *play);
void play_table_replied(struct play *play, struct op *op);
const struct table *play_table(const struct play *play, uint32_t node);
/* Twice in a row: eventual replicas with nothing to send; strong members with all applied, and one
 * leader a group. */
bool play_equal(struct play *play);
bool play_led(const struct play *play);
uint64_t play_leaders(const struct play *play);
/* Who leads most groups; SCENARIO_REGION_NONE. */
uint8_t play_leader(const struct play *play);

/* play_load.c */
void play_load_init(struct play *play);
void play_load_deinit(struct play *play);
void play_load_phase(struct play *play, const struct scenario_phase *phase);
void play_load_stop(struct play *play);
void play_load_due(struct play *play);
void play_load_client(struct play *play, uint32_t client);
/* A client's operation is over. */
void play_load_next(struct play *play, uint32_t client, bool failed);
static inline bool play_history_full(const struct play *play)
{
    return play->outcome->history.count == play->outcome->history.count_max;
}

/* play_request.c */
void play_request_begin(struct play *play, uint32_t client, uint8_t place,
                        const struct draw_op *drawn, uint64_t intended_ns);
void play_request_submit(struct play *play, uint32_t index);
void play_request_timeout(struct play *play, uint32_t index, uint64_t serial);
void play_request_replied(struct play *play, uint64_t token, struct op *op);
/* What was under way at a Region that died. */
void play_requests_died(struct play *play, uint32_t node);
/* Connections to these Regions are reset: what was sent may be done all the same. */
void play_requests_cut(struct play *play, uint8_t regions);
void play_requests_free(struct play *play);
/* The number in `v`; 0: there is no item; UINT64_MAX: nothing that we write. */
uint64_t play_item_value(struct bytes item);

/* play_verbs.c */
void play_faults_init(struct play *play);
void play_fault_begin(struct play *play, uint32_t index);
void play_fault_step(struct play *play, uint32_t index, uint64_t generation);
void play_fault_end(struct play *play, uint32_t index, uint64_t generation);
void play_heal(struct play *play);
bool play_sync_failed(struct play *play, uint32_t node);
/* The answer that a fault of the API gives instead of the Region; API_OK: none does. */
enum api_error play_api_fault(struct play *play, uint8_t place, enum op_kind kind);
/* Whether clients reach a Region. SCENARIO_BLACKHOLE and SCENARIO_CUT: how not. */
bool play_client_blocked(struct play *play, uint8_t place, enum scenario_how *ret);
/* Why a fault can't be simulated; NULL: it can. */
const char *play_verb_refusal(const struct scenario_fault *fault);

/* play_hits.c */
/* What proves itself by what it strikes while it holds; of the others it is known at once. */
bool play_fault_counts(const struct scenario_fault *spec);
/* Counts what is so all the while: connections that are down, clocks that somebody reads. */
void play_fault_strike(struct play *play, struct play_fault *fault);
/* A batch has come to the disk of a node, or is durable there. */
void play_disk_used(struct play *play, uint32_t node, bool durable);

/* play_clock.c */
void play_clocks_apply(struct play *play);

/* play_links.c */
struct sim_travel play_travel(void *context, uint32_t from, uint32_t to, size_t len);
/* What the active faults come to: cuts and holes are made and undone. */
void play_links_apply(struct play *play);
/* Of a verb of links: whom it is on. False: nobody. */
bool play_links_resolve(const struct play *play, struct play_fault *fault);

/* Counts the connections that this one, which is active, keeps down. */
void play_links_strike(struct play *play, struct play_fault *fault);

/* play_end.c */
void play_sample(struct play *play);
void play_end(struct play *play);

#endif
