/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark-region: one Region. */

#include <stdio.h>

#include "conflict/base/plant.h"
#include "region/process.h"

int main(int argc, char **argv)
{
#ifdef TIDEMARK_PLANTED
    if (!plant_take(&argc, argv)) {
        fputs("tidemark-region: --plant: there is no such bug\n", stderr);
        return 1;
    }
#endif
    return process_run(argc, argv, false);
}
