/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INJECT_JOURNAL_H
#define INJECT_JOURNAL_H

/* What a crash of the harness would leave behind, written down before it is done: one line of JSON
 * each. Region processes die with the harness (process.h), so this is for those that the kernel may
 * have left all the same, and for files. */

#include <stdbool.h>
#include <sys/types.h>

#include "conflict/base/bytes.h"

struct journal;

/* NULL: errno. What was in it is gone: recover first. */
struct journal *journal_open(const char *path);
/* Nothing is left to be undone: the file goes. */
void journal_close(struct journal *journal);
void journal_add_process(struct journal *journal, pid_t pid);
void journal_add_file(struct journal *journal, const char *path);
/* Kills the processes and removes the files that it names, if they are still what they were, and
 * then the journal. Returns how many; 0 also when there is none; -1: it cannot be read, or is not
 * one. */
int journal_recover(const char *path, struct buf *error);

#endif
