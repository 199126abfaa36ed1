/* SPDX-License-Identifier: Apache-2.0 */
/* The transcripts of tests/trace/consensus_*.txt: what three members say to each other and to their
 * owners. Members are a, b and c. Frames wait until `settle`, which also does what the disks have
 * to; a disk that was told to hold waits for its release. The items are single letters with a
 * number. The commands are at the end of this file. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "tests/lib/transcript.h"
#include "tests/lib/witness/message_text.h"
#include "witness/consensus_wire.h"

enum { LETTERS = 26, FRAMES = 256, DISK = 256, WORDS = 6 };
static const uint64_t ms = 1000000;

struct item {
    uint64_t value, index;
    uint8_t origin;
};

struct member {
    struct consensus *core;
    struct consensus_hard hard;
    struct consensus_entry disk[DISK]; /* by index; payload owned */
    uint64_t base, base_term, last, damaged;
    bool found, held;
    uint64_t written, synced;
    struct item items[LETTERS], view[LETTERS];
    uint64_t applied, applied_term;
    struct buf piece; /* a snapshot coming in */
};

struct frame {
    int from, to;
    struct buf bytes;
};

struct script {
    struct consensus_config config;
    struct member members[CONSENSUS_MEMBERS];
    bool cut[CONSENSUS_MEMBERS][CONSENSUS_MEMBERS];
    struct frame frames[FRAMES];
    int frame_count;
    uint64_t now, next_incarnation;
    struct arena arena;
    struct buf *out;
    char *words[WORDS];
    int word_count;
};

static void step(struct script *s, int at, struct consensus_input in);

static int member_named(const char *name)
{
    assert_in_range(name[0], 'a', 'c');
    return name[0] - 'a';
}

#define say(s, ...) buf_printf((s)->out, __VA_ARGS__)
#define u(x) ((unsigned long long)(x))

/* ---- Frames ---- */

static void do_send(struct script *s, int at, const struct consensus_effect *effect)
{
    struct consensus_message m;
    assert_true(consensus_decode(effect->bytes, 1 << 20, &s->arena, &m));
    message_print(&m, s->out);
    if (s->cut[at][effect->peer])
        return;
    assert_in_range(s->frame_count, 0, FRAMES - 1);
    struct frame *frame = &s->frames[s->frame_count++];
    *frame = (struct frame){.from = at, .to = effect->peer};
    buf_append_bytes(&frame->bytes, effect->bytes);
}

/* ---- The owner ---- */

static void disk_write(struct script *s, int at, const struct consensus_effect *effect)
{
    struct member *member = &s->members[at];
    const struct consensus_write *write = &effect->write;
    member->found = true;
    member->written = effect->seq;
    if (write->hard)
        member->hard = *write->hard;
    if (write->truncate_from && write->truncate_from <= member->last)
        member->last = write->truncate_from - 1;
    if (write->truncate_from && write->truncate_from <= member->damaged)
        member->damaged = 0;
    if (write->base_moved) {
        member->base = write->base_index;
        member->base_term = write->base_term;
        member->last = member->last > member->base ? member->last : member->base;
    }
    for (uint32_t i = 0; i < write->entry_count; i++) {
        struct consensus_entry *to = &member->disk[write->entries[i].index];
        free((void *)to->payload.at);
        *to = write->entries[i];
        const char *payload = to->payload.len ? (const char *)to->payload.at : "";
        to->payload.at = (const uint8_t *)xstrndup(payload, to->payload.len);
        member->last = to->index;
    }
}

/* "x=1", or "x=1?0": if it is 0. */
static void do_evaluate(struct script *s, int at, const struct consensus_effect *effect)
{
    struct member *member = &s->members[at];
    char *op = xstrndup((const char *)effect->bytes.at, effect->bytes.len), *condition = NULL;
    const struct item *item = &member->view[op[0] - 'a'];
    uint64_t value = strtoull(op + 2, &condition, 10);
    struct consensus_input in = {.kind = CONSENSUS_EVALUATED, .id = effect->id};
    char text[32];
    snprintf(text, sizeof(text), "%c=%llu", op[0], u(value));
    in.bytes = bytes_text(text);
    if (item->index > effect->index && item->origin != effect->origin) {
        in.verdict = CONSENSUS_EVALUATED_CONFLICT;
    } else if (*condition == '?' && strtoull(condition + 1, NULL, 10) != item->value) {
        in.verdict = CONSENSUS_EVALUATED_FAILED;
        snprintf(text, sizeof(text), "%llu", u(item->value));
        in.bytes = bytes_text(text);
    }
    struct item *view = &member->view[op[0] - 'a'];
    if (in.verdict == CONSENSUS_EVALUATED_WRITE)
        *view = (struct item){value, consensus_status(member->core).last + 1, effect->origin};
    free(op);
    step(s, at, in);
}

static void do_apply(struct script *s, int at, const struct consensus_effect *effect)
{
    struct member *member = &s->members[at];
    const struct consensus_entry *entry = &effect->entry;
    assert_int_equal(entry->index, member->applied + 1);
    member->applied = entry->index;
    member->applied_term = entry->term;
    if (entry->kind == CONSENSUS_WRITE)
        member->items[entry->payload.at[0] - 'a'] = (struct item){
            strtoull((const char *)entry->payload.at + 2, NULL, 10), entry->index, entry->origin};
    say(s, "%c applies %llu\n", 'a' + at, u(entry->index));
}

static void do_reply(struct script *s, int at, const struct consensus_effect *effect)
{
    static const char *const names[] = {"committed", "condition failed", "conflict", "not serving",
                                        "unknown"};
    say(s, "%c replies %llu: %s", 'a' + at, u(effect->token), names[effect->outcome]);
    if (effect->outcome <= CONSENSUS_FAILED)
        say(s, " at %llu", u(effect->index));
    if (effect->bytes.len)
        say(s, ", it was %.*s", (int)effect->bytes.len, effect->bytes.at);
    say(s, "\n");
}

static void do_role(struct script *s, int at)
{
    static const char *const roles[] = {"follower", "precandidate", "candidate", "leader"};
    static const char *const standings[] = {"", ", recovering", ", rebuilding"};
    struct consensus_status now = consensus_status(s->members[at].core);
    say(s, "%c is %s of term %llu%s%s", 'a' + at, roles[now.role], u(now.term),
        now.serving ? ", serving" : "", standings[now.standing]);
    if (now.leader < CONSENSUS_NOBODY && now.leader != at)
        say(s, ", led by %c", 'a' + now.leader);
    say(s, "\n");
    if (now.serving)
        memcpy(s->members[at].view, s->members[at].items, sizeof(s->members[at].view));
}

static void do_snapshot(struct script *s, int at, const struct consensus_effect *effect)
{
    struct member *member = &s->members[at];
    struct consensus_input in = {.id = effect->id};
    if (effect->kind == CONSENSUS_SNAPSHOT_READ) {
        size_t half = sizeof(member->items) / 2;
        in.kind = CONSENSUS_SNAPSHOT_PIECE;
        in.index = member->applied;
        in.offset = effect->offset;
        in.last = effect->offset >= half;
        in.bytes = bytes_make((const uint8_t *)member->items + effect->offset, half);
    } else {
        if (effect->offset == 0)
            buf_reset(&member->piece);
        buf_append_bytes(&member->piece, effect->bytes);
        in.kind = effect->last ? CONSENSUS_SNAPSHOT_INSTALLED : CONSENSUS_SNAPSHOT_STAGED;
        in.offset = member->piece.len;
        if (effect->last) {
            memcpy(member->items, member->piece.at, sizeof(member->items));
            member->applied = effect->index;
            member->applied_term = effect->term;
            say(s, "%c has the items of %llu\n", 'a' + at, u(effect->index));
        }
    }
    step(s, at, in);
}

/* Effects first, then what the owner answers to them: each answer is a step, and voids the output.
 */
static void step(struct script *s, int at, struct consensus_input in)
{
    struct member *member = &s->members[at];
    struct consensus_output out;
    in.mono_ns = s->now;
    consensus_step(member->core, &in, &out);
    struct consensus_effect *later = xcalloc(out.count, sizeof(*later));
    uint32_t later_count = 0;
    uint64_t applied = member->applied;
    for (uint32_t i = 0; i < out.count; i++) {
        const struct consensus_effect *effect = &out.at[i];
        if (effect->kind == CONSENSUS_PERSIST)
            disk_write(s, at, effect);
        else if (effect->kind == CONSENSUS_SEND)
            do_send(s, at, effect);
        else if (effect->kind == CONSENSUS_APPLY)
            do_apply(s, at, effect);
        else if (effect->kind == CONSENSUS_REPLY)
            do_reply(s, at, effect);
        else if (effect->kind == CONSENSUS_READ_OK)
            say(s, "%c reads %llu: a=%llu at %llu\n", 'a' + at, u(effect->token),
                u(member->items[0].value), u(effect->index));
        else if (effect->kind == CONSENSUS_ROLE_CHANGED)
            do_role(s, at);
        else if (effect->kind == CONSENSUS_BAD_FRAME)
            say(s, "%c refuses a frame of %c: %s\n", 'a' + at, 'a' + effect->peer, effect->reason);
        else if (effect->kind == CONSENSUS_EVALUATE || effect->kind == CONSENSUS_SNAPSHOT_READ ||
                 effect->kind == CONSENSUS_SNAPSHOT_WRITE) {
            later[later_count] = *effect;
            later[later_count++].bytes = bytes_copy(&s->arena, effect->bytes);
        }
    }
    for (uint32_t i = 0; i < later_count; i++) {
        if (later[i].kind == CONSENSUS_EVALUATE)
            do_evaluate(s, at, &later[i]);
        else
            do_snapshot(s, at, &later[i]);
    }
    free(later);
    if (member->applied > applied && in.kind != CONSENSUS_SNAPSHOT_INSTALLED)
        step(s, at,
             (struct consensus_input){
                 .kind = CONSENSUS_APPLIED, .index = member->applied, .stable = member->applied});
}

/* ---- Commands ---- */

static bool sync_one(struct script *s, int at)
{
    struct member *member = &s->members[at];
    if (!member->core || member->held || member->synced == member->written)
        return false;
    member->synced = member->written;
    step(s, at, (struct consensus_input){.kind = CONSENSUS_PERSISTED, .seq = member->synced});
    return true;
}

static bool deliver_one(struct script *s)
{
    if (s->frame_count == 0)
        return false;
    struct frame frame = s->frames[0];
    s->frame_count--;
    memmove(s->frames, s->frames + 1, (size_t)s->frame_count * sizeof(*s->frames));
    if (s->members[frame.to].core)
        step(s, frame.to,
             (struct consensus_input){.kind = CONSENSUS_FRAME,
                                      .peer = (uint8_t)frame.from,
                                      .bytes = buf_view(&frame.bytes)});
    buf_deinit(&frame.bytes);
    return true;
}

/* settle: until nothing is under way. */
static void do_settle(struct script *s)
{
    bool more = true;
    while (more) {
        more = false;
        for (int i = 0; i < CONSENSUS_MEMBERS; i++)
            more = sync_one(s, i) || more;
        more = deliver_one(s) || more;
    }
}

static void start(struct script *s, int at)
{
    struct member *member = &s->members[at];
    struct consensus_config config = s->config;
    config.self = (uint8_t)at;
    config.seed = (uint64_t)at + 1;
    member->core = consensus_new(&config);
    struct consensus_start found = {.found = member->found,
                                    .hard = member->hard,
                                    .incarnation = ++s->next_incarnation,
                                    .base_index = member->base,
                                    .base_term = member->base_term,
                                    .entries = &member->disk[member->base + 1],
                                    .applied_index = member->applied,
                                    .applied_term = member->applied_term};
    uint64_t upto = member->damaged ? member->damaged - 1 : member->last;
    found.entry_count = (uint32_t)(upto - member->base);
    found.damaged_upto = member->damaged ? member->last : 0;
    step(s, at, (struct consensus_input){.kind = CONSENSUS_START, .start = &found});
}

/* group data data witness */
static void do_group(struct script *s)
{
    for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
        bool witness = strcmp(s->words[1 + i], "witness") == 0;
        s->config.kinds[i] = witness ? CONSENSUS_WITNESS : CONSENSUS_DATA;
        s->members[i].found = true;
        s->members[i].hard = consensus_hard_initial(++s->next_incarnation);
    }
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        start(s, i);
    do_settle(s);
}

/* wait a: until its timer is due, which then runs.   wait 100: so many ms, all timers. */
static void do_wait(struct script *s)
{
    if (s->words[1][0] >= 'a') {
        int at = member_named(s->words[1]);
        s->now = consensus_deadline(s->members[at].core);
        step(s, at, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
        return;
    }
    uint64_t until = s->now + strtoull(s->words[1], NULL, 10) * ms;
    for (;;) {
        int next = -1;
        uint64_t first = until;
        for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
            uint64_t at = s->members[i].core ? consensus_deadline(s->members[i].core) : UINT64_MAX;
            if (at <= first) {
                next = i;
                first = at;
            }
        }
        s->now = first > s->now ? first : s->now;
        if (next < 0)
            return;
        step(s, next, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
        do_settle(s);
    }
}

/* cut a b: both ways. */
static void do_cut(struct script *s, bool cut)
{
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        for (int j = 0; j < CONSENSUS_MEMBERS && s->word_count < 3; j++)
            if (s->word_count < 2 || i == s->words[1][0] - 'a' || j == s->words[1][0] - 'a')
                s->cut[i][j] = cut;
    if (s->word_count == 3) {
        int a = member_named(s->words[1]), b = member_named(s->words[2]);
        s->cut[a][b] = s->cut[b][a] = cut;
    }
}

static void do_show(struct script *s)
{
    for (int i = 0; i < CONSENSUS_MEMBERS; i++) {
        if (!s->members[i].core)
            continue;
        struct consensus_status now = consensus_status(s->members[i].core);
        say(s, "%c: log %llu..%llu durable %llu commit %llu applied %llu%s a=%llu\n", 'a' + i,
            u(now.base + 1), u(now.last), u(now.durable), u(now.commit), u(now.applied),
            now.quiet ? " quiet" : "", u(s->members[i].items[0].value));
    }
}

static void member_end(struct member *member, bool lose)
{
    member->core = consensus_free(member->core);
    if (!lose)
        return;
    for (int i = 0; i < DISK; i++)
        free((void *)member->disk[i].payload.at);
    buf_deinit(&member->piece);
    *member = (struct member){0};
}

static void command(void *context, char *line, struct buf *out)
{
    struct script *s = context;
    s->out = out;
    s->word_count = 0;
    for (char *word = line, *end; *word && s->word_count < WORDS; word = end) {
        end = word + strcspn(word, " ");
        if (*end)
            *end++ = '\0';
        s->words[s->word_count++] = word;
    }
    const char *name = s->words[0];
    int at = s->word_count > 1 && s->words[1][0] >= 'a' && s->words[1][0] <= 'c'
                 ? member_named(s->words[1])
                 : 0;
    struct consensus_input in = {.token = s->word_count > 2 ? strtoull(s->words[2], NULL, 10) : 0};
    if (!strcmp(name, "group")) {
        do_group(s);
    } else if (!strcmp(name, "settle")) {
        do_settle(s);
    } else if (!strcmp(name, "deliver")) {
        deliver_one(s);
    } else if (!strcmp(name, "wait")) {
        do_wait(s);
    } else if (!strcmp(name, "propose")) { /* propose b 7 a=1 */
        in.kind = CONSENSUS_PROPOSE;
        in.bytes = bytes_text(s->words[3]);
        step(s, at, in);
    } else if (!strcmp(name, "read")) { /* read b 7 */
        in.kind = CONSENSUS_READ;
        in.strong = true;
        step(s, at, in);
    } else if (!strcmp(name, "cut") || !strcmp(name, "heal")) {
        do_cut(s, name[0] == 'c');
    } else if (!strcmp(name, "hold") || !strcmp(name, "release")) { /* a disk */
        s->members[at].held = name[0] == 'h';
    } else if (!strcmp(name, "crash") || !strcmp(name, "lose")) { /* lose: and its disk */
        member_end(&s->members[at], name[0] == 'l');
    } else if (!strcmp(name, "damage")) { /* damage b 3 */
        s->members[at].damaged = in.token;
    } else if (!strcmp(name, "down")) { /* down a b: a's link to b is gone */
        in.kind = CONSENSUS_PEER_DOWN;
        in.peer = (uint8_t)member_named(s->words[2]);
        step(s, at, in);
    } else if (!strcmp(name, "start")) {
        start(s, at);
    } else if (!strcmp(name, "show")) {
        do_show(s);
    } else {
        fail_msg("no command %s", name);
    }
}

static void run(const char *path)
{
    struct script *s = xcalloc(1, sizeof(*s));
    s->config = (struct consensus_config){.epoch = 1,
                                          .heartbeat_ns = 100 * ms,
                                          .election_ns = 500 * ms,
                                          .election_ns_max = 500 * ms,
                                          .request_timeout_ns = 2000 * ms,
                                          .retry_ns = 200 * ms,
                                          .batch_bytes_max = 1000,
                                          .inflight_bytes_max = 10000,
                                          .log_bytes_max = 100000,
                                          .frame_bytes_max = 100000,
                                          .pending_max = 16,
                                          .evaluate_max = 4,
                                          .trim_entries = 1,
                                          .quiesce = true};
    s->now = ms;
    arena_init(&s->arena);
    transcript_run(path, command, s);
    for (int i = 0; i < CONSENSUS_MEMBERS; i++)
        member_end(&s->members[i], true);
    for (int i = 0; i < s->frame_count; i++)
        buf_deinit(&s->frames[i].bytes);
    arena_deinit(&s->arena);
    free(s);
}

#define TRANSCRIPT(name)                                                                           \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run("tests/trace/consensus_" #name ".txt");                                                \
    }
TRANSCRIPT(write)
TRANSCRIPT(read)
TRANSCRIPT(elect)
TRANSCRIPT(witness)
TRANSCRIPT(disk)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_write), cmocka_unit_test(test_read),
                                       cmocka_unit_test(test_elect), cmocka_unit_test(test_witness),
                                       cmocka_unit_test(test_disk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
