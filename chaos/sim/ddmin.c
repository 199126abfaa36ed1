/* SPDX-License-Identifier: Apache-2.0 */
/* The set is cut into ever more parts. A part that fails by itself is gone on with; else, if all
 * but one part fail, the part is left out; else the cuts get finer, down to single ones. */

#include "chaos/sim/ddmin.h"

struct search {
    bool (*fails)(void *context, uint64_t subset);
    void *context;
    uint32_t tries, tries_max;
};

static bool try(struct search *search, uint64_t subset)
{
    if (search->tries == search->tries_max)
        return false;
    search->tries++;
    return search->fails(search->context, subset);
}

/* The part-th of `parts` about equal runs of the set's bits. */
static uint64_t part_of(uint64_t set, uint32_t part, uint32_t parts)
{
    uint32_t count = (uint32_t)__builtin_popcountll(set), nth = 0;
    uint32_t from = count * part / parts, to = count * (part + 1) / parts;
    uint64_t ret = 0;
    for (uint64_t rest = set; rest; rest &= rest - 1, nth++)
        if (nth >= from && nth < to)
            ret |= rest & -rest;
    return ret;
}

/* True: *set has become smaller. */
static bool reduce(struct search *search, uint64_t *set, uint32_t *parts)
{
    for (uint32_t i = 0; i < *parts; i++) {
        uint64_t part = part_of(*set, i, *parts);
        if (try(search, part)) {
            *set = part;
            *parts = 2;
            return true;
        }
    }
    for (uint32_t i = 0; *parts > 2 && i < *parts; i++) { /* of two, the one is all but the other */
        uint64_t rest = *set & ~part_of(*set, i, *parts);
        if (try(search, rest)) {
            *set = rest;
            *parts -= 1;
            return true;
        }
    }
    return false;
}

uint64_t ddmin(uint64_t set, uint32_t tries_max, bool (*fails)(void *context, uint64_t subset),
               void *context)
{
    struct search search = {.fails = fails, .context = context, .tries_max = tries_max};
    uint32_t parts = 2;
    if (set == 0 || try(&search, 0))
        return 0;
    for (;;) {
        uint32_t count = (uint32_t)__builtin_popcountll(set);
        if (count < 2)
            return set;
        if (parts > count)
            parts = count;
        if (reduce(&search, &set, &parts))
            continue;
        if (parts == count || search.tries == search.tries_max)
            return set;
        parts *= 2;
    }
}
