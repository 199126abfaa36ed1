/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark-witness: the third member of strong tables, where no replica is wanted. */

#include "region/process.h"

int main(int argc, char **argv)
{
    return process_run(argc, argv, true);
}
