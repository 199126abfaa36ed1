/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_INJECT_GROUNDS_H
#define TESTS_LIB_INJECT_GROUNDS_H

/* A real cluster of a scenario, in a directory of its own, with faults to be begun by their ids and
 * a client that never rests: a Region each, a table that all share. Waiting has no limit of its
 * own: a test that waits in vain is ended by ctest. */

#include <stdbool.h>

#include "chaos/inject/inject.h"

struct grounds {
    struct loop loop;
    struct config config;
    struct scenario scenario;
    struct outcome outcome;
    struct cluster cluster;
    struct inject *inject;
    char data[64], journal[128];
    uv_timer_t pulse;
    bool load;
    struct {
        struct grounds *grounds;
        uint32_t index;
        bool busy;
        uint64_t good, bad;
        char last[256]; /* the body of the last answer that was not 200; "" for none */
    } client[SCENARIO_REGIONS_MAX];
    uint64_t written;
    /* The last answer to grounds_ask. */
    bool answered;
    int status;
    char body[65536];
};

void grounds_open(struct grounds *grounds, const char *scenario, bool strong);
void grounds_close(struct grounds *grounds);
void grounds_run_until(struct grounds *grounds, bool (*reached)(void *context), void *context);
/* The status of the answer; 0: none. */
int grounds_ask(struct grounds *grounds, uint32_t place, const char *method, const char *path,
                const char *operation, const char *body);
int grounds_api(struct grounds *grounds, uint32_t place, const char *operation, const char *body);
/* Until the answer is 200 and holds `part`. */
void grounds_await(struct grounds *grounds, uint32_t place, const char *operation, const char *body,
                   const char *part);
const struct scenario_fault *grounds_fault(struct grounds *grounds, const char *id);
/* The newest of that id that was begun. */
const struct outcome_fault *grounds_told(struct grounds *grounds, const char *id);
void grounds_begin(struct grounds *grounds, const char *id);
/* Undoes it and waits until it is over. */
const struct outcome_fault *grounds_undo(struct grounds *grounds, const char *id);
/* Begins it again and again, for its own time, until it was effective. */
const struct outcome_fault *grounds_prove(struct grounds *grounds, const char *id);
void grounds_heal(struct grounds *grounds);

#endif
