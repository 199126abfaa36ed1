/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_DRIVE_INTERNAL_H
#define DRIVE_DRIVE_INTERNAL_H

/* drive.c is the public half and the order of things; work.c sends one operation and records it;
 * pace.c says when the next is due; chore.c asks for what is not part of the load (prepare.c the
 * tables, look.c and scan.c the last look); exec.c runs a user's program instead of clients,
 * keeper.c ends it.
 *
 *     idle --due--> under way --answer, timeout--> recorded --> idle
 *                       \---- next page, write after read ----/    resting (closed loop) --> idle
 */

#include <uv.h>

#include "chaos/drive/answer.h"
#include "chaos/drive/draw.h"
#include "chaos/drive/drive.h"
#include "chaos/drive/figures.h"
#include "chaos/drive/keeper.h"
#include "chaos/drive/request.h"
#include "conflict/base/list.h"
#include "net/client.h"

enum {
    DRIVE_QUEUE_MAX = 1 << 16,         /* due operations that wait for a client, in one Region */
    DRIVE_ANSWER_BYTES_MAX = 16 << 20, /* beyond it an answer is a broken connection */
    DRIVE_LANES = 16,                  /* calls at a time of a chore, in one Region */
    DRIVE_RETRY_MS = 50,               /* between a chore's tries */
    DRIVE_REST_MS = 50 /* of a client of a closed loop after no answer, as a retrying SDK does */
};

struct drive_client {
    struct list link; /* in idle of its Region or in resting; alone while under way */
    struct drive *drive;
    uint8_t place;
    uint32_t number, values; /* values written under this number */
    bool busy;
    struct draw_op drawn;
    struct history_op op; /* what will be recorded */
    struct answer_list list;
    uint64_t rest_ns; /* closed loop: when it may begin, or was meant to */
};

struct drive_due {
    uint64_t intended_ns;
    enum draw_class class;
};

struct drive_region {
    struct client *net;   /* for the load */
    struct client *admin; /* for chores, never behind the load */
    char authorization[320];
    struct list idle;
    struct drive_due *due; /* ring: a power of two of room */
    uint32_t due_first, due_count, due_cap;
    struct drive_client away; /* records what was due and no client could take in time */
    struct figures figures;   /* since they were last asked for */
};

/* A list of calls beside the load, of which one kind is under way at a time. */
struct chore {
    bool active, ended, good;
    struct client_request *request; /* prepare: its one call, while under way */
    uint64_t deadline_ns;
    void (*tick)(struct drive *drive); /* every DRIVE_RETRY_MS, and at once */
    drive_done *done;
    void *context;
    struct buf error; /* the last trouble, then the reason of failure; NUL-terminated at the end */
    uv_timer_t timer;
};

/* prepare.c */
struct prepare {
    enum { PREPARE_CREATE, PREPARE_SPREAD, PREPARE_ADD, PREPARE_WAIT, PREPARE_PROBE } step;
    uint8_t place;  /* WAIT, PROBE: the Region that is asked */
    uint8_t adding; /* ADD: the Region that is to be added */
};

struct lane { /* of a look or a scan: one call at a time */
    struct drive *drive;
    uint8_t place;
    struct client_request *request; /* while under way */
    bool done;
    uint32_t key, number; /* look: the item, and the client's number */
    uint32_t table;       /* scan: which of the tables */
    struct history_op op;
    struct answer_list list;
    json_t *next; /* where the next page starts */
};

struct scan_result { /* owned items */
    struct converge_item *at;
    uint32_t count, cap;
};

struct drive {
    struct drive_config config;
    const struct scenario_workload *workload;
    uint8_t data_count;
    bool strong, freeing;
    struct request_style style;
    char *filler;
    struct draw draw;
    struct drive_region region[SCENARIO_REGIONS_MAX];
    struct drive_client *clients;
    uint32_t client_count;

    /* The load. */
    bool running, full;
    uint8_t writers;
    uint32_t under_way;
    struct list resting;
    uint64_t pace_base_ns, pace_count; /* open loop: the next is due at base + count / rate */
    struct drive_load load;            /* running_ns: up to load_since_ns */
    uint64_t load_since_ns;
    uv_timer_t pace_timer;
    struct buf body; /* scratch of one request */

    /* Stopping. */
    bool stopping, stopped;
    drive_done *stop_done;
    void *stop_context;

    /* What is told at the end of the round. */
    struct loop_task tell;

    struct chore chore;
    struct prepare prepare;
    struct lane *lanes;
    uint32_t lane_count;
    uint32_t look_key[SCENARIO_REGIONS_MAX]; /* the next one to read */
    struct scan_result scan_items[SCENARIO_REGIONS_MAX];
    struct converge_scan scans[SCENARIO_REGIONS_MAX];
    uint32_t scan_count;
    char **tables; /* EXEC: names that scans have met; else ours */
    uint32_t table_count;
    struct scan_number *numbers; /* EXEC: uthash, by digest of an item */

    /* EXEC. */
    struct keeper keeper;
    uv_signal_t child;
    uv_timer_t kill_timer;
    bool process_used, process_runs, process_ended;
    int exit_code;

    uint32_t handles; /* that libuv has not let go of */
};

/* work.c */
void work_init(struct drive *drive);
void work_deinit(struct drive *drive);
/* An idle client, or NULL. */
struct drive_client *work_idle(struct drive *drive, uint8_t place);
/* Sends one operation. The client is idle. */
void work_begin(struct drive_client *client, enum draw_class class, uint64_t intended_ns);
/* One that was due at intended_ns and never sent. */
void work_turn_away(struct drive *drive, uint8_t place, enum draw_class class,
                    uint64_t intended_ns);
/* Whether the history takes one more operation and the last look. */
bool work_has_room(struct drive *drive);
/* Records what is over. */
void work_record(struct drive *drive, const struct history_op *op, const uint64_t *list);

/* pace.c */
void pace_start(struct drive *drive);
void pace_stop(struct drive *drive);
/* The client is free again: gives it the next, or lets it rest. failed: it got no answer. */
void pace_next(struct drive_client *client, bool failed);
void pace_on_timer(uv_timer_t *timer);

/* chore.c */
void chore_begin(struct drive *drive, uint64_t timeout_ns, void (*tick)(struct drive *drive),
                 drive_done *done, void *context);
void chore_on_timer(uv_timer_t *timer);
/* Told at the end of the round. What is under way is not waited for. */
void chore_end(struct drive *drive, bool good);
/* Why it is not done yet, for people: replaces the former reason. answer may be NULL. */
void chore_trouble(struct drive *drive, uint8_t place, const char *doing,
                   const struct http_answer *answer);
/* One call of the API, signed for its Region. When the drive goes, done hears of a failure. */
struct client_request *drive_ask(struct drive *drive, struct client *client, uint8_t place,
                                 const char *operation, struct bytes body, uint64_t timeout_ms,
                                 void (*done)(void *context, const struct http_answer *answer),
                                 void *context);
uint64_t drive_timeout_ms(const struct drive *drive);

void chore_free_lanes(struct drive *drive);

/* scan.c */
void scan_free(struct drive *drive);

/* exec.c */
void exec_start(struct drive *drive);
void exec_stop(struct drive *drive);
void exec_free(struct drive *drive);

/* drive.c */
void drive_check_stopped(struct drive *drive);
void drive_let_go(uv_handle_t *handle); /* for uv_close */

#endif
