/* SPDX-License-Identifier: Apache-2.0 */
/* One pass with a stack of the names of open elements. */

#include "markup.h"

#include <stdbool.h>

#include "conflict/base/check.h"

enum { DEPTH_MAX = 64, ATTRIBUTES_MAX = 32 };

struct parser {
    struct bytes text;
    size_t at;
    struct bytes open[DEPTH_MAX];
    size_t depth, roots;
};

static int peek(const struct parser *parser)
{
    return parser->at < parser->text.len ? parser->text.at[parser->at] : -1;
}

static bool take(struct parser *parser, const char *text)
{
    struct bytes left = bytes_make(parser->text.at + parser->at, parser->text.len - parser->at);
    if (!bytes_starts_with(left, bytes_text(text)))
        return false;
    parser->at += strlen(text);
    return true;
}

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

static struct bytes take_name(struct parser *parser)
{
    size_t from = parser->at;
    while (is_name(peek(parser)))
        parser->at++;
    return bytes_make(parser->text.at + from, parser->at - from);
}

static void skip_space(struct parser *parser)
{
    while (peek(parser) == ' ' || peek(parser) == '\n')
        parser->at++;
}

static const char *take_entity(struct parser *parser)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#13;"};
    for (size_t i = 0; i < array_len(known); i++)
        if (take(parser, known[i]))
            return NULL;
    return "an entity that is not known, or an & that begins none";
}

/* One character of a text or of a value. */
static const char *take_character(struct parser *parser)
{
    int c = peek(parser);
    if (c == '&')
        return take_entity(parser);
    if (c < 0x20 && c != '\n' && c != '\t')
        return "a character that XML forbids";
    if (c == 0x7f)
        return "a control character";
    parser->at++;
    return NULL;
}

static const char *take_attributes(struct parser *parser)
{
    struct bytes names[ATTRIBUTES_MAX];
    size_t count = 0;
    for (;;) {
        size_t before = parser->at;
        skip_space(parser);
        if (peek(parser) == '>' || peek(parser) == '/' || peek(parser) == '?')
            return NULL;
        if (parser->at == before)
            return "attributes that nothing parts";
        struct bytes name = take_name(parser);
        if (name.len == 0 || !take(parser, "=\""))
            return "an attribute without a name or a quoted value";
        for (size_t i = 0; i < count; i++)
            if (bytes_equal(names[i], name))
                return "an attribute that is given twice";
        if (count == ATTRIBUTES_MAX)
            return "too many attributes";
        names[count++] = name;
        while (peek(parser) != '"') {
            const char *fault = peek(parser) == '<' || peek(parser) < 0
                                    ? "a value that does not end"
                                    : take_character(parser);
            if (fault != NULL)
                return fault;
        }
        parser->at++;
    }
}

static const char *take_tag(struct parser *parser)
{
    if (take(parser, "</")) {
        struct bytes name = take_name(parser);
        if (parser->depth == 0 || !bytes_equal(parser->open[parser->depth - 1], name))
            return "an end tag that ends something else";
        parser->depth--;
        return take(parser, ">") ? NULL : "an end tag with more in it";
    }
    parser->at++;
    struct bytes name = take_name(parser);
    if (name.len == 0)
        return "a < that begins no tag";
    const char *fault = take_attributes(parser);
    if (fault != NULL)
        return fault;
    parser->roots += parser->depth == 0;
    if (take(parser, "/>"))
        return NULL;
    if (!take(parser, ">"))
        return "a tag that does not end";
    if (parser->depth == DEPTH_MAX)
        return "too deep";
    parser->open[parser->depth++] = name;
    return NULL;
}

const char *markup_fault(struct bytes text, size_t *ret_at)
{
    struct parser parser = {.text = text};
    const char *fault = NULL;
    if (take(&parser, "<?xml ")) {
        while (peek(&parser) >= 0 && !take(&parser, "?>"))
            parser.at++;
    }
    (void)take(&parser, "<!DOCTYPE html>");
    while (fault == NULL && parser.at < text.len) {
        if (peek(&parser) == '<')
            fault = take_tag(&parser);
        else if (parser.depth == 0 && peek(&parser) != '\n')
            fault = "a text outside of all elements";
        else
            fault = take_character(&parser);
    }
    if (fault == NULL && (parser.depth != 0 || parser.roots != 1))
        fault = "an element that does not end, or not one root";
    *ret_at = parser.at;
    return fault;
}
