/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_KEEPER_H
#define DRIVE_KEEPER_H

/* A process between us and a user's program, for what only a parent can do that never goes on
 * strike. It ends the program and everything that the program has started, also in other sessions,
 * when it is told to, when the program itself has ended, and when we die in whatever way. And it
 * writes what the program prints into a file that has a bound: the beginning, a line about what was
 * left out, the end.
 *
 *     harness --orders--> keeper --signals--> program, in a session of its own
 *        ^--exit code--     ^--standard output and error--/
 */

#include <stdint.h>
#include <sys/types.h>

enum { KEEPER_TAIL_BYTES = 1 << 14 }; /* of the output's end, kept in any case */
#define KEEPER_OUTPUT_MAX (UINT64_C(16) << 20)

struct keeper_config {
    char *const *argv;
    char *const *environment;
    int output;          /* descriptor */
    uint64_t output_max; /* of bytes from the beginning */
};

struct keeper {
    pid_t pid; /* its exit code is the program's, or 128 + the signal that ended it */
    int orders;
};

/* Returns 0, or the errno for which the program could not be started; then nothing is left. */
int keeper_start(const struct keeper_config *config, struct keeper *ret);
/* Asks the program and its process group to end (SIGTERM), or ends all at once. */
void keeper_ask(const struct keeper *keeper);
void keeper_kill(const struct keeper *keeper);
/* Once it has been reaped. */
void keeper_close(struct keeper *keeper);

#endif
