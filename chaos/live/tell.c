/* SPDX-License-Identifier: Apache-2.0 */
/* The check hangs on exit() because not only our commands end there: so does argp, after --help and
 * --version. Errors of a stream stick to it, so looking once, at the end, misses none. */

#include "chaos/live/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos/live/command.h"
#include "conflict/base/check.h"

/* Of a pipe or a socket; asked beforehand, as the error that stuck does not say its reason. */
static bool reader_has_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0 &&
           !isatty(STDOUT_FILENO);
}

static void at_exit(void)
{
    bool left = reader_has_left(), failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !failed)
        return;
    if (left || errno == EPIPE)
        return;
    fprintf(stderr, "tidemark: standard output could not be written%s%s\n", errno == 0 ? "" : ": ",
            errno == 0 ? "" : strerror(errno));
    fflush(stderr);
    _exit(EXIT_USAGE);
}

/* If one of the three is closed, the next file that is opened would get its number, and what we say
 * would go into it. In its place comes one that refuses. */
static void occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            check(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd);
}

void tell_begin(void)
{
    occupy_standard_descriptors();
    check(atexit(at_exit) == 0);
}

void tell_lines(struct bytes text)
{
    const char *at = (const char *)text.at, *end = at + text.len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = line == NULL ? (size_t)(end - at) : (size_t)(line - at);
        fprintf(stderr, "tidemark: %.*s\n", (int)len, at);
        at += len + 1;
    }
}
