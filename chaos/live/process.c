/* SPDX-License-Identifier: Apache-2.0 */
/* fork and exec by hand, as libuv can't ask for the parent's death signal between the two. A second
 * pipe that closes on exec carries the child's errno when exec fails, so a missing program is told
 * at once and in words. */

#include "chaos/live/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { LINE_MAX_LEN = 64 };

struct process {
    struct process_events events;
    pid_t pid;
    uv_signal_t child;
    uv_pipe_t output;
    char line[LINE_MAX_LEN];
    size_t line_len;
    bool ready, reaped;
    int handles;
};

/* Between fork and exec: only calls that are safe there. */
_Noreturn static void become(char *const argv[], char *const environment[], int output, int errors,
                             int failure, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (errors > 0)
        dup2(errors, STDERR_FILENO);
    if (getppid() == parent && dup2(output, STDOUT_FILENO) >= 0) {
        int nothing = open("/dev/null", O_RDONLY);
        if (nothing >= 0)
            dup2(nothing, STDIN_FILENO);
        execve(argv[0], argv, environment);
    }
    int reason = errno;
    ssize_t ignored = write(failure, &reason, sizeof(reason));
    (void)ignored;
    _exit(127);
}

static void on_closed(uv_handle_t *handle)
{
    struct process *process = handle->data;
    if (--process->handles == 0)
        free(process);
}

static void on_child(uv_signal_t *handle, int number)
{
    (void)number;
    struct process *process = handle->data;
    int status;
    if (process->reaped || waitpid(process->pid, &status, WNOHANG) != process->pid)
        return;
    process->reaped = true;
    uv_close((uv_handle_t *)&process->child, on_closed);
    uv_close((uv_handle_t *)&process->output, on_closed);
    bool killed = WIFSIGNALED(status);
    process->events.exited(process->events.context, killed ? 0 : WEXITSTATUS(status),
                           killed ? WTERMSIG(status) : 0);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct process *process = handle->data;
    *ret = uv_buf_init(process->line + process->line_len,
                       (unsigned)(sizeof(process->line) - process->line_len));
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    (void)buffer;
    struct process *process = stream->data;
    if (count < 0) {
        uv_read_stop(stream);
        return;
    }
    process->line_len += (size_t)count;
    for (char *end; (end = memchr(process->line, '\n', process->line_len)) != NULL;) {
        size_t len = (size_t)(end - process->line);
        bool ready = len == 5 && memcmp(process->line, "ready", 5) == 0;
        process->line_len -= len + 1;
        memmove(process->line, end + 1, process->line_len);
        if (ready && !process->ready) {
            process->ready = true;
            process->events.ready(process->events.context);
        }
    }
    if (process->line_len == sizeof(process->line)) /* not a line for us */
        process->line_len = 0;
}

/* Ours, without what `more` sets, and `more`. The texts stay their owners'. */
static char **join_environment(const char *const *more)
{
    size_t ours = 0, added = 0, count = 0;
    while (environ[ours] != NULL)
        ours++;
    while (more != NULL && more[added] != NULL)
        added++;
    char **all = xcalloc(ours + added + 1, sizeof(*all));
    for (size_t i = 0; i < ours; i++) {
        bool replaced = false;
        for (size_t j = 0; j < added && !replaced; j++)
            replaced = strncmp(environ[i], more[j], strcspn(more[j], "=") + 1) == 0;
        if (!replaced)
            all[count++] = environ[i];
    }
    for (size_t i = 0; i < added; i++)
        all[count++] = (char *)more[i];
    return all;
}

struct process *process_start(struct loop *loop, char *const argv[],
                              const struct process_events *events)
{
    return process_start_with(loop, argv, NULL, events);
}

struct process *process_start_with(struct loop *loop, char *const argv[],
                                   const char *const *environment,
                                   const struct process_events *events)
{
    int output[2], failure[2];
    if (pipe2(output, O_CLOEXEC) != 0)
        return NULL;
    if (pipe2(failure, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return NULL;
    }
    pid_t parent = getpid();
    char **variables = join_environment(environment);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, variables, output[1], events->errors, failure[1], parent);
    int reason = pid < 0 ? errno : 0;
    free(variables);
    close(output[1]);
    close(failure[1]);
    if (pid > 0 && read(failure[0], &reason, sizeof(reason)) == (ssize_t)sizeof(reason))
        waitpid(pid, NULL, 0);
    close(failure[0]);
    if (reason != 0) {
        close(output[0]);
        errno = reason;
        return NULL;
    }

    struct process *process = xcalloc(1, sizeof(*process));
    process->events = *events;
    process->pid = pid;
    process->handles = 2;
    check(uv_signal_init(&loop->uv, &process->child) == 0);
    check(uv_pipe_init(&loop->uv, &process->output, 0) == 0);
    process->child.data = process->output.data = process;
    check(uv_signal_start(&process->child, on_child, SIGCHLD) == 0);
    check(uv_pipe_open(&process->output, output[0]) == 0);
    check(uv_read_start((uv_stream_t *)&process->output, on_alloc, on_output) == 0);
    return process;
}

pid_t process_pid(const struct process *process)
{
    return process->pid;
}

void process_signal(struct process *process, int signal)
{
    if (!process->reaped)
        kill(process->pid, signal);
}

void process_pause(struct process *process)
{
    siginfo_t info;
    process_signal(process, SIGSTOP);
    /* An end is only looked at here: on_child reaps. */
    if (!process->reaped)
        waitid(P_PID, (id_t)process->pid, &info, WSTOPPED | WEXITED | WNOWAIT);
}
