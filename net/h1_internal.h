/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H1_INTERNAL_H
#define NET_H1_INTERNAL_H

#include "net/h1.h"

/* Says 100 Continue when the request being received waits for that and it is its turn. */
void h1_continue(struct h1 *h1);

#endif
