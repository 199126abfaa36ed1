/* SPDX-License-Identifier: Apache-2.0 */
/* With a loop, libuv hears of them; without one a handler of our own does, of which there can be
 * only one in a process: hence the one variable here. */

#include "chaos/live/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "conflict/base/check.h"

static const int numbers[SIGNALS_COUNT] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static volatile sig_atomic_t held;

static bool is_ignored(int number)
{
    struct sigaction now;
    check(sigaction(number, NULL, &now) == 0);
    return now.sa_handler == SIG_IGN;
}

static void mask(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS_COUNT; i++)
        sigaddset(&set, numbers[i]);
    check(sigprocmask(how, &set, NULL) == 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;
    signals->came(signals->context, number);
}

void signals_init(struct signals *signals, struct loop *loop,
                  void (*came)(void *context, int number), void *context)
{
    signals->came = came;
    signals->context = context;
    for (int i = 0; i < SIGNALS_COUNT; i++) {
        check(uv_signal_init(&loop->uv, &signals->at[i]) == 0);
        signals->at[i].data = signals;
        if (!is_ignored(numbers[i]))
            check(uv_signal_start(&signals->at[i], on_signal, numbers[i]) == 0);
    }
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
}

void signals_close(struct signals *signals)
{
    mask(SIG_BLOCK);
    for (int i = 0; i < SIGNALS_COUNT; i++)
        uv_close((uv_handle_t *)&signals->at[i], NULL);
}

static void hold(int number)
{
    static const char text[] = "tidemark: writing the report; again to leave it unwritten\n";
    if (++held > 1) {
        signal(number, SIG_DFL); /* it is blocked in here, and takes effect on the way out */
        raise(number);
        return;
    }
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
}

void signals_hold(void)
{
    held = 0;
    for (int i = 0; i < SIGNALS_COUNT; i++)
        if (!is_ignored(numbers[i]))
            signal(numbers[i], hold);
    mask(SIG_UNBLOCK);
}

void signals_release(void)
{
    for (int i = 0; i < SIGNALS_COUNT; i++)
        if (!is_ignored(numbers[i]))
            signal(numbers[i], SIG_DFL);
}

bool signals_came(void)
{
    return held > 0;
}

const char *signals_name(int number)
{
    switch (number) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    case SIGHUP:
        return "SIGHUP";
    default:
        return "SIGQUIT";
    }
}
