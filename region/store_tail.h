/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STORE_TAIL_H
#define REGION_STORE_TAIL_H

/* Finds damage that LevelDB takes for a torn write. Its logs are blocks of records; when a record's
 * length points beyond the end of the file, LevelDB believes that the writer died there, and drops
 * the record and all behind it in silence. A turned bit in that length would so undo writes that
 * were durable. A torn record's checksum fits none of its beginnings; a whole one's fits at its
 * true length: that tells the two apart. Likewise a record of nothing but zeros is an unwritten
 * tail only if zeros are all that follows. */

#include <stdbool.h>
#include <stddef.h>

#include "conflict/base/bytes.h"

/* False when the last block of such a log was damaged. */
bool store_tail_sound(struct bytes block);

/* Looks at all logs and manifests of a LevelDB directory. False: error names the file. What cannot
 * be read is left to LevelDB to refuse. */
bool store_tails_sound(const char *directory, char *error, size_t error_len);

#endif
