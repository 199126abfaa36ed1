/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TELL_H
#define LIVE_TELL_H

/* What every command's words to the outside have in common. Whoever reads standard output believes
 * that he has all of it, so a command whose output could not be written has failed, whatever else
 * it did: exit code 2 and a line on standard error. A reader who has gone away (`| head`) wanted no
 * more: nothing is said, and the exit code is that of the work. */

#include "conflict/base/bytes.h"

/* The first thing in main. The check itself comes when the process exits, however it does. */
void tell_begin(void);
/* Each line of the text to standard error, after our name. */
void tell_lines(struct bytes text);

#endif
