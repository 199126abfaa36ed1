/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMULATE_COMMAND_H
#define SIMULATE_COMMAND_H

/* `tidemark sim`: runs the real cores in virtual time, by seeds or by a scenario. */

/* argv[0] is "sim". Returns the exit code: 0 nothing was found, 1 something was, 2 not understood;
 * with a scenario what enum outcome_exit says. */
int simulate_command(int argc, char **argv);

#endif
