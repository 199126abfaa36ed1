/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_INTERNAL_H
#define NET_H2_INTERNAL_H

#include "net/h2.h"

/* Streams come from and go back to the connection's spares. */
struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id);
void h2_stream_recycle(struct h2_stream *stream);

#endif
