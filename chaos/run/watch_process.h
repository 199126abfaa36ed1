/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_WATCH_PROCESS_H
#define RUN_WATCH_PROCESS_H

/* What the kernel says of a Region's process, in /proc. */

#include <stdint.h>

#include "chaos/live/process.h"

/* Its resident memory and open descriptors; 0 where there is no process, or nothing to read. */
void watch_process(const struct process *process, uint64_t *ret_resident_bytes,
                   uint32_t *ret_descriptors);

#endif
