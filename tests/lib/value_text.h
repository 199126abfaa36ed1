/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VALUE_TEXT_H
#define TESTS_VALUE_TEXT_H

/* Items in a short notation, so that a test shows what it is about:
 *
 *   {a:'text', n:-1.5, b:x'00ff', l:[1,'a'], m:{k:true}, no:null, ss:<'a' 'b'>, ns:<1 2>,
 * bs:<x'00'>}
 *
 * Blanks are free between tokens. Wrong notation aborts: it is a mistake in the test. */

#include <stdlib.h>
#include <string.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "conflict/base/check.h"
#include "region/core/item.h"
#include "region/core/number.h"

struct value_text {
    struct arena *arena;
    const char *at;
};

static inline char value_text_peek(struct value_text *text)
{
    while (*text->at == ' ' || *text->at == ',')
        text->at++;
    return *text->at;
}

static inline void value_text_value(struct value_text *text, struct buf *to);

/* Up to the quote; after x, pairs of hexadecimal digits. */
static inline struct bytes value_text_quoted(struct value_text *text, bool hex)
{
    const char *end = strchr(text->at, '\'');
    check(end);
    struct bytes run = bytes_copy(text->arena, bytes_make(text->at, (size_t)(end - text->at)));
    text->at = end + 1;
    if (!hex)
        return run;
    uint8_t *raw = arena_alloc(text->arena, run.len / 2 + 1);
    for (size_t i = 0; i < run.len / 2; i++) {
        char pair[3] = {(char)run.at[2 * i], (char)run.at[2 * i + 1], '\0'};
        raw[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return bytes_make(raw, run.len / 2);
}

/* A scalar's type and payload. */
static inline enum value_type value_text_scalar(struct value_text *text, struct bytes *ret)
{
    char first = value_text_peek(text);
    if (first == '\'' || (first == 'x' && text->at[1] == '\'')) {
        text->at += first == 'x' ? 2 : 1;
        *ret = value_text_quoted(text, first == 'x');
        return first == 'x' ? VALUE_B : VALUE_S;
    }
    size_t len = strspn(text->at, "0123456789.+-eE");
    struct number number;
    check(number_parse(bytes_make(text->at, len), &number) == NUMBER_OK);
    text->at += len;
    uint8_t *encoded = arena_alloc(text->arena, NUMBER_ENCODED_MAX);
    *ret = bytes_make(encoded, number_encode(&number, encoded));
    return VALUE_N;
}

static inline void value_text_set(struct value_text *text, struct buf *to)
{
    struct bytes elements[64];
    size_t count = 0;
    enum value_type type = VALUE_S;
    while (value_text_peek(text) != '>')
        type = value_text_scalar(text, &elements[count++]);
    text->at++;
    type = type == VALUE_S ? VALUE_SS : type == VALUE_N ? VALUE_NS : VALUE_BS;
    check(set_write_sorted(to, type, elements, count));
}

static inline void value_text_attributes(struct value_text *text, struct buf *to)
{
    struct attribute attributes[64];
    size_t count = 0;
    while (value_text_peek(text) != '}') {
        size_t len = strcspn(text->at, ":");
        struct bytes name = bytes_copy(text->arena, bytes_make(text->at, len));
        text->at += len + 1;
        struct buf buf = {0};
        value_text_value(text, &buf);
        struct bytes encoded = bytes_copy(text->arena, buf_view(&buf));
        buf_deinit(&buf);
        attributes[count].name = name;
        check(value_take(&encoded, &attributes[count++].value));
    }
    text->at++;
    check(attributes_write_sorted(to, attributes, count));
}

static inline void value_text_value(struct value_text *text, struct buf *to)
{
    static const struct {
        const char *word;
        enum value_type type;
        struct bytes payload;
    } words[] = {{"true", VALUE_BOOL, {(const uint8_t *)"\1", 1}},
                 {"false", VALUE_BOOL, {(const uint8_t *)"", 1}},
                 {"null", VALUE_NULL, {NULL, 0}}};
    char first = value_text_peek(text);
    for (size_t i = 0; i < array_len(words); i++) {
        if (strncmp(text->at, words[i].word, strlen(words[i].word)) == 0) {
            text->at += strlen(words[i].word);
            value_write(to, words[i].type, words[i].payload);
            return;
        }
    }
    if (first == '<') {
        text->at++;
        value_text_set(text, to);
    } else if (first == '[' || first == '{') {
        size_t start = value_begin(to, first == '[' ? VALUE_L : VALUE_M);
        text->at++;
        while (first == '[' && value_text_peek(text) != ']')
            value_text_value(text, to);
        if (first == '[')
            text->at++;
        else
            value_text_attributes(text, to);
        value_end(to, start);
    } else {
        struct bytes payload;
        enum value_type type = value_text_scalar(text, &payload);
        value_write(to, type, payload);
    }
}

static inline struct value value_of_text(struct arena *arena, const char *notation)
{
    struct value_text text = {arena, notation};
    struct buf buf = {0};
    value_text_value(&text, &buf);
    check(value_text_peek(&text) == '\0');
    struct bytes encoded = bytes_copy(arena, buf_view(&buf));
    buf_deinit(&buf);
    struct value value;
    check(value_take(&encoded, &value));
    return value;
}

static inline struct bytes item_of_text(struct arena *arena, const char *notation)
{
    struct value value = value_of_text(arena, notation);
    check(value.type == VALUE_M);
    uint8_t *item = arena_alloc(arena, value.payload.len + 1);
    item[0] = ITEM_FORMAT;
    if (value.payload.len)
        memcpy(item + 1, value.payload.at, value.payload.len);
    return bytes_make(item, value.payload.len + 1);
}

#endif
