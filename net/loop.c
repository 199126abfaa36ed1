/* SPDX-License-Identifier: Apache-2.0 */
/* One round is: libuv's callbacks run and enqueue; the hook drains what they enqueued; the tasks
 * flush what the hook produced; then the loop blocks. The hook runs in libuv's prepare phase, the
 * last before it blocks, so nothing can be enqueued behind its back and wait for the next event.
 *
 *     poll -> callbacks -> closing -> timers -> [prepare: clocks, hook, tasks, arm timer] -> poll
 */

#include "net/loop.h"

#include <signal.h>
#include <time.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec now;
    check(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void loop_update_time(struct loop *loop)
{
    loop->mono_ns = read_clock_ns(CLOCK_MONOTONIC);
    loop->wall_ms = read_clock_ns(CLOCK_REALTIME) / 1000000u;
    loop->seen_uv_ms = uv_now(&loop->uv);
}

static void run_tasks(struct loop *loop)
{
    struct list *link;
    while ((link = list_take(&loop->tasks)) != NULL) {
        struct loop_task *task = container_of(link, struct loop_task, link);
        task->run(task);
    }
}

static void timer_fired(uv_timer_t *timer)
{
    (void)timer; /* its only purpose is to begin a round */
}

/* libuv counts in milliseconds: rounded up, for rounded down the loop would spin through the last
 * one. */
static void arm_timer(struct loop *loop)
{
    uint64_t delay_ms = UINT64_MAX;
    if (loop->again)
        delay_ms = 0;
    else if (loop->deadline_ns <= loop->mono_ns)
        delay_ms = 0;
    else if (loop->deadline_ns != UINT64_MAX)
        delay_ms = (loop->deadline_ns - loop->mono_ns + 999999u) / 1000000u;
    if (delay_ms == UINT64_MAX)
        uv_timer_stop(&loop->timer);
    else
        uv_timer_start(&loop->timer, timer_fired, delay_ms, 0);
}

static void before_blocking(uv_prepare_t *prepare)
{
    struct loop *loop = container_of(prepare, struct loop, prepare);
    loop_update_time(loop);
    loop->again = false;
    if (loop->round)
        loop->round(loop->round_context);
    run_tasks(loop);
    arm_timer(loop);
}

static void after_blocking(uv_check_t *handle)
{
    loop_refresh_time(container_of(handle, struct loop, check));
}

static void signal_came(uv_signal_t *handle, int signal)
{
    struct loop *loop = handle->data;
    if (loop->on_signal)
        loop->on_signal(loop->signal_context, signal);
}

void loop_init(struct loop *loop)
{
    *loop = (struct loop){.deadline_ns = UINT64_MAX};
    list_init(&loop->tasks);
    loop->scratch = xmalloc(LOOP_SCRATCH_BYTES);
    check(uv_loop_init(&loop->uv) == 0);
    check(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
    check(uv_check_init(&loop->uv, &loop->check) == 0);
    check(uv_timer_init(&loop->uv, &loop->timer) == 0);
    check(uv_signal_init(&loop->uv, &loop->interrupt) == 0);
    check(uv_signal_init(&loop->uv, &loop->terminate) == 0);
    loop->interrupt.data = loop->terminate.data = loop;
    check(uv_prepare_start(&loop->prepare, before_blocking) == 0);
    check(uv_check_start(&loop->check, after_blocking) == 0);
    loop_update_time(loop);
    /* A peer that goes away is an error of that write, not the end of the process. */
    signal(SIGPIPE, SIG_IGN);
}

static void let_go(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_unref(handle);
}

void loop_deinit(struct loop *loop)
{
    loop->round = NULL;
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->interrupt, NULL);
    uv_close((uv_handle_t *)&loop->terminate, NULL);
    do {
        run_tasks(loop);
        /* Whatever was forgotten open must not keep us here; closing it below then fails loudly. */
        uv_walk(&loop->uv, let_go, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    } while (!list_empty(&loop->tasks));
    check(uv_loop_close(&loop->uv) == 0);
    for (uint32_t i = 0; i < loop->spare_count; i++)
        buf_deinit(&loop->spares[i]);
    free(loop->scratch);
}

void loop_on_round(struct loop *loop, void (*round)(void *context), void *context)
{
    loop->round = round;
    loop->round_context = context;
}

void loop_wake_at(struct loop *loop, uint64_t mono_ns)
{
    loop->deadline_ns = mono_ns;
}

void loop_on_signal(struct loop *loop, void (*on_signal)(void *context, int signal), void *context)
{
    loop->on_signal = on_signal;
    loop->signal_context = context;
    check(uv_signal_start(&loop->interrupt, signal_came, SIGINT) == 0);
    check(uv_signal_start(&loop->terminate, signal_came, SIGTERM) == 0);
}

void loop_run(struct loop *loop)
{
    loop->stopping = false;
    loop_update_time(loop);
    while (!loop->stopping)
        uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
    uv_stop(&loop->uv);
}

void loop_task_init(struct loop_task *task, void (*run)(struct loop_task *task))
{
    list_init(&task->link);
    task->run = run;
}

void loop_soon(struct loop *loop, struct loop_task *task)
{
    if (list_empty(&task->link))
        list_append(&loop->tasks, &task->link);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->link);
}

struct buf loop_take_buf(struct loop *loop)
{
    if (loop->spare_count == 0)
        return (struct buf){0};
    return loop->spares[--loop->spare_count];
}

void loop_give_buf(struct loop *loop, struct buf *buf)
{
    check(buf->len == 0);
    if (buf->cap == 0 || buf->cap > LOOP_SPARE_BYTES_MAX || loop->spare_count == LOOP_SPARES_MAX) {
        buf_deinit(buf);
        return;
    }
    loop->spares[loop->spare_count++] = *buf;
    *buf = (struct buf){0};
}
