/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

/* The event loop: libuv's, with its clocks read once a round and a hook at the end of each round,
 * where whoever owns state machines drains what the callbacks have queued. Callbacks only enqueue.
 */

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "conflict/base/bytes.h"
#include "conflict/base/list.h"

/* Something to do once, at the end of this round, after the hook: sockets gather their output until
 * then, so that a round costs a socket one write. */
struct loop_task {
    struct list link; /* empty unless queued */
    void (*run)(struct loop_task *task);
};

enum { LOOP_SCRATCH_BYTES = 65536, LOOP_SPARES_MAX = 32, LOOP_SPARE_BYTES_MAX = 65536 };

struct loop {
    uv_loop_t uv;
    uint64_t mono_ns; /* CLOCK_MONOTONIC, as of this round */
    uint64_t wall_ms; /* CLOCK_REALTIME, as of this round */
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    uv_signal_t interrupt, terminate;
    void (*round)(void *context); /* after the callbacks of a round, before the loop blocks */
    void *round_context;
    uint64_t deadline_ns;
    bool stopping;
    void (*on_signal)(void *context, int signal);
    void *signal_context;
    struct list tasks;
    bool again;          /* a task has brought new input: the next round begins at once */
    uint64_t seen_uv_ms; /* libuv's own clock when ours were read last */
    uint8_t *scratch;    /* LOOP_SCRATCH_BYTES to read into; valid within one read callback */
    struct buf spares[LOOP_SPARES_MAX]; /* memory of output buffers that are empty now */
    uint32_t spare_count;
};

void loop_init(struct loop *loop);
/* Everything on it has been closed; waits for libuv to let go of it. */
void loop_deinit(struct loop *loop);
/* Called once a round; may call loop_wake_at. */
void loop_on_round(struct loop *loop, void (*round)(void *context), void *context);
/* The next round begins no later than this monotonic time; UINT64_MAX: no limit. Replaces the
 * former. */
void loop_wake_at(struct loop *loop, uint64_t mono_ns);
/* SIGINT and SIGTERM. Without it they end the process. */
void loop_on_signal(struct loop *loop, void (*on_signal)(void *context, int signal), void *context);
/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Re-reads the clocks now, for code that ran long. */
void loop_update_time(struct loop *loop);
/* For libuv callbacks: re-reads the clocks when libuv's has moved since. The loop may have slept.
 */
static inline void loop_refresh_time(struct loop *loop)
{
    if (uv_now(&loop->uv) != loop->seen_uv_ms)
        loop_update_time(loop);
}

void loop_task_init(struct loop_task *task, void (*run)(struct loop_task *task));
/* Does nothing when it is queued already. */
void loop_soon(struct loop *loop, struct loop_task *task);
void loop_task_cancel(struct loop_task *task);

/* An empty buffer with memory, if there is one to spare; give it back empty. */
struct buf loop_take_buf(struct loop *loop);
void loop_give_buf(struct loop *loop, struct buf *buf);

#endif
