/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFLICT_REGION_ID_H
#define CONFLICT_REGION_ID_H

/* The Regions of AWS's commercial partition, each with a number for ever: the number stands for
 * the Region in versions, on disk and on the wire, and breaks the ties of equal times. Numbers are
 * never reused or reordered; new Regions go to the end. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

/* REGION(number, name, multi-Region strong consistency available) */
#define REGION_ID_MAP(REGION)                                                                      \
    REGION(1, "us-east-1", true)                                                                   \
    REGION(2, "us-east-2", true)                                                                   \
    REGION(3, "us-west-1", false)                                                                  \
    REGION(4, "us-west-2", true)                                                                   \
    REGION(5, "ca-central-1", true)                                                                \
    REGION(6, "ca-west-1", false)                                                                  \
    REGION(7, "mx-central-1", false)                                                               \
    REGION(8, "sa-east-1", false)                                                                  \
    REGION(9, "eu-west-1", true)                                                                   \
    REGION(10, "eu-west-2", true)                                                                  \
    REGION(11, "eu-west-3", true)                                                                  \
    REGION(12, "eu-central-1", true)                                                               \
    REGION(13, "eu-central-2", false)                                                              \
    REGION(14, "eu-north-1", true)                                                                 \
    REGION(15, "eu-south-1", false)                                                                \
    REGION(16, "eu-south-2", true)                                                                 \
    REGION(17, "ap-northeast-1", true)                                                             \
    REGION(18, "ap-northeast-2", true)                                                             \
    REGION(19, "ap-northeast-3", true)                                                             \
    REGION(20, "ap-southeast-1", true)                                                             \
    REGION(21, "ap-southeast-2", false)                                                            \
    REGION(22, "ap-southeast-3", false)                                                            \
    REGION(23, "ap-southeast-4", false)                                                            \
    REGION(24, "ap-southeast-5", false)                                                            \
    REGION(25, "ap-southeast-6", false)                                                            \
    REGION(26, "ap-southeast-7", false)                                                            \
    REGION(27, "ap-south-1", true)                                                                 \
    REGION(28, "ap-south-2", false)                                                                \
    REGION(29, "ap-east-1", false)                                                                 \
    REGION(30, "ap-east-2", false)                                                                 \
    REGION(31, "af-south-1", false)                                                                \
    REGION(32, "il-central-1", false)                                                              \
    REGION(33, "me-central-1", false)                                                              \
    REGION(34, "me-south-1", false)

enum { REGION_ID_NONE = 0, REGION_ID_MAX = 34 };

/* REGION_ID_NONE when no Region has that name. */
uint16_t region_id_find(struct bytes name);
/* The name, static; id must be one of the table's. */
const char *region_id_name(uint16_t id);
bool region_id_valid(uint64_t id);
bool region_id_strong(uint16_t id);

#endif
