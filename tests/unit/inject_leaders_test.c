/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a strong table's cluster: hand-overs, leaders killed and cut off, messages of the
 * groups lost, doubled and overtaken; and it serves after each. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/inject/grounds.h"

#define HEAD(mode, durability)                                                                     \
    "name: t\n"                                                                                    \
    "cluster: {mode: " mode ", durability: " durability                                            \
    ", regions: [us-east-1, us-east-2, us-west-2], links: {default: {rtt: 2ms}}}\n"                \
    "workload: {kind: swap-register}\n"                                                            \
    "phases:\n"                                                                                    \
    "  - name: all\n"                                                                              \
    "    for: 1s\n"                                                                                \
    "    faults:\n"
#define FAULT(id, rest) "      - {at: 0s, id: " id ", " rest "}\n"

static struct grounds grounds;

static int close_grounds(void **state)
{
    (void)state;
    grounds_close(&grounds);
    return 0;
}

static bool is_told(void *context)
{
    return *grounds_told(&grounds, context)->evidence != 0;
}

/* ---- Leaders ---- */

static const char strong[] = HEAD("strong", "os") FAULT("first",
                                                        "do: leader.transfer, to: us-east-1")
    FAULT("transfer", "do: leader.transfer, to: us-west-2") FAULT(
        "back", "do: leader.transfer, table: tab") FAULT("kill", "do: leader.kill, for: 300ms")
        FAULT("loss", "do: link.loss, from: all, to: all, percent: 20, for: 300ms")
            FAULT("twice", "do: link.duplicate, from: all, to: all, percent: 20, for: 300ms") FAULT(
                "late", "do: link.reorder, from: all, to: all, percent: 20, delay: 5ms, for: 300ms")
                FAULT("primaries", "do: partition, shape: primaries, for: 300ms")
                    FAULT("leader", "do: process.pause, region: leader, for: 100ms");

static int open_strong(void **state)
{
    (void)state;
    grounds_open(&grounds, strong, true);
    return 0;
}

static void leaders_are_struck(void **state)
{
    (void)state;
    static const char put[] = "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"after\"}}}";
    static const char *const ids[] = {"transfer", "back", "loss",      "twice",
                                      "late",     "kill", "primaries", "leader"};
    /* To one that may lead all of them already: then there is nothing to prove. */
    grounds_begin(&grounds, "first");
    grounds_run_until(&grounds, is_told, (void *)"first");
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        for (uint32_t j = 0; j < 3; j++)
            grounds_await(&grounds, j, "PutItem", put, "");
        grounds_prove(&grounds, ids[i]);
    }
    grounds_heal(&grounds);
    for (uint32_t j = 0; j < 3; j++)
        grounds_await(&grounds, j, "PutItem", put, "");
}

int main(void)
{
    const struct CMUnitTest on_leaders[] = {cmocka_unit_test(leaders_are_struck)};
    return cmocka_run_group_tests_name("leaders", on_leaders, open_strong, close_grounds);
}
