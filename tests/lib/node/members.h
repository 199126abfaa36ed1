/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_NODE_MEMBERS_H
#define TESTS_LIB_NODE_MEMBERS_H

/* Two whole Regions on one loop, with real sockets and real stores, and a client for each. The
 * first is started by the set-up. Waiting has no limit of its own: a test that waits in vain is
 * ended by ctest. */

#include <stdbool.h>

#include <jansson.h>

#include "net/client.h"
#include "region/node.h"

enum { NODES = 2 };

struct member {
    struct fixture *fixture;
    char directory[64];
    char address[32];
    struct config config;
    struct log log;
    struct node *node;
    struct client *client;
    bool ready, drained;
};

struct fixture {
    struct loop loop;
    struct member at[NODES];
    /* The last answer. */
    bool answered;
    int status;
    struct buf body;
    char request_id[64], crc32[16], server[32], type[64];
};

#define CREATE_TABLE                                                                               \
    "{\"TableName\":\"orders\",\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],"   \
    "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}],"               \
    "\"BillingMode\":\"PAY_PER_REQUEST\",\"StreamSpecification\":{\"StreamEnabled\":true,"         \
    "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}"
#define ITEM_ONE "{\"pk\":{\"S\":\"one\"},\"n\":{\"N\":\"1\"}}"
#define GET_ONE                                                                                    \
    "{\"TableName\":\"orders\",\"Key\":{\"pk\":{\"S\":\"one\"}},\"ConsistentRead\":true}"

int members_setup(void **state);
int members_teardown(void **state);
/* Runs the loop until *done. */
void members_run_until(struct fixture *fixture, const bool *done);
void member_start(struct member *member);
/* As a crash would: what was not written is lost. */
void member_stop(struct member *member);

/* One request; the answer is in the fixture. */
void member_ask(struct member *member, const char *method, const char *path,
                const struct http_header *headers, uint32_t header_count, const char *body);
/* client_send's `done`, with the fixture: keeps the answer. */
void members_on_answer(void *context, const struct http_answer *answer);
const char *members_body(const struct fixture *fixture);
json_t *members_parse_body(const struct fixture *fixture);

/* One call of the API; the status. */
int member_call(struct member *member, const char *operation, const char *body);
void member_expect_ok(struct member *member, const char *operation, const char *body);
/* Asks until the answer is good and holds `part`: connecting and replicating take as long as they
 * take. */
void member_await(struct member *member, const char *operation, const char *body, const char *part);
/* The table `orders`, active. */
void member_create_table(struct member *member);

#endif
