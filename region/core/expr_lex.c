/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, one ahead of the parser, since AWS's syntax errors quote the token before and the token
 * after the bad one. A character that starts no token is a token of its own; the parser then finds
 * no use for it. */

#include <stdarg.h>
#include <stdio.h>

#include "conflict/base/check.h"
#include "region/core/expr_internal.h"

static bool is_letter(uint8_t byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_word(uint8_t byte)
{
    return is_letter(byte) || is_digit(byte) || byte == '_';
}

static bool is_keyword(struct bytes text, const char *upper)
{
    size_t i = 0;
    for (; i < text.len && upper[i]; i++) {
        if ((text.at[i] & ~0x20) != upper[i])
            return false;
    }
    return i == text.len && !upper[i];
}

static enum expr_token_kind name_kind(enum expr_grammar grammar, struct bytes text)
{
    static const struct {
        enum expr_grammar grammar;
        enum expr_token_kind kind;
        const char *upper;
    } keywords[] = {
        {GRAMMAR_CONDITION, TOKEN_OR, "OR"},      {GRAMMAR_CONDITION, TOKEN_AND, "AND"},
        {GRAMMAR_CONDITION, TOKEN_NOT, "NOT"},    {GRAMMAR_CONDITION, TOKEN_BETWEEN, "BETWEEN"},
        {GRAMMAR_CONDITION, TOKEN_IN, "IN"},      {GRAMMAR_UPDATE, TOKEN_SET, "SET"},
        {GRAMMAR_UPDATE, TOKEN_REMOVE, "REMOVE"}, {GRAMMAR_UPDATE, TOKEN_ADD, "ADD"},
        {GRAMMAR_UPDATE, TOKEN_DELETE, "DELETE"},
    };
    for (size_t i = 0; i < array_len(keywords); i++) {
        if (keywords[i].grammar == grammar && is_keyword(text, keywords[i].upper))
            return keywords[i].kind;
    }
    return TOKEN_NAME;
}

/* One character's kind; *len becomes 2 where a second one belongs to it. */
static enum expr_token_kind symbol_kind(struct bytes rest, size_t *len)
{
    uint8_t second = rest.len > 1 ? rest.at[1] : 0;
    switch (rest.at[0]) {
    case '=':
        return TOKEN_EQ;
    case '<':
        *len += second == '=' || second == '>';
        return second == '=' ? TOKEN_LE : second == '>' ? TOKEN_NE : TOKEN_LT;
    case '>':
        *len += second == '=';
        return second == '=' ? TOKEN_GE : TOKEN_GT;
    case '+':
        return TOKEN_PLUS;
    case '-':
        return TOKEN_MINUS;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case '[':
        return TOKEN_OPEN_INDEX;
    case ']':
        return TOKEN_CLOSE_INDEX;
    case ',':
        return TOKEN_COMMA;
    case '.':
        return TOKEN_DOT;
    default:
        /* All bytes of a UTF-8 sequence, so that the message that quotes it stays UTF-8. */
        while (rest.at[0] >= 0xc0 && *len < rest.len && (rest.at[*len] & 0xc0) == 0x80)
            ++*len;
        return TOKEN_OTHER;
    }
}

static struct expr_token lex(const struct expr_lexer *lexer, size_t at)
{
    struct bytes text = lexer->text;
    while (at < text.len && (text.at[at] == ' ' || (text.at[at] >= '\t' && text.at[at] <= '\r')))
        at++;
    struct expr_token token = {TOKEN_END, at, at};
    if (at == text.len)
        return token;
    uint8_t first = text.at[at];
    struct bytes rest = {text.at + at, text.len - at};
    size_t len = 1;
    if (is_letter(first)) {
        while (len < rest.len && is_word(rest.at[len]))
            len++;
        token.kind = name_kind(lexer->grammar, bytes_make(rest.at, len));
    } else if (is_digit(first)) {
        while (len < rest.len && is_digit(rest.at[len]))
            len++;
        token.kind = TOKEN_NUMBER;
    } else if ((first == '#' || first == ':') && rest.len > 1 && is_word(rest.at[1])) {
        while (len < rest.len && is_word(rest.at[len]))
            len++;
        token.kind = first == '#' ? TOKEN_NAME_PLACEHOLDER : TOKEN_VALUE_PLACEHOLDER;
    } else {
        token.kind = symbol_kind(rest, &len);
    }
    token.end = at + len;
    return token;
}

void expr_lexer_init(struct expr_lexer *lexer, enum expr_grammar grammar, struct bytes text)
{
    *lexer = (struct expr_lexer){.grammar = grammar, .text = text};
    lexer->current = lex(lexer, 0);
    lexer->previous = (struct expr_token){TOKEN_END, lexer->current.start, lexer->current.start};
    lexer->next = lex(lexer, lexer->current.end);
}

void expr_lexer_advance(struct expr_lexer *lexer)
{
    lexer->previous = lexer->current;
    lexer->current = lexer->next;
    lexer->next = lex(lexer, lexer->current.end);
}

struct bytes expr_token_text(const struct expr_lexer *lexer, const struct expr_token *token)
{
    return bytes_make(lexer->text.at + token->start, token->end - token->start);
}

static const char *format_text(struct arena *arena, const char *head, const char *format,
                               va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    check(len >= 0);
    size_t head_len = strlen(head);
    char *text = arena_alloc(arena, head_len + (size_t)len + 1);
    memcpy(text, head, head_len);
    vsnprintf(text + head_len, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}

const char *expr_message(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = format_text(arena, "", format, args);
    va_end(args);
    return text;
}

const char *expr_invalid(struct arena *arena, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = format_text(arena, expr_message(arena, "Invalid %s: ", what), format, args);
    va_end(args);
    return text;
}

bool expr_placeholder_check(struct bytes placeholder, char prefix)
{
    if (placeholder.len < 2 || (char)placeholder.at[0] != prefix)
        return false;
    for (size_t i = 1; i < placeholder.len; i++) {
        if (!is_word(placeholder.at[i]))
            return false;
    }
    return true;
}
