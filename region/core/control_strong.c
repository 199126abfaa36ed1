/* SPDX-License-Identifier: Apache-2.0 */
/* UpdateTable where strong tables have a part in it: AWS's refusals, then the checks at the other
 * Regions, then the one durable change that makes or dissolves the table. What follows from that
 * change is told in group_strong.c. */

#include "conflict/region_id.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

/* ---- Refusals; AWS's texts where they are known ---- */

bool strong_refuse_stranger(struct op *op, struct bytes name)
{
    return op_fail(
        op, API_VALIDATION,
        "Update global table operation failed because one or more witnesses were not part "
        "of the global table. Please retry the request without these witnesses: [%.*s].",
        (int)name.len, (const char *)name.at);
}

bool strong_refuse_region(struct op *op, const char *name)
{
    return op_fail(op, API_VALIDATION,
                   "Unsupported Region(s) specified for global tables with MultiRegionConsistency "
                   "set to STRONG: [%s].",
                   name);
}

bool strong_refuse_existing(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "MultiRegionConsistency parameter is unsupported on existing global table");
}

bool strong_refuse_epoch(struct op *op)
{
    return op_fail(op, API_LIMIT_EXCEEDED,
                   "The table has changed its MultiRegionConsistency too often. Create a new one.");
}

static bool refuse_count(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Unsupported replica count for global tables with MultiRegionConsistency set to "
                   "STRONG.");
}

static bool refuse_local_witness(struct op *op)
{
    return op_fail(op, API_VALIDATION,
                   "Cannot add a witness in the same region as an existing replica when creating a "
                   "global table with MultiRegionConsistency set to STRONG.");
}

static bool refuse_not_empty(struct op *op)
{
    return op_fail(
        op, API_VALIDATION,
        "One or more parameter values were invalid: Only an empty table to which nothing "
        "is being written can become a global table with MultiRegionConsistency set to "
        "STRONG. Delete its items and pause its writers, or use a new table.");
}

/* ---- What can be refused without the table ---- */

/* Whether an earlier element of the same kind names the same Region. */
static bool repeated(const struct op_replica_update *updates, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (updates[i].kind == updates[index].kind &&
            bytes_equal(updates[i].region, updates[index].region))
            return true;
    }
    return false;
}

/* Different Regions that the request creates or deletes something in. */
static uint32_t count_kind(const struct op_replica_update *updates, uint32_t count, int kind)
{
    uint32_t different = 0;
    for (uint32_t i = 0; i < count; i++)
        different += (int)updates[i].kind == kind && !repeated(updates, i);
    return different;
}

bool strong_check_witnesses(struct op *op)
{
    const struct op_control *control = op->control;
    bool deletes = true;
    for (uint32_t i = 0; i < control->replica_count; i++)
        deletes &= control->replicas[i].kind == REPLICA_UPDATE_DELETE;
    for (uint32_t i = 0; i < control->witness_count; i++) {
        const struct op_replica_update *witness = &control->witnesses[i];
        if (witness->several_kinds)
            return op_fail(op, API_VALIDATION,
                           "Update table operation with more than one type of witness actions not "
                           "allowed.");
        if (witness->kind == REPLICA_UPDATE_EMPTY)
            return op_fail(op, API_VALIDATION,
                           "There are no actions specified in the Global Table Witness Update "
                           "Action of the request.");
        deletes &= witness->kind == REPLICA_UPDATE_DELETE;
    }
    /* A strong table is dissolved without naming its mode, and made with it. */
    if (control->witnesses_given && !deletes && !control->consistency_strong)
        return op_fail(op, API_VALIDATION,
                       "MultiRegionConsistency must be set as STRONG when "
                       "GlobalTableWitnessUpdates parameter is present.");
    return true;
}

static bool check_made_regions(struct op *op)
{
    const struct op_control *control = op->control;
    uint32_t count = count_kind(control->replicas, control->replica_count, REPLICA_UPDATE_CREATE);
    for (uint32_t i = 0; i < control->witness_count; i++) {
        struct bytes name = control->witnesses[i].region;
        for (uint32_t j = 0; j < control->replica_count; j++) {
            if (bytes_equal(name, control->replicas[j].region))
                return op_fail(op, API_VALIDATION,
                               "Cannot target multiple regions with the same action");
        }
        if (op->region != REGION_ID_NONE && region_id_find(name) == op->region)
            return refuse_local_witness(op);
    }
    if (count + control->witness_count != STRONG_MEMBERS - 1)
        return refuse_count(op);
    for (uint32_t i = 0; i < control->replica_count + control->witness_count; i++) {
        uint16_t id = region_id_find(i < control->replica_count
                                         ? control->replicas[i].region
                                         : control->witnesses[i - control->replica_count].region);
        if (id != REGION_ID_NONE && !region_id_strong(id))
            return strong_refuse_region(op, region_id_name(id));
    }
    return true;
}

bool strong_check_shape(struct op *op)
{
    const struct op_control *control = op->control;
    if (!control->consistency_given)
        return true;
    bool creates = true;
    for (uint32_t i = 0; i < control->replica_count; i++)
        creates &= control->replicas[i].kind == REPLICA_UPDATE_CREATE;
    for (uint32_t i = 0; i < control->witness_count; i++)
        creates &= control->witnesses[i].kind == REPLICA_UPDATE_CREATE;
    if (!creates)
        return op_fail(op, API_VALIDATION,
                       "Only Replica Create actions are supported when MultiRegionConsistency "
                       "parameter is provided.");
    return !control->consistency_strong || check_made_regions(op);
}

/* ---- Making ---- */

static bool write_under_way(const struct region *region, const struct table_state *table)
{
    for (const struct list *link = region->requests.next; link != &region->requests;
         link = link->next) {
        const struct op *op = container_of(link, struct request, link)->op;
        if (op_shape(op->kind) != OP_SHAPE_WRITE)
            continue;
        for (uint32_t i = 0; i < op->key_count; i++) {
            if (op->keys[i].table == &table->d.table)
                return true;
        }
    }
    return false;
}

/* Nothing there and nothing on its way: the groups' logs begin with an empty table. */
static bool check_empty(const struct region *region, struct op *op, const struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        if (table->partitions[i].meta.items > 0)
            return refuse_not_empty(op);
    }
    if (write_under_way(region, table))
        return refuse_not_empty(op);
    bool busy = table->batches > 0 || table->erasing || table->shed_wanted;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++)
        busy |= table->partitions[i].meta.tombstones > 0 || table->partitions[i].collect != NULL ||
                table->partitions[i].trimming;
    if (busy) /* what an earlier life as a global table has left is being cleared away */
        return op_fail(op, API_RESOURCE_IN_USE,
                       "The resource which you are attempting to change is in use.");
    return true;
}

static bool check_target(const struct region *region, struct op *op, struct bytes name,
                         bool witness, uint16_t *ret)
{
    uint16_t target = region_id_find(name);
    if (target == region->config.region)
        return witness ? refuse_local_witness(op) : replicas_refuse_local(op);
    if (target == REGION_ID_NONE || peer_index(region, target) == VV_MAX)
        return replicas_refuse_region(region, op, name);
    *ret = target;
    return true;
}

/* The setup's Regions: this one, then those that the request names, in its order. */
static bool plan_setup(const struct region *region, struct op *op, struct strong_setup *setup)
{
    const struct op_control *control = op->control;
    uint32_t count = 0;
    setup->regions[count++] = region->config.region;
    for (uint32_t i = 0; i < control->replica_count; i++) {
        if (repeated(control->replicas, i))
            continue;
        check(count < STRONG_MEMBERS);
        if (!check_target(region, op, control->replicas[i].region, false, &setup->regions[count++]))
            return false;
    }
    setup->witness = STRONG_MEMBERS;
    if (control->witness_count > 0) {
        check(count < STRONG_MEMBERS);
        setup->witness = (uint8_t)count;
        if (!check_target(region, op, control->witnesses[0].region, true, &setup->regions[count++]))
            return false;
    }
    check(count == STRONG_MEMBERS); /* strong_check_shape has counted */
    return true;
}

static bool room_for_members(const struct table_state *table, const struct strong_setup *setup)
{
    struct description d = table->d;
    uint32_t more = 0;
    for (int i = 0; i < STRONG_MEMBERS; i++)
        more += group_member(&d, setup->regions[i]) == NULL;
    return d.member_count + more <= VV_MAX;
}

/* Asks all other members; control_checked goes on when they have answered. */
static void ask_members(struct region *region, struct change_op *change)
{
    const struct strong_setup *setup = &change->next.strong;
    bool makes = change->strong_step == STRONG_STEP_MAKE;
    change->calls = 1; /* so that none of the answers is the last before all are asked */
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        bool witness = i == setup->witness;
        enum call_kind kind = makes     ? (witness ? CALL_CHECK_WITNESS : CALL_CHECK_CREATE)
                              : witness ? CALL_CHECK_MEMBER
                                        : CALL_CHECK_DELETE;
        if (setup->regions[i] != region->config.region)
            call_peer(region, setup->regions[i], kind, change->table, &change->table->d, change);
    }
    if (--change->calls == 0)
        control_checked(region, change);
}

static struct change_op *begin(struct region *region, struct op *op, uint64_t token,
                               struct table_state *table)
{
    struct change_op *change = change_new(table);
    change->request = request_new(region, op, token, 0);
    change->request->pending = 1;
    return change;
}

bool strong_make(struct region *region, struct op *op, uint64_t token, struct table_state *table)
{
    const struct table *shown = &table->d.table;
    struct strong_setup setup = {.epoch = table->d.strong.epoch + 1};
    if (shown->replica_count > 0 || shown->mode != TABLE_REGIONAL)
        return strong_refuse_existing(op);
    if (!plan_setup(region, op, &setup))
        return false;
    if (!region_id_strong(region->config.region))
        return strong_refuse_region(op, region_id_name(region->config.region));
    if (shown->billing == BILLING_PROVISIONED)
        return replicas_refuse_billing(op);
    if (!room_for_members(table, &setup))
        return op_fail(op, API_LIMIT_EXCEEDED,
                       "A global table can have at most %d replicas, past ones included.", VV_MAX);
    if (setup.epoch > STRONG_EPOCH_MAX)
        return strong_refuse_epoch(op);
    if (!check_empty(region, op, table))
        return false;
    struct change_op *change = begin(region, op, token, table);
    change->strong_step = STRONG_STEP_MAKE;
    change->next.strong = setup;
    ask_members(region, change);
    return true;
}

/* What the partitions remember of the groups of an earlier epoch. */
static void forget_groups(struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition_meta *meta = &table->partitions[i].meta;
        meta->applied_index = meta->applied_term = 0;
        meta->sealed = REGION_ID_NONE;
    }
}

static void made(struct region *region, struct change_op *change)
{
    struct description *next = &change->next;
    uint64_t known = 0;
    forget_groups(change->table);
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (change->table->d.strong.incarnations[i] > known)
            known = change->table->d.strong.incarnations[i];
        uint16_t member = next->strong.regions[i];
        bool own = member == region->config.region;
        group_set_member(region, next, member, own ? MEMBER_ACTIVE : MEMBER_CREATING);
    }
    next->strong.incarnations[0] = strong_incarnation_after(region, known);
    change->strong_first = true;
    /* From now on no write may pass by the groups; if this cannot be written, group_settle puts it
     * back. */
    change->table->d.table.mode = TABLE_STRONG;
    change_write(region, change);
}

/* ---- Dissolving ---- */

static bool check_deletes(const struct region *region, struct op *op, const struct table *shown)
{
    const struct op_control *control = op->control;
    for (uint32_t i = 0; i < control->replica_count; i++) {
        const struct op_replica_update *update = &control->replicas[i];
        uint16_t target = region_id_find(update->region);
        if (update->kind == REPLICA_UPDATE_CREATE)
            return op_fail(op, API_VALIDATION,
                           "Cannot add replicas to a global table with strong "
                           "MultiRegionConsistency");
        if (target == region->config.region)
            return replicas_refuse_local(op);
        if (!table_has_replica(shown, target))
            return replicas_refuse_stranger(op, update->region);
        if (update->kind == REPLICA_UPDATE_UPDATE && update->throughput_override)
            return op_fail(op, API_VALIDATION,
                           "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                           "BillingMode is PAY_PER_REQUEST");
    }
    for (uint32_t i = 0; i < control->witness_count; i++) {
        if (shown->witness == 0 || region_id_find(control->witnesses[i].region) != shown->witness)
            return strong_refuse_stranger(op, control->witnesses[i].region);
    }
    return true;
}

bool strong_change(struct region *region, struct op *op, uint64_t token, struct table_state *table)
{
    const struct op_control *control = op->control;
    const struct table *shown = &table->d.table;
    if (control->consistency_given)
        return strong_refuse_existing(op);
    if (!check_deletes(region, op, shown))
        return false;
    uint32_t deletes = count_kind(control->replicas, control->replica_count, REPLICA_UPDATE_DELETE);
    if (deletes == 0) { /* Updates: accepted; this version keeps no overrides */
        change_write(region, begin(region, op, token, table));
        return true;
    }
    if (deletes < shown->replica_count)
        return op_fail(op, API_VALIDATION,
                       "Deletion of only one table replica is not supported for global tables with "
                       "MultiRegionConsistency set to STRONG.");
    if (shown->witness != 0 && control->witness_count == 0)
        return op_fail(op, API_VALIDATION,
                       "Update table delete operation does not include all witnesses.");
    struct change_op *change = begin(region, op, token, table);
    change->strong_step = STRONG_STEP_DISSOLVE;
    ask_members(region, change);
    return true;
}

void strong_checked(struct region *region, struct change_op *change)
{
    if (change->strong_step == STRONG_STEP_DISSOLVE) {
        strong_set_dissolver(region, &change->next, region->config.region);
        change_write(region, change);
        return;
    }
    /* Writes went on while the others were asked. */
    if (check_empty(region, change->request->op, change->table)) {
        made(region, change);
        return;
    }
    request_settle(region, change->request);
    change->request = NULL;
    change_abort(region, change);
}
