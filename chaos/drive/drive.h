/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_DRIVE_H
#define DRIVE_DRIVE_H

/* The workload of a scenario: many DynamoDB clients on the loop, over the project's own net layer,
 * through the public API, as a program of the user's would. Each records what it saw. In open loop
 * an operation is due by the rate whether or not the last was answered, and its latency counts from
 * then; so an outage shows as what it is.
 *
 * Everything that ends later calls back; nothing calls back from within the call that began it. Of
 * prepare, look and scan, one is under way at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "chaos/check/converge.h"
#include "chaos/check/history.h"
#include "chaos/scenario/scenario.h"
#include "net/loop.h"

struct drive;

struct drive_config {
    struct loop *loop;
    const struct scenario *scenario; /* outlives the drive */
    const char *const *addresses;    /* "127.0.0.1:8001" of each data Region, by place */
    const char *door;                /* of the front door, for exec workloads */
    const char *control;             /* of the control API, likewise */
    const char *output;      /* EXEC: the file that takes what the program prints; NULL: ours
                                (standard error) */
    uint64_t output_max;     /* of that file; 0: KEEPER_OUTPUT_MAX */
    struct history *history; /* what is over is appended */
    uint64_t seed;
};

struct drive *drive_new(const struct drive_config *config);
/* What is under way is recorded as UNFINISHED; nothing calls back any more. */
void drive_free(struct drive *drive);

typedef void drive_done(void *context, bool good, const char *error);

/* Makes the workload's tables: created in the first Region, made global (or strong) over all, and
 * waited for until every Region shows them ACTIVE. */
void drive_prepare(struct drive *drive, uint64_t timeout_ns, drive_done *done, void *context);
/* Lets the clients work as the phase says (idle, writers). Returns at once. */
void drive_phase(struct drive *drive, const struct scenario_phase *phase);
/* Sends nothing new; done once every operation is answered or timed out. For exec: ends the program
 * (SIGTERM, then SIGKILL) if it still runs. */
void drive_stop(struct drive *drive, drive_done *done, void *context);
/* The last look, after healing and settling: every key read (and set scanned) in each of these
 * Regions, recorded as `final`; in strong mode with consistency. Retried while it fails, up to the
 * timeout. */
void drive_look(struct drive *drive, uint64_t regions, uint64_t timeout_ns, drive_done *done,
                void *context);
/* Reads everything the tables hold in each of these Regions, by eventual Scans. *ret is one scan a
 * Region, in order of place, owned by the drive until the next call. */
void drive_scan(struct drive *drive, uint64_t regions, uint64_t timeout_ns, drive_done *done,
                void *context);
const struct converge_scan *drive_scans(const struct drive *drive, uint32_t *ret_count);
/* Item keys of the tables as the ledger and the API name them, to a history's (table, key). */
bool drive_find_key(const struct drive *drive, struct bytes table_name, struct bytes key_json,
                    uint16_t *ret_table, uint32_t *ret_key);

/* For the live lines: since the last call. */
struct drive_figures {
    struct {
        uint32_t ok, failed, info;
        uint64_t p50_ns, p99_ns; /* of what was answered; 0: nothing was */
    } region[SCENARIO_REGIONS_MAX];
    uint32_t under_way;
    bool full; /* the history has no room for more: nothing is sent any more */
};
void drive_figures(struct drive *drive, struct drive_figures *ret);
/* How many operations the workload's rate has made due so far, and how many of them were begun; in
 * a closed loop those are due that a client would have begun, had it not been waiting. Without a
 * rate all that are begun are due. */
struct drive_load {
    uint64_t due, begun, running_ns; /* running: not idle */
};
void drive_load(const struct drive *drive, struct drive_load *ret);
/* EXEC: the program has ended, with this code (128 + signal). */
bool drive_exited(const struct drive *drive, int *ret_code);

#endif
