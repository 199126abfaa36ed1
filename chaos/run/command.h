/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

/* `tidemark chaos ...`: runs scenarios, checks and lists them, judges runs again, and turns
 * experiments of other tools into scenarios. */

/* argv[0] is "chaos". Returns the exit code: of a run what enum outcome_exit says, of the others 0
 * done, 1 refused, 2 not understood. */
int chaos_command(int argc, char **argv);

#endif
