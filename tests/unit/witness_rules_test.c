/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that random schedules break only after hours, one by one: a single member, whose peers
 * are frames made by hand. In a build with planted bugs, the name of one as argument plants it, and
 * a test must fail. It passes 500 lines because each rule that is added needs the same member and
 * the same frames. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/plant.h"
#include "witness/consensus_wire.h"

static const uint64_t ms = 1000000;

/* The member under test is 0. */
struct one {
    struct consensus *core;
    struct arena arena;
    uint64_t now;
    bool disk_stalled;
    uint64_t written; /* last PERSIST */
    struct consensus_output out;
    struct consensus_message sent[64]; /* in the last step, or the one that its PERSISTED began */
    int sent_count;
    uint64_t read_ok;         /* token */
    uint64_t election_ns_max; /* 0: 200 ms */
};

static void step(struct one *one, struct consensus_input in)
{
    in.mono_ns = one->now;
    consensus_step(one->core, &in, &one->out);
    uint64_t persist = 0, applied = 0;
    for (uint32_t i = 0; i < one->out.count; i++) {
        const struct consensus_effect *effect = &one->out.at[i];
        if (effect->kind == CONSENSUS_PERSIST)
            persist = effect->seq;
        if (effect->kind == CONSENSUS_APPLY)
            applied = effect->index;
        if (effect->kind == CONSENSUS_READ_OK)
            one->read_ok = effect->token;
        if (effect->kind == CONSENSUS_SEND)
            assert_true(consensus_decode(effect->bytes, 1 << 20, &one->arena,
                                         &one->sent[one->sent_count++ % 64]));
        assert_int_not_equal(effect->kind, CONSENSUS_BAD_FRAME);
    }
    if (persist)
        one->written = persist;
    if (applied)
        step(one, (struct consensus_input){.kind = CONSENSUS_APPLIED, .index = applied});
    if (persist && !one->disk_stalled)
        step(one, (struct consensus_input){.kind = CONSENSUS_PERSISTED, .seq = persist});
}

static void disk_goes_on(struct one *one)
{
    one->disk_stalled = false;
    step(one, (struct consensus_input){.kind = CONSENSUS_PERSISTED, .seq = one->written});
}

static const struct consensus_message *last_sent(const struct one *one, uint8_t to,
                                                 enum consensus_message_kind kind)
{
    for (int i = one->sent_count - 1; i >= 0 && i > one->sent_count - 64; i--)
        if (one->sent[i % 64].destination == to && one->sent[i % 64].kind == kind)
            return &one->sent[i % 64];
    return NULL;
}

static struct consensus_message from(uint8_t member, enum consensus_message_kind kind,
                                     uint64_t term)
{
    return (struct consensus_message){.kind = kind,
                                      .epoch = 1,
                                      .source = member,
                                      .destination = 0,
                                      .term = term,
                                      .incarnation = 100 + member,
                                      .boot = 1};
}

static void frame(struct one *one, const struct consensus_message *m)
{
    step(one, (struct consensus_input){.kind = CONSENSUS_FRAME,
                                       .peer = m->source,
                                       .bytes = consensus_encode(m, &one->arena)});
}

static void one_start(struct one *one, const struct consensus_entry *entries, uint32_t count,
                      uint64_t term)
{
    struct consensus_config config = {.epoch = 1,
                                      .heartbeat_ns = 50 * ms,
                                      .election_ns = 200 * ms,
                                      .election_ns_max =
                                          one->election_ns_max ? one->election_ns_max : 200 * ms,
                                      .request_timeout_ns = 10000 * ms,
                                      .retry_ns = 5000 * ms,
                                      .batch_bytes_max = 1000,
                                      .inflight_bytes_max = 10000,
                                      .log_bytes_max = 10000,
                                      .frame_bytes_max = 10000,
                                      .pending_max = 10,
                                      .evaluate_max = 10,
                                      .trim_entries = 100};
    *one = (struct one){
        .core = consensus_new(&config), .now = ms, .election_ns_max = one->election_ns_max};
    arena_init(&one->arena);
    struct consensus_start start = {.found = true,
                                    .hard = consensus_hard_initial(100),
                                    .entries = entries,
                                    .entry_count = count};
    start.hard.term = term;
    step(one, (struct consensus_input){.kind = CONSENSUS_START, .start = &start});
}

static void one_end(struct one *one)
{
    consensus_free(one->core);
    arena_deinit(&one->arena);
}

static uint64_t commit(const struct one *one)
{
    return consensus_status(one->core).commit;
}

static void elect(struct one *one)
{
    uint64_t term = consensus_status(one->core).term;
    one->now = consensus_deadline(one->core);
    step(one, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
    struct consensus_message yes = from(1, MESSAGE_PRE_VOTE_RESPONSE, term);
    yes.next_term = term + 1;
    yes.granted = true;
    if (consensus_status(one->core).role == CONSENSUS_PRECANDIDATE)
        frame(one, &yes);
    yes.kind = MESSAGE_VOTE_RESPONSE;
    yes.term = term + 1;
    frame(one, &yes);
    assert_int_equal(consensus_status(one->core).role, CONSENSUS_LEADER);
}

/* What a member has durably, as an answer to a round. */
static struct consensus_message has(uint8_t member, uint64_t term, uint64_t durable, uint64_t round)
{
    struct consensus_message m = from(member, MESSAGE_APPEND_RESPONSE, term);
    m.ok = true;
    m.durable = m.received = durable;
    m.round = round;
    return m;
}

static struct consensus_message append(uint8_t leader, uint64_t term, uint64_t prev,
                                       uint64_t prev_term, struct consensus_entry *entries,
                                       uint32_t count)
{
    struct consensus_message m = from(leader, MESSAGE_APPEND, term);
    m.prev_index = prev;
    m.prev_term = prev_term;
    m.entries = entries;
    m.entry_count = count;
    m.last_index = prev + count;
    m.round = 1;
    return m;
}

static struct consensus_entry noop(uint64_t index, uint64_t term)
{
    return (struct consensus_entry){.index = index, .term = term, .origin = 1};
}

static uint64_t min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Reads ---- */

static void test_leader_reads_after_a_round(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 0);
    elect(&one);
    uint64_t round = last_sent(&one, 1, MESSAGE_APPEND)->round;
    struct consensus_message m = has(1, 1, 1, round);
    frame(&one, &m);
    assert_int_equal(commit(&one), 1);
    step(&one, (struct consensus_input){.kind = CONSENSUS_READ, .token = 7, .strong = true});
    assert_int_equal(one.read_ok, 0);
    frame(&one, &m); /* an answer to what was sent before the read came */
    assert_int_equal(one.read_ok, 0);
    m.round = last_sent(&one, 1, MESSAGE_APPEND)->round;
    assert_true(m.round > round);
    m.standing = CONSENSUS_REBUILDING; /* it may have been in another term, and forgotten */
    frame(&one, &m);
    assert_int_equal(one.read_ok, 0);
    m.standing = CONSENSUS_FULL;
    frame(&one, &m);
    assert_int_equal(one.read_ok, 7);
    one_end(&one);
}

static void test_leader_reads_its_whole_log(void **state)
{
    (void)state;
    struct one one = {0};
    struct consensus_entry old[] = {noop(1, 1)};
    one_start(&one, old, 1, 1);
    elect(&one);
    /* Another member may have acknowledged what we do not know to be committed. */
    struct consensus_message ask = from(1, MESSAGE_READ_INDEX, 2);
    ask.nonce = 5;
    frame(&one, &ask);
    const struct consensus_message *answer = last_sent(&one, 1, MESSAGE_READ_INDEX_RESPONSE);
    assert_false(answer->refused);
    assert_int_equal(answer->index, 2);
    assert_int_equal(answer->nonce, 5);
    ask.term = 1;
    frame(&one, &ask);
    assert_true(last_sent(&one, 1, MESSAGE_READ_INDEX_RESPONSE)->refused);
    one_end(&one);
}

static void test_follower_reads_by_nonce_and_term(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 1);
    struct consensus_entry entries[] = {noop(1, 2)};
    struct consensus_message m = append(1, 2, 0, 0, entries, 1);
    m.leader_durable = 1;
    frame(&one, &m);
    assert_int_equal(commit(&one), 1);
    step(&one, (struct consensus_input){.kind = CONSENSUS_READ, .token = 7, .strong = true});
    const struct consensus_message *ask = last_sent(&one, 1, MESSAGE_READ_INDEX);
    assert_non_null(ask);
    struct consensus_message answer = from(1, MESSAGE_READ_INDEX_RESPONSE, 2);
    answer.for_incarnation = 100;
    answer.index = 1;
    answer.nonce = ask->nonce + 1;
    frame(&one, &answer); /* of another question */
    assert_int_equal(one.read_ok, 0);
    struct consensus_message new_leader = append(2, 3, 1, 2, NULL, 0);
    frame(&one, &new_leader);
    answer.nonce = ask->nonce;
    frame(&one, &answer); /* of a leader deposed since */
    assert_int_equal(one.read_ok, 0);
    ask = last_sent(&one, 2, MESSAGE_READ_INDEX);
    assert_non_null(ask);
    answer = from(2, MESSAGE_READ_INDEX_RESPONSE, 3);
    answer.index = 1;
    answer.nonce = ask->nonce;
    answer.for_incarnation = 99;
    frame(&one, &answer); /* to the same number, asked by a disk that is lost */
    assert_int_equal(one.read_ok, 0);
    answer.for_incarnation = 100;
    frame(&one, &answer);
    assert_int_equal(one.read_ok, 7);
    one_end(&one);
}

/* Where the leader is farther away than a retry takes, each answer is to a question that has been
 * asked again since. */
static void test_slow_answers_are_not_thrown_away(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 1);
    struct consensus_entry entries[] = {noop(1, 2)};
    struct consensus_message m = append(1, 2, 0, 0, entries, 1);
    m.leader_durable = 1;
    frame(&one, &m);
    step(&one, (struct consensus_input){.kind = CONSENSUS_READ, .token = 7, .strong = true});
    uint64_t first = last_sent(&one, 1, MESSAGE_READ_INDEX)->nonce;
    struct consensus_message beat = append(1, 2, 1, 2, NULL, 0);
    for (int i = 0; i < 60; i++) {
        one.now += 100 * ms;
        frame(&one, &beat);
    }
    assert_true(last_sent(&one, 1, MESSAGE_READ_INDEX)->nonce > first);
    step(&one, (struct consensus_input){.kind = CONSENSUS_READ, .token = 8, .strong = true});
    uint64_t later = last_sent(&one, 1, MESSAGE_READ_INDEX)->nonce;
    struct consensus_message answer = from(1, MESSAGE_READ_INDEX_RESPONSE, 2);
    answer.for_incarnation = 100;
    answer.index = 1;
    answer.nonce = first;
    frame(&one, &answer);
    assert_int_equal(one.read_ok, 7); /* and not the read that came after that question */
    frame(&one, &answer);
    assert_int_equal(one.read_ok, 7);
    answer.nonce = later;
    frame(&one, &answer);
    assert_int_equal(one.read_ok, 8);
    one_end(&one);
}

/* Votes that come too late for one election after another: the waits grow, up to the bound. */
static void test_failed_elections_wait_longer(void **state)
{
    (void)state;
    struct one one = {.election_ns_max = 3200 * ms};
    one_start(&one, NULL, 0, 0);
    uint64_t wait = 0;
    for (int i = 0; i < 8; i++) {
        one.now = consensus_deadline(one.core);
        step(&one, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
        struct consensus_message yes =
            from(1, MESSAGE_PRE_VOTE_RESPONSE, consensus_status(one.core).term);
        yes.next_term = yes.term + 1;
        yes.granted = true;
        frame(&one, &yes);
        assert_int_equal(consensus_status(one.core).role, CONSENSUS_CANDIDATE);
        wait = consensus_deadline(one.core) - one.now;
        assert_true(wait >= min_ms(200 * ms << i, 3200 * ms));
        assert_true(wait <= 2 * min_ms(200 * ms << i, 3200 * ms));
    }
    /* The one that comes within that time is a measure, too: the leader waits for its followers. */
    one.now += wait / 2;
    struct consensus_message vote = from(1, MESSAGE_VOTE_RESPONSE, consensus_status(one.core).term);
    vote.granted = true;
    frame(&one, &vote);
    assert_int_equal(consensus_status(one.core).role, CONSENSUS_LEADER);
    one.now += 1000 * ms;
    step(&one, (struct consensus_input){.kind = CONSENSUS_TIMEOUT});
    assert_int_equal(consensus_status(one.core).role, CONSENSUS_LEADER);
    one_end(&one);
}

/* ---- Commits ---- */

static void test_figure_8(void **state)
{
    (void)state;
    struct one one = {0};
    struct consensus_entry old[] = {noop(1, 1)};
    one_start(&one, old, 1, 2);
    elect(&one);
    struct consensus_message m = has(1, 3, 1, 0);
    frame(&one, &m); /* two members have it, but it is of an older term */
    assert_int_equal(commit(&one), 0);
    m = has(1, 3, 2, 0);
    frame(&one, &m);
    assert_int_equal(commit(&one), 2);
    one_end(&one);
}

static void test_mark_of_an_older_entry(void **state)
{
    (void)state;
    struct one one = {0};
    struct consensus_entry old[] = {noop(1, 1)};
    one_start(&one, old, 1, 2);
    struct consensus_message m = append(1, 3, 1, 1, NULL, 0);
    m.leader_durable = 1;
    frame(&one, &m);
    assert_int_equal(commit(&one), 0);
    struct consensus_entry entries[] = {noop(2, 3)};
    m = append(1, 3, 1, 1, entries, 1);
    m.leader_durable = 2;
    frame(&one, &m);
    assert_int_equal(commit(&one), 2);
    one_end(&one);
}

static void test_mark_does_not_outlive_its_term(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 1);
    struct consensus_entry first[] = {noop(1, 2), noop(2, 2), noop(3, 2)};
    struct consensus_message m = append(1, 2, 0, 0, first, 3);
    m.leader_durable = 3;
    one.disk_stalled = true;
    frame(&one, &m);
    assert_int_equal(commit(&one), 0); /* not durable here */
    struct consensus_entry second[] = {noop(1, 3)};
    m = append(2, 3, 0, 0, second, 1);
    frame(&one, &m);
    disk_goes_on(&one);
    assert_int_equal(consensus_status(one.core).durable, 1);
    assert_int_equal(commit(&one), 0); /* not known to be durable there */
    m.leader_durable = 1;
    frame(&one, &m);
    assert_int_equal(commit(&one), 1);
    one_end(&one);
}

static void test_leader_marks_what_is_durable(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 0);
    elect(&one);
    struct consensus_message m = has(1, 1, 1, 0);
    frame(&one, &m);
    one.disk_stalled = true;
    step(&one,
         (struct consensus_input){.kind = CONSENSUS_PROPOSE, .token = 3, .bytes = BYTES_NONE});
    uint64_t id = 0;
    for (uint32_t i = 0; i < one.out.count; i++)
        if (one.out.at[i].kind == CONSENSUS_EVALUATE)
            id = one.out.at[i].id;
    step(&one,
         (struct consensus_input){.kind = CONSENSUS_EVALUATED, .id = id, .bytes = BYTES_NONE});
    const struct consensus_message *sent = last_sent(&one, 1, MESSAGE_APPEND);
    assert_int_equal(sent->last_index, 2);
    assert_int_equal(sent->leader_durable, 1);
    m = has(1, 1, 2, 0);
    frame(&one, &m);
    assert_int_equal(commit(&one), 1); /* one durable copy */
    disk_goes_on(&one);
    assert_int_equal(commit(&one), 2);
    assert_int_equal(last_sent(&one, 1, MESSAGE_APPEND)->leader_durable, 2);
    one_end(&one);
}

static void test_follower_answers_when_durable(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 1);
    struct consensus_message m = append(1, 2, 0, 0, NULL, 0);
    frame(&one, &m);
    one.disk_stalled = true;
    struct consensus_entry entries[] = {noop(1, 2)};
    m = append(1, 2, 0, 0, entries, 1);
    m.round = 2;
    frame(&one, &m);
    const struct consensus_message *answer = last_sent(&one, 1, MESSAGE_APPEND_RESPONSE);
    assert_int_equal(answer->received, 1);
    assert_int_equal(answer->durable, 0);
    disk_goes_on(&one);
    assert_int_equal(last_sent(&one, 1, MESSAGE_APPEND_RESPONSE)->durable, 1);
    one_end(&one);
}

static void test_late_append_cuts_nothing(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 1);
    struct consensus_entry entries[] = {noop(1, 2), noop(2, 2), noop(3, 2)};
    struct consensus_message m = append(1, 2, 0, 0, entries, 3);
    frame(&one, &m);
    m = append(1, 2, 0, 0, entries, 1);
    frame(&one, &m);
    assert_int_equal(consensus_status(one.core).last, 3);
    one_end(&one);
}

static void test_acknowledgement_of_a_lost_disk(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 0);
    elect(&one);
    struct consensus_message m = has(1, 1, 0, 0);
    frame(&one, &m);
    struct consensus_message anew = has(1, 1, 0, 0);
    anew.incarnation = 500;
    anew.standing = CONSENSUS_REBUILDING;
    frame(&one, &anew);
    m = has(1, 1, 1, 0);
    frame(&one, &m); /* was true, of a disk that is no more */
    assert_int_equal(commit(&one), 0);
    m = has(2, 1, 1, 0);
    frame(&one, &m);
    assert_int_equal(commit(&one), 1);
    one_end(&one);
}

/* ---- Votes ---- */

static void test_vote_is_durable_before_it_is_told(void **state)
{
    (void)state;
    struct one one = {0};
    one_start(&one, NULL, 0, 0);
    one.disk_stalled = true;
    struct consensus_message ask = from(1, MESSAGE_VOTE, 1);
    frame(&one, &ask);
    assert_null(last_sent(&one, 1, MESSAGE_VOTE_RESPONSE));
    disk_goes_on(&one);
    assert_true(last_sent(&one, 1, MESSAGE_VOTE_RESPONSE)->granted);
    ask.source = 2;
    ask.incarnation = 102;
    frame(&one, &ask);
    assert_false(last_sent(&one, 2, MESSAGE_VOTE_RESPONSE)->granted);
    one_end(&one);
}

static void test_standing(void **state)
{
    (void)state;
    struct consensus_entry entries[] = {noop(1, 1), noop(2, 1)};
    struct one one = {0};
    one_start(&one, entries, 2, 1);
    consensus_free(one.core);
    struct consensus_config config = {.epoch = 1,
                                      .heartbeat_ns = 50 * ms,
                                      .election_ns = 200 * ms,
                                      .log_bytes_max = 10000,
                                      .frame_bytes_max = 10000};
    one.core = consensus_new(&config);
    struct consensus_start start = {.found = true,
                                    .hard = consensus_hard_initial(100),
                                    .entries = entries,
                                    .entry_count = 2,
                                    .damaged_upto = 4};
    start.hard.term = 1;
    step(&one, (struct consensus_input){.kind = CONSENSUS_START, .start = &start});
    assert_int_equal(consensus_status(one.core).standing, CONSENSUS_RECOVERING);
    struct consensus_message ask = from(1, MESSAGE_VOTE, 5);
    ask.last_index = 9;
    ask.last_term = 4;
    frame(&one, &ask);
    assert_false(last_sent(&one, 1, MESSAGE_VOTE_RESPONSE)->granted);
    /* An Append that may have been sent before the damage was known says nothing about the end. */
    struct consensus_message m = append(1, 5, 2, 1, NULL, 0);
    frame(&one, &m);
    assert_int_equal(consensus_status(one.core).standing, CONSENSUS_RECOVERING);
    struct consensus_entry rest[] = {noop(3, 4), noop(4, 5)};
    m = append(1, 5, 2, 1, rest, 2);
    frame(&one, &m);
    assert_int_equal(consensus_status(one.core).standing, CONSENSUS_FULL);
    one_end(&one);
}

static void plant(const char *name)
{
#ifdef TIDEMARK_PLANTED
#define PLANT(enumerator, plant_name)                                                              \
    if (strcmp(name, plant_name) == 0)                                                             \
        plant_active = PLANT_##enumerator;
    PLANT_MAP(PLANT)
#undef PLANT
#else
    (void)name;
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1)
        plant(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_leader_reads_after_a_round),
                                       cmocka_unit_test(test_leader_reads_its_whole_log),
                                       cmocka_unit_test(test_follower_reads_by_nonce_and_term),
                                       cmocka_unit_test(test_slow_answers_are_not_thrown_away),
                                       cmocka_unit_test(test_failed_elections_wait_longer),
                                       cmocka_unit_test(test_figure_8),
                                       cmocka_unit_test(test_mark_of_an_older_entry),
                                       cmocka_unit_test(test_mark_does_not_outlive_its_term),
                                       cmocka_unit_test(test_leader_marks_what_is_durable),
                                       cmocka_unit_test(test_follower_answers_when_durable),
                                       cmocka_unit_test(test_late_append_cuts_nothing),
                                       cmocka_unit_test(test_acknowledgement_of_a_lost_disk),
                                       cmocka_unit_test(test_vote_is_durable_before_it_is_told),
                                       cmocka_unit_test(test_standing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
