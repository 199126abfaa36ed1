/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps every record in an arena, by key, by version and by writer. Keys are few and versions per
 * key some hundreds, so the checks at the end compare all with all. */

#include "chaos/check/ghost.h"

#include <uthash.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct ghost_key {
    struct bytes key;
    uint64_t number;
    struct ghost_record *records;
    const struct ghost_record *last; /* the greatest that is not lost; NULL: none */
    UT_hash_handle hh;
};

/* What finds a record; compared as bytes, so it has no gaps. */
struct ghost_name {
    uint64_t key, hlc, seq, origin;
};

struct ghost_version {
    struct ghost_name name;
    struct ghost_record *record;
    UT_hash_handle hh;
};

struct ghost_writer {
    uint64_t writer;
    struct ghost_record *record;
    UT_hash_handle hh;
};

struct ghost {
    struct arena arena;
    struct ghost_key *keys;
    uint64_t key_count; /* ever */
    bool disks_lost;
    struct ghost_version *versions;
    struct ghost_writer *writers;
};

struct ghost *ghost_new(void)
{
    return xcalloc(1, sizeof(struct ghost));
}

struct ghost *ghost_free(struct ghost *ghost)
{
    if (!ghost)
        return NULL;
    HASH_CLEAR(hh, ghost->keys);
    HASH_CLEAR(hh, ghost->versions);
    HASH_CLEAR(hh, ghost->writers);
    arena_deinit(&ghost->arena);
    free(ghost);
    return NULL;
}

static struct ghost_key *key_find(const struct ghost *ghost, struct bytes key)
{
    struct ghost_key *found;
    HASH_FIND(hh, ghost->keys, key.at, key.len, found);
    return found;
}

static struct ghost_name name_of(const struct ghost_key *key, struct version version)
{
    return (struct ghost_name){key->number, version.hlc, version.seq, version.origin};
}

static struct ghost_record *version_find(const struct ghost *ghost, const struct ghost_key *key,
                                         struct version version)
{
    if (!key)
        return NULL;
    struct ghost_name name = name_of(key, version);
    struct ghost_version *found;
    HASH_FIND(hh, ghost->versions, &name, sizeof(name), found);
    return found ? found->record : NULL;
}

static void raise_last(struct ghost_key *key, const struct ghost_record *record)
{
    if (!key->last || version_compare(record->record.version, key->last->record.version) > 0)
        key->last = record;
}

static struct ghost_record *add(struct ghost *ghost, const struct record *record, uint64_t writer)
{
    struct ghost_key *key = key_find(ghost, record->key);
    if (!key) {
        key = arena_new(&ghost->arena, struct ghost_key);
        key->key = bytes_copy(&ghost->arena, record->key);
        key->number = ++ghost->key_count;
        HASH_ADD_KEYPTR(hh, ghost->keys, key->key.at, key->key.len, key);
    }
    struct ghost_record *known = version_find(ghost, key, record->version);
    if (known)
        return known;
    known = arena_new(&ghost->arena, struct ghost_record);
    known->record = *record;
    known->record.key = key->key;
    known->record.item = bytes_copy(&ghost->arena, record->item);
    known->writer = writer;
    known->next_of_key = key->records;
    key->records = known;
    known->of_key = key;
    raise_last(key, known);
    struct ghost_version *by_version = arena_new(&ghost->arena, struct ghost_version);
    by_version->name = name_of(key, record->version);
    by_version->record = known;
    HASH_ADD(hh, ghost->versions, name, sizeof(by_version->name), by_version);
    struct ghost_writer *by_writer;
    HASH_FIND(hh, ghost->writers, &writer, sizeof(writer), by_writer);
    if (writer && !by_writer) {
        by_writer = arena_new(&ghost->arena, struct ghost_writer);
        by_writer->writer = writer;
        by_writer->record = known;
        HASH_ADD(hh, ghost->writers, writer, sizeof(writer), by_writer);
    }
    return known;
}

const struct ghost_record *ghost_add(struct ghost *ghost, const struct record *record,
                                     uint64_t writer)
{
    return add(ghost, record, writer);
}

enum { HELD_FOR_GOOD = 31 };

static void hold(struct ghost_record *record, uint32_t holder)
{
    record->holders |= UINT32_C(1) << holder;
    if (record->lost)
        raise_last(record->of_key, record);
    record->lost = false;
}

const struct ghost_record *ghost_hold(struct ghost *ghost, const struct record *record,
                                      uint64_t writer, uint32_t holder)
{
    check(holder < HELD_FOR_GOOD);
    struct ghost_record *known = add(ghost, record, writer);
    hold(known, holder);
    return known;
}

void ghost_settle(struct ghost *ghost, struct bytes key, uint32_t holder)
{
    const struct ghost_key *found = key_find(ghost, key);
    struct ghost_record *last = NULL;
    for (struct ghost_record *at = found ? found->records : NULL; at; at = at->next_of_key)
        if (at->holders >> holder & 1 &&
            (!last || version_compare(at->record.version, last->record.version) > 0))
            last = at;
    if (last && record_is_tombstone(&last->record))
        hold(last, HELD_FOR_GOOD);
}

uint32_t ghost_lose(struct ghost *ghost, uint32_t holder)
{
    uint32_t bit = UINT32_C(1) << holder, lost = 0;
    ghost->disks_lost = true;
    for (struct ghost_key *key = ghost->keys; key; key = key->hh.next) {
        key->last = NULL;
        for (struct ghost_record *at = key->records; at; at = at->next_of_key) {
            bool last = at->holders == bit;
            at->holders &= ~bit;
            at->lost |= last;
            lost += last;
            if (!at->lost)
                raise_last(key, at);
        }
    }
    return lost;
}

void ghost_forget(struct ghost *ghost, struct bytes key)
{
    struct ghost_key *found = key_find(ghost, key);
    if (found)
        HASH_DEL(ghost->keys, found); /* its memory is the arena's */
}

const struct ghost_record *ghost_find_writer(const struct ghost *ghost, uint64_t writer)
{
    struct ghost_writer *found;
    HASH_FIND(hh, ghost->writers, &writer, sizeof(writer), found);
    return found ? found->record : NULL;
}

bool ghost_has(const struct ghost *ghost, struct bytes key, struct version version)
{
    return version_find(ghost, key_find(ghost, key), version) != NULL;
}

const struct ghost_record *ghost_last(const struct ghost *ghost, struct bytes key)
{
    const struct ghost_key *found = key_find(ghost, key);
    return found ? found->last : NULL;
}

uint32_t ghost_key_count(const struct ghost *ghost)
{
    return HASH_COUNT(ghost->keys);
}

struct bytes ghost_key_at(const struct ghost *ghost, uint32_t index)
{
    const struct ghost_key *key = ghost->keys;
    while (index--)
        key = key->hh.next;
    return key->key;
}

static bool concurrent(const struct record *a, const struct record *b)
{
    return !resolve_seen(a, b) && !resolve_seen(b, a);
}

static bool same_content(const struct record *a, const struct record *b)
{
    return a->kind == b->kind && bytes_equal(a->item, b->item);
}

const char *ghost_ledger(struct ghost *ghost, struct bytes key, const struct record *winner,
                         const struct record *loser)
{
    const struct ghost_key *found = key_find(ghost, key);
    struct ghost_record *known_winner = version_find(ghost, found, winner->version);
    struct ghost_record *known_loser = version_find(ghost, found, loser->version);
    if (!known_winner || !known_loser)
        return "a version that nobody wrote";
    if (!same_content(&known_winner->record, winner) || !same_content(&known_loser->record, loser))
        return "an image that is not the version's";
    if (version_compare(winner->version, loser->version) <= 0)
        return "the loser is the later version";
    if (resolve_seen(&known_loser->record, &known_winner->record))
        return "the winner's writer had seen the loser: nothing was lost";
    known_loser->ledgered = true;
    return NULL;
}

static bool has_greater_concurrent(const struct ghost_key *key, const struct ghost_record *record)
{
    for (const struct ghost_record *at = key->records; at; at = at->next_of_key)
        if (version_compare(at->record.version, record->record.version) > 0 &&
            concurrent(&at->record, &record->record))
            return true;
    return false;
}

static bool accounted_by_successor(const struct ghost_key *key, const struct ghost_record *record)
{
    for (const struct ghost_record *at = key->records; at; at = at->next_of_key)
        if (at->ledgered && (at == record || resolve_seen(&record->record, &at->record)))
            return true;
    return false;
}

const struct ghost_record *ghost_unaccounted(const struct ghost *ghost, bool exact)
{
    for (const struct ghost_key *key = ghost->keys; key; key = key->hh.next) {
        const struct ghost_record *last = key->last;
        for (const struct ghost_record *at = key->records; at; at = at->next_of_key) {
            /* A deletion that was everywhere is no lost write for who writes after it; with the
             * last disk that remembered it the writers forget that they had seen it. */
            bool settled = at->holders >> HELD_FOR_GOOD & 1;
            if (at->lost || (settled && ghost->disks_lost))
                continue;
            if (exact ? has_greater_concurrent(key, at) && !at->ledgered
                      : at != last && !resolve_seen(&at->record, &last->record) &&
                            !accounted_by_successor(key, at))
                return at;
        }
    }
    return NULL;
}
