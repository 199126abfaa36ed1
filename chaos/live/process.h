/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PROCESS_H
#define LIVE_PROCESS_H

/* One child process: started, watched for the line `ready` on its standard output, signalled,
 * reaped. It dies with us, whatever ends us, and its standard error is ours
 * unless told otherwise. It has a process group
 * of its own, so that Ctrl-C reaches it only by way of us. */

#include <stdbool.h>
#include <sys/types.h>

#include "net/loop.h"

struct process;

struct process_events {
    void (*ready)(void *context);
    /* Reaped. `signal` is 0 when it ended by itself with `code`. The pointer is dead afterwards. */
    void (*exited)(void *context, int code, int signal);
    void *context;
    int errors; /* descriptor that its standard error goes to; 0: ours */
};

/* argv ends with NULL and its first is the program's path. NULL when it can't be started: errno
 * says why. */
struct process *process_start(struct loop *loop, char *const argv[],
                              const struct process_events *events);
/* With these "NAME=value" beside our own environment, of which they take the place; NULL ends them.
 */
struct process *process_start_with(struct loop *loop, char *const argv[],
                                   const char *const *environment,
                                   const struct process_events *events);
pid_t process_pid(const struct process *process);
void process_signal(struct process *process, int signal);
/* SIGSTOP; it has stopped, or ended, when this returns. */
void process_pause(struct process *process);

#endif
