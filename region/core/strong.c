/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of strong tables at this Region: opened when a table's setup is complete, stepped,
 * timed, and closed. Every input goes through strong_input, every effect through perform. */

#include "region/core/strong.h"

#include "conflict/region_id.h"
#include "region/core/strong_internal.h"

/* ---- Timers: a binary heap of the groups by deadline ---- */

static void heap_put(struct strong_region *all, uint32_t at, struct strong *strong)
{
    all->heap[at] = strong;
    strong->heap_at = at;
}

static void heap_up(struct strong_region *all, uint32_t at)
{
    struct strong *strong = all->heap[at];
    while (at > 0 && all->heap[(at - 1) / 2]->deadline > strong->deadline) {
        heap_put(all, at, all->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(all, at, strong);
}

static void heap_down(struct strong_region *all, uint32_t at)
{
    struct strong *strong = all->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= all->heap_count)
            break;
        if (child + 1 < all->heap_count &&
            all->heap[child + 1]->deadline < all->heap[child]->deadline)
            child++;
        if (all->heap[child]->deadline >= strong->deadline)
            break;
        heap_put(all, at, all->heap[child]);
        at = child;
    }
    heap_put(all, at, strong);
}

static void heap_remove(struct strong_region *all, struct strong *strong)
{
    uint32_t at = strong->heap_at;
    if (at == UINT32_MAX)
        return;
    strong->heap_at = UINT32_MAX;
    struct strong *last = all->heap[--all->heap_count];
    if (last == strong)
        return;
    heap_put(all, at, last);
    heap_up(all, at);
    heap_down(all, last->heap_at);
}

static void heap_set(struct strong_region *all, struct strong *strong, uint64_t deadline)
{
    if (strong->heap_at == UINT32_MAX) {
        if (all->heap_count == all->heap_cap) {
            all->heap_cap = all->heap_cap ? all->heap_cap * 2 : 16;
            all->heap = xrealloc(all->heap, all->heap_cap * sizeof(struct strong *));
        }
        strong->deadline = deadline;
        heap_put(all, all->heap_count, strong);
        heap_up(all, all->heap_count++);
        return;
    }
    uint64_t before = strong->deadline;
    strong->deadline = deadline;
    if (deadline < before)
        heap_up(all, strong->heap_at);
    else if (deadline > before)
        heap_down(all, strong->heap_at);
}

/* When this group next needs attention without being asked for it. */
static void set_timer(struct region *region, struct strong *strong)
{
    uint64_t at = consensus_deadline(strong->core);
    if (strong->retry_ns < at)
        at = strong->retry_ns;
    if (strong->seal_after_ns && strong->seal_after_ns < at)
        at = strong->seal_after_ns;
    if (strong->incoming.retry_ns && strong->incoming.retry_ns < at)
        at = strong->incoming.retry_ns;
    if (strong_reads_deadline(strong) < at)
        at = strong_reads_deadline(strong);
    heap_set(region->strong, strong, at);
}

/* ---- Stepping ---- */

/* Whoever sends rubbish shall not fill the log with it. */
static void bad_frame(struct region *region, const struct strong *strong,
                      const struct consensus_effect *effect)
{
    enum { QUIET_MS = 1000 };
    struct strong_region *all = region->strong;
    if (region->mono_ns < all->bad_frame_after_ns) {
        all->bad_frames_untold++;
        return;
    }
    trace_emit(
        &region->config.trace, TRACE_WARN,
        "strong: frame refused table=%s partition=%u from=%s: %s; others since the last such "
        "line: %llu",
        strong->table->d.table.name, strong->partition->index,
        region_id_name(strong_region_of(strong, effect->peer)), effect->reason,
        (unsigned long long)all->bad_frames_untold);
    all->bad_frame_after_ns = region->mono_ns + (uint64_t)QUIET_MS * NS_PER_MS;
    all->bad_frames_untold = 0;
}

static void perform(struct region *region, struct strong *strong,
                    const struct consensus_effect *effect)
{
    switch (effect->kind) {
    case CONSENSUS_PERSIST:
        strong_persist(region, strong, effect->seq, &effect->write);
        return;
    case CONSENSUS_SEND:
        strong_send(region, strong, effect->peer, effect->bytes);
        return;
    case CONSENSUS_EVALUATE:
        strong_evaluate(region, strong, effect);
        return;
    case CONSENSUS_APPENDED:
        strong_appended(strong, effect->id, effect->index);
        return;
    case CONSENSUS_APPLY:
        strong_apply(region, strong, effect);
        return;
    case CONSENSUS_REPLY:
        strong_reply(region, strong, effect);
        return;
    case CONSENSUS_READ_OK:
        strong_read_ok(region, strong, effect->token, effect->index);
        return;
    case CONSENSUS_ROLE_CHANGED:
        strong_role(region, strong);
        return;
    case CONSENSUS_SNAPSHOT_READ:
        strong_snapshot_read(region, strong, effect->id, effect->peer, effect->offset);
        return;
    case CONSENSUS_SNAPSHOT_CLOSE:
        strong_snapshot_close(strong, effect->id);
        return;
    case CONSENSUS_SNAPSHOT_WRITE:
        strong_snapshot_write(region, strong, effect);
        return;
    case CONSENSUS_BAD_FRAME:
        bad_frame(region, strong, effect);
        return;
    }
    unreachable();
}

static void step(struct region *region, struct strong *strong, struct consensus_input *in)
{
    in->mono_ns = region->mono_ns;
    in->wall_ms = region->wall_ms;
    struct consensus_output out;
    strong->stepped = in->bytes;
    consensus_step(strong->core, in, &out);
    for (uint32_t i = 0; i < out.count; i++)
        perform(region, strong, &out.at[i]);
}

static void drain_inputs(struct region *region, struct strong *strong)
{
    if (strong->stepping)
        return;
    strong->stepping = true;
    for (struct list *link;
         strong->state == STRONG_RUNNING && (link = list_take(&strong->inputs));) {
        struct strong_input *input = container_of(link, struct strong_input, link);
        step(region, strong, &input->in);
        free(input);
    }
    strong->stepping = false;
}

void strong_mark(struct region *region, struct strong *strong)
{
    if (list_empty(&strong->dirty))
        list_append(&region->strong->dirty, &strong->dirty);
}

void strong_input(struct region *region, struct strong *strong, const struct consensus_input *in)
{
    if (strong->state == STRONG_RUNNING && !strong->stepping && list_empty(&strong->inputs)) {
        strong_mark(region, strong);
        struct consensus_input now = *in;
        strong->stepping = true;
        step(region, strong, &now);
        strong->stepping = false;
        return;
    }
    strong_input_later(region, strong, in);
}

void strong_input_later(struct region *region, struct strong *strong,
                        const struct consensus_input *in)
{
    if (strong->state != STRONG_RUNNING)
        return;
    strong_mark(region, strong);
    struct strong_input *input = xmalloc(sizeof(*input) + in->bytes.len);
    *input = (struct strong_input){.in = *in, .len = in->bytes.len};
    check(in->kind != CONSENSUS_START);
    if (in->bytes.len > 0)
        memcpy(input->bytes, in->bytes.at, in->bytes.len);
    input->in.bytes = bytes_make(input->bytes, in->bytes.len);
    list_append(&strong->inputs, &input->link);
}

/* What has become durable since the consensus was told. */
static void tell_progress(struct region *region, struct strong *strong)
{
    if (strong->persisted > strong->persisted_told) {
        strong->persisted_told = strong->persisted;
        strong_input(
            region, strong,
            &(struct consensus_input){.kind = CONSENSUS_PERSISTED, .seq = strong->persisted});
        drain_inputs(region, strong);
    }
    if (strong->stable > strong->stable_told) {
        strong->stable_told = strong->stable;
        strong_input(region, strong,
                     &(struct consensus_input){.kind = CONSENSUS_APPLIED,
                                               .index = strong->told,
                                               .stable = strong->stable});
        drain_inputs(region, strong);
    }
}

static void work(struct region *region, struct strong *strong)
{
    drain_inputs(region, strong);
    if (strong->state != STRONG_RUNNING)
        return;
    tell_progress(region, strong);
    strong_applies_drain(region, strong);
    drain_inputs(region, strong);
    if (strong->incoming.id)
        strong_install(region, strong);
    if (strong->state == STRONG_RUNNING)
        set_timer(region, strong);
}

void strong_flush(struct region *region)
{
    for (struct list *link; (link = list_take(&region->strong->dirty));) {
        struct strong *strong = container_of(link, struct strong, dirty);
        struct table_state *table = strong->table;
        bool ready = table->strong_ready;
        table->users++;
        strong_use(strong);
        work(region, strong);
        strong_release(strong);
        table->strong_ready = strong_ready(table);
        if (table->strong_ready && !ready)
            group_advance(region, table);
        table_release(region, table);
    }
    strong_net_flush(region);
}

uint64_t strong_deadline(const struct region *region)
{
    return region->strong->heap_count > 0 ? region->strong->heap[0]->deadline : UINT64_MAX;
}

static void timeout(struct region *region, struct strong *strong)
{
    if (strong->retry_ns <= region->mono_ns) {
        strong->retry_ns = UINT64_MAX;
        strong_persist_retry(region, strong);
        strong_applies_again(region, strong);
    }
    if (strong->seal_after_ns && strong->seal_after_ns <= region->mono_ns)
        strong_seal_retry(region, strong);
    if (strong->incoming.retry_ns && strong->incoming.retry_ns <= region->mono_ns) {
        strong->incoming.retry_ns = 0;
        strong_mark(region, strong);
    }
    strong_reads_expire(region, strong);
    strong_input(region, strong, &(struct consensus_input){.kind = CONSENSUS_TIMEOUT});
    set_timer(region, strong);
}

void strong_timeout(struct region *region)
{
    struct strong_region *all = region->strong;
    /* Each at most once, whatever its next deadline is. */
    for (uint32_t left = all->heap_count;
         left > 0 && all->heap_count > 0 && all->heap[0]->deadline <= region->mono_ns; left--)
        timeout(region, all->heap[0]);
}

void strong_transfer(struct region *region, uint16_t to, struct bytes table_name)
{
    struct strong_region *all = region->strong;
    for (uint32_t i = 0; i < all->all_count; i++) {
        struct strong *strong = all->all[i];
        const struct description *d = &strong->table->d;
        uint8_t member = strong_member_of(&d->strong, to);
        if (member != CONSENSUS_NOBODY && member != strong->self &&
            (table_name.len == 0 || bytes_is(table_name, d->table.name)))
            strong_input(region, strong,
                         &(struct consensus_input){.kind = CONSENSUS_TRANSFER, .peer = member});
    }
}

/* ---- Opening and closing ---- */

uint8_t strong_member_of(const struct strong_setup *setup, uint16_t region)
{
    for (uint8_t i = 0; i < STRONG_MEMBERS; i++) {
        if (setup->regions[i] == region)
            return i;
    }
    return CONSENSUS_NOBODY;
}

bool strong_formed(const struct strong_setup *setup)
{
    if (setup->epoch == 0 || setup->ended)
        return false;
    for (int i = 0; i < STRONG_MEMBERS; i++) {
        if (setup->incarnations[i] == 0)
            return false;
    }
    return true;
}

void strong_use(struct strong *strong)
{
    strong->uses++;
}

static void free_inputs(struct strong *strong)
{
    for (struct list *link; (link = list_take(&strong->inputs));)
        free(container_of(link, struct strong_input, link));
}

static void free_group(struct strong *strong)
{
    check(strong->state == STRONG_CLOSED);
    list_remove(&strong->dirty);
    free_inputs(strong);
    strong_persists_free(strong);
    strong_found_deinit(&strong->found);
    consensus_free(strong->core);
    for (int i = 0; i < STRONG_OUTGOING; i++)
        buf_deinit(&strong->outgoing[i].after);
    buf_deinit(&strong->incoming.piece);
    buf_deinit(&strong->incoming.after);
    buf_deinit(&strong->incoming.at);
    buf_deinit(&strong->incoming.upto);
    free(strong);
}

void strong_release(struct strong *strong)
{
    check(strong->uses > 0);
    if (--strong->uses == 0 && strong->state == STRONG_CLOSED)
        free_group(strong);
}

static void open_group(struct region *region, struct partition *partition)
{
    struct strong *strong = xcalloc(1, sizeof(*strong));
    const struct strong_setup *setup = &partition->table->d.strong;
    *strong = (struct strong){
        .partition = partition,
        .table = partition->table,
        .self = strong_member_of(setup, region->config.region),
        .heap_at = UINT32_MAX,
        .deadline = UINT64_MAX,
        .retry_ns = UINT64_MAX,
        .uses = 1, /* the partition's */
    };
    check(strong->self < STRONG_MEMBERS);
    strong->witness = strong->self == setup->witness;
    struct list *lists[] = {&strong->dirty,      &strong->inputs,     &strong->persists,
                            &strong->applies,    &strong->calls_new,  &strong->calls_open,
                            &strong->calls_read, &strong->evaluations};
    for (size_t i = 0; i < array_len(lists); i++)
        list_init(lists[i]);
    relay_init(&strong->relay, strong->self, region->config.strong.relay_silence_ms * NS_PER_MS,
               region->mono_ns);
    partition->strong = strong;
    struct strong_region *all = region->strong;
    if (all->all_count == all->all_cap) {
        all->all_cap = all->all_cap ? all->all_cap * 2 : 16;
        all->all = xrealloc(all->all, all->all_cap * sizeof(struct strong *));
    }
    all->all[all->all_count++] = strong;
    strong_load(region, strong);
}

static void close_group(struct region *region, struct strong *strong)
{
    struct strong_region *all = region->strong;
    for (uint32_t i = 0; i < all->all_count; i++) {
        if (all->all[i] == strong)
            all->all[i--] = all->all[--all->all_count];
    }
    strong->partition->strong = NULL;
    strong->state = STRONG_CLOSED;
    list_remove(&strong->dirty);
    heap_remove(all, strong);
    strong_calls_fail(region, strong);
    strong_evaluations_drop(region, strong);
    strong_applies_drop(region, strong);
    list_append(&all->closing, &strong->dirty);
    strong_release(strong);
}

void strong_close(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        if (table->partitions[i].strong)
            close_group(region, table->partitions[i].strong);
    }
    table->strong_ready = false;
    if (table->strong_listed)
        HASH_DELETE(by_group, region->strong->tables, table);
    table->strong_listed = false;
}

void strong_settle(struct region *region, struct table_state *table)
{
    const struct strong_setup *setup = &table->d.strong;
    if (!region->ready || table->hidden || table->d.dropped)
        return;
    if (!strong_formed(setup) ||
        strong_member_of(setup, region->config.region) == CONSENSUS_NOBODY) {
        strong_close(region, table);
        return;
    }
    if (!table->strong_listed)
        HASH_ADD_KEYPTR(by_group, region->strong->tables, table->d.table.group_id, TABLE_ID_LEN,
                        table);
    table->strong_listed = true;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        struct partition *partition = &table->partitions[i];
        if (!partition->strong)
            open_group(region, partition);
    }
}

bool strong_ready(const struct table_state *table)
{
    if (!strong_formed(&table->d.strong))
        return false;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        const struct strong *strong = table->partitions[i].strong;
        if (!strong || strong->state != STRONG_RUNNING)
            return false;
        struct consensus_status status = consensus_status(strong->core);
        if (status.leader == CONSENSUS_NOBODY || status.leader == table->d.strong.witness ||
            status.standing != CONSENSUS_FULL || status.commit == 0 ||
            (!strong->witness && status.applied == 0))
            return false;
    }
    return true;
}

void strong_start_all(struct region *region)
{
    for (uint32_t i = 0; i < region->table_count; i++)
        strong_settle(region, region->tables[i]);
}

/* ---- Life ---- */

void strong_new(struct region *region)
{
    region->strong = xcalloc(1, sizeof(*region->strong));
    list_init(&region->strong->dirty);
    list_init(&region->strong->closing);
    arena_init(&region->strong->arena);
}

void strong_free(struct region *region)
{
    struct strong_region *all = region->strong;
    while (all->all_count > 0) {
        struct strong *strong = all->all[0];
        strong->uses = 1; /* whoever else points here goes with the region */
        close_group(region, strong);
    }
    list_each(link, spare, &all->closing)
    {
        free_group(container_of(link, struct strong, dirty));
    }
    check(!all->calls);
    HASH_CLEAR(by_group, all->tables);
    for (uint32_t i = 0; i < VV_MAX; i++)
        buf_deinit(&all->outbox[i]);
    arena_deinit(&all->arena);
    buf_deinit(&all->scratch);
    buf_deinit(&all->payload);
    free(all->heap);
    free(all->all);
    free(all);
    region->strong = NULL;
}

/* ---- Rows and batches ---- */

void strong_rows(struct region *region, struct read read, const struct region_input *in)
{
    struct strong *strong = read.owner;
    if (strong->state != STRONG_CLOSED) {
        if (read.index >= STRONG_READ_INCOMING)
            strong_install_rows(region, strong, &read, in);
        else if (read.index >= STRONG_READ_OUTGOING)
            strong_snapshot_rows(region, strong, &read, in);
        else
            strong_load_rows(region, strong, read.index - STRONG_READ_LOAD, in);
    }
    strong_release(strong);
}

void strong_durable(struct region *region, struct batch *batch, bool durable)
{
    struct strong *strong = batch->owner_at;
    if (strong->state == STRONG_RUNNING) {
        strong_mark(region, strong);
        switch (batch->strong_part) {
        case STRONG_BATCH_LOG:
            if (durable)
                strong_persist_durable(region, strong, batch->strong_seq);
            else
                strong_persist_failed(region, strong);
            break;
        case STRONG_BATCH_APPLY:
            if (durable)
                strong_apply_durable(region, strong, batch->strong_seq);
            else
                strong_apply_failed(region, strong);
            break;
        case STRONG_BATCH_INSTALL:
            strong_install_durable(region, strong, batch->strong_seq, durable);
            break;
        }
    }
    strong_release(strong);
}

void strong_lane_known(struct region *region, struct wait *wait, struct lane *lane, bool broken)
{
    (void)lane;
    if (wait->index == STRONG_WAIT_APPLY) {
        struct strong_apply *apply = container_of(wait, struct strong_apply, wait);
        struct strong *strong = wait->owner;
        if (broken) { /* the entry's image takes the place of what cannot be read */
            lane->known = true;
            buf_reset(&lane->base);
        }
        apply->known = true;
        strong_mark(region, strong);
        return;
    }
    strong_evaluation_known(region, container_of(wait, struct strong_evaluation, wait), broken);
}

/* ---- Figures ---- */

uint32_t region_group_count(const struct region *region)
{
    return region->strong->all_count;
}

struct region_group region_group_at(const struct region *region, uint32_t index)
{
    check(index < region->strong->all_count);
    const struct strong *strong = region->strong->all[index];
    struct region_group group = {.table = &strong->table->d.table,
                                 .partition = strong->partition->index,
                                 .witness = strong->witness};
    memcpy(group.members, strong->table->d.strong.regions, sizeof(group.members));
    if (strong->state != STRONG_RUNNING)
        return group;
    struct consensus_status status = consensus_status(strong->core);
    group.leader = strong_region_of(strong, status.leader);
    group.leads = status.role == CONSENSUS_LEADER;
    group.serving = status.serving;
    group.quiet = status.quiet;
    group.log_full = status.log_full;
    group.standing = status.standing;
    group.term = status.term;
    group.commit = status.commit;
    group.applied = status.applied;
    group.durable = status.durable;
    group.last = status.last;
    group.log_bytes = status.log_bytes;
    group.pending = status.pending;
    return group;
}
