/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_CONTROL_H
#define LIVE_CONTROL_H

/* The control API: Toxiproxy's routes as they are (toxiproxy_api.c), ours under /v1/
 * (cluster_api.c, report.c), the console's page at `/` (console.h). Whoever can reach it can cut
 * links and open proxies, so it listens on loopback and refuses what a foreign web page could send:
 * another Origin, a cross-site fetch, a Host that is not its address. */

#include <jansson.h>

#include "chaos/live/cluster.h"
#include "net/server.h"

enum { CONTROL_PATH_MAX = 6, CONTROL_SEGMENT_MAX = 256 };

/* What a chaos run lets the console show while it goes on. */
struct control_run {
    /* What holds now: an array of {id, verb, target, since_ms (wall clock), evidence}; the
     * caller's. */
    json_t *(*faults)(void *context);
    void *context;
};

struct control {
    struct cluster *cluster;
    const struct control_run *run; /* the runner's, who sets it; NULL: no chaos here */
    const char *runs;              /* the directory of finished runs (runs.h) */
    struct server *server;
    struct address address; /* as bound */
    uint64_t answers;
};

/* One request, taken apart. */
struct control_request {
    struct control *control;
    struct exchange *exchange;
    struct bytes method;
    char path[CONTROL_PATH_MAX][CONTROL_SEGMENT_MAX]; /* decoded segments */
    uint32_t path_len;
    json_t *body; /* NULL: there was none, or it isn't JSON; body_error says which */
    char body_error[160];
};

/* NULL: error says why. */
struct control *control_open(struct cluster *cluster, const char *address, struct buf *error);
void control_close(struct control *control);

/* What a web page could have sent, and which of our rules says so; NULL: let it in. */
const char *control_suspicion(const struct control *control, const struct http_request *request);

/* Answers end the exchange. json is taken. */
void control_answer(struct control *control, struct exchange *exchange, int status, json_t *json);
/* With a header x-tidemark-note, for what the body has no place for; NULL: without. */
void control_answer_noted(struct control *control, struct exchange *exchange, int status,
                          const char *note, json_t *json);
void control_answer_empty(struct control *control, struct exchange *exchange, int status);
/* {"error": ..., "status": ...}, for all routes. */
void control_fail(struct control *control, struct exchange *exchange, int status,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Each answers, and returns true, when the route is one of its own. */
bool toxiproxy_api(struct control_request *request);
bool cluster_api(struct control_request *request);

/* Answer later, from what the regions say. */
void report_status(struct control *control, struct exchange *exchange);
void report_console(struct control *control, struct exchange *exchange);
/* The last so many, at most 1000; 0: all. */
void report_conflicts(struct control *control, struct exchange *exchange, uint32_t newest);

/* Each region's rows of its ledger (or NULL), to one list: each loser once, by time of detection.
 */
json_t *report_merge(json_t *const *rows_of, uint32_t region_count);

json_t *cluster_api_site(const struct site *site);
json_t *cluster_api_link(const struct cluster_link *link);

#endif
