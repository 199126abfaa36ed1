/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVE_ZIPF_H
#define DRIVE_ZIPF_H

/* Few items get most operations: item 0 the most, the one of rank r as often as 1 / (r+1)^0.99,
 * which is YCSB's shape. Gray et al., "Quickly Generating Billion-Record Synthetic Databases"
 * (SIGMOD 1994), section 3.2: one draw and one power for each item, after a sum over all items. */

#include <stdint.h>

#include "conflict/base/rng.h"

struct zipf {
    uint64_t count;
    double zeta, eta, alpha;
    double second; /* below it, of zeta, lie items 0 and 1 */
};

void zipf_init(struct zipf *zipf, uint64_t count);
/* In [0, count). */
uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng);

#endif
