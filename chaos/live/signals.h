/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_SIGNALS_H
#define LIVE_SIGNALS_H

/* The signals by which somebody wants a command that runs a cluster to end: Ctrl-C, Ctrl-\, kill,
 * and a terminal that closes. Unheard, each would end us with directories left behind. One that was
 * ignored when we were started (by nohup, or of a shell's background) stays ignored. Writing to a
 * terminal from its background must not stop us either, while the Regions run on. */

#include <stdbool.h>

#include "net/loop.h"

enum { SIGNALS_COUNT = 4 };

struct signals {
    uv_signal_t at[SIGNALS_COUNT];
    void (*came)(void *context, int number);
    void *context;
};

void signals_init(struct signals *signals, struct loop *loop,
                  void (*came)(void *context, int number), void *context);
/* Before the loop goes. From here on they wait. */
void signals_close(struct signals *signals);
/* After signals_close, for what is left to be done without a loop: the first is told in a line and
 * has no effect, the second ends the process. */
void signals_hold(void);
/* They are as they were at first. */
void signals_release(void);
/* Whether one came while they were held the last time. */
bool signals_came(void);
const char *signals_name(int number); /* "SIGHUP" */

#endif
