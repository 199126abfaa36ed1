/* SPDX-License-Identifier: Apache-2.0 */
/* Each toxic on virtual time: what comes out, when, and in which order. No clock is read and
 * nothing waits, so the figures are exact. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chaos/live/chain.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define MS UINT64_C(1000000)

/* What left a chain, and when its last byte did. */
struct seen {
    struct buf data;
    uint64_t first_ns, last_ns;
    uint32_t pieces;
    bool eof, closed;
    uint64_t eof_ns, closed_ns;
};

static void collect(struct chain *chain, struct seen *seen, uint64_t now_ns)
{
    for (struct segment *segment; (segment = chain_take(chain)) != NULL;) {
        if (segment->kind == SEGMENT_DATA) {
            if (seen->pieces++ == 0)
                seen->first_ns = now_ns;
            seen->last_ns = now_ns;
            buf_append(&seen->data, segment->data, segment->len);
        } else if (segment->kind == SEGMENT_EOF) {
            seen->eof = true;
            seen->eof_ns = now_ns;
        } else {
            seen->closed = true;
            seen->closed_ns = now_ns;
        }
        chain_give_back(chain, segment);
    }
}

/* Runs the chain's own timer until `until`. */
static void run(struct chain *chain, struct seen *seen, uint64_t now_ns, uint64_t until_ns)
{
    for (;;) {
        chain_pump(chain, now_ns);
        collect(chain, seen, now_ns);
        uint64_t next_ns = chain_deadline(chain);
        if (next_ns > until_ns)
            return;
        assert_true(next_ns > now_ns || chain->reset);
        if (chain->reset)
            return;
        now_ns = next_ns;
    }
}

struct bench {
    struct rng rng;
    struct chain chain;
    struct seen seen;
    struct toxic *toxics[4];
    int toxic_count;
};

static struct bench *bench_new(uint64_t seed)
{
    struct bench *bench = xcalloc(1, sizeof(*bench));
    rng_init(&bench->rng, seed);
    chain_init(&bench->chain, &bench->rng);
    return bench;
}

static struct toxic *add(struct bench *bench, enum toxic_type type, int64_t a, int64_t b, int64_t c,
                         uint64_t now_ns)
{
    struct toxic *toxic = toxic_new(type, TOXIC_UPSTREAM, "t");
    toxic->value[0] = a;
    toxic->value[1] = b;
    toxic->value[2] = c;
    bench->toxics[bench->toxic_count++] = toxic;
    chain_add(&bench->chain, toxic, now_ns);
    return toxic;
}

static void bench_free(struct bench *bench)
{
    chain_deinit(&bench->chain);
    assert_int_equal(bench->chain.held, 0);
    assert_int_equal(bench->chain.data, 0);
    for (int i = 0; i < bench->toxic_count; i++)
        toxic_free(bench->toxics[i]);
    buf_deinit(&bench->seen.data);
    free(bench);
}

static void push_text(struct bench *bench, const char *text, uint64_t now_ns)
{
    chain_push(&bench->chain, bytes_text(text), now_ns);
}

static void assert_seen(const struct bench *bench, const char *text)
{
    assert_int_equal(bench->seen.data.len, strlen(text));
    assert_memory_equal(bench->seen.data.at, text, strlen(text));
}

static void without_toxics_bytes_pass_at_once(void **state)
{
    (void)state;
    struct bench *bench = bench_new(1);
    assert_true(chain_clear(&bench->chain));
    push_text(bench, "abc", 5);
    assert_false(chain_clear(&bench->chain)); /* not before they are written */
    chain_push_end(&bench->chain, 5);
    run(&bench->chain, &bench->seen, 5, UINT64_MAX - 1);
    assert_seen(bench, "abc");
    assert_true(bench->seen.eof);
    assert_true(chain_clear(&bench->chain));
    bench_free(bench);
}

/* A hundred writes a millisecond apart all arrive two seconds later, a millisecond apart: a line,
 * not a queue of pauses. */
static void latency_keeps_order_and_spacing(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2);
    add(bench, TOXIC_LATENCY, 2000, 0, 0, 0);
    for (uint64_t i = 0; i < 100; i++) {
        uint8_t byte = (uint8_t)i;
        chain_push(&bench->chain, bytes_make(&byte, 1), i * MS);
    }
    for (uint64_t i = 0; i < 100; i++) {
        run(&bench->chain, &bench->seen, 2000 * MS + i * MS - 1, 2000 * MS + i * MS - 1);
        assert_int_equal(bench->seen.data.len, i);
        run(&bench->chain, &bench->seen, 2000 * MS + i * MS, 2000 * MS + i * MS);
        assert_int_equal(bench->seen.data.len, i + 1);
        assert_int_equal(bench->seen.data.at[i], i);
    }
    bench_free(bench);
}

static void jitter_stays_in_its_bounds_and_reorders_nothing(void **state)
{
    (void)state;
    struct bench *bench = bench_new(3);
    add(bench, TOXIC_LATENCY, 50, 20, 0, 0);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        uint8_t bytes[2] = {(uint8_t)(i >> 8), (uint8_t)i};
        uint64_t now_ns = i * 100 * MS;
        chain_push(&bench->chain, bytes_make(bytes, 2), now_ns);
        run(&bench->chain, &bench->seen, now_ns + 30 * MS - 1, now_ns + 30 * MS - 1);
        assert_int_equal(bench->seen.data.len, seen);
        run(&bench->chain, &bench->seen, now_ns + 70 * MS, now_ns + 70 * MS);
        seen += 2;
        assert_int_equal(bench->seen.data.len, seen);
        assert_memory_equal(bench->seen.data.at + seen - 2, bytes, 2);
    }
    bench_free(bench);
}

static void the_same_seed_draws_the_same_jitter(void **state)
{
    (void)state;
    uint64_t last_ns[2];
    for (int round = 0; round < 2; round++) {
        struct bench *bench = bench_new(77);
        add(bench, TOXIC_LATENCY, 50, 50, 0, 0);
        for (int i = 0; i < 20; i++)
            push_text(bench, "x", (uint64_t)i * MS);
        run(&bench->chain, &bench->seen, 20 * MS, UINT64_MAX - 1);
        last_ns[round] = bench->seen.last_ns;
        bench_free(bench);
    }
    assert_int_equal(last_ns[0], last_ns[1]);
}

/* 100 kB at 10 kB/s are ten seconds, whatever the size of the writes. */
static void bandwidth_is_exact_over_any_chunking(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct bench *bench = bench_new(seed);
        struct rng rng;
        rng_init(&rng, seed);
        add(bench, TOXIC_BANDWIDTH, 10, 0, 0, 0);
        uint8_t block[65536] = {0};
        for (size_t left = 100000; left > 0;) {
            size_t len = 1 + rng_below(&rng, left < 60000 ? left : 60000);
            chain_push(&bench->chain, bytes_make(block, len), 0);
            left -= len;
        }
        run(&bench->chain, &bench->seen, 0, UINT64_MAX - 1);
        assert_int_equal(bench->seen.data.len, 100000);
        /* One rounding down of less than a nanosecond a piece. */
        assert_in_range(bench->seen.last_ns, 10000 * MS - 1000000, 10000 * MS);
        assert_true(bench->seen.first_ns <= 20 * MS); /* it flows, it doesn't come in lumps */
        bench_free(bench);
    }
}

static void a_higher_bandwidth_frees_what_waits(void **state)
{
    (void)state;
    struct bench *bench = bench_new(4);
    uint8_t block[50000] = {0};
    struct toxic *toxic = add(bench, TOXIC_BANDWIDTH, 1, 0, 0, 0);
    chain_push(&bench->chain, bytes_make(block, sizeof(block)), 0);
    run(&bench->chain, &bench->seen, 0, 1000 * MS);
    assert_int_equal(bench->seen.data.len, 1000);
    toxic->value[0] = 49;
    chain_update(&bench->chain, toxic, 1000 * MS);
    run(&bench->chain, &bench->seen, 1000 * MS, UINT64_MAX - 1);
    assert_int_equal(bench->seen.data.len, sizeof(block));
    assert_in_range(bench->seen.last_ns, 1999 * MS, 2000 * MS);
    bench_free(bench);
}

static void latency_and_bandwidth_add_up(void **state)
{
    (void)state;
    struct bench *bench = bench_new(5);
    uint8_t block[10000] = {0};
    add(bench, TOXIC_LATENCY, 500, 0, 0, 0);
    add(bench, TOXIC_BANDWIDTH, 10, 0, 0, 0);
    chain_push(&bench->chain, bytes_make(block, sizeof(block)), 0);
    run(&bench->chain, &bench->seen, 0, UINT64_MAX - 1);
    assert_int_equal(bench->seen.last_ns, 1500 * MS);
    bench_free(bench);
}

static void slow_close_delays_the_end_only(void **state)
{
    (void)state;
    struct bench *bench = bench_new(6);
    add(bench, TOXIC_SLOW_CLOSE, 300, 0, 0, 0);
    push_text(bench, "abc", 10 * MS);
    chain_push_end(&bench->chain, 10 * MS);
    run(&bench->chain, &bench->seen, 10 * MS, UINT64_MAX - 1);
    assert_int_equal(bench->seen.last_ns, 10 * MS);
    assert_true(bench->seen.eof);
    assert_int_equal(bench->seen.eof_ns, 310 * MS);
    bench_free(bench);
}

static void timeout_swallows_and_then_closes(void **state)
{
    (void)state;
    struct bench *bench = bench_new(7);
    add(bench, TOXIC_TIMEOUT, 100, 0, 0, 50 * MS);
    push_text(bench, "lost", 60 * MS);
    run(&bench->chain, &bench->seen, 60 * MS, UINT64_MAX - 1);
    assert_int_equal(bench->seen.data.len, 0);
    assert_int_equal(bench->chain.dropped, 4);
    assert_true(bench->seen.closed);
    assert_int_equal(bench->seen.closed_ns, 150 * MS);
    bench_free(bench);
}

static void an_endless_timeout_closes_when_it_is_removed(void **state)
{
    (void)state;
    struct bench *bench = bench_new(8);
    struct toxic *toxic = add(bench, TOXIC_TIMEOUT, 0, 0, 0, 0);
    push_text(bench, "lost", MS);
    run(&bench->chain, &bench->seen, MS, UINT64_MAX - 1);
    assert_false(bench->seen.closed);
    chain_remove(&bench->chain, toxic, 1000 * MS);
    run(&bench->chain, &bench->seen, 1000 * MS, UINT64_MAX - 1);
    assert_true(bench->seen.closed);
    assert_int_equal(bench->seen.data.len, 0);
    bench_free(bench);
}

static void reset_peer_counts_from_the_first_byte(void **state)
{
    (void)state;
    struct bench *bench = bench_new(9);
    add(bench, TOXIC_RESET_PEER, 40, 0, 0, 0);
    run(&bench->chain, &bench->seen, 0, 1000 * MS);
    assert_false(bench->chain.reset);
    push_text(bench, "x", 1000 * MS);
    run(&bench->chain, &bench->seen, 1000 * MS, 1040 * MS - 1);
    assert_false(bench->chain.reset);
    run(&bench->chain, &bench->seen, 1040 * MS, 1040 * MS);
    assert_true(bench->chain.reset);
    bench_free(bench);
}

static void limit_data_closes_after_exactly_that_many_bytes(void **state)
{
    (void)state;
    for (int64_t limit = 0; limit <= 12; limit++) {
        struct bench *bench = bench_new(10);
        add(bench, TOXIC_LIMIT_DATA, limit, 0, 0, 0);
        push_text(bench, "abc", 0);
        push_text(bench, "defgh", 0);
        push_text(bench, "ij", 0);
        run(&bench->chain, &bench->seen, 0, UINT64_MAX - 1);
        size_t passed = limit < 10 ? (size_t)limit : 10;
        assert_int_equal(bench->seen.data.len, passed);
        if (passed > 0)
            assert_memory_equal(bench->seen.data.at, "abcdefghij", passed);
        assert_int_equal(bench->seen.closed, limit <= 10);
        bench_free(bench);
    }
}

static void slices_have_the_wished_sizes_and_pauses(void **state)
{
    (void)state;
    struct bench *bench = bench_new(11);
    uint8_t block[10000];
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (uint8_t)(i * 7);
    add(bench, TOXIC_SLICER, 100, 20, 1000, 0);
    chain_push(&bench->chain, bytes_make(block, sizeof(block)), 0);
    run(&bench->chain, &bench->seen, 0, UINT64_MAX - 1);
    assert_int_equal(bench->seen.data.len, sizeof(block));
    assert_memory_equal(bench->seen.data.at, block, sizeof(block));
    assert_in_range(bench->seen.pieces, 10000 / 120, 10000 / 80 + 1);
    assert_int_equal(bench->seen.last_ns, (bench->seen.pieces - 1) * MS);
    bench_free(bench);
}

static void removing_a_toxic_lets_what_waits_go_in_order(void **state)
{
    (void)state;
    struct bench *bench = bench_new(12);
    struct toxic *latency = add(bench, TOXIC_LATENCY, 10000, 0, 0, 0);
    add(bench, TOXIC_SLICER, 2, 0, 0, 0);
    push_text(bench, "abc", 0);
    push_text(bench, "def", MS);
    chain_push_end(&bench->chain, MS);
    chain_remove(&bench->chain, latency, 2 * MS);
    push_text(bench, "ghi", 2 * MS);
    run(&bench->chain, &bench->seen, 2 * MS, 2 * MS);
    assert_seen(bench, "abcdefghi");
    assert_true(bench->seen.eof);
    bench_free(bench);
}

/* Ours: what comes while it is on waits, whatever the time, and goes in order when it is removed.
 */
static void a_hold_keeps_all_and_gives_it_back(void **state)
{
    (void)state;
    struct bench *bench = bench_new(1);
    struct toxic *hold = add(bench, TOXIC_HOLD, 0, 0, 0, 0);
    push_text(bench, "held ", 10);
    push_text(bench, "back", 20);
    chain_pump(&bench->chain, UINT64_MAX - 1);
    collect(&bench->chain, &bench->seen, UINT64_MAX - 1);
    assert_int_equal(bench->seen.pieces, 0);
    assert_true(chain_deadline(&bench->chain) == UINT64_MAX);
    assert_int_equal(bench->chain.data, 9);
    chain_remove(&bench->chain, hold, 30);
    collect(&bench->chain, &bench->seen, 30);
    assert_seen(bench, "held back");
    assert_false(bench->seen.closed);
    bench_free(bench);
}

static void toxicity_decides_per_connection(void **state)
{
    (void)state;
    struct rng rng;
    struct toxic *toxic = toxic_new(TOXIC_LATENCY, TOXIC_UPSTREAM, "t");
    int applied = 0;
    rng_init(&rng, 13);
    toxic->toxicity = 0.25;
    toxic->value[0] = 1000;
    for (int i = 0; i < 10000; i++) {
        struct chain chain;
        chain_init(&chain, &rng);
        chain_add(&chain, toxic, 0);
        applied += !chain_clear(&chain);
        chain_deinit(&chain);
    }
    /* Three standard deviations of a binomial draw. */
    assert_in_range(applied, 2500 - 130, 2500 + 130);
    toxic_free(toxic);
}

static void a_full_chain_says_so(void **state)
{
    (void)state;
    struct bench *bench = bench_new(14);
    static uint8_t block[65536];
    add(bench, TOXIC_BANDWIDTH, 1, 0, 0, 0);
    int pushed = 0;
    for (; !chain_full(&bench->chain); pushed++)
        chain_push(&bench->chain, bytes_make(block, sizeof(block)), 0);
    assert_in_range(pushed, 1, 8);
    /* One byte a segment must not cost unbounded memory either. */
    struct bench *thin = bench_new(15);
    add(thin, TOXIC_LATENCY, 1000000, 0, 0, 0);
    uint64_t bytes = 0;
    for (; !chain_full(&thin->chain); bytes++)
        chain_push(&thin->chain, bytes_make(block, 1), 0);
    assert_true(bytes < UINT64_C(1024) * 1024);
    bench_free(thin);
    bench_free(bench);
}

/* Whatever the toxics that keep bytes, they keep all of them, in order. */
static void no_byte_is_lost_or_moved_by_any_row_of_toxics(void **state)
{
    (void)state;
    static const enum toxic_type keeping[] = {TOXIC_LATENCY, TOXIC_BANDWIDTH, TOXIC_SLICER,
                                              TOXIC_SLOW_CLOSE};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct bench *bench = bench_new(seed);
        struct rng rng;
        struct buf sent = {0};
        uint64_t now_ns = 0;
        rng_init(&rng, seed + 1000);
        for (int i = 0; i < 3; i++) {
            enum toxic_type type = keeping[rng_below(&rng, array_len(keeping))];
            int64_t a = (int64_t)rng_between(&rng, 1, 40);
            add(bench, type, a, (int64_t)rng_between(&rng, 0, (uint64_t)a), 3, now_ns);
        }
        for (int i = 0; i < 60; i++) {
            uint8_t block[300];
            size_t len = rng_between(&rng, 1, sizeof(block));
            for (size_t j = 0; j < len; j++)
                block[j] = (uint8_t)rng_next(&rng);
            buf_append(&sent, block, len);
            chain_push(&bench->chain, bytes_make(block, len), now_ns);
            uint64_t next_ns = now_ns + rng_below(&rng, 5 * MS);
            run(&bench->chain, &bench->seen, now_ns, next_ns);
            now_ns = next_ns;
            struct toxic *toxic = bench->toxics[rng_below(&rng, 3)];
            if (rng_one_in(&rng, 10)) {
                toxic->value[0] += toxic->value[1] + 1;
                chain_update(&bench->chain, toxic, now_ns);
            }
        }
        chain_push_end(&bench->chain, now_ns);
        run(&bench->chain, &bench->seen, now_ns, UINT64_MAX - 1);
        assert_true(bench->seen.eof);
        assert_true(bench->seen.eof_ns >= bench->seen.last_ns);
        assert_int_equal(bench->seen.data.len, sent.len);
        assert_memory_equal(bench->seen.data.at, sent.at, sent.len);
        buf_deinit(&sent);
        bench_free(bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_toxics_bytes_pass_at_once),
        cmocka_unit_test(latency_keeps_order_and_spacing),
        cmocka_unit_test(jitter_stays_in_its_bounds_and_reorders_nothing),
        cmocka_unit_test(the_same_seed_draws_the_same_jitter),
        cmocka_unit_test(bandwidth_is_exact_over_any_chunking),
        cmocka_unit_test(a_higher_bandwidth_frees_what_waits),
        cmocka_unit_test(latency_and_bandwidth_add_up),
        cmocka_unit_test(slow_close_delays_the_end_only),
        cmocka_unit_test(timeout_swallows_and_then_closes),
        cmocka_unit_test(an_endless_timeout_closes_when_it_is_removed),
        cmocka_unit_test(reset_peer_counts_from_the_first_byte),
        cmocka_unit_test(limit_data_closes_after_exactly_that_many_bytes),
        cmocka_unit_test(slices_have_the_wished_sizes_and_pauses),
        cmocka_unit_test(removing_a_toxic_lets_what_waits_go_in_order),
        cmocka_unit_test(a_hold_keeps_all_and_gives_it_back),
        cmocka_unit_test(toxicity_decides_per_connection),
        cmocka_unit_test(a_full_chain_says_so),
        cmocka_unit_test(no_byte_is_lost_or_moved_by_any_row_of_toxics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
