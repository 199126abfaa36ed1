/* SPDX-License-Identifier: Apache-2.0 */
/* The storage thread on a store that writes when the test lets it: what waits goes down together
 * and in order, and a full disk takes along everything that was built on what it refused. */

#include "region/storage.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct gate_store {
    struct store store;
    sem_t begun, go;
    enum store_outcome outcome;
    struct buf written; /* of the write that has begun, or was the last */
    bool sync;
};

struct fixture {
    struct loop loop;
    struct gate_store gate;
    struct storage *storage;
    unsigned done_count;
    enum store_outcome outcome;
    uint64_t id;
};

static enum store_outcome gate_write(struct store *store, struct bytes batch, bool sync)
{
    struct gate_store *gate = container_of(store, struct gate_store, store);
    buf_reset(&gate->written);
    buf_append_bytes(&gate->written, batch);
    gate->sync = sync;
    sem_post(&gate->begun);
    sem_wait(&gate->go);
    return gate->outcome;
}

static const struct store_ops gate_ops = {.write = gate_write};

static void on_done(void *context, enum store_outcome outcome, uint64_t id, uint64_t bytes,
                    uint64_t ns)
{
    (void)bytes;
    (void)ns;
    struct fixture *fixture = context;
    fixture->done_count++;
    fixture->outcome = outcome;
    fixture->id = id;
}

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    loop_init(&fixture->loop);
    fixture->gate.store.ops = &gate_ops;
    sem_init(&fixture->gate.begun, 0, 0);
    sem_init(&fixture->gate.go, 0, 0);
    buf_init(&fixture->gate.written);
    fixture->storage = storage_new(&(struct storage_config){.loop = &fixture->loop,
                                                            .store = &fixture->gate.store,
                                                            .sync = true,
                                                            .group_bytes_max = 8,
                                                            .done = on_done,
                                                            .context = fixture});
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    sem_post(&fixture->gate.go); /* a test that failed may have left the thread at the gate */
    storage_free(fixture->storage);
    loop_deinit(&fixture->loop);
    buf_deinit(&fixture->gate.written);
    sem_destroy(&fixture->gate.begun);
    sem_destroy(&fixture->gate.go);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, uint64_t id, const char *batch)
{
    storage_add(fixture->storage, id, bytes_text(batch));
}

/* The group that the thread holds now. */
static void expect_begun(struct fixture *fixture, const char *batches)
{
    sem_wait(&fixture->gate.begun);
    assert_true(bytes_is(buf_view(&fixture->gate.written), batches));
}

static void let_go(struct fixture *fixture, enum store_outcome outcome)
{
    unsigned before = fixture->done_count;
    fixture->gate.outcome = outcome;
    sem_post(&fixture->gate.go);
    while (fixture->done_count == before)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
    assert_int_equal(fixture->outcome, outcome);
}

static void test_groups(void **state)
{
    struct fixture *fixture = *state;
    struct storage *storage = fixture->storage;
    assert_true(storage_idle(storage));
    add(fixture, 1, "a");
    assert_false(storage_idle(storage));
    storage_flush(storage);
    expect_begun(fixture, "a");
    assert_true(fixture->gate.sync);
    /* While it writes, these wait; they go together, as far as a group reaches. */
    add(fixture, 2, "bbb");
    add(fixture, 3, "cccc");
    add(fixture, 4, "dd");
    storage_flush(storage);
    let_go(fixture, STORE_OK);
    assert_int_equal(fixture->id, 1);
    storage_flush(storage);
    expect_begun(fixture, "bbbcccc");
    let_go(fixture, STORE_OK);
    assert_int_equal(fixture->id, 3);
    storage_flush(storage);
    expect_begun(fixture, "dd");
    let_go(fixture, STORE_OK);
    assert_int_equal(fixture->id, 4);
    assert_true(storage_idle(storage));
    /* Larger than a group: alone. */
    add(fixture, 5, "e");
    add(fixture, 6, "0123456789");
    add(fixture, 7, "f");
    storage_flush(storage);
    expect_begun(fixture, "e");
    let_go(fixture, STORE_OK);
    storage_flush(storage);
    expect_begun(fixture, "0123456789");
    let_go(fixture, STORE_OK);
    storage_flush(storage);
    expect_begun(fixture, "f");
    let_go(fixture, STORE_OK);
    assert_int_equal(fixture->id, 7);
}

static void test_full(void **state)
{
    struct fixture *fixture = *state;
    struct storage *storage = fixture->storage;
    add(fixture, 1, "a");
    add(fixture, 2, "b");
    storage_flush(storage);
    expect_begun(fixture, "ab");
    add(fixture, 3, "c");
    let_go(fixture, STORE_FULL);
    assert_int_equal(fixture->id, 1);
    /* Until it is known above, whatever comes was built on what is lost. */
    add(fixture, 4, "d");
    storage_flush(storage);
    assert_true(storage_idle(storage));
    storage_resume(storage);
    add(fixture, 5, "e");
    storage_flush(storage);
    expect_begun(fixture, "e");
    let_go(fixture, STORE_OK);
    assert_int_equal(fixture->id, 5);
    assert_int_equal(fixture->done_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
