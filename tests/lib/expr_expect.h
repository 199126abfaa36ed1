/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPR_EXPECT_H
#define TESTS_EXPR_EXPECT_H

/* One expression in any of the four languages, and the whole message that it must give. For cmocka
 * programs, after their includes. */

#include <stdio.h>

#include "tests/lib/expr_text.h"

enum parser { CONDITION, KEY, PROJECTION, UPDATE };

struct sample {
    const char *text;
    const char *message; /* without "Invalid ...Expression: "; NULL: fine */
    const char *names, *values;
};

static inline const char *parse(struct arena *arena, enum parser parser, struct bytes text,
                                const char *names, const char *values)
{
    struct expr_scope scope = expr_text_scope(arena, names, values);
    struct expr_condition *condition;
    struct expr_key_condition *key;
    struct expr_projection *projection;
    struct expr_update *update;
    switch (parser) {
    case CONDITION:
        return expr_parse_condition(&scope, "FilterExpression", text, &condition);
    case KEY:
        return expr_parse_key_condition(&scope, text, &key);
    case PROJECTION:
        return expr_parse_projection(&scope, text, &projection);
    case UPDATE:
        return expr_parse_update(&scope, text, &update);
    }
    return NULL;
}

static inline void expect(enum parser parser, const struct sample *sample)
{
    static const char *const prefixes[] = {
        "Invalid FilterExpression: ", "",
        "Invalid ProjectionExpression: ", "Invalid UpdateExpression: "};
    struct arena arena;
    char want[1024];
    arena_init(&arena);
    const char *message =
        parse(&arena, parser, bytes_text(sample->text), sample->names, sample->values);
    snprintf(want, sizeof(want), "%s%s", prefixes[parser], sample->message ? sample->message : "");
    if (!sample->message && message)
        fail_msg("%s: %s", sample->text, message);
    if (sample->message && (!message || strcmp(message, want) != 0))
        fail_msg("%s:\n  %s\n  %s", sample->text, message ? message : "(none)", want);
    arena_deinit(&arena);
}

#endif
