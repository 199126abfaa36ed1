/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_FAULTS_H
#define REGION_FAULTS_H

/* Faults that no proxy and no signal can bring about, for they need to know what a message and what
 * a request is: messages to a peer lost, doubled, damaged or overtaken; clients kept out while
 * peers and admin routes are served; requests answered with an error. None unless somebody sets
 * some by `PUT /tidemark/faults`, which replaces all of them. Each counts what it has hit, so that
 * whoever set it can prove that it did something. Pure: sends, holds and drops nothing itself. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/base/rng.h"
#include "region/core/error.h"

enum { FAULTS_MAX = 64, FAULTS_ID_MAX = 64, FAULTS_BODY_MAX = 65536 };

enum faults_kind {
    FAULTS_LOSS,      /* share of the messages to `peer` are dropped */
    FAULTS_DUPLICATE, /* sent twice */
    FAULTS_CORRUPT,   /* one bit of each is turned; the receiver's checksum has to find it */
    FAULTS_REORDER,   /* held back for delay_ms, while later ones go */
    FAULTS_CLIENTS,   /* `how` */
    FAULTS_ERROR      /* share of the requests of `operations` are answered with `error` */
};
enum faults_how {
    FAULTS_CUT,       /* every request's connection is closed instead of an answer */
    FAULTS_BLACKHOLE, /* requests and answers wait until it is over */
    FAULTS_REFUSE,    /* as cut, of connections made since it began */
    FAULTS_RESET      /* as cut, of connections made before it began */
};

struct fault_rule {
    char id[FAULTS_ID_MAX + 1]; /* its owner's name for it */
    enum faults_kind kind;
    enum faults_how how;
    enum api_error error;
    uint16_t peer;       /* REGION_ID_NONE: all */
    uint64_t operations; /* bit of enum op_kind; 0: all requests */
    uint64_t delay_ms;
    double share;
    double correlation; /* of what becomes of one message with what became of the last */
    bool begun, struck; /* there was a last one; it was struck */
    uint64_t closed;    /* CORRUPT: streams that ended with such a message on them */
    uint64_t since;     /* number of the newest connection when it began */
    uint64_t hits;
};

struct faults {
    struct rng rng;
    uint32_t count, ended_count;
    struct fault_rule rules[FAULTS_MAX];
    struct fault_rule ended[FAULTS_MAX]; /* those that the last change has ended */
};

void faults_init(struct faults *faults, uint64_t seed);
/* Replaces all by what the body says; one of the same id and kind goes on, with its count. False:
 * nothing has changed, and error says what was expected. */
bool faults_set(struct faults *faults, struct bytes body, uint64_t newest_connection,
                struct buf *error);
/* {"faults": [{"id", "kind", "hits", of corrupt: "closed"}], "ended": [...]} */
void faults_write(const struct faults *faults, struct buf *to);

enum faults_verdict { FAULTS_PASS, FAULTS_DROP, FAULTS_HOLD, FAULTS_FAIL /* *ret_error */ };
/* A request that has come on this connection; target is its x-amz-target. */
enum faults_verdict faults_request(struct faults *faults, uint64_t connection, struct bytes target,
                                   enum api_error *ret_error);
/* An answer that is ready: never FAIL. */
enum faults_verdict faults_answer(struct faults *faults, uint64_t connection);
/* What AWS says with that error. */
const char *faults_error_text(enum api_error error);

struct faults_message {
    bool lost, twice;
    bool corrupt;
    uint64_t luck;     /* corrupt: says which bit */
    uint64_t delay_ms; /* 0: goes at once */
};
struct faults_message faults_message(struct faults *faults, uint16_t peer);
/* A stream on which a damaged message was sent to this peer has ended. */
void faults_stream_closed(struct faults *faults, uint16_t peer);

#endif
