/* SPDX-License-Identifier: Apache-2.0 */
/* `tidemark sim` alone, for the build that has the planted bugs. */

#include "chaos/simulate/command.h"

int main(int argc, char **argv)
{
    return simulate_command(argc, argv);
}
