/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_DRIVE_FAKE_H
#define TESTS_LIB_DRIVE_FAKE_H

/* A DynamoDB of a few lines, at the addresses of all three Regions, that does as it is told:
 * answers, keeps silent, hangs up, or lies. */

#include "net/server.h"
#include "tests/lib/drive/regions.h"

enum conduct {
    HONEST,
    STALE_READS, /* GetItem answers what was there before the last write */
    LOSES,       /* acknowledges every tenth PutItem and forgets it */
    SILENT,
    HANGS_UP,
    BREAKS,    /* 500 */
    ONE_A_TIME /* hangs up on the second request of each connection */
};

enum { KEYS = 8, ELEMENTS = 4096, HELD = 1024 };

struct fake {
    struct regions *regions;
    struct server *server[REGIONS];
    enum conduct conduct;
    uint64_t value[KEYS], before[KEYS];
    uint64_t elements[ELEMENTS];
    uint32_t element_count, puts, repeated;
    struct exchange *held[HELD];
    uint32_t held_count;
    char seen[HELD][32]; /* clients' addresses that had an answer: ONE_A_TIME */
    uint32_t seen_count;
};

extern struct fake fake; /* of the test that runs */

int fake_setup(void **state); /* the state is a struct regions without Regions */
int fake_teardown(void **state);
void fake_close(void); /* nobody listens any more */

#endif
