/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf-c lives here and nowhere else in the core. It unpacks into an arena of bounded growth,
 * and what it unpacked is then checked field by field: names, types, counts, Regions, states. */

#include "region/core/control_wire.h"

#include "conflict/base/alloc.h"
#include "conflict/base/arena.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/core/control.pb-c.h"

enum { MESSAGE_BYTES_MAX = 64 * 1024, UNPACKED_BYTES_MAX = 1024 * 1024 };

int stamp_compare(struct stamp a, struct stamp b)
{
    if (a.time != b.time)
        return a.time < b.time ? -1 : 1;
    return (a.region > b.region) - (a.region < b.region);
}

/* ---- Packing ---- */

/* Everything a packed description points to, in one place on the stack. */
struct packing {
    Tidemark__Control__V1__Table table;
    Tidemark__Control__V1__KeySchema key;
    Tidemark__Control__V1__Settings settings;
    Tidemark__Control__V1__Local local;
    Tidemark__Control__V1__Member members[VV_MAX];
    Tidemark__Control__V1__Member *member_list[VV_MAX];
    Tidemark__Control__V1__Strong strong;
    uint32_t strong_regions[STRONG_MEMBERS];
    uint64_t incarnations[STRONG_MEMBERS];
};

static void pack_members(const struct description *from, struct packing *to)
{
    check(from->member_count <= VV_MAX);
    for (uint32_t i = 0; i < from->member_count; i++) {
        const struct member *member = &from->members[i];
        to->members[i] = (Tidemark__Control__V1__Member)TIDEMARK__CONTROL__V1__MEMBER__INIT;
        to->members[i].region = member->region;
        to->members[i].state = member->state;
        to->members[i].source = member->source;
        to->members[i].stamp = member->stamp.time;
        to->members[i].stamp_region = member->stamp.region;
        to->members[i].since_ms = member->since_ms;
        to->member_list[i] = &to->members[i];
    }
    to->table.n_members = from->member_count;
    to->table.members = to->member_list;
}

static void pack_strong(const struct strong_setup *from, struct packing *to)
{
    if (from->epoch == 0)
        return;
    to->strong = (Tidemark__Control__V1__Strong)TIDEMARK__CONTROL__V1__STRONG__INIT;
    to->strong.epoch = from->epoch;
    bool blank = from->ended && from->dissolver == 0;
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        to->strong_regions[i] = from->regions[i];
        to->incarnations[i] = from->incarnations[i];
    }
    to->strong.n_regions = to->strong.n_incarnations = blank ? 0 : STRONG_MEMBERS;
    to->strong.regions = to->strong_regions;
    to->strong.incarnations = to->incarnations;
    to->strong.witness = from->witness;
    to->strong.dissolver = from->dissolver;
    to->strong.dissolved = from->dissolved.time;
    to->strong.dissolved_region = from->dissolved.region;
    to->strong.ended = from->ended;
    to->table.strong = &to->strong;
}

static void pack_local(const struct description *from, struct packing *to)
{
    const struct table *table = &from->table;
    to->local = (Tidemark__Control__V1__Local)TIDEMARK__CONTROL__V1__LOCAL__INIT;
    to->local.number = table->number;
    to->local.id = (ProtobufCBinaryData){TABLE_ID_LEN, (uint8_t *)(uintptr_t)table->id};
    to->local.status = table->status;
    to->local.created_ms = table->created_wall_ms;
    to->local.stream_ms = table->stream_wall_ms;
    to->local.deletion_protection = table->deletion_protection;
    to->local.class_infrequent = table->table_class_infrequent;
    to->local.epoch = from->epoch;
    to->local.dropped = from->dropped;
    to->table.local = &to->local;
}

static void pack(const struct description *from, bool local, struct packing *to)
{
    const struct table *table = &from->table;
    to->table = (Tidemark__Control__V1__Table)TIDEMARK__CONTROL__V1__TABLE__INIT;
    to->table.name = (char *)(uintptr_t)table->name;
    to->table.group_id = (ProtobufCBinaryData){TABLE_ID_LEN, (uint8_t *)(uintptr_t)table->group_id};
    to->table.partition_count = table->partition_count;
    to->table.grave = from->grave;

    to->key = (Tidemark__Control__V1__KeySchema)TIDEMARK__CONTROL__V1__KEY_SCHEMA__INIT;
    to->key.hash_name = (char *)(uintptr_t)table->key.hash_name;
    to->key.hash_type = table->key.hash_type;
    if (table->key.has_range) {
        to->key.range_name = (char *)(uintptr_t)table->key.range_name;
        to->key.range_type = table->key.range_type;
    }
    to->table.key = &to->key;

    to->settings = (Tidemark__Control__V1__Settings)TIDEMARK__CONTROL__V1__SETTINGS__INIT;
    to->settings.billing = table->billing;
    to->settings.read_units = table->read_units;
    to->settings.write_units = table->write_units;
    to->settings.stream = table->stream;
    to->settings.sse_enabled = table->sse_enabled;
    to->settings.stamp = from->settings_stamp.time;
    to->settings.stamp_region = from->settings_stamp.region;
    to->table.settings = &to->settings;
    pack_members(from, to);
    pack_strong(&from->strong, to);
    if (local)
        pack_local(from, to);
}

static void append_message(const ProtobufCMessage *message, struct buf *to)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *at = buf_reserve(to, len);
    size_t packed = protobuf_c_message_pack(message, at);
    check(packed == len);
    to->len += len;
}

/* ---- Unpacking ---- */

/* An arena that refuses to grow beyond a bound: a small message can describe a large structure. */
static void *unpack_alloc(void *context, size_t size)
{
    struct arena *arena = context;
    if (size > UNPACKED_BYTES_MAX || arena->used + size > UNPACKED_BYTES_MAX)
        return NULL;
    return arena_alloc(arena, size);
}

static void unpack_free(void *context, void *at)
{
    (void)context;
    (void)at;
}

static bool copy_name(const char *from, size_t len_min, char *to, size_t size)
{
    size_t len = strlen(from);
    if (len < len_min || len >= size)
        return false;
    memcpy(to, from, len + 1);
    return true;
}

static bool table_name_valid(const char *name)
{
    for (const char *at = name; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        bool other = (*at >= '0' && *at <= '9') || *at == '_' || *at == '-' || *at == '.';
        if (!letter && !other)
            return false;
    }
    return true;
}

static bool key_type(uint32_t from, enum value_type *ret)
{
    if (from != VALUE_S && from != VALUE_N && from != VALUE_B)
        return false;
    *ret = (enum value_type)from;
    return true;
}

static bool unpack_key(const Tidemark__Control__V1__KeySchema *from, struct key_schema *to)
{
    if (!from || !copy_name(from->hash_name, 1, to->hash_name, sizeof(to->hash_name)) ||
        !key_type(from->hash_type, &to->hash_type))
        return false;
    to->has_range = from->range_name[0] != 0;
    if (!to->has_range)
        return from->range_type == 0;
    return copy_name(from->range_name, 1, to->range_name, sizeof(to->range_name)) &&
           strcmp(to->hash_name, to->range_name) != 0 &&
           key_type(from->range_type, &to->range_type);
}

static bool unpack_settings(const Tidemark__Control__V1__Settings *from, struct description *to)
{
    if (!from || from->billing > BILLING_PAY_PER_REQUEST || from->stream > STREAM_BOTH ||
        !region_id_valid(from->stamp_region))
        return false;
    to->table.billing = (enum billing_mode)from->billing;
    to->table.read_units = from->read_units;
    to->table.write_units = from->write_units;
    to->table.stream = (enum stream_view)from->stream;
    to->table.sse_enabled = from->sse_enabled;
    to->settings_stamp = (struct stamp){from->stamp, (uint16_t)from->stamp_region};
    return true;
}

static bool unpack_members(const Tidemark__Control__V1__Table *from, struct description *to)
{
    if (from->n_members > VV_MAX)
        return false;
    for (size_t i = 0; i < from->n_members; i++) {
        const Tidemark__Control__V1__Member *member = from->members[i];
        if (!region_id_valid(member->region) || !region_id_valid(member->source) ||
            !region_id_valid(member->stamp_region) || member->state < MEMBER_CREATING ||
            member->state > MEMBER_REMOVED)
            return false;
        for (size_t before = 0; before < i; before++) {
            if (from->members[before]->region == member->region)
                return false;
        }
        to->members[i] = (struct member){
            .region = (uint16_t)member->region,
            .state = (enum member_state)member->state,
            .source = (uint16_t)member->source,
            .since_ms = member->since_ms,
            .stamp = {member->stamp, (uint16_t)member->stamp_region},
        };
    }
    to->member_count = (uint32_t)from->n_members;
    return true;
}

static bool is_member(const struct description *d, uint16_t region)
{
    for (uint32_t i = 0; i < d->member_count; i++) {
        if (d->members[i].region == region)
            return true;
    }
    return false;
}

/* Three different Regions, all of them members for as long as the groups may run. */
static bool unpack_strong_regions(const Tidemark__Control__V1__Strong *from, struct description *to)
{
    struct strong_setup *setup = &to->strong;
    if (from->n_regions != STRONG_MEMBERS || from->n_incarnations != STRONG_MEMBERS)
        return false;
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (!region_id_valid(from->regions[i]) || from->incarnations[i] > STRONG_INCARNATION_MAX ||
            (!from->ended && !is_member(to, (uint16_t)from->regions[i])))
            return false;
        for (int before = 0; before < i; before++) {
            if (from->regions[before] == from->regions[i])
                return false;
        }
        setup->regions[i] = (uint16_t)from->regions[i];
        setup->incarnations[i] = from->incarnations[i];
    }
    return true;
}

static bool unpack_dissolver(const Tidemark__Control__V1__Strong *from, struct strong_setup *to)
{
    if (from->dissolver == 0)
        return from->dissolved == 0 && from->dissolved_region == 0;
    if (!region_id_valid(from->dissolver) || !region_id_valid(from->dissolved_region))
        return false;
    to->dissolver = (uint16_t)from->dissolver;
    to->dissolved = (struct stamp){from->dissolved, (uint16_t)from->dissolved_region};
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (to->regions[i] == to->dissolver)
            return i != to->witness;
    }
    return false;
}

/* After the members. */
static bool unpack_strong(const Tidemark__Control__V1__Strong *from, struct description *to)
{
    struct strong_setup *setup = &to->strong;
    if (!from)
        return true;
    if (from->epoch == 0 || from->epoch > STRONG_EPOCH_MAX || from->witness > STRONG_MEMBERS)
        return false;
    if (from->ended && from->dissolver == 0) {
        *setup = strong_setup_blank(from->epoch);
        return from->n_regions == 0 && from->n_incarnations == 0 &&
               from->witness == STRONG_MEMBERS && unpack_dissolver(from, setup);
    }
    setup->epoch = from->epoch;
    setup->witness = (uint8_t)from->witness;
    setup->ended = from->ended;
    return unpack_strong_regions(from, to) && unpack_dissolver(from, setup);
}

static bool unpack_local(const Tidemark__Control__V1__Local *from, struct description *to)
{
    if (!from || from->id.len != TABLE_ID_LEN || from->status > TABLE_DELETING)
        return false;
    struct table *table = &to->table;
    table->number = from->number;
    memcpy(table->id, from->id.data, TABLE_ID_LEN);
    table->status = (enum table_status)from->status;
    table->created_wall_ms = from->created_ms;
    table->stream_wall_ms = from->stream_ms;
    table->deletion_protection = from->deletion_protection;
    table->table_class_infrequent = from->class_infrequent;
    to->epoch = from->epoch;
    to->dropped = from->dropped;
    return true;
}

static bool unpack(const Tidemark__Control__V1__Table *from, bool local, struct description *ret)
{
    struct description to = {0};
    if (!from || !copy_name(from->name, TABLE_NAME_MIN, to.table.name, sizeof(to.table.name)) ||
        !table_name_valid(to.table.name) || from->group_id.len != TABLE_ID_LEN ||
        from->partition_count < 1 || from->partition_count > TABLE_PARTITIONS_MAX)
        return false;
    memcpy(to.table.group_id, from->group_id.data, TABLE_ID_LEN);
    to.table.partition_count = from->partition_count;
    to.grave = from->grave;
    if (!unpack_key(from->key, &to.table.key) || !unpack_settings(from->settings, &to) ||
        !unpack_members(from, &to) || !unpack_strong(from->strong, &to) ||
        (local && !unpack_local(from->local, &to)))
        return false;
    *ret = to;
    return true;
}

/* ---- Descriptions ---- */

void description_encode(const struct description *description, bool local, struct buf *to)
{
    struct packing packing;
    pack(description, local, &packing);
    buf_append_u8(to, DESCRIPTION_FORMAT);
    append_message(&packing.table.base, to);
}

bool description_decode(struct bytes from, bool local, struct description *ret)
{
    uint8_t format;
    if (from.len > MESSAGE_BYTES_MAX || !bytes_take_u8(&from, &format) ||
        format != DESCRIPTION_FORMAT)
        return false;
    cleanup(arena_deinit) struct arena arena;
    arena_init(&arena);
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &arena};
    return unpack(tidemark__control__v1__table__unpack(&allocator, from.len, from.at), local, ret);
}

void descriptions_append(const struct description *description, struct buf *to)
{
    cleanup(buf_deinit) struct buf one;
    buf_init(&one);
    description_encode(description, false, &one);
    buf_append_prefixed(to, buf_view(&one));
}

bool descriptions_take(struct bytes *rest, struct description *ret, bool *ret_bad)
{
    struct bytes one;
    if (rest->len == 0)
        return false;
    if (bytes_take_prefixed(rest, &one) && description_decode(one, false, ret))
        return true;
    *ret_bad = true;
    return false;
}

/* ---- Calls ---- */

void call_encode(enum call_kind kind, uint16_t from, const struct description *table,
                 struct buf *to)
{
    struct packing packing;
    pack(table, false, &packing);
    Tidemark__Control__V1__Call call = TIDEMARK__CONTROL__V1__CALL__INIT;
    call.kind = kind;
    call.from = from;
    call.table = &packing.table;
    append_message(&call.base, to);
}

bool call_decode(struct bytes from, enum call_kind *ret, uint16_t *ret_from,
                 struct description *ret_table)
{
    if (from.len > MESSAGE_BYTES_MAX)
        return false;
    cleanup(arena_deinit) struct arena arena;
    arena_init(&arena);
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &arena};
    const Tidemark__Control__V1__Call *call =
        tidemark__control__v1__call__unpack(&allocator, from.len, from.at);
    if (!call || call->kind < CALL_CHECK_CREATE || call->kind > CALL_CHECK_WITNESS ||
        !region_id_valid(call->from) || !unpack(call->table, false, ret_table))
        return false;
    *ret = (enum call_kind)call->kind;
    *ret_from = (uint16_t)call->from;
    return true;
}

void answer_encode(enum call_outcome outcome, const struct description *table, struct buf *to)
{
    struct packing packing;
    Tidemark__Control__V1__Answer answer = TIDEMARK__CONTROL__V1__ANSWER__INIT;
    answer.outcome = outcome;
    if (table) {
        pack(table, false, &packing);
        answer.table = &packing.table;
    }
    append_message(&answer.base, to);
}

bool answer_decode(struct bytes from, enum call_outcome *ret, bool *ret_given,
                   struct description *ret_table)
{
    if (from.len > MESSAGE_BYTES_MAX)
        return false;
    cleanup(arena_deinit) struct arena arena;
    arena_init(&arena);
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &arena};
    const Tidemark__Control__V1__Answer *answer =
        tidemark__control__v1__answer__unpack(&allocator, from.len, from.at);
    if (!answer || answer->outcome < CALL_OK || answer->outcome > CALL_WITNESS_ONLY ||
        (answer->table && !unpack(answer->table, false, ret_table)))
        return false;
    *ret = (enum call_outcome)answer->outcome;
    *ret_given = answer->table != NULL;
    return true;
}
