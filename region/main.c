/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark-region: one Region. */

#include "region/process.h"

int main(int argc, char **argv)
{
    return process_run(argc, argv, false);
}
