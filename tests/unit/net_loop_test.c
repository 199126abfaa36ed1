/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: what runs when, and that nothing enqueued waits for the next event. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "net/loop.h"

struct fixture {
    struct loop loop;
    struct loop_task first, second;
    char order[64];
    int rounds, signals;
    uint64_t woken_ns;
};

static void add(struct fixture *f, char what)
{
    size_t len = strlen(f->order);
    if (len + 1 < sizeof(f->order))
        f->order[len] = what;
}

static void run_first(struct loop_task *task)
{
    struct fixture *f = container_of(task, struct fixture, first);
    add(f, '1');
    loop_soon(&f->loop, &f->second);
    f->loop.again = true;
}
static void run_second(struct loop_task *task)
{
    add(container_of(task, struct fixture, second), '2');
}

static void on_round(void *context)
{
    struct fixture *f = context;
    add(f, 'r');
    if (f->rounds++ == 0) {
        loop_soon(&f->loop, &f->first);
        loop_soon(&f->loop, &f->first); /* once is enough */
        return;
    }
    loop_stop(&f->loop);
}

static void test_tasks_follow_the_hook(void **state)
{
    (void)state;
    struct fixture f = {0};
    loop_init(&f.loop);
    loop_task_init(&f.first, run_first);
    loop_task_init(&f.second, run_second);
    loop_on_round(&f.loop, on_round, &f);
    loop_run(&f.loop); /* would block for ever, were `again` forgotten */
    assert_string_equal(f.order, "r12r");
    loop_soon(&f.loop, &f.second);
    loop_task_cancel(&f.second);
    loop_deinit(&f.loop);
    assert_string_equal(f.order, "r12r");
}

static void on_wake(void *context)
{
    struct fixture *f = context;
    f->rounds++;
    if (f->loop.mono_ns < f->woken_ns)
        loop_wake_at(&f->loop, f->woken_ns);
    else
        loop_stop(&f->loop);
}

static void test_the_deadline_wakes(void **state)
{
    (void)state;
    struct fixture f = {0};
    loop_init(&f.loop);
    f.woken_ns = f.loop.mono_ns + 3000000;
    loop_on_round(&f.loop, on_wake, &f);
    loop_run(&f.loop);
    assert_true(f.loop.mono_ns >= f.woken_ns);
    assert_true(f.rounds >= 2);
    assert_true(f.rounds < 50); /* it slept, it did not spin */
    loop_deinit(&f.loop);
}

static void on_signal(void *context, int number)
{
    struct fixture *f = context;
    f->signals = number;
    loop_stop(&f->loop);
}

static void test_signals(void **state)
{
    (void)state;
    struct fixture f = {0};
    loop_init(&f.loop);
    loop_on_signal(&f.loop, on_signal, &f);
    raise(SIGTERM);
    loop_run(&f.loop);
    assert_int_equal(f.signals, SIGTERM);
    loop_deinit(&f.loop);
}

static void test_spare_buffers(void **state)
{
    (void)state;
    struct loop loop;
    loop_init(&loop);
    struct buf buf = loop_take_buf(&loop);
    assert_int_equal(buf.cap, 0);
    buf_append_text(&buf, "x");
    uint8_t *memory = buf.at;
    buf_reset(&buf);
    loop_give_buf(&loop, &buf);
    assert_int_equal(buf.cap, 0);
    buf = loop_take_buf(&loop);
    assert_ptr_equal(buf.at, memory);
    buf_reserve(&buf, LOOP_SPARE_BYTES_MAX + 1);
    loop_give_buf(&loop, &buf); /* too large to keep */
    assert_int_equal(loop.spare_count, 0);
    loop_deinit(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_follow_the_hook),
        cmocka_unit_test(test_the_deadline_wakes),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_spare_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
