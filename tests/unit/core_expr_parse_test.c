/* SPDX-License-Identifier: Apache-2.0 */
/* The languages: what is a syntax error and how AWS tells it, what is none, and the limits on
 * length, operators, operands, path depth and nesting. */

#include "region/core/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/expr_expect.h"

/* Only that it is a syntax error. */
static void expect_syntax(enum parser parser, const char *text, const char *values)
{
    struct arena arena;
    arena_init(&arena);
    const char *message = parse(&arena, parser, bytes_text(text), NULL, values);
    if (!message || !strstr(message, "Expression: Syntax error; token: "))
        fail_msg("%s: %s", text, message ? message : "(none)");
    arena_deinit(&arena);
}

static void test_syntax(void **state)
{
    static const struct sample conditions[] = {
        {"", "The expression can not be empty;", 0, 0},
        {" \t\n", "The expression can not be empty;", 0, 0},
        {"foo", "Syntax error; token: \"<EOF>\", near: \"foo\"", 0, 0},
        {"attribute_not_exists(", "Syntax error; token: \"<EOF>\", near: \"(\"", 0, 0},
        {"contains (themes, :theme", "Syntax error; token: \"<EOF>\", near: \":theme\"", 0, 0},
        {"a = = :v", "Syntax error; token: \"=\", near: \"= = :v\"", 0, 0},
        {"a > 4", "Syntax error; token: \"4\", near: \"> 4\"", 0, 0},
        {"_hidden = :v", "Syntax error; token: \"_\", near: \"_hidden\"", 0, 0},
        {"a  =  b c", "Syntax error; token: \"c\", near: \"b c\"", 0, 0},
        {"\xc3\xbc > a", "Syntax error; token: \"\xc3\xbc\", near: \"\xc3\xbc >\"", 0, 0},
    };
    static const struct sample updates[] = {
        {"INVALID SYNTAX HERE", "Syntax error; token: \"INVALID\", near: \"INVALID SYNTAX\"", 0, 0},
        {"SET book-price = :v", "Syntax error; token: \"-\", near: \"book-price\"", 0, 0},
        {"ADD hits : incr", "Syntax error; token: \":\", near: \"hits : incr\"", 0, 0},
        {"SET a = if_not_exists(a, 0)", "Syntax error; token: \"0\", near: \", 0)\"", 0, 0},
        {"SET a = :v,", "Syntax error; token: \"<EOF>\", near: \",\"", 0, 0},
        {"SET", "Syntax error; token: \"<EOF>\", near: \"SET\"", 0, 0},
    };
    static const struct sample projections[] = {
        {"!!!", "Syntax error; token: \"!\", near: \"!!\"", 0, 0},
        {"a b", "Syntax error; token: \"b\", near: \"a b\"", 0, 0},
        {"l[a]", "Syntax error; token: \"a\", near: \"[a]\"", 0, 0},
        {"a,", "Syntax error; token: \"<EOF>\", near: \",\"", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < array_len(conditions); i++)
        expect(CONDITION, &conditions[i]);
    for (size_t i = 0; i < array_len(updates); i++)
        expect(UPDATE, &updates[i]);
    for (size_t i = 0; i < array_len(projections); i++)
        expect(PROJECTION, &projections[i]);
}

static const char *const syntax_conditions[] = {"things are not gonna be ok",
                                                "attribute_exists(Pictures-RearView)",
                                                "attribute_exists(\"Pictures.RearView\")",
                                                "attribute_exists(Pictures..RearView)",
                                                "attribute_exists(Pi#ctures.RearView)",
                                                "attribute_exists(asdf[a])",
                                                "a in b, c",
                                                "a > between",
                                                "a in b",
                                                "a in (b,c,)",
                                                "a in ()",
                                                "(a)between(b.(c.d))and(c)",
                                                "(a)between(b.c.d)and((c)",
                                                "#$.b > a",
                                                "a > :things.stuff",
                                                "b[:a] > a",
                                                "b[#_] > a",
                                                "(a)between(b.c[4.5].#d)and(:a)",
                                                "size(a).b > a",
                                                "(size(a)).b > a",
                                                "size(a)[0] > a",
                                                "(size(a))[0] > a",
                                                "a",
                                                "(a)",
                                                "not a",
                                                "a and b = c",
                                                "(a) and b = c",
                                                "a = b and c",
                                                "a = (b = c)",
                                                "(a = b) = c",
                                                "a = b)",
                                                "(a = b",
                                                "a = b or",
                                                "not",
                                                "a < b < c",
                                                "attribute_exists()",
                                                "a = b c = d",
                                                "a =",
                                                "= a",
                                                "a between b or c",
                                                "f(a",
                                                "f(a,)",
                                                "a.in = b",
                                                "and = b",
                                                "a[0 = b",
                                                "a[-1] = b",
                                                "1a = b",
                                                "a == b",
                                                "a != b",
                                                "a <= > b"};
static const char *const syntax_updates[] = {"whatever",
                                             "set a",
                                             "add a",
                                             "delete a",
                                             "set a=set",
                                             "remove a = b",
                                             "add a = b",
                                             "delete a = b",
                                             "delete a b",
                                             "delete a if_not_exist(b)",
                                             "add abort b",
                                             "add a if_not_exist(b)",
                                             "remove a b",
                                             "set a b",
                                             "set :a = b",
                                             "add :a b",
                                             "delete :a b",
                                             "remove :a",
                                             "set a = b / c",
                                             "set a = b * c",
                                             "set a[1] = \"eight\"",
                                             "set a[1] = 1",
                                             "SET a = if_not_exist(a, 100)",
                                             "SET if_not_exist(a, b) = a",
                                             "set (a = (b + c))",
                                             "set a = (b.c).d + e",
                                             "set a = (b.c)[0] + e",
                                             "set a = b + c + d",
                                             "set a = (b + c) + d",
                                             "set a = b + (c + d)",
                                             "set a = list_append(a + b, c)",
                                             "set a = :v set",
                                             "set",
                                             "set a =",
                                             "set a = (b",
                                             "set a = b,, c = d",
                                             "remove a,",
                                             "set a = b or c = d"};

static void test_syntax_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(syntax_conditions); i++)
        expect_syntax(CONDITION, syntax_conditions[i], NULL);
    for (size_t i = 0; i < array_len(syntax_updates); i++)
        expect_syntax(UPDATE, syntax_updates[i], NULL);
}

static void test_accepted(void **state)
{
    static const struct sample conditions[] = {
        {"a = :v", 0, 0, "{v:1}"},
        {"(a) between (:v) and (b)", 0, 0, "{v:1}"},
        {"(a.b).c = :v", 0, 0, "{v:1}"},
        {"((a.b).c = :v)", 0, 0, "{v:1}"},
        {"not (a = :v or not b = :v) AND c <> :v", 0, 0, "{v:1}"},
        {"NOT NOT a = :v", 0, 0, "{v:1}"},
        {"(attribute_exists(a)) AND (attribute_exists(b))", 0, 0, 0},
        {"(attribute_exists(a) AND (attribute_exists(b)))", 0, 0, 0},
        {"(attribute_not_exists (#0) AND attribute_not_exists (#1))", 0, "{0:'pk',1:'sk'}", 0},
        {"#0 = :0", 0, "{0:'pk'}", "{0:1}"},
        {"size(a)>:v and :v>size(b)", 0, 0, "{v:1}"},
        {"a IN (:v,b,c)", 0, 0, "{v:1}"},
        {":v = :v", 0, 0, "{v:1}"},
        {"a[0][1].b > :v", 0, 0, "{v:1}"},
        {"a[2147483647] > :v", 0, 0, "{v:1}"},
        {"contains(a, :v) or begins_with(a, :w)", 0, 0, "{v:1,w:'x'}"},
        {"attribute_type(:v, :t)", 0, 0, "{v:1,t:'N'}"},
    };
    static const struct sample updates[] = {
        {"SET a = :v", 0, 0, "{v:1}"},
        {"set a = (b - :v)", 0, 0, "{v:1}"},
        {"set a = ((b.c.d)+(e))", 0, 0, 0},
        {"SET a = if_not_exists(a, b) + b", 0, 0, 0},
        {"SET a = if_not_exists(a, if_not_exists(a, b))", 0, 0, 0},
        {"SET a=:v REMOVE b[0],b[1].x ADD c :v DELETE d :s", 0, 0, "{v:1,s:<1>}"},
        {"set a[1] = b, a[2].c = b", 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < array_len(conditions); i++)
        expect(CONDITION, &conditions[i]);
    for (size_t i = 0; i < array_len(updates); i++)
        expect(UPDATE, &updates[i]);
    expect(PROJECTION, &(struct sample){"a, b.c[1], #d", 0, "{d:'x.y'}", 0});
}

/* Repeats `unit` count times, then `tail`. */
static struct bytes repeat(struct arena *arena, const char *head, const char *unit, int count,
                           const char *tail)
{
    struct buf text = {0};
    buf_append_text(&text, head);
    for (int i = 0; i < count; i++)
        buf_append_text(&text, unit);
    buf_append_text(&text, tail);
    struct bytes copy = bytes_copy(arena, buf_view(&text));
    buf_deinit(&text);
    return copy;
}

static void test_limits(void **state)
{
    struct arena arena;
    (void)state;
    arena_init(&arena);
#define FILTER "Invalid FilterExpression: "
    const struct {
        struct bytes text;
        const char *message;
    } cases[] = {
        {repeat(&arena, "attribute_exists(pk)", " ", 4096 - 20, ""), NULL},
        {repeat(&arena, "attribute_exists(pk)", " ", 4097 - 20, ""),
         FILTER "Expression size has exceeded the maximum allowed size; expression size: 4097"},
        {repeat(&arena, "a=:v", " or a=:v", 149, ""), NULL},
        {repeat(&arena, "not a=:v", " or a=:v", 149, ""), NULL},
        {repeat(&arena, "not not a=:v", " or a=:v", 149, ""),
         FILTER "The expression contains too many operators; operator count: 301"},
        {repeat(&arena, "", "NOT ", 1000, "a=:v"),
         FILTER "The expression contains too many operators; operator count: 1001"},
        {repeat(&arena, "a in (:v", ",:v", 99, ")"), NULL},
        {repeat(&arena, "a in (:v", ",:v", 100, ")"),
         FILTER "The IN operator is provided with too many operands; number of operands: 101"},
        {repeat(&arena, "a", ".b", 31, "=:v"), NULL},
        {repeat(&arena, "a", ".b", 32, "=:v"),
         FILTER "The document path has too many nesting levels; nesting levels: 33"},
        {repeat(&arena, "", "(", 4096, ""), FILTER "The expression has redundant parentheses;"},
        {repeat(&arena, "", "(", 399, "a=:v"),
         FILTER "Syntax error; token: \"<EOF>\", near: \":v\""},
        {repeat(&arena, "", "NOT(", 1000, "a=:v"),
         FILTER "The expression contains too many operators; operator count: 401"},
        {repeat(&arena, "", "f(", 2000, "a"),
         FILTER "The expression contains too many operators; operator count: 401"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        const char *message = parse(&arena, CONDITION, cases[i].text, NULL, "{v:1}");
        if (!cases[i].message && message)
            fail_msg("%zu: %s", i, message);
        if (cases[i].message && (!message || strcmp(message, cases[i].message) != 0))
            fail_msg("%zu: %s", i, message ? message : "(none)");
    }
    for (int i = 0; i < 2; i++) {
        struct bytes text = repeat(&arena, "set a = ", i ? "(" : "if_not_exists(a,", 4000 / 16, "");
        assert_non_null(parse(&arena, UPDATE, text, NULL, NULL));
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_syntax_errors),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
