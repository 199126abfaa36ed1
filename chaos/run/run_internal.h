/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RUN_INTERNAL_H
#define RUN_RUN_INTERNAL_H

/* run.c is a run's beginning and end, stages.c what comes between, timeline.c the phases, guard.c
 * what can stop them, load.c how much was asked of the clients, program.c the workload that is a
 * program, progress.c what people see of it meanwhile. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/drive/drive.h"
#include "chaos/inject/inject.h"
#include "chaos/live/cluster.h"
#include "chaos/live/control.h"
#include "chaos/live/door.h"
#include "chaos/live/signals.h"
#include "chaos/run/ledger.h"
#include "chaos/run/output.h"
#include "chaos/run/recount.h"
#include "chaos/run/run.h"
#include "chaos/run/watch.h"

#define RUN_SECOND_NS UINT64_C(1000000000)
#define RUN_MS_NS UINT64_C(1000000)
enum { RUN_TICK_MS = 100 };

enum run_stage {
    STAGE_START,
    STAGE_PREPARE,
    STAGE_PHASES,
    STAGE_DRAIN,
    STAGE_HEAL,
    STAGE_SETTLE,
    STAGE_LOOK,
    STAGE_LEDGERS,
    STAGE_SCAN,
    STAGE_AGE,
    STAGE_RESCAN,
    STAGE_RECOUNT,
    STAGE_END
};

/* Where the phases are. */
struct timeline {
    uint32_t phase;     /* which */
    uint32_t fault;     /* the next one to begin */
    uint64_t from_ns;   /* when the phase began */
    uint64_t paused_ns; /* when its load was stopped for what it waits for; 0: it was not */
    bool healing;       /* inject is at it */
    uv_timer_t timer;   /* the next fault */
};

struct guard {
    uint64_t since_ns[SCENARIO_EXPECTS_MAX]; /* that the limit of stop_if is broken; 0: it is not */
};

/* What was asked of the clients, and what they did of it. */
struct load_part {
    uint64_t due, begun, running_ns;
};

struct load {
    struct load_part all, calm; /* calm: no fault held */
    struct drive_load last;
    bool was_calm;
};

struct progress {
    bool live; /* a terminal: lines are drawn again; else one is printed for each event */
    bool quiet;
    uint32_t lines; /* drawn, to be drawn over */
    uint64_t ticks;
    uint64_t told_ns; /* the time of the last line */
    uint32_t events_told, faults_told;
    bool ended[SCENARIO_FAULTS_MAX]; /* faults whose end has been told */
    struct drive_figures figures;    /* of the last second, about */
    uint64_t figures_ns;
    double rate[SCENARIO_REGIONS_MAX], errors[SCENARIO_REGIONS_MAX];
};

struct run {
    const struct run_options *options;
    const struct scenario *scenario;
    struct outcome outcome;
    struct output output;
    struct config config;
    struct loop loop;
    struct cluster cluster;
    struct door *door;
    struct control *control;
    struct control_run told;
    char door_address[ADDRESS_MAX], control_address[ADDRESS_MAX];
    const char *addresses[SCENARIO_REGIONS_MAX];
    struct drive *drive;
    struct inject *inject;
    struct watch *watch;
    struct ledger_reading *ledger;
    struct recount *recount;
    struct signals signals;
    uv_timer_t tick;
    enum run_stage stage;
    uint64_t stage_ns; /* when it began */
    bool cut_short;    /* only heal and write: the user wants an end */
    bool entered;      /* what the stage begins by a tick has begun */
    struct timeline timeline;
    struct guard guard;
    struct load load;
    struct progress progress;
    char *program_log; /* where an exec workload's output goes; NULL: there is none */
    bool program_told; /* that it has ended */
    uint64_t space_ticks;
    struct client_request *aging[SCENARIO_REGIONS_MAX]; /* what a Region is told of its clock */
};

/* run.c */
/* The run itself has failed: the first reason stays. Goes on to the end. */
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Once every process has ended, the loop does. */
void run_end_loop(struct run *run);

/* stages.c */
void stage_enter(struct run *run, enum run_stage stage);
void stage_tick(struct run *run);
/* Begins what comes after the phases, unless it has begun. */
void stage_drain(struct run *run);

/* timeline.c */
void timeline_init(struct run *run);
void timeline_begin(struct run *run);
void timeline_tick(struct run *run);
void timeline_end(struct run *run); /* no more faults; the phase ends now */
void timeline_deinit(struct run *run);
/* Undoes all, and notes when. */
void timeline_heal(struct run *run, void (*done)(void *context, bool good, const char *error));
/* Whether the clients are at rest. */
bool timeline_is_quiet(const struct run *run);
uint64_t timeline_length_ns(const struct scenario *scenario);

/* age.c: moves all clocks on past the age at which tombstones go, and waits until they have. */
bool age_is_wanted(const struct run *run);
void age_begin(struct run *run);
void age_tick(struct run *run);
void age_end(struct run *run);

/* guard.c */
/* What stop_if says is broken for as long as it asks; NULL: nothing. */
const struct scenario_expect *guard_tick(struct guard *guard, const struct outcome *outcome,
                                         uint64_t now_ns);

/* load.c */
/* What has come by `now`; calm: no fault holds. */
void load_tick(struct load *load, struct drive_load now, bool calm);
void load_conclude(const struct load *load, struct outcome *outcome);

/* program.c: of exec workloads; nothing of others. */
char *program_log(const struct run *run);
void program_tick(struct run *run);
/* Says where its output is, and its end if it failed. */
void program_conclude(const struct run *run);

/* told.c: lets the control API tell of the run. */
void told_init(struct run *run);

/* progress.c */
void progress_init(struct progress *progress, bool quiet);
void progress_begin(struct run *run);
void progress_phase(struct run *run, const char *name);
void progress_stage(struct run *run, const char *text);
void progress_tick(struct run *run);
/* Takes the drawn lines away, so that something can be printed. */
void progress_clear(struct run *run);

#endif
