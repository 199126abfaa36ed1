/* SPDX-License-Identifier: Apache-2.0 */
/* What AWS says of expressions that parse and are wrong all the same, word for word, and in its
 * order when several things are. The texts are those that open test suites have recorded from AWS.
 */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/expr_expect.h"

static void test_condition_messages(void **state)
{
    static const char parens[] = "The expression has redundant parentheses;";
    static const struct sample samples[] = {
        {"a=a and a > ((views))", parens, 0, 0},
        {"(a)between(((b.c)).d)and(c)", parens, 0, 0},
        {"a > whatever((:things), ((a)))", parens, 0, 0},
        {"a=a AND ((a=a AND a=a)) AND a=a", parens, 0, 0},
        {"a=a OR ((a=a OR (a=a OR a=a)))", parens, 0, 0},
        {"a=a and whatever((:things)) > a", "Invalid function name; function: whatever", 0, 0},
        {"attRIbute_exIsts((views), #a)", "Invalid function name; function: attRIbute_exIsts", 0,
         0},
        {"if_not_exists(a, b)",
         "The function is not allowed in a condition expression; function: if_not_exists", 0, 0},
#define MISUSED "The function is not allowed to be used this way in an expression; function: "
        {"a=a and attribute_exists((views), (#a)) > b", MISUSED "attribute_exists", 0, 0},
        {"contains(:things, c) > b", MISUSED "contains", 0, 0},
        {"size(contains(a, b)) > a", MISUSED "contains", 0, 0},
        {"size(things)", MISUSED "size", 0, 0},
        {"not size(things)", MISUSED "size", 0, 0},
        {"a between b and attribute_exists(things)", MISUSED "attribute_exists", 0, 0},
        {"a in (b, attribute_exists(things))", MISUSED "attribute_exists", 0, 0},
#define RESERVED "Attribute name is a reserved keyword; reserved keyword: "
        {"attribute_exists(views, #a)", RESERVED "views", 0, 0},
        {":a < abOrT", RESERVED "abOrT", 0, 0},
        {"size = :v", RESERVED "size", 0, 0},
        {"a.zone = :v", RESERVED "zone", 0, 0},
        {"a[2147483648] = :v", "List index is not within the allowable range; index: [2147483648]",
         0, 0},
        {"a[99999999999999999999] = :v",
         "List index is not within the allowable range; index: [99999999999999999999]", 0, 0},
#define NO_NAME                                                                                    \
    "An expression attribute name used in the document path is not defined; attribute name: "
        {"attribute_exists(#Pictures.RearView, :a) and a=a", NO_NAME "#Pictures", 0, 0},
        {"begins_with(Pictures.#RearView)", NO_NAME "#RearView", 0, 0},
        {"(#P between :lo and :hi) and (#PC in (:cat1, :cat2))", NO_NAME "#P", 0, 0},
        {"#4g > a", NO_NAME "#4g", 0, 0},
        {"(a)between(b.c[45].#d)and(:a)", NO_NAME "#d", 0, 0},
#define NO_VALUE                                                                                   \
    "An expression attribute value used in expression is not defined; attribute value: "
        {"begins_with(:hello, #a, #b)", NO_VALUE ":hello", 0, 0},
        {":a < :b", NO_VALUE ":a", 0, 0},
        {":_ > a", NO_VALUE ":_", 0, 0},
#define COUNT "Incorrect number of operands for operator or function; operator or function: "
        {"attribute_exists(things, a) and a=a", COUNT "attribute_exists, number of operands: 2", 0,
         0},
        {"attribute_type(things)", COUNT "attribute_type, number of operands: 1", 0, 0},
        {"begins_with(things, size(a), b)", COUNT "begins_with, number of operands: 3", 0, 0},
        {"size(things, a) > b", COUNT "size, number of operands: 2", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < array_len(samples); i++)
        expect(CONDITION, &samples[i]);
}

static void test_operand_messages(void **state)
{
#define TYPE "Incorrect operand type for operator or function; operator or function: "
#define PATH "Operator or function requires a document path; operator or function: "
#define DISTINCT                                                                                   \
    "The first operand must be distinct from the remaining operands for this operator or "         \
    "function; operator: "
    static const struct sample samples[] = {
        {"attribute_type(a, b)",
         TYPE "attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}", 0, 0},
        {"attribute_type(a, size(a)) and a=:a", TYPE "attribute_type, operand type: N", 0, "{a:1}"},
        {"attribute_type(a, :a)", TYPE "attribute_type, operand type: L", 0, "{a:[]}"},
        {"attribute_type(a, :a)",
         "Invalid attribute type name found; type: 1, valid types: "
         "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
         0, "{a:'1'}"},
        {"begins_with(a, size(a)) and a=:a", TYPE "begins_with, operand type: N", 0, "{a:1}"},
        {"begins_with(:a, a)", TYPE "begins_with, operand type: BOOL", 0, "{a:true}"},
        {"begins_with(a, :a)", TYPE "begins_with, operand type: BS", 0, "{a:<x'00'>}"},
        {"size(size(a)) > :a", TYPE "size, operand type: N", 0, "{a:1}"},
        {"attribute_not_exists(size(:a))", TYPE "size, operand type: N", 0, "{a:1}"},
        {"attribute_not_exists(size(:a))", PATH "attribute_not_exists", 0, "{a:'x'}"},
        {"size(:a) > a", TYPE "size, operand type: NULL", 0, "{a:null}"},
        {"attribute_exists(:a)", PATH "attribute_exists", 0, "{a:'x'}"},
        {"contains(:a, b)", TYPE "contains, operand type: N", 0, "{a:1}"},
        {"a < :a", TYPE "<, operand type: BOOL", 0, "{a:true}"},
        {":a >= b", TYPE ">=, operand type: M", 0, "{a:{}}"},
        {"a between :a and :b", TYPE "BETWEEN, operand type: L", 0, "{a:[1],b:[2]}"},
        {"a between :b and :a",
         "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
         "lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}",
         0, "{a:'a',b:'b'}"},
        {"a between :b and :a",
         "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
         "lower bound operand: AttributeValue: {N:10}, upper bound operand: AttributeValue: {N:9}",
         0, "{a:9,b:10}"},
        {"a between :b and :a",
         "The BETWEEN operator requires same data type for lower and upper bounds; lower bound "
         "operand: AttributeValue: {B:YQ==}, upper bound operand: AttributeValue: {S:a}",
         0, "{a:'a',b:x'61'}"},
        {"a = a AND #a = b AND :views > a", DISTINCT "=, first operand: [a]", "{a:'a'}", 0},
        {"#a <> a", DISTINCT "<>, first operand: [a]", "{a:'a'}", 0},
        {"contains(ab.bc[1].a, ab.bc[1].#a)", DISTINCT "contains, first operand: [ab, bc, [1], a]",
         "{a:'a'}", 0},
        /* The first comparison that has a fault tells, whatever the fault. */
        {"begins_with(a, :n) and b = :missing", TYPE "begins_with, operand type: N", 0, "{n:1}"},
        {"b = :missing and begins_with(a, :n)", NO_VALUE ":missing", 0, "{n:1}"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(samples); i++)
        expect(CONDITION, &samples[i]);
}

static void test_key_messages(void **state)
{
#define FIRST " operator must have the key attribute as its first operand"
#define BAD "Invalid condition in KeyConditionExpression: "
#define OPERATOR "Invalid operator used in KeyConditionExpression: "
#define INVALID "Invalid KeyConditionExpression: "
    static const struct sample samples[] = {
        {"", INVALID "The expression can not be empty;", 0, 0},
        {"a > b and size(b) > c or a > c", OPERATOR "OR", 0, 0},
        {"a in (b, size(c), d)", OPERATOR "IN", 0, 0},
        {"attribute_exists(a)", OPERATOR "attribute_exists", 0, 0},
        {"attribute_type(a, :a)", OPERATOR "attribute_type", 0, "{a:'S'}"},
        {"contains(a.d, b)", OPERATOR "contains", 0, 0},
        {"not a > b", OPERATOR "NOT", 0, 0},
        {"a <> b", OPERATOR "<>", 0, 0},
        {":a between size(b) and size(a) and b > :b", BAD "BETWEEN" FIRST, 0, "{a:'1',b:'1'}"},
        {"begins_with(:a, b) and a > :b", BAD "begins_with" FIRST, 0, "{a:'1',b:'1'}"},
        {"size(b) > a AND a.b > b AND b > c",
         INVALID "KeyConditionExpressions cannot contain nested operations", 0, 0},
        {"a > size(b.d)", INVALID "KeyConditionExpressions cannot contain nested operations", 0, 0},
        {"b > a.b", BAD "Multiple attribute names used in one condition", 0, 0},
        {"b between c[1] and d", BAD "Multiple attribute names used in one condition", 0, 0},
        {"begins_with(a, b)", BAD "Multiple attribute names used in one condition", 0, 0},
        {"b.d > a AND c.d > e.f",
         INVALID "KeyConditionExpressions cannot have conditions on nested attributes", 0, 0},
        {":b > :a AND a < :b", BAD "No key attribute specified", 0, "{a:1,b:1}"},
        {"b > :a AND b < :a and c = :a and d = :a",
         INVALID "KeyConditionExpressions must only contain one condition per key", 0, "{a:1}"},
        {"(a > :a and b > :a) and (b > :a and c > :a)",
         INVALID "KeyConditionExpressions must only contain one condition per key", 0, "{a:1}"},
        {"pk = :p AND sk BETWEEN :a AND :b",
         INVALID "The BETWEEN operator requires upper bound to be greater than or equal to lower "
                 "bound; lower bound operand: AttributeValue: {S:z}, upper bound operand: "
                 "AttributeValue: {S:a}",
         0, "{p:'p',a:'z',b:'a'}"},
        {"pk = :p AND begins_with(sk, :n) AND sk = :missing",
         INVALID TYPE "begins_with, operand type: N", 0, "{p:'p',n:1}"},
        {"pk = :p AND :v >= sk", INVALID TYPE ">=, operand type: BOOL", 0, "{p:'p',v:true}"},
        {"((pk = :p)) AND ((sk = :p))", INVALID "The expression has redundant parentheses;", 0,
         "{p:'p'}"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(samples); i++)
        expect(KEY, &samples[i]);
}

static void test_path_messages(void **state)
{
#define OVERLAP                                                                                    \
    "Two document paths overlap with each other; must remove or rewrite one of these paths; "      \
    "path one: "
#define CONFLICT                                                                                   \
    "Two document paths conflict with each other; must remove or rewrite one of these paths; "     \
    "path one: "
    static const struct sample updates[] = {
        {"set d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)",
         OVERLAP "[c, [1], a], path two: [c]", "{c:'c',d:'[3]'}", 0},
        {"set #c[3].#d = a, #c[3] = a", OVERLAP "[c, [3], [3]], path two: [c, [3]]",
         "{c:'c',d:'[3]'}", 0},
        {"set f = a, f = b", OVERLAP "[f], path two: [f]", 0, 0},
        {"set #c[3].#d = a, #c.#d[3] = if_not_exists(a)",
         CONFLICT "[c, [3], [3]], path two: [c, [3], [3]]", "{c:'c',d:'[3]'}", 0},
        {"remove a.#c set a[1] = #d", CONFLICT "[a, c], path two: [a, [1]]", "{c:'c',d:'[3]'}", 0},
    };
    static const struct sample projections[] = {
        {"a, b, a", OVERLAP "[a], path two: [a]", 0, 0},
        {"a.b.c, a.b", OVERLAP "[a, b, c], path two: [a, b]", 0, 0},
        {"a.b, a[1]", CONFLICT "[a, b], path two: [a, [1]]", 0, 0},
        {"a, #b", NO_NAME "#b", 0, 0},
        {"abort, a, a", RESERVED "abort", 0, 0},
        {"a[1], a[2], a[0].x", 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < array_len(updates); i++)
        expect(UPDATE, &updates[i]);
    for (size_t i = 0; i < array_len(projections); i++)
        expect(PROJECTION, &projections[i]);
}

static void test_update_messages(void **state)
{
#define WORDS "Incorrect operand type for operator or function; operator: "
    static const struct sample samples[] = {
        {" set #c = :c set abOrt = true ", RESERVED "abOrt", 0, 0},
        {"SET a = foo(b), abort = c", RESERVED "abort", 0, 0},
        {" remove Absolute ", RESERVED "Absolute", 0, 0},
        {"set #c = if_not_exist(:c) set c = d", "Invalid function name; function: if_not_exist", 0,
         0},
        {"set a = size(b)", "The function is not allowed in an update expression; function: size",
         0, 0},
        {"set a = #c set c = :d",
         "The \"SET\" section can only be used once in an update expression;", 0, 0},
        {"remove #d set a = b remove e",
         "The \"REMOVE\" section can only be used once in an update expression;", 0, 0},
        {"ADD p :o SET a = :a ADD q :o",
         "The \"ADD\" section can only be used once in an update expression;", 0, "{o:1,a:'t'}"},
        {"delete #d :e set a = b delete #e :f",
         "The \"DELETE\" section can only be used once in an update expression;", 0, 0},
        {"SET #c = if_not_exists(:c)", NO_NAME "#c", 0, 0},
        {"SET a = if_not_exists(:c)", NO_VALUE ":c", 0, 0},
        {"set b = list_append(:a, a), c = if_not_exists(a) add a.b :a",
         WORDS "ADD, operand type: STRING", 0, "{a:'a'}"},
        {"delete a.b :a", WORDS "DELETE, operand type: NUMBER", 0, "{a:1}"},
        {"add a.b :a", WORDS "ADD, operand type: LIST", 0, "{a:[1]}"},
        {"add a.b :a", WORDS "ADD, operand type: BOOLEAN", 0, "{a:true}"},
        {"set a = if_not_exists(c)", COUNT "if_not_exists, number of operands: 1", 0, 0},
        {"set a = list_append(c)", COUNT "list_append, number of operands: 1", 0, 0},
        {"set a = if_not_exists(:a, c)", PATH "if_not_exists", 0, "{a:1}"},
        {"set a = if_not_exists(if_not_exists(a, b), c)", PATH "if_not_exists", 0, 0},
        {"set a = list_append(list_append(a, :a), b)",
         "The function is not allowed to be used this way in an expression; function: list_append",
         0, "{a:[1]}"},
        {"set a = list_append(:a, a)", TYPE "list_append, operand type: S", 0, "{a:'a'}"},
        {"set a = list_append(a, :a)", TYPE "list_append, operand type: SS", 0, "{a:<'a'>}"},
        {"set a = a + :a", TYPE "+, operand type: S", 0, "{a:'a'}"},
        {"set a = a - :a", TYPE "-, operand type: M", 0, "{a:{}}"},
        {"set a = ((:a))", "The expression has redundant parentheses;", 0, "{a:{}}"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(samples); i++)
        expect(UPDATE, &samples[i]);
}

static void test_unused(void **state)
{
    struct arena arena;
    struct expr_condition *condition;
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, "{a:'a',b:'b',c:'c'}", "{v:1,w:2}");
    assert_null(
        expr_parse_condition(&scope, "FilterExpression", bytes_literal("#b = :v"), &condition));
    assert_string_equal(expr_check_unused(&scope),
                        "Value provided in ExpressionAttributeNames unused in expressions: keys: "
                        "{#a, #c}");
    assert_null(
        expr_parse_condition(&scope, "FilterExpression", bytes_literal("#a.#c = :v"), &condition));
    assert_string_equal(expr_check_unused(&scope),
                        "Value provided in ExpressionAttributeValues unused in expressions: keys: "
                        "{:w}");
    assert_null(
        expr_parse_condition(&scope, "FilterExpression", bytes_literal("q = :w"), &condition));
    assert_null(expr_check_unused(&scope));
    arena_deinit(&arena);
}

/* Enough placeholders for the index, which a handful does without. */
static void test_many_placeholders(void **state)
{
    enum { NAMES = 300 };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    struct expr_scope scope = expr_text_scope(&arena, NULL, NULL);
    struct buf text = {0};
    buf_append_text(&text, "set z = z");
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "#%d", i);
        scope.names[i].placeholder = bytes_copy(&arena, bytes_text(name));
        scope.names[i].name = bytes_copy(&arena, bytes_text(name + 1));
        buf_printf(&text, ",%s=a", name);
    }
    scope.name_count = NAMES;
    struct expr_update *update;
    assert_null(expr_parse_update(&scope, buf_view(&text), &update));
    assert_null(expr_check_unused(&scope));
    buf_append_text(&text, ",#300=a");
    assert_string_equal(expr_parse_update(&scope, buf_view(&text), &update),
                        "Invalid UpdateExpression: " NO_NAME "#300");
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void test_placeholders(void **state)
{
    (void)state;
    assert_true(expr_placeholder_check(bytes_literal("#a"), '#'));
    assert_true(expr_placeholder_check(bytes_literal(":0_z"), ':'));
    assert_false(expr_placeholder_check(bytes_literal("a"), '#'));
    assert_false(expr_placeholder_check(bytes_literal("#"), '#'));
    assert_false(expr_placeholder_check(bytes_literal("#a-b"), '#'));
    assert_false(expr_placeholder_check(bytes_literal(":a"), '#'));
    assert_false(expr_placeholder_check(BYTES_NONE, '#'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_condition_messages), cmocka_unit_test(test_operand_messages),
        cmocka_unit_test(test_key_messages),       cmocka_unit_test(test_path_messages),
        cmocka_unit_test(test_update_messages),    cmocka_unit_test(test_unused),
        cmocka_unit_test(test_many_placeholders),  cmocka_unit_test(test_placeholders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
