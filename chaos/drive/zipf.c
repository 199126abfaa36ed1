/* SPDX-License-Identifier: Apache-2.0 */
/* See zipf.h. The first two items are drawn exactly, the others from the inverse of the
 * distribution's integral. */

#include "chaos/drive/zipf.h"

#include <math.h>

#include "conflict/base/check.h"

static const double theta = 0.99;

void zipf_init(struct zipf *zipf, uint64_t count)
{
    check(count > 0);
    double zeta = 0;
    for (uint64_t i = 1; i <= count; i++)
        zeta += pow(1 / (double)i, theta);
    double two = 1 + pow(0.5, theta);
    *zipf = (struct zipf){.count = count, .zeta = zeta, .second = two, .alpha = 1 / (1 - theta)};
    if (count > 2)
        zipf->eta = (1 - pow(2 / (double)count, 1 - theta)) / (1 - two / zeta);
}

uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng)
{
    double unit = rng_unit(rng);
    double place = unit * zipf->zeta;
    if (place < 1 || zipf->count == 1)
        return 0;
    if (place < zipf->second || zipf->count == 2)
        return 1;
    double rank = (double)zipf->count * pow(zipf->eta * unit - zipf->eta + 1, zipf->alpha);
    uint64_t item = (uint64_t)rank;
    return item < zipf->count ? item : zipf->count - 1;
}
