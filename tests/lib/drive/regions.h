/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_DRIVE_REGIONS_H
#define TESTS_LIB_DRIVE_REGIONS_H

/* Three whole Regions on the loop of a test, with real sockets and real stores, and a drive on top
 * of them. Waiting has no limit of its own: a test that waits in vain is ended by ctest. */

#include <stdbool.h>

#include "chaos/drive/drive.h"
#include "region/node.h"

enum { REGIONS = 3 };

struct region_host {
    struct regions *regions;
    char directory[64];
    char address[32];
    struct config config;
    struct log log;
    struct node *node;
    bool ready;
};

struct regions {
    struct loop loop;
    struct region_host at[REGIONS];
    const char *addresses[REGIONS];
    struct scenario scenario;
    struct history history;
    struct drive *drive;
    bool done, good;
    char error[512];
};

/* Regions that run. */
int regions_setup(void **state);
/* Only the addresses, the loop and the history; somebody else listens there, or nobody. */
int regions_setup_bare(void **state);
int regions_teardown(void **state);
void region_stop(struct region_host *host); /* as a crash */
void region_start(struct region_host *host);

/* Reads the scenario's text (mode, workload), opens a drive for it in place of the former. */
void regions_drive(struct regions *regions, const char *mode, const char *workload);
/* A drive's `done`, with the regions. */
void regions_on_done(void *context, bool good, const char *error);
void regions_run_until(struct regions *regions, const bool *done);
/* Waits for regions_on_done, and that it was good. */
void regions_await(struct regions *regions);
/* Lets the clients work until so many operations are recorded, then stops. */
void regions_work(struct regions *regions, uint32_t count);

#endif
