/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

/* CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of log records and peer frames. */

#include <stdint.h>

#include "conflict/base/bytes.h"

/* crc is 0 for the first run, or the value over the runs before. */
uint32_t crc32c(uint32_t crc, struct bytes run);

#endif
