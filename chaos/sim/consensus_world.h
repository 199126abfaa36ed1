/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONSENSUS_WORLD_H
#define SIM_CONSENSUS_WORLD_H

/* What the files of the strong mode's simulator share: the members with their fake disks and items
 * (consensus_member.c, consensus_disk.c), the network between them (consensus_net.c), the observer
 * who sees all (consensus_ghost.c), clients (consensus_client.c), faults (consensus_fault.c) and
 * the course of a run (consensus_run.c). */

#include "chaos/check/linear.h"
#include "chaos/sim/consensus_run.h"
#include "chaos/sim/sim.h"
#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"
#include "witness/consensus.h"
#include "witness/relay.h"

enum {
    MEMBERS = CONSENSUS_MEMBERS,
    KEYS = 3,
    CLIENTS_MAX = 9,
    SNAPS_MAX = 8,
    FAULTS_MAX = 40,
    WRITES_MAX = 512 /* PERSISTs that a disk has not done */
};

static const uint64_t us = 1000, ms = 1000000, second = 1000000000;

/* ---- The items: a small key-value store ---- */

enum call_kind { CALL_READ, CALL_PUT, CALL_IF, CALL_ADD, CALL_DELETE };

struct call { /* an operation, and as bytes a proposal */
    uint64_t name;
    int64_t argument, expected;
    uint8_t key, kind, expected_present, pad[5];
};

struct item {
    int64_t value;
    uint64_t index; /* of the entry that wrote it; 0: never written */
    uint8_t present, origin, pad[6];
};

struct items {
    struct item at[KEYS];
};

struct payload { /* of an entry: the item after it, and what made it so */
    struct call call;
    int64_t value;
    uint8_t present, pad[7];
};

/* False: the condition does not hold. */
bool items_evaluate(const struct items *items, const struct call *call, struct payload *ret);
void items_apply(struct items *items, const struct payload *payload, uint64_t index,
                 uint8_t origin);

/* ---- Members ---- */

struct disk_entry {
    struct consensus_entry entry; /* payload owned */
};

struct disk { /* what survives */
    bool found;
    struct consensus_hard hard;
    uint64_t base_index, base_term;
    struct disk_entry *entries;
    uint32_t count, cap;
    uint64_t synced; /* the disk itself records that the log was durable up to here */
    struct items items;
    uint64_t items_index, items_term;
    uint64_t damaged;    /* this entry cannot be read; 0: none */
    bool damage_framing; /* nor, then, can what follows it */
};

struct queued_write { /* a copy of a PERSIST */
    uint64_t seq;
    bool hard_set;
    struct consensus_hard hard;
    uint64_t truncate_from;
    bool base_moved;
    uint64_t base_index, base_term;
    struct consensus_entry *entries; /* with their payloads, owned */
    uint32_t entry_count;
};

struct evaluation {
    uint64_t id;
    uint8_t origin;
    uint64_t origin_applied;
    struct call call;
};

struct snap {
    uint64_t id, index;
    struct items items;
};

struct member {
    uint8_t index;
    struct consensus *core; /* NULL: dead */
    struct relay relay;
    uint64_t generation;
    uint64_t resume_ns;                /* stopped until then */
    uint64_t clock_ns, clock_since_ns; /* its monotonic clock, and when it showed that */
    uint64_t clock_rate;               /* in sixteenths of true time */
    bool held;                         /* dead until the run says otherwise */
    bool disk_full;
    uint64_t disk_slow; /* times */
    struct disk disk;
    struct queued_write *queue;
    uint32_t queue_len;
    uint32_t syncing; /* of them; 0: none */
    uint64_t timer_at_ns;

    struct items items; /* as they may be read */
    uint64_t applied, applied_term;
    bool applied_due, flush_due;
    struct items view; /* leader: as of the end of the log */
    bool serving;
    uint64_t serving_term;
    struct evaluation *evaluations;
    uint32_t evaluations_len, evaluations_cap;
    uint64_t evaluated_ns;
    struct payload evaluated; /* answered, and not yet APPENDED */
    uint8_t evaluated_origin;
    struct snap snaps[SNAPS_MAX];
    uint32_t snap_count;
    struct buf staging;
    uint64_t staging_index, staging_term;

    /* As of the last event, for what may only grow. */
    struct consensus_status seen;
    uint64_t isolated_since; /* 0: not */
    uint64_t isolated_term;
    bool isolated_leader;
};

/* ---- The observer ---- */

struct ghost_entry {
    uint64_t term, incarnation, seq;
    uint64_t commit_term; /* of the member that was first to commit it, at the time */
    enum consensus_entry_kind kind;
    uint8_t origin;
    struct payload payload;
    struct items items; /* after it */
};

struct ghost_log {
    struct ghost_entry *at; /* [i] is entry i + 1 */
    uint64_t count, cap;
    uint8_t *leaders; /* by term: member + 1 */
    uint64_t terms_cap;
    uint8_t *fates; /* by name of a call: FATE_* */
    uint64_t fates_cap;
    bool disks_harmed; /* some disk was damaged or lost in this run */
};

enum { FATE_COMMITTED = 1, FATE_REFUSED = 2 };

/* ---- Clients ---- */

enum fate { OP_OPEN, OP_OK, OP_FAILED, OP_NOTHING, OP_UNKNOWN };

struct operation {
    struct call call;
    uint8_t member, client;
    enum fate fate;
    uint64_t called, returned; /* by a count of its own, so that no two are equal */
    uint64_t floor;            /* version of the key that was acknowledged before the call */
    uint64_t version;
    uint64_t term; /* of its member when it was called */
    struct item result;
};

struct client {
    uint8_t member;
    uint64_t token; /* of the operation under way: its place + 1; 0: none */
};

/* ---- Faults ---- */

#define SIM_CONSENSUS_FAULT_MAP(FAULT)                                                             \
    FAULT(CUT, "cut")             /* frames from a to b are lost */                                \
    FAULT(PARTITION, "partition") /* and from b to a */                                            \
    FAULT(ISOLATE, "isolate")     /* all from and to a */                                          \
    FAULT(DELAY, "delay")         /* frames from a to b take longer */                             \
    FAULT(CRASH, "crash")         /* a dies and comes back at the end */                           \
    FAULT(BLINK, "blink")         /* a dies and comes back at once */                              \
    FAULT(PAUSE, "pause")         /* a stands still */                                             \
    FAULT(SLOW_DISK, "slow-disk")                                                                  \
    FAULT(FULL_DISK, "full-disk")   /* a's writes wait */                                          \
    FAULT(SYNC_FAILS, "sync-fails") /* which a takes for its death */                              \
    FAULT(DAMAGE, "damage")         /* a crash, and an entry once durable cannot be read */        \
    FAULT(LOSE_DISK, "lose-disk")   /* a crash, and an empty disk */

enum sim_consensus_fault_kind {
#define FAULT(enumerator, name) CONSENSUS_FAULT_##enumerator,
    SIM_CONSENSUS_FAULT_MAP(FAULT)
#undef FAULT
        CONSENSUS_FAULT_COUNT
};

struct consensus_fault {
    uint64_t at_ns, until_ns;
    enum sim_consensus_fault_kind kind;
    uint8_t a, b;
    uint8_t number; /* as drawn */
    bool aimed;     /* a is whoever leads when it begins */
    uint64_t amount;
};

/* ---- The world ---- */

struct options { /* drawn from the seed */
    bool witness, fifo, conflicts, clocks;
    bool duel; /* leaders fall all the time, and clients do not rest */
    uint64_t delay_ns_min, delay_ns_max, loss_one_in, repeat_one_in;
    uint64_t tail_one_in; /* frames that take far longer than others */
    uint64_t sync_ns_min, sync_ns_max;
    uint64_t think_ns_max, evaluate_ns_max, apply_ns_max;
    uint32_t clients;
    uint32_t flush_one_in; /* APPLIED after which the items become durable */
};

struct world {
    const struct sim_replay *replay;
    struct sim sim;
    struct options options;
    struct consensus_config config;
    struct member members[MEMBERS];
    bool cut[MEMBERS][MEMBERS];
    uint64_t extra_ns[MEMBERS][MEMBERS];
    uint64_t clear_ns[MEMBERS][MEMBERS];
    bool calm; /* healed: no loss, no repeats */
    struct ghost_log ghost;
    struct consensus_fault faults[FAULTS_MAX];
    uint32_t fault_count;
    uint64_t next_incarnation;
    struct client clients[CLIENTS_MAX];
    struct operation *operations;
    uint64_t operation_count, operation_cap;
    uint64_t clock; /* counts calls and returns */
    uint64_t acknowledged[KEYS];
    bool clients_stopped;
    struct arena arena;
    struct sim_consensus_verdict *verdict;
    bool trace;
};

enum {
    EVENT_FRAME, /* node from other */
    EVENT_SYNCED,
    EVENT_TIMER,
    EVENT_APPLIED,
    EVENT_EVALUATED,
    EVENT_PIECE,
    EVENT_STAGED,
    EVENT_INSTALLED,
    EVENT_CLIENT, /* id */
    EVENT_FAULT_BEGIN,
    EVENT_FAULT_END
};

/* consensus_run.c */
void violate(struct world *world, const char *violation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* consensus_member.c */
void member_step(struct world *world, struct member *member, struct consensus_input *in);
void member_start(struct world *world, struct member *member);
void member_clock_rate(struct world *world, struct member *member, uint64_t sixteenths);
/* A step of its own accord: its clock or disk has changed. */
void member_poke(struct world *world, struct member *member);
void member_crash(struct world *world, struct member *member);
void member_event(struct world *world, const struct sim_event *event);

/* consensus_disk.c */
void disk_take(struct world *world, struct member *member, const struct consensus_effect *effect);
void disk_sync(struct world *world, struct member *member);
void disk_synced(struct world *world, struct member *member);
void disk_crash(struct world *world, struct member *member);
void disk_clear(struct disk *disk);
uint64_t disk_last(const struct disk *disk);
bool disk_has(const struct disk *disk, uint64_t index, uint64_t term);
/* What a start finds. *ret->entries are views. */
void disk_found(const struct disk *disk, struct arena *arena, struct consensus_start *ret);

/* consensus_net.c */
void net_send(struct world *world, struct member *from, uint8_t to, struct bytes frame);
void net_arrive(struct world *world, const struct sim_event *event);

/* consensus_ghost.c */
void ghost_step(struct world *world, struct member *member);
void ghost_frame(struct world *world, struct member *member, struct bytes frame);
void ghost_write(struct world *world, struct member *member, const struct consensus_hard *before);
void ghost_applied(struct world *world, struct member *member);
void ghost_fate(struct world *world, uint64_t name, uint8_t fate);
void ghost_isolation(struct world *world);
void ghost_deinit(struct ghost_log *ghost);

/* consensus_client.c */
void client_event(struct world *world, uint64_t index);
void client_reply(struct world *world, struct member *member,
                  const struct consensus_effect *effect);
void client_read(struct world *world, struct member *member, const struct consensus_effect *effect);
void clients_crashed(struct world *world, struct member *member);
void clients_judge(struct world *world);
/* One call, outside of any client; its place in operations. */
uint64_t client_call(struct world *world, uint8_t member, uint8_t client, const struct call *call);

/* consensus_fault.c */
void faults_draw(struct world *world, uint64_t from_ns, uint64_t to_ns);
void faults_schedule(struct world *world);
void consensus_fault_begin(struct world *world, struct consensus_fault *fault);
void consensus_fault_end(struct world *world, struct consensus_fault *fault);
void faults_heal(struct world *world);
void faults_tell(const struct world *world, struct sim_told *told);
void faults_print(const struct world *world, struct buf *to);

static inline uint64_t draw(struct world *world, uint64_t low, uint64_t high)
{
    return high > low ? rng_between(&world->sim.rng, low, high) : low;
}
static inline bool chance(struct world *world, uint64_t one_in)
{
    return one_in && rng_one_in(&world->sim.rng, one_in);
}
static inline bool is_data(const struct world *world, uint8_t member)
{
    return world->config.kinds[member] == CONSENSUS_DATA;
}

#endif
