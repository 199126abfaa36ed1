/* SPDX-License-Identifier: Apache-2.0 */
/* What Regions say to each other about tables, outside the log: calls (is there a table of this
 * name? take this description in), and the descriptions in every Hello, by which a Region that was
 * down hears what it has missed. Whatever comes in is joined into what is known, never copied over
 * it; only a call makes a table, so that no stale Hello can bring one back. */

#include "conflict/region_id.h"
#include "region/core/region_internal.h"

static const uint64_t PUSH_RETRY_NS = (uint64_t)1000 * NS_PER_MS;
static const uint64_t PUSH_BUSY_NS = (uint64_t)50 * NS_PER_MS;

/* ---- Taking in ---- */

/* Writes a description that was joined with what somebody told us. */
static void write_merged(struct region *region, struct change_op *change,
                         const struct description *merged)
{
    change->next = *merged;
    /* Of a strong table one member may be the only one to hear from another. */
    change->told = strong_setup_equal(&merged->strong, &change->table->d.strong);
    struct member *own = group_member(&change->next, region->config.region);
    /* Told to leave: the table goes, and only we ourselves say that it has gone. */
    if (own && (own->state == MEMBER_DELETING || own->state == MEMBER_REMOVED)) {
        change->kind = CHANGE_DROP;
        change->next.dropped = true;
        group_set_member(region, &change->next, own->region, MEMBER_REMOVED);
    }
    change_write(region, change);
}

static void take_in(struct region *region, struct table_state *table,
                    const struct description *from)
{
    if (table->changing) {
        if (!table->stashed)
            table->stash = *from;
        else
            group_merge(region, &table->stash, from);
        table->stashed = true;
        return;
    }
    struct description merged = table->d;
    struct member *own = group_member(&table->d, region->config.region);
    bool leaving = own && own->state == MEMBER_DELETING;
    if (!group_merge(region, &merged, from) || leaving)
        return;
    write_merged(region, change_new(table), &merged);
}

void stash_merge(struct region *region, struct table_state *table)
{
    if (!table->stashed || table->changing || table->d.dropped)
        return;
    table->stashed = false;
    struct description stash = table->stash;
    take_in(region, table, &stash);
}

/* A peer is to be told once more: what it has just answered may be older than what it says now. */
static void note_behind(struct table_state *table, uint32_t bit)
{
    table->dirty |= bit;
    table->dirty_generation++;
}

void gossip(struct region *region, uint16_t peer, struct bytes descriptions)
{
    uint32_t index = peer_index(region, peer);
    if (index == VV_MAX)
        return;
    uint32_t bit = (uint32_t)1 << index;
    uint64_t round = ++region->gossip_rounds;
    struct description theirs;
    bool bad = false;
    uint32_t count = 0;
    while (count++ < DESCRIPTIONS_MAX && descriptions_take(&descriptions, &theirs, &bad)) {
        struct table_state *table = catalog_find_group(region, theirs.table.group_id);
        if (!table || table->hidden)
            continue;
        table->gossip_round = round;
        take_in(region, table, &theirs);
        if (!theirs.grave && group_merge(region, &theirs, &table->d))
            note_behind(table, bit); /* it does not know what we know */
    }
    if (bad) {
        trace_emit(&region->config.trace, TRACE_WARN, "malformed table descriptions peer=%s",
                   region_id_name(peer));
        return;
    }
    for (uint32_t i = 0; i < region->table_count; i++) {
        struct table_state *table = region->tables[i];
        struct member *member = group_member(&table->d, peer);
        if (!member || table->hidden || member->state == MEMBER_REMOVED)
            continue;
        if (table->gossip_round != round)
            note_behind(table, bit); /* it has lost the table, or was never told of it */
    }
    group_advance_all(region);
}

/* ---- Serving calls ---- */

void call_answer(struct region *region, uint64_t token, enum call_outcome outcome,
                 const struct description *description)
{
    cleanup(buf_deinit) struct buf bytes;
    buf_init(&bytes);
    answer_encode(outcome, description, &bytes);
    struct region_effect *effect = effect_add(region, REGION_CALL_REPLY);
    effect->token = token;
    effect->bytes = out_copy(region, buf_view(&bytes));
}

static enum call_outcome check_member(struct region *region, const struct description *asked,
                                      bool deleting)
{
    struct table_state *table = catalog_find_group(region, asked->table.group_id);
    if (!table || table->hidden)
        return CALL_NOT_MEMBER;
    /* The caller may know more of us than has come through yet: that we are active, say. */
    struct description known = table->d;
    group_merge(region, &known, asked);
    struct member *own = group_member(&known, region->config.region);
    if (!own || own->state == MEMBER_DELETING || own->state == MEMBER_REMOVED)
        return CALL_NOT_MEMBER;
    /* A change that only takes in what another Region said is no reason to refuse a client. */
    if (table->changing && table->change->request)
        return CALL_BUSY;
    if (known.strong.dissolver != 0 && strong_setup_runs(&known.strong))
        return CALL_BUSY;
    if (!deleting)
        return CALL_OK;
    if (own->state == MEMBER_CREATING)
        return CALL_BUSY;
    if (table->d.table.deletion_protection)
        return CALL_PROTECTED;
    /* Nothing was copied when a strong table was made: it is dissolved at any time. */
    if (strong_setup_runs(&known.strong))
        return CALL_OK;
    return replicas_sourced_lately(region, table) ? CALL_SOURCE : CALL_OK;
}

static enum call_outcome check_create(const struct region *region, const struct description *asked)
{
    if (region->config.witness_only)
        return CALL_WITNESS_ONLY;
    if (catalog_find(region, bytes_text(asked->table.name)))
        return CALL_EXISTS;
    return region->named_count >= region->config.tables_max ? CALL_LIMIT : CALL_OK;
}

/* A witness needs no name, and takes no room from the tables that clients see. */
static enum call_outcome check_witness(const struct region *region, const struct description *asked)
{
    if (catalog_find_group(region, asked->table.group_id))
        return CALL_BUSY; /* of an earlier time, and about to go */
    uint32_t held = region->table_count - region->named_count;
    return held >= region->config.tables_max ? CALL_LIMIT : CALL_OK;
}

/* A table that others say we have, or are to have. */
static void create_replica(struct region *region, uint16_t caller, uint64_t token,
                           const struct description *asked)
{
    struct description d = *asked;
    struct member *own = group_member(&d, region->config.region);
    bool strong = strong_setup_runs(&d.strong), first = false;
    bool witness = strong && strong_setup_has_witness(&d.strong, region->config.region);
    enum call_outcome possible =
        witness ? check_witness(region, asked) : check_create(region, asked);
    if (possible == CALL_OK && strong && !strong_take_part(region, &d, &first))
        possible = CALL_MALFORMED;
    if (possible != CALL_OK) {
        call_answer(region, token, possible, NULL);
        return;
    }
    const struct member *source = group_member(&d, own->source);
    bool orphan = own->state == MEMBER_CREATING && own->source != caller &&
                  (!source || source->state != MEMBER_ACTIVE);
    /* A member of a strong table that has lost its store stays what it is: it votes and serves
     * again when its groups have rebuilt it, as a Region does that was away for long. */
    if ((own->state == MEMBER_ACTIVE || orphan) && !strong) {
        /* Our store has been lost (and perhaps that of the one who was filling it again): begin
         * again, from the one who told us. */
        group_set_member(region, &d, own->region, MEMBER_CREATING);
        own = group_member(&d, region->config.region);
        own->source = caller;
        own->since_ms = 0; /* not added anew: whoever refills us may be deleted as before */
    }
    table_prepare(region, &d);
    struct table_state *table = catalog_add(region, &d);
    table->hidden = true;
    struct change_op *change = change_new(table);
    change->kind = CHANGE_CREATE;
    change->told = true;
    change->strong_first = first;
    change->call = true;
    change->call_token = token;
    change_write(region, change);
}

static void merge_unknown(struct region *region, uint16_t caller, uint64_t token,
                          struct description *asked)
{
    struct member *own = group_member(asked, region->config.region);
    struct grave *grave = catalog_grave(region, asked->table.group_id);
    if (!own) {
        call_answer(region, token, CALL_NOT_MEMBER, grave ? &grave->d : NULL);
        return;
    }
    struct member *buried = grave ? group_member(&grave->d, region->config.region) : NULL;
    if (buried && stamp_compare(own->stamp, buried->stamp) <= 0) {
        call_answer(region, token, CALL_OK, &grave->d);
        return;
    }
    if (own->state == MEMBER_CREATING || own->state == MEMBER_ACTIVE) {
        create_replica(region, caller, token, asked);
        return;
    }
    /* Told to leave what we do not have: say that we have left. */
    group_set_member(region, asked, own->region, MEMBER_REMOVED);
    grave_write(region, asked);
    call_answer(region, token, CALL_OK, asked);
}

static void serve_merge(struct region *region, uint16_t caller, uint64_t token,
                        struct description *asked)
{
    struct table_state *table = catalog_find_group(region, asked->table.group_id);
    if (!table) {
        merge_unknown(region, caller, token, asked);
        return;
    }
    if (table->changing) {
        call_answer(region, token, CALL_BUSY, NULL);
        return;
    }
    struct description merged = table->d;
    struct member *own = group_member(&table->d, region->config.region);
    bool leaving = own && own->state == MEMBER_DELETING;
    if (leaving || !group_merge(region, &merged, asked)) {
        call_answer(region, token, CALL_OK, &table->d);
        return;
    }
    struct change_op *change = change_new(table);
    change->call = true;
    change->call_token = token;
    write_merged(region, change, &merged);
}

void call_serve(struct region *region, const struct region_input *in)
{
    enum call_kind kind;
    uint16_t from;
    struct description asked;
    if (!region->ready) {
        call_answer(region, in->token, CALL_STARTING, NULL);
        return;
    }
    if (!call_decode(in->bytes, &kind, &from, &asked) || peer_index(region, from) == VV_MAX) {
        call_answer(region, in->token, CALL_MALFORMED, NULL);
        return;
    }
    switch (kind) {
    case CALL_CHECK_CREATE:
        call_answer(region, in->token, check_create(region, &asked), NULL);
        return;
    case CALL_CHECK_WITNESS:
        call_answer(region, in->token, check_witness(region, &asked), NULL);
        return;
    case CALL_CHECK_MEMBER:
    case CALL_CHECK_DELETE:
        call_answer(region, in->token, check_member(region, &asked, kind == CALL_CHECK_DELETE),
                    NULL);
        return;
    case CALL_MERGE:
        serve_merge(region, from, in->token, &asked);
        return;
    }
    unreachable();
}

/* ---- Calling ---- */

void call_peer(struct region *region, uint16_t peer, enum call_kind kind, struct table_state *table,
               const struct description *description, struct change_op *change)
{
    struct call *call = xcalloc(1, sizeof(*call));
    *call = (struct call){.id = ++region->call_last,
                          .peer = peer,
                          .kind = kind,
                          .table = table,
                          .change = change,
                          .dirty_generation = table->dirty_generation};
    list_append(&region->calls, &call->link);
    table->users++;
    if (change)
        change->calls++;
    else
        table->calling |= (uint32_t)1 << peer_index(region, peer);
    cleanup(buf_deinit) struct buf bytes;
    buf_init(&bytes);
    call_encode(kind, region->config.region, description, &bytes);
    struct region_effect *effect = effect_add(region, REGION_CALL_PEER);
    effect->id = call->id;
    effect->peer = peer;
    effect->bytes = out_copy(region, buf_view(&bytes));
}

static void pushed(struct region *region, const struct call *call, bool reached,
                   enum call_outcome outcome, const struct description *theirs)
{
    struct table_state *table = call->table;
    uint32_t bit = (uint32_t)1 << peer_index(region, call->peer);
    table->calling &= ~bit;
    if (table->d.dropped)
        return;
    if (!reached || outcome != CALL_OK) {
        bool soon = reached && (outcome == CALL_BUSY || outcome == CALL_STARTING);
        table->push_after_ns = region->mono_ns + (soon ? PUSH_BUSY_NS : PUSH_RETRY_NS);
        retry_at(region, table->push_after_ns);
        trace_emit(&region->config.trace, TRACE_DEBUG,
                   "peer not told table=%s region=%s outcome=%d", table->d.table.name,
                   region_id_name(call->peer), reached ? (int)outcome : -1);
    } else if (table->dirty_generation == call->dirty_generation) {
        table->dirty &= ~bit;
    }
    if (theirs && memcmp(theirs->table.group_id, table->d.table.group_id, TABLE_ID_LEN) == 0)
        take_in(region, table, theirs);
    group_advance(region, table);
}

static void checked(struct region *region, struct change_op *change, uint16_t peer, bool reached,
                    enum call_outcome outcome)
{
    check(change->calls > 0);
    if ((!reached || outcome != CALL_OK) && !change->unreachable && !change->refused) {
        change->refused_by = peer;
        /* A Region that is starting up is not there yet. */
        if (!reached || outcome == CALL_STARTING)
            change->unreachable = true;
        else
            change->refused = outcome;
    }
    if (--change->calls == 0)
        control_checked(region, change);
}

void call_answered(struct region *region, const struct region_input *in)
{
    struct call *call = NULL;
    list_each(link, spare, &region->calls)
    {
        struct call *at = container_of(link, struct call, link);
        if (at->id == in->id)
            call = at;
    }
    if (!call)
        return;
    list_remove(&call->link);
    enum call_outcome outcome = CALL_MALFORMED;
    struct description theirs;
    bool given = false;
    bool reached = !in->failed && answer_decode(in->bytes, &outcome, &given, &theirs);
    if (call->change)
        checked(region, call->change, call->peer, reached, outcome);
    else
        pushed(region, call, reached, outcome, given ? &theirs : NULL);
    table_release(region, call->table);
    free(call);
}
