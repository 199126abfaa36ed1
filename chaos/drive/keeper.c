/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper is a fork of us that does not exec, so everything in it is one of the calls that are
 * safe there: no allocation, no stdio. (_Fork, because fork runs libuv's handler, which in a child
 * closes descriptors by number that are by now of something else.) It is the reaper of all its
 * descendants, so whatever they fork and disown comes back to it, and it goes last. If it is killed
 * itself, the program goes with it; what the program has started is then left to the next look for
 * leftovers. */

#include "chaos/drive/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conflict/base/bytes.h"
#include "conflict/base/check.h"

enum {
    ORDER_ASK = 'a',
    ORDER_KILL = 'k',
    KILL_ROUNDS_MAX = 100, /* of a descendant that does not die, as one in the kernel may not */
    KILL_ROUND_MS = 50
};

struct kept { /* the output; the tail is a ring */
    int fd;
    uint64_t room, beyond;
    char tail[KEEPER_TAIL_BYTES];
};

struct keeping {
    const struct keeper_config *config;
    pid_t program;
    int orders, failure, output, children; /* children: a signalfd */
    bool ended;
    int status;
    struct kept kept;
};

/* ---- The output ---- */

static void put(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, at, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        at += done;
        len -= (size_t)done;
    }
}

static void keep(struct kept *kept, const char *at, size_t len)
{
    size_t first = len < kept->room ? len : (size_t)kept->room;
    put(kept->fd, at, first);
    kept->room -= first;
    for (size_t i = first; i < len; i++)
        kept->tail[kept->beyond++ % KEEPER_TAIL_BYTES] = at[i];
}

static void keep_end(struct kept *kept)
{
    char digits[DECIMAL_LEN_MAX];
    static const char before[] = "\n[tidemark: ", after[] = " bytes are left out here]\n";
    size_t at = (size_t)(kept->beyond % KEEPER_TAIL_BYTES);
    if (kept->beyond <= KEEPER_TAIL_BYTES) {
        put(kept->fd, kept->tail, (size_t)kept->beyond);
        return;
    }
    put(kept->fd, before, sizeof(before) - 1);
    put(kept->fd, digits, decimal_encode(digits, kept->beyond - KEEPER_TAIL_BYTES));
    put(kept->fd, after, sizeof(after) - 1);
    put(kept->fd, kept->tail + at, KEEPER_TAIL_BYTES - at);
    put(kept->fd, kept->tail, at);
}

/* Whether there may be more. The program may close it and go on. */
static bool read_output(struct keeping *keeping)
{
    char chunk[1 << 16];
    ssize_t len = read(keeping->output, chunk, sizeof(chunk));
    if (len > 0)
        keep(&keeping->kept, chunk, (size_t)len);
    else if (len == 0)
        keeping->output = -1;
    return len > 0;
}

/* ---- The program ---- */

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void become(const struct keeper_config *config, int output, int failure,
                             pid_t parent)
{
    setsid();
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nothing = open("/dev/null", O_RDONLY);
    if (getppid() == parent && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execvpe(config->argv[0], config->argv, config->environment);
    int reason = errno;
    put(failure, (const char *)&reason, sizeof(reason));
    _exit(127);
}

static void start(struct keeping *keeping)
{
    int output[2] = {-1, -1};
    pid_t parent = getpid();
    pid_t program = pipe2(output, O_CLOEXEC) == 0 ? _Fork() : -1;
    if (program == 0)
        become(keeping->config, output[1], keeping->failure, parent);
    if (program < 0) {
        int reason = errno;
        put(keeping->failure, (const char *)&reason, sizeof(reason));
        _exit(127);
    }
    close(output[1]);
    close(keeping->failure);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    keeping->program = program;
    keeping->output = output[0];
}

/* Whether there is any child left. */
static bool reap(struct keeping *keeping)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != keeping->program)
            continue;
        keeping->ended = true;
        keeping->status = status;
    }
    return pid == 0 || errno != ECHILD;
}

/* What the kernel lists as our children: "12 345 ". */
static void kill_children(void)
{
    static const char before[] = "/proc/self/task/", after[] = "/children";
    char path[sizeof(before) + DECIMAL_LEN_MAX + sizeof(after)], list[4096];
    size_t len = sizeof(before) - 1;
    memcpy(path, before, len);
    len += decimal_encode(path + len, (uint64_t)getpid());
    memcpy(path + len, after, sizeof(after));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, list, sizeof(list));
    pid_t pid = 0;
    for (ssize_t i = 0; i < got; i++) {
        if (list[i] >= '0' && list[i] <= '9') {
            pid = pid * 10 + (list[i] - '0');
            continue;
        }
        if (pid > 1)
            kill(pid, SIGKILL);
        pid = 0;
    }
    if (fd >= 0)
        close(fd);
}

/* Until there are no more: the children of what is killed become ours. */
static void kill_all(struct keeping *keeping)
{
    if (!keeping->ended) /* else the number may be somebody's */
        kill(-keeping->program, SIGKILL);
    for (int i = 0; i < KILL_ROUNDS_MAX; i++) {
        struct pollfd child = {.fd = keeping->children, .events = POLLIN};
        struct signalfd_siginfo info;
        kill_children();
        if (!reap(keeping))
            return;
        if (poll(&child, 1, KILL_ROUND_MS) == 1 && read(keeping->children, &info, sizeof(info)) < 0)
            return;
    }
}

/* ---- The keeper ---- */

static void obey(struct keeping *keeping)
{
    char order = ORDER_KILL; /* also when there is nobody any more to give one */
    ssize_t len = read(keeping->orders, &order, 1);
    if (len < 0 && errno == EINTR)
        return;
    if (len == 1 && order == ORDER_ASK)
        kill(-keeping->program, SIGTERM);
    else
        kill_all(keeping);
}

static void watch(struct keeping *keeping)
{
    struct signalfd_siginfo info;
    while (!keeping->ended) {
        struct pollfd at[] = {{.fd = keeping->orders, .events = POLLIN},
                              {.fd = keeping->children, .events = POLLIN},
                              {.fd = keeping->output, .events = POLLIN}};
        if (poll(at, array_len(at), -1) < 0)
            continue;
        if (at[1].revents != 0 && read(keeping->children, &info, sizeof(info)) > 0)
            reap(keeping);
        if (at[2].revents != 0)
            read_output(keeping);
        if (at[0].revents != 0 && !keeping->ended)
            obey(keeping);
    }
}

/* All but these, so that none of the harness's sockets and locks outlives it here. */
static void close_all_but(int *const kept[], size_t count)
{
    unsigned next = STDERR_FILENO + 1;
    for (size_t i = 0; i < count; i++) {
        int moved = fcntl(*kept[i], F_DUPFD_CLOEXEC, 1000); /* ascending, above what we close */
        if (moved < 0)
            moved = fcntl(*kept[i], F_DUPFD_CLOEXEC, 3); /* a low limit: then some stay open */
        *kept[i] = moved;
    }
    for (;; next++) {
        unsigned nearest = ~0u;
        for (size_t i = 0; i < count; i++)
            if ((unsigned)*kept[i] >= next && (unsigned)*kept[i] < nearest)
                nearest = (unsigned)*kept[i];
        if (nearest > next)
            close_range(next, nearest == ~0u ? ~0u : nearest - 1, 0);
        if (nearest == ~0u)
            return;
        next = nearest;
    }
}

_Noreturn static void run(struct keeping *keeping)
{
    sigset_t children;
    int *const kept[] = {&keeping->orders, &keeping->failure, &keeping->kept.fd};
    setsid(); /* the terminal's signals are not for us */
    for (int number = 1; number < NSIG; number++)
        signal(number, number == SIGCHLD ? SIG_DFL : SIG_IGN);
    close_all_but(kept, array_len(kept));
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, NULL);
    keeping->children = signalfd(-1, &children, SFD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(keeping);
    watch(keeping);
    kill_all(keeping);
    while (read_output(keeping))
        ;
    keep_end(&keeping->kept);
    _exit(WIFSIGNALED(keeping->status) ? 128 + WTERMSIG(keeping->status)
                                       : WEXITSTATUS(keeping->status));
}

/* ---- Our side ---- */

int keeper_start(const struct keeper_config *config, struct keeper *ret)
{
    int orders[2], failure[2];
    sigset_t all, before;
    if (pipe2(orders, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(failure, O_CLOEXEC) != 0) {
        close(orders[0]);
        close(orders[1]);
        return errno;
    }
    /* Our handlers must not run in the child: they would speak to us of its signals. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = _Fork();
    if (pid == 0) {
        struct keeping keeping = {.config = config,
                                  .orders = orders[0],
                                  .failure = failure[1],
                                  .kept = {.fd = config->output, .room = config->output_max}};
        run(&keeping);
    }
    int reason = pid < 0 ? errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(orders[0]);
    close(failure[1]);
    if (pid > 0 && read(failure[0], &reason, sizeof(reason)) == (ssize_t)sizeof(reason))
        waitpid(pid, NULL, 0);
    close(failure[0]);
    if (reason != 0) {
        close(orders[1]);
        return reason;
    }
    *ret = (struct keeper){.pid = pid, .orders = orders[1]};
    return 0;
}

static void give(const struct keeper *keeper, char order)
{
    put(keeper->orders, &order, 1); /* if it is gone, so is the program */
}

void keeper_ask(const struct keeper *keeper)
{
    give(keeper, ORDER_ASK);
}

void keeper_kill(const struct keeper *keeper)
{
    give(keeper, ORDER_KILL);
}

void keeper_close(struct keeper *keeper)
{
    close(keeper->orders);
    keeper->orders = -1;
}
