/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of strong tables at this Region at work: every input goes through strong_input, every
 * effect through perform, and what a step of the Region has stirred up is done before it ends. */

#include "region/core/strong.h"

#include "conflict/region_id.h"
#include "region/core/strong_internal.h"

/* ---- Stepping ---- */

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
    strong_timer_set(region->strong, strong, at);
}

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
