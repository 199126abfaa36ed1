/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of the control API can make of one connection: an address, then toxics as JSON, one
 * a line, each added to a chain through which bytes then go. Whatever was asked for, the chain
 * gives back all memory, and a toxic that was read is written and read again as the same. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "chaos/live/address.h"
#include "chaos/live/chain.h"
#include "conflict/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOXICS_MAX = 8, ROUNDS = 20 };

static struct bytes take_line(struct bytes *rest)
{
    const uint8_t *end = rest->len == 0 ? NULL : memchr(rest->at, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->at);
    struct bytes line = bytes_make(rest->at, len);
    size_t taken = end == NULL ? len : len + 1;
    *rest = bytes_make(rest->at + taken, rest->len - taken);
    return line;
}

static void try_address(struct bytes line)
{
    struct address address, again;
    char printed[ADDRESS_MAX];
    struct sockaddr_storage numeric;
    if (!address_parse(line, &address))
        return;
    address_print(&address, printed);
    check(address_parse(bytes_text(printed), &again));
    check(again.port == address.port);
    check(strcmp(again.host, address.host) == 0);
    if (address_numeric(&address, &numeric))
        (void)address_is_loopback(&address);
}

static struct toxic *try_toxic(struct bytes line)
{
    char reason[TOXIC_REASON_MAX];
    struct toxic *toxic = NULL, *again = NULL;
    json_t *body = json_loadb((const char *)line.at, line.len, 0, NULL);
    if (body != NULL && toxic_decode(body, reason, &toxic) == TOXIC_OK) {
        json_t *told = toxic_encode(toxic);
        check(told != NULL);
        check(toxic_decode(told, reason, &again) == TOXIC_OK);
        json_t *retold = toxic_encode(again);
        check(json_equal(told, retold));
        check(toxic_update(again, told, reason) == TOXIC_OK);
        json_decref(told);
        json_decref(retold);
        toxic_free(again);
    }
    json_decref(body);
    return toxic;
}

static void drain(struct chain *chain, uint64_t now_ns)
{
    chain_pump(chain, now_ns);
    for (struct segment *segment; (segment = chain_take(chain)) != NULL;)
        chain_give_back(chain, segment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = bytes_make(data, size);
    struct toxic *toxics[TOXICS_MAX];
    int count = 0;
    struct rng rng;
    struct chain chain;
    rng_init(&rng, size);
    chain_init(&chain, &rng);
    try_address(take_line(&rest));
    while (rest.len > 0 && count < TOXICS_MAX) {
        struct toxic *toxic = try_toxic(take_line(&rest));
        if (toxic != NULL)
            chain_add(&chain, toxics[count++] = toxic, 0);
    }
    uint64_t now_ns = 0;
    for (int i = 0; i < ROUNDS && !chain_full(&chain); i++) {
        chain_push(&chain, bytes_make(data, size), now_ns);
        drain(&chain, now_ns);
        uint64_t next_ns = chain_deadline(&chain);
        now_ns = next_ns == UINT64_MAX || next_ns < now_ns ? now_ns + 1 : next_ns;
    }
    chain_push_end(&chain, now_ns);
    for (int i = 0; i < count; i++) {
        chain_update(&chain, toxics[i], now_ns);
        chain_remove(&chain, toxics[i], now_ns);
        toxic_free(toxics[i]);
    }
    drain(&chain, now_ns);
    check(chain.held == 0);
    check(chain_deadline(&chain) == UINT64_MAX);
    chain_deinit(&chain);
    return 0;
}
