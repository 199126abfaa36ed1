/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SIM_LOG_H
#define SIM_SIM_LOG_H

/* The last messages of a run and what happened beside them, for the diagram of a violation. A run
 * has one only when it is to be drawn. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

enum { SIM_LOG_MAX = 16384, SIM_LOG_TEXT_MAX = 40 };

enum sim_log_kind {
    SIM_LOG_SENT, /* from `from` to `to`, arrives at to_ns */
    SIM_LOG_LOST, /* likewise, but it does not */
    SIM_LOG_MARK  /* at `from` */
};

struct sim_log_entry {
    uint64_t at_ns, to_ns;
    uint8_t kind, from, to;
    char text[SIM_LOG_TEXT_MAX];
};

struct sim_log {       /* a ring: the entry numbered n is at[n % SIM_LOG_MAX] */
    uint64_t until_ns; /* nothing later is kept */
    struct sim_log_entry *at;
    uint64_t count;
};

void sim_log_init(struct sim_log *log, uint64_t until_ns);
void sim_log_deinit(struct sim_log *log);
/* These take a NULL log for none. */
void sim_log_message(struct sim_log *log, uint64_t at_ns, uint64_t to_ns, bool lost, uint32_t from,
                     uint32_t to, const char *text);
void sim_log_mark(struct sim_log *log, uint64_t at_ns, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What a message is, in a few words: of a stream of the replicator, of the consensus groups (many
 * may come in one message), of a single group. Bytes that are no such message are "?". */
void sim_log_name_stream(struct bytes message, char ret[SIM_LOG_TEXT_MAX]);
void sim_log_name_groups(struct bytes message, char ret[SIM_LOG_TEXT_MAX]);
void sim_log_name_envelope(struct bytes envelope, char ret[SIM_LOG_TEXT_MAX]);

#endif
