/* SPDX-License-Identifier: Apache-2.0 */
/* UpdateTable's ReplicaUpdates, and DeleteTable of a replica (of strong tables: control_strong.c):
 * AWS's refusals, then the checks at the other Regions, then the one durable change that sets
 * everything going (group.c). Until that change nothing has happened anywhere, so an unreachable
 * Region costs the client an error and no more.
 *
 * The texts are AWS's as measured in October 2026, typographic quotes and "create a the new"
 * included: clients match on them. */

#include "conflict/region_id.h"
#include "region/core/region_internal.h"

const char replicas_source_message[] =
    "Replica cannot be deleted because it has acted as a source region for new replica(s) being "
    "added to the table in the last 24 hours.";

static const uint64_t SOURCE_MS = (uint64_t)24 * 60 * 60 * 1000;

/* ---- What can be refused without the table ---- */

static bool other_members_given(const struct op_control *control)
{
    return control->billing_given || control->throughput_given || control->stream_given ||
           control->protection_given || control->class_given || control->sse_given ||
           control->index_updates_given || control->other_given;
}

/* The members whose presence would have made it an update; those that were sent drop out. */
static bool nothing_to_do(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                   "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
                   "MultiAccountReplicaReady, ReplicaTransitRoleArn, %sDeletionProtectionEnabled, "
                   "OnDemandThroughput, WarmThroughput or TableClass is required",
                   op->control->consistency_given ? "" : "MultiRegionConsistency, ");
}

static bool same_create(const struct op_replica_update *a, const struct op_replica_update *b)
{
    return a->kind == REPLICA_UPDATE_CREATE && b->kind == REPLICA_UPDATE_CREATE &&
           bytes_equal(a->region, b->region);
}

static bool refuse_several(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Update table operation with more than one create or delete replica actions not "
                   "allowed");
}

/* Each element says one thing, and the call at most one Create or Delete; identical Creates count
 * as one. Whether several Deletes are one too many is for the table to say: they dissolve a strong
 * one. */
static bool check_elements(struct op *op)
{
    const struct op_control *control = op->control;
    const struct op_replica_update *first = NULL;
    for (uint32_t i = 0; i < control->replica_count; i++) {
        const struct op_replica_update *update = &control->replicas[i];
        if (update->several_kinds)
            return op_fail(op, API_VALIDATION,
                           "Update table operation with more than one type of replica actions not "
                           "allowed.");
        if (update->kind == REPLICA_UPDATE_EMPTY || update->only_region)
            return op_fail(op, API_VALIDATION,
                           "There are no actions specified in the Replica Update Action of the "
                           "request.");
        if (update->kind == REPLICA_UPDATE_UPDATE)
            continue;
        bool deletes =
            first && first->kind == REPLICA_UPDATE_DELETE && update->kind == REPLICA_UPDATE_DELETE;
        if (first && !deletes && !same_create(first, update) && !control->consistency_strong)
            return refuse_several(op);
        if (!first)
            first = update;
    }
    return true;
}

/* Of a request that names a consistency or witnesses. */
static bool check_global_shape(struct op *op)
{
    const struct op_control *control = op->control;
    if (other_members_given(control))
        return op_fail(op, API_VALIDATION,
                       "Requests that modify replicas or witnesses must not also modify other "
                       "fields");
    if (!control->replicas_given)
        return nothing_to_do(op);
    return strong_check_witnesses(op) && check_elements(op) && strong_check_shape(op);
}

bool replicas_check_shape(struct op *op)
{
    const struct op_control *control = op->control;
    if (control->consistency_given || control->witnesses_given)
        return check_global_shape(op);
    if (!control->replicas_given)
        return other_members_given(control) || nothing_to_do(op);
    if (other_members_given(control))
        return op_fail(
            op, API_VALIDATION,
            "One or more parameter values were invalid: Replica modification must be the "
            "only operation in the request");
    return check_elements(op);
}

/* ---- What the table refuses ---- */

bool replicas_refuse_region(const struct region *region, struct op *op, struct bytes name)
{
    cleanup(buf_deinit) struct buf list;
    buf_init(&list);
    buf_append_text(&list, region_id_name(region->config.region));
    for (uint32_t i = 0; i < region->config.peer_count; i++)
        buf_printf(&list, ", %s", region_id_name(region->config.peers[i]));
    return op_fail(op, API_VALIDATION,
                   "Region %.*s is not supported. The latest version of global tables are only "
                   "supported in the following regions: [%.*s]",
                   (int)name.len, (const char *)name.at, (int)list.len, (const char *)list.at);
}

bool replicas_refuse_stranger(struct op *op, struct bytes name)
{
    return op_fail(
        op, API_VALIDATION,
        "Update global table operation failed because one or more replicas were not part "
        "of the global table. Please retry the request without these replicas: [%.*s].",
        (int)name.len, (const char *)name.at);
}

bool replicas_refuse_local(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Cannot add or delete the local region through ReplicaUpdates. Use "
                   "CreateTable, DeleteTable, or UpdateTable as required.");
}

bool replicas_refuse_billing(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Table write capacity should either be Pay-Per-Request or AutoScaled.");
}

static bool already_exists(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Failed to create a the new replica of table with name: ‘%.*s’ "
                   "because one or more replicas already existed as tables.",
                   (int)op->table_name.len, (const char *)op->table_name.at);
}

bool table_has_replica(const struct table *table, uint16_t region)
{
    for (uint32_t i = 0; i < table->replica_count; i++) {
        if (table->replicas[i].region == region)
            return true;
    }
    return false;
}

/* The Create or Delete of the call; without one, its first Update. */
static const struct op_replica_update *main_update(const struct op_control *control)
{
    for (uint32_t i = 0; i < control->replica_count; i++) {
        if (control->replicas[i].kind != REPLICA_UPDATE_UPDATE)
            return &control->replicas[i];
    }
    return &control->replicas[0];
}

static bool check_create(const struct region *region, struct op *op, struct table_state *table,
                         uint16_t target)
{
    const struct table *shown = &table->d.table;
    if (table_has_replica(shown, target))
        return already_exists(op);
    if (shown->billing == BILLING_PROVISIONED)
        return replicas_refuse_billing(op);
    bool first = table->d.member_count == 0;
    if (table->d.strong.epoch >= STRONG_EPOCH_MAX)
        return strong_refuse_epoch(op);
    if (!group_member(&table->d, target) && table->d.member_count + (first ? 2 : 1) > VV_MAX)
        return op_fail(op, API_LIMIT_EXCEEDED,
                       "A global table can have at most %d replicas, past ones included.", VV_MAX);
    (void)region;
    return true;
}

static bool check_update(const struct region *region, struct op *op, struct table_state *table,
                         const struct op_replica_update *update, uint16_t target)
{
    if (update->kind == REPLICA_UPDATE_CREATE)
        return check_create(region, op, table, target);
    if (!table_has_replica(&table->d.table, target))
        return replicas_refuse_stranger(op, update->region);
    if (update->kind == REPLICA_UPDATE_UPDATE && update->throughput_override &&
        table->d.table.billing == BILLING_PAY_PER_REQUEST)
        return op_fail(op, API_VALIDATION,
                       "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                       "BillingMode is PAY_PER_REQUEST");
    return true;
}

/* ---- Setting it going ---- */

static void next_create(struct region *region, struct change_op *change)
{
    struct description *next = &change->next;
    if (next->member_count == 0)
        group_set_member(region, next, region->config.region, MEMBER_ACTIVE);
    group_set_member(region, next, change->target, MEMBER_CREATING);
    if (next->strong.epoch > 0)
        next->strong = strong_setup_blank(next->strong.epoch + 1);
    if (next->table.stream == STREAM_NONE) {
        next->table.stream = STREAM_BOTH;
        next->table.stream_wall_ms = region->wall_ms;
        next->settings_stamp = group_stamp(region, next->settings_stamp);
    }
}

/* Asks the target whether it can, and all other members whether they are there. */
static void ask(struct region *region, struct change_op *change, enum call_kind target_kind)
{
    const struct description *d = &change->table->d;
    change->calls = 1; /* so that none of the answers is the last before all are asked */
    if (change->target != 0)
        call_peer(region, change->target, target_kind, change->table, d, change);
    for (uint32_t i = 0; i < d->member_count; i++) {
        const struct member *member = &d->members[i];
        if (member->region != region->config.region && member->region != change->target &&
            member->state != MEMBER_REMOVED && peer_index(region, member->region) != VV_MAX)
            call_peer(region, member->region, CALL_CHECK_MEMBER, change->table, d, change);
    }
    if (--change->calls == 0)
        control_checked(region, change);
}

static bool one_table_action(const struct op_control *control)
{
    uint32_t actions = 0;
    for (uint32_t i = 0; i < control->replica_count; i++)
        actions += control->replicas[i].kind == REPLICA_UPDATE_DELETE;
    return actions <= 1; /* of Creates there is one, perhaps several times */
}

bool replicas_begin(struct region *region, struct op *op, uint64_t token, struct table_state *table)
{
    const struct op_control *control = op->control;
    const struct op_replica_update *update = main_update(control);
    uint16_t target = region_id_find(update->region);
    if (control->consistency_given && control->consistency_strong)
        return strong_make(region, op, token, table);
    if (table->d.table.mode == TABLE_STRONG)
        return strong_change(region, op, token, table);
    if (control->witnesses_given)
        return strong_refuse_stranger(op, control->witnesses[0].region);
    if (!one_table_action(control))
        return refuse_several(op);
    if (target == region->config.region)
        return replicas_refuse_local(op);
    if (target != REGION_ID_NONE && update->kind != REPLICA_UPDATE_CREATE &&
        !table_has_replica(&table->d.table, target))
        return replicas_refuse_stranger(op, update->region);
    if (target == REGION_ID_NONE || peer_index(region, target) == VV_MAX)
        return replicas_refuse_region(region, op, update->region);
    if (!check_update(region, op, table, update, target))
        return false;
    if (control->consistency_given && table->d.table.replica_count > 0)
        return strong_refuse_existing(op);
    struct change_op *change = change_new(table);
    change->request = request_new(region, op, token, 0);
    change->request->pending = 1;
    if (update->kind == REPLICA_UPDATE_UPDATE) {
        change_write(region, change); /* accepted; this version keeps no overrides */
        return true;
    }
    change->target = target;
    if (update->kind == REPLICA_UPDATE_CREATE) {
        change->adding = true;
        ask(region, change, CALL_CHECK_CREATE);
    } else {
        ask(region, change, CALL_CHECK_DELETE);
    }
    return true;
}

void replicas_leave(struct region *region, struct change_op *change)
{
    ask(region, change, CALL_CHECK_MEMBER);
}

bool replicas_sourced_lately(const struct region *region, const struct table_state *table)
{
    uint16_t own = region->config.region;
    for (uint32_t i = 0; i < table->d.member_count; i++) {
        const struct member *member = &table->d.members[i];
        if (member->region != own && member->source == own && member->since_ms > 0 &&
            (member->state == MEMBER_CREATING || member->state == MEMBER_ACTIVE) &&
            region->wall_ms < member->since_ms + SOURCE_MS)
            return true;
    }
    return false;
}

static bool explain(struct change_op *change)
{
    struct op *op = change->request->op;
    const char *where = region_id_name(change->refused_by);
    if (change->unreachable)
        return op_fail(op, API_INTERNAL,
                       "Region %s cannot be reached, so nothing was changed. Retry once it can.",
                       where);
    switch (change->refused) {
    case CALL_EXISTS:
        return already_exists(op);
    case CALL_PROTECTED:
        return op_fail(op, API_VALIDATION,
                       "Cannot delete table %s in region %s because it has deletion protection "
                       "enabled. Disable deletion protection first.",
                       change->table->d.table.name, where);
    case CALL_SOURCE:
        return op_fail(op, API_VALIDATION, "%s", replicas_source_message);
    case CALL_LIMIT:
        return op_fail(op, API_LIMIT_EXCEEDED,
                       "Subscriber limit exceeded: Region %s has no room for another table", where);
    case CALL_WITNESS_ONLY:
        return change->strong_step != STRONG_STEP_NONE
                   ? strong_refuse_region(op, where)
                   : op_fail(op, API_VALIDATION,
                             "Region %s is not supported: it holds witnesses of global tables with "
                             "MultiRegionConsistency set to STRONG, and nothing else.",
                             where);
    case CALL_BUSY:
        return op_fail(op, API_RESOURCE_IN_USE,
                       "The resource which you are attempting to change is in use.");
    case CALL_NOT_MEMBER:
    case CALL_STARTING:
    case CALL_MALFORMED:
    case CALL_OK:
        break;
    }
    return op_fail(op, API_INTERNAL,
                   "Region %s and this one disagree about the table, so nothing was changed. Retry "
                   "in a moment.",
                   where);
}

void control_checked(struct region *region, struct change_op *change)
{
    if (change->unreachable || change->refused) {
        explain(change);
        request_settle(region, change->request);
        change->request = NULL;
        change_abort(region, change);
        return;
    }
    if (change->strong_step != STRONG_STEP_NONE) {
        strong_checked(region, change);
        return;
    }
    if (change->target == 0)
        group_set_member(region, &change->next, region->config.region, MEMBER_DELETING);
    else if (change->adding)
        next_create(region, change);
    else
        group_set_member(region, &change->next, change->target, MEMBER_DELETING);
    change_write(region, change);
}
