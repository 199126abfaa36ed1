/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_STRONG_H
#define TESTS_FIXTURE_STRONG_H

/* A strong table "tbl" on a fixture, in the first three nodes: made, written, read, looked at. For
 * cmocka programs; include cmocka.h first. */

#include "region/core/keyspace.h"
#include "tests/lib/core/fixture.h"

#define EUROPE "eu-west-1"
#define JAPAN "ap-northeast-1"
#define OREGON "us-west-2"

static inline void create(struct fixture *f, uint32_t node, const char *name)
{
    assert_int_equal(fixture_do(f, node, fixture_create(f, name)), API_OK);
}

static inline void accept(struct fixture *f, uint32_t node, struct op *op)
{
    if (fixture_do(f, node, op) != API_OK)
        fail_msg("%s", op->result.message);
}

static inline const struct table *describe(struct fixture *f, uint32_t node)
{
    struct op *op = fixture_op(f, OP_DESCRIBE_TABLE, "tbl");
    accept(f, node, op);
    return op->result.table;
}

static inline const char *strong_value(struct fixture *f, uint32_t node, const char *pk)
{
    struct op *op = fixture_get(f, "tbl", pk);
    op->consistent_read = true;
    fixture_send(f, node, op);
    fixture_advance(f, 2500);
    assert_int_not_equal(fixture_replied(f, op), 0);
    if (op->result.error != API_OK)
        return op->result.message;
    return fixture_value(f, node, "tbl", pk);
}

static inline enum api_error put(struct fixture *f, uint32_t node, const char *pk, const char *v)
{
    struct op *op = fixture_put(f, "tbl", pk, v);
    fixture_send(f, node, op);
    for (uint32_t i = 0; i < 60 && fixture_replied(f, op) == 0; i++)
        fixture_advance(f, 50);
    assert_int_not_equal(fixture_replied(f, op), 0);
    return op->result.error;
}

/* "tbl" in all three nodes, or in the first two with a witness in the third. */
static inline void make(struct fixture *f, bool witness)
{
    create(f, 0, "tbl");
    accept(f, 0,
           witness ? fixture_strong(f, "tbl", EUROPE, NULL, JAPAN)
                   : fixture_strong(f, "tbl", EUROPE, JAPAN, NULL));
    fixture_advance(f, 3000);
}

static inline void expect_strong(struct fixture *f, bool witness)
{
    for (uint32_t i = 0; i < (witness ? 2U : 3U); i++) {
        const struct table *table = describe(f, i);
        assert_int_equal(table->status, TABLE_ACTIVE);
        assert_int_equal(table->mode, TABLE_STRONG);
        assert_int_equal(table->replica_count, witness ? 1 : 2);
        for (uint32_t j = 0; j < table->replica_count; j++) {
            assert_int_equal(table->replicas[j].status, REPLICA_ACTIVE);
            assert_int_not_equal(table->replicas[j].region, f->nodes[i].region);
        }
        assert_int_equal(table->witness, witness ? f->nodes[2].region : 0);
        if (witness)
            assert_int_equal(table->witness_status, REPLICA_ACTIVE);
    }
    if (witness)
        assert_null(fixture_table(f, 2, "tbl"));
}

static inline uint32_t rows(struct fixture *f, uint32_t node, enum keyspace_tag tag)
{
    struct buf bytes;
    buf_init(&bytes);
    fixture_dump(f, node, (uint8_t)tag, &bytes);
    struct bytes rest = buf_view(&bytes), one;
    uint32_t count = 0;
    while (bytes_take_prefixed(&rest, &one))
        count++;
    buf_deinit(&bytes);
    return count / 2;
}

static inline void expect_no_strong_rows(struct fixture *f, uint32_t node)
{
    assert_int_equal(rows(f, node, KEYSPACE_STRONG_LOG), 0);
    assert_int_equal(rows(f, node, KEYSPACE_STRONG_HARD), 0);
    assert_int_equal(rows(f, node, KEYSPACE_STRONG_BASE), 0);
}

static inline void expect_refusal(struct fixture *f, uint32_t node, struct op *op,
                                  enum api_error error, const char *message)
{
    assert_int_equal(fixture_do(f, node, op), error);
    assert_string_equal(op->result.message, message);
}

#endif
