/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_CLAIM_H
#define RUN_CLAIM_H

/* Whether a directory may take the files of a run. Reports have plain names, such as result.json,
 * so they go only where nothing is that somebody else has written: a directory that is new, or
 * empty, or bears our mark. And there must be room. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

#define CLAIM_BYTES_MIN (UINT64_C(64) << 20) /* to begin with */
#define CLAIM_BYTES_FULL                                                                           \
    (UINT64_C(4) << 20) /* below it, what Regions write may fail any moment                        \
                         */

/* False: error says why. It may not exist yet. Nothing is written. */
bool claim_check(const char *directory, struct buf *error);
/* Puts the mark into a directory that exists. */
bool claim_mark(const char *directory, struct buf *error);
/* Of the file system that the directory is on, for us; UINT64_MAX: unknown. */
uint64_t claim_space(const char *directory);
bool claim_check_space(const char *directory, uint64_t space, struct buf *error);

#endif
