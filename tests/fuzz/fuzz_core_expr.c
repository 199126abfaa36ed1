/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, parsed and then used: the first byte picks the language, the rest is the text. What
 * is written must be an item that item_check accepts. */

#include "conflict/base/check.h"
#include "region/core/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* {a:1, b:"text", l:[null,"x"], m:{a:true, l:[null]}, s:<"x">} */
static const uint8_t item_bytes[] =
    "\1\1a\2\2\xc1\2\1b\1\4text\1l\6\5\5\0\1\1x\1m\7\13\1a\4\1\1\1l\6\2\5\0\1s\10\2\1x";
static const struct bytes item = {item_bytes, sizeof(item_bytes) - 1};

static struct value value_at(const char *encoded, size_t len)
{
    struct bytes rest = {(const uint8_t *)encoded, len};
    struct value value;
    check(value_take(&rest, &value));
    return value;
}

static void use_condition(struct expr_scope *scope, struct bytes text, const struct key_schema *key)
{
    struct expr_condition *condition;
    if (expr_parse_condition(scope, "ConditionExpression", text, &condition))
        return;
    bool holds = expr_condition_holds(condition, item);
    check(holds == expr_condition_holds(condition, item));
    (void)expr_condition_holds(condition, BYTES_NONE);
    (void)expr_filter_check_key(condition, key, scope->arena);
}

static void use_key_condition(struct expr_scope *scope, struct bytes text,
                              const struct key_schema *key)
{
    struct expr_key_condition *condition;
    struct key_range range;
    if (expr_parse_key_condition(scope, text, &condition))
        return;
    if (!expr_key_condition_bind(condition, key, scope->arena, &range))
        check(range.hash.type == key->hash_type);
}

static void use_projection(struct expr_scope *scope, struct bytes text)
{
    struct expr_projection *projection;
    struct buf out = {0};
    if (expr_parse_projection(scope, text, &projection))
        return;
    expr_project(projection, item, &out);
    check(item_check(buf_view(&out)));
    check(out.len <= item.len);
    buf_deinit(&out);
}

static void use_update(struct expr_scope *scope, struct bytes text, const struct key_schema *key)
{
    struct expr_update *update;
    struct buf out = {0}, touched = {0};
    if (expr_parse_update(scope, text, &update))
        return;
    (void)expr_update_check_key(update, key, scope->arena);
    if (!expr_update_apply(update, item, BYTES_NONE, scope->arena, &out)) {
        check(item_check(buf_view(&out)));
        expr_update_touched(update, buf_view(&out), &touched);
        check(item_check(buf_view(&touched)));
    }
    buf_deinit(&out);
    buf_deinit(&touched);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    if (!size)
        return 0;
    arena_init(&arena);
    struct expr_name names[] = {{bytes_literal("#a"), bytes_literal("a"), false},
                                {bytes_literal("#m"), bytes_literal("m"), false}};
    struct expr_value values[] = {{bytes_literal(":n"), value_at("\2\2\xc1\3", 4), false},
                                  {bytes_literal(":t"), value_at("\1\1x", 3), false},
                                  {bytes_literal(":l"), value_at("\6\2\5\0", 4), false},
                                  {bytes_literal(":s"), value_at("\10\4\1x\1y", 6), false}};
    struct expr_scope scope = {&arena, names, array_len(names), true, values, array_len(values),
                               true};
    struct key_schema key = {.hash_name = "a",
                             .hash_type = VALUE_N,
                             .has_range = true,
                             .range_name = "b",
                             .range_type = VALUE_S};
    struct bytes text = {data + 1, size - 1};
    switch (data[0] % 4) {
    case 0:
        use_condition(&scope, text, &key);
        break;
    case 1:
        use_key_condition(&scope, text, &key);
        break;
    case 2:
        use_projection(&scope, text);
        break;
    default:
        use_update(&scope, text, &key);
        break;
    }
    (void)expr_check_unused(&scope);
    arena_deinit(&arena);
    return 0;
}
