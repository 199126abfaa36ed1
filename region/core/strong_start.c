/* SPDX-License-Identifier: Apache-2.0 */
/* A group as it is found in the store. The hard state, the base and the log are read, the log page
 * by page; what they show decides in which standing the member begins. A hard state of an earlier
 * incarnation than the table's description knows of is that of a lost life: it does not count. */

#include "region/core/strong_internal.h"

enum { PART_HARD, PART_BASE, PART_LOG, PARTS };
enum { UNSEEN_ROWS = 65536 };
enum { EVALUATE_MAX = 256 };
enum { LOAD_ROWS_MAX = 4096, LOAD_BYTES_MAX = 4 * 1024 * 1024 };

static uint32_t epoch_of(const struct strong *strong)
{
    return strong->table->d.strong.epoch;
}

static uint64_t new_read(struct region *region, struct strong *strong, uint32_t part)
{
    uint64_t id;
    struct read *read = read_new(region, READ_STRONG, strong, strong->table, &id);
    read->index = STRONG_READ_LOAD + part;
    strong_use(strong);
    return id;
}

static void read_log_from(struct region *region, struct strong *strong, uint64_t index)
{
    uint32_t number = strong->table->d.table.number, partition = strong->partition->index;
    uint64_t id = new_read(region, strong, PART_LOG);
    struct bytes begin =
        keyspace_strong_log(&region->key_scratch, number, partition, epoch_of(strong), index);
    struct bytes end =
        keyspace_strong_log(&region->end_scratch, number, partition, epoch_of(strong), UINT64_MAX);
    read_emit_range(region, id, begin, end, false, LOAD_ROWS_MAX, LOAD_BYTES_MAX);
}

void strong_load(struct region *region, struct strong *strong)
{
    uint32_t number = strong->table->d.table.number, partition = strong->partition->index;
    strong->state = STRONG_LOADING;
    strong->loading = PARTS;
    strong_found_init(&strong->found);
    uint64_t id = new_read(region, strong, PART_HARD);
    struct bytes begin =
        keyspace_strong_hard(&region->key_scratch, number, partition, epoch_of(strong), 0);
    struct bytes end =
        keyspace_strong_hard(&region->end_scratch, number, partition, epoch_of(strong), 2);
    read_emit_range(region, id, begin, end, false, 2, LOAD_BYTES_MAX);
    id = new_read(region, strong, PART_BASE);
    read_emit_key(region, id,
                  keyspace_strong_base(&region->key_scratch, number, partition, epoch_of(strong)));
    read_log_from(region, strong, 0);
}

/* What is being evaluated when a witness says that its log is full still enters it, and must find
 * room there (witness.c). */
static uint32_t evaluate_max(uint64_t log_bytes_max)
{
    uint64_t fit = log_bytes_max / (ITEM_SIZE_MAX + KEYSPACE_ROW_KEY_MAX);
    return fit < 1 ? 1 : fit > EVALUATE_MAX ? EVALUATE_MAX : (uint32_t)fit;
}

static void configure(struct region *region, const struct strong *strong,
                      struct consensus_config *ret)
{
    const struct strong_config *config = &region->config.strong;
    const struct strong_setup *setup = &strong->table->d.strong;
    *ret = (struct consensus_config){
        .epoch = setup->epoch,
        .self = strong->self,
        .seed = rng_next(&region->rng),
        .heartbeat_ns = config->heartbeat_ms * NS_PER_MS,
        .election_ns = config->election_ms * NS_PER_MS,
        .election_ns_max = config->election_ms_max * NS_PER_MS,
        .request_timeout_ns = config->request_timeout_ms * NS_PER_MS,
        .retry_ns = config->retry_ms * NS_PER_MS,
        .placement_ns = config->placement_ms * NS_PER_MS,
        .batch_bytes_max = 256 * 1024,
        .inflight_bytes_max = 1024 * 1024,
        .log_bytes_max = config->log_bytes_max,
        .frame_bytes_max = 2 * 1024 * 1024,
        .pending_max = 1024,
        .evaluate_max =
            config->evaluate_max ? config->evaluate_max : evaluate_max(config->log_bytes_max),
        .trim_entries = config->trim_entries ? config->trim_entries : 64,
        .quiesce = true,
        .trace = region->config.trace,
    };
    memcpy(ret->place.group_id, strong->table->d.table.group_id, CONSENSUS_GROUP_ID_LEN);
    ret->place.partition = strong->partition->index;
    for (uint8_t i = 0; i < STRONG_MEMBERS; i++)
        ret->kinds[i] = i == setup->witness ? CONSENSUS_WITNESS : CONSENSUS_DATA;
}

static void begin(struct region *region, struct strong *strong)
{
    struct strong_found *found = &strong->found;
    const struct partition_meta *meta = &strong->partition->meta;
    uint64_t known = strong->table->d.strong.incarnations[strong->self];
    struct consensus_start start = {0};
    strong_found_judge(found, &start);
    start.incarnation = known;
    if (start.found && start.hard.incarnation < known)
        start.found = false;
    if (found->hard_damaged) {
        start.found = false;
        start.incarnation = known >= region->wall_ms ? known + 1 : region->wall_ms;
    }
    if (!start.found || start.damaged_upto)
        trace_emit(&region->config.trace, TRACE_WARN, "strong: %s table=%s partition=%u",
                   start.found ? "the log is damaged" : "this member's disk is new or was lost",
                   strong->table->d.table.name, strong->partition->index);
    if (!strong->witness) {
        start.applied_index = strong->told = strong->stable = meta->applied_index;
        start.applied_term = strong->told_term = meta->applied_term;
        strong->stable_told = strong->stable;
    }
    strong->generation = found->generation;
    if (strong->log_low == 0)
        strong->log_low = start.base_index + 1;
    if (found->unreadable) {
        /* Rows that nobody saw may lie behind: these are overwritten, or deleted unseen. Any that
         * are missed show as a hole at the next start, which is damage again, and no worse. */
        uint64_t last =
            found->last_index > meta->applied_index ? found->last_index : meta->applied_index;
        strong->log_high = last + UNSEEN_ROWS;
    }
    strong->log_synced = start.base_index + start.entry_count;
    struct consensus_config config;
    configure(region, strong, &config);
    strong->core = consensus_new(&config);
    strong->state = STRONG_RUNNING;
    strong_input(region, strong,
                 &(struct consensus_input){.kind = CONSENSUS_START, .start = &start});
    strong_found_deinit(found);
    strong_calls_begin(region, strong);
}

static void take_log(struct region *region, struct strong *strong, const struct region_input *in)
{
    uint64_t index = 0;
    for (uint32_t i = 0; i < in->rows->count; i++) {
        bool ours = keyspace_strong_index(in->rows->at[i].key, &index);
        check(ours);
        strong_found_log(&strong->found, index, in->rows->at[i].value);
        if (strong->log_low == 0)
            strong->log_low = index;
        strong->log_high = index;
    }
    if (in->rows->more) {
        strong->loading++;
        read_log_from(region, strong, index + 1);
    }
}

void strong_load_rows(struct region *region, struct strong *strong, uint32_t part,
                      const struct region_input *in)
{
    check(strong->state == STRONG_LOADING);
    struct strong_found *found = &strong->found;
    bool readable = in->outcome == STORE_OK;
    if (part == PART_HARD) {
        for (uint32_t i = 0; readable && i < in->rows->count; i++)
            strong_found_hard(found, in->rows->at[i].value);
        found->hard_damaged |= !readable;
    } else if (part == PART_BASE) {
        if (readable && in->rows->count > 0)
            strong_found_base(found, in->rows->at[0].value);
        found->base_damaged |= !readable;
    } else if (readable) {
        take_log(region, strong, in);
    } else {
        found->unreadable = true;
    }
    if (--strong->loading == 0)
        begin(region, strong);
}

void strong_put_first(struct region *region, struct batch *batch, const struct description *next)
{
    const struct strong_setup *setup = &next->strong;
    uint8_t self = strong_member_of(setup, region->config.region);
    check(self < STRONG_MEMBERS);
    struct consensus_hard hard = consensus_hard_initial(setup->incarnations[self]);
    for (uint32_t i = 0; i < next->table.partition_count; i++) {
        struct buf *value = &region->log_scratch;
        buf_reset(value);
        strong_hard_encode(&hard, 1, value);
        struct bytes key =
            keyspace_strong_hard(&region->key_scratch, next->table.number, i, setup->epoch, 1);
        store_batch_put(&batch->bytes, key, buf_view(value));
    }
}
