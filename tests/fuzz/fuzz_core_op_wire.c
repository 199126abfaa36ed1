/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a write from another Region: the first byte tells whether they are all of it, or the
 * tree of its condition or update. What is accepted is written back the same, and executing it
 * makes an item that item_check accepts. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/op_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct table table = {.name = "t", .key = {.hash_name = "a", .hash_type = VALUE_N}};

static const struct table *find(void *context, struct bytes name)
{
    (void)context;
    (void)name;
    return &table;
}

/* {a:1, b:"text", l:[null,"x"], m:{a:true, l:[null]}, s:<"x">} and its key, {a:1} */
static const uint8_t item_bytes[] =
    "\1\1a\2\2\xc1\2\1b\1\4text\1l\6\5\5\0\1\1x\1m\7\13\1a\4\1\1\1l\6\2\5\0\1s\10\2\1x";
static const struct bytes item = {item_bytes, sizeof(item_bytes) - 1};
static const struct bytes key = {item_bytes, 7};

static void execute(const struct op *op, struct bytes image)
{
    struct op copy = *op;
    struct op_change change;
    struct value pk;
    copy.keys = arena_copy(op->arena, op->keys, sizeof(*op->keys));
    op_execute_key(&copy, 0, image, &change);
    check(change.kind == OP_CHANGE_NONE || copy.result.error == API_OK);
    if (change.kind == OP_CHANGE_PUT) {
        check(item_check(change.item));
        check(item_size(change.item) <= ITEM_SIZE_MAX);
        check(item_find(change.item, bytes_literal("a"), &pk));
    }
}

static void use(struct bytes from)
{
    struct arena arena;
    struct op op;
    struct bytes at;
    cleanup(buf_deinit) struct buf again = {0};
    arena_init(&arena);
    if (op_wire_decode(from, &table, &arena, &op)) {
        check(op_wire_key(from, &at));
        check(bytes_equal(at, op.keys[0].key));
        check(op_wire_encode(&op, 0, &again));
        check(bytes_equal(buf_view(&again), from));
        execute(&op, BYTES_NONE);
        execute(&op, key);
        execute(&op, item);
    }
    arena_deinit(&arena);
}

/* What an update without trees begins with; its last bytes are the flags and the attributes. */
static void use_tree(struct bytes tree, uint8_t flags)
{
    struct arena arena;
    cleanup(buf_deinit) struct buf bytes = {0};
    arena_init(&arena);
    struct op_key at = {.table_name = bytes_literal("t"), .attributes = key};
    struct op op = {.kind = OP_UPDATE_ITEM, .arena = &arena, .keys = &at, .key_count = 1};
    check(op_plan(&op, find, NULL));
    check(op_wire_encode(&op, 0, &bytes));
    bytes.at[bytes.len - key.len - 2] = flags;
    buf_append_bytes(&bytes, tree);
    use(buf_view(&bytes));
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct bytes rest = bytes_make(data + 1, size - 1);
    if (data[0] % 4 == 0)
        use(rest);
    else
        use_tree(rest, data[0] % 4);
    return 0;
}
