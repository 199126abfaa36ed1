/* SPDX-License-Identifier: Apache-2.0 */
/* The reader. Every value passes field_read, so that each is refused in the same words: what came,
 * what was expected, and where. */

#include "chaos/scenario/fields.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "chaos/scenario/value.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { ERRORS_MAX = 20, WORD_MAX = 64, TEXTS_MAX = 64, CHOICES_MAX = 16 };

/* ---- Refusals ---- */

void reader_fail(struct reader *reader, const struct node *node, const char *format, ...)
{
    char reason[1024];
    va_list args;
    if (++reader->errors > ERRORS_MAX) {
        if (reader->errors == ERRORS_MAX + 1)
            buf_printf(reader->error, "%s: and more\n", reader->file);
        return;
    }
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    buf_printf(reader->error, "%s:%u: ", reader->file, node->line);
    size_t start = reader->error->len;
    node_path(node, reader->error);
    buf_printf(reader->error, "%s%s", reader->error->len > start ? ": " : "", reason);
    /* What came may hold anything; one line of ours stays one line. */
    for (size_t i = start; i < reader->error->len; i++)
        if (iscntrl(reader->error->at[i]))
            reader->error->at[i] = '?';
    buf_append_text(reader->error, "\n");
}

bool reader_wants(struct reader *reader, const struct node *node, enum node_kind kind,
                  const char *what)
{
    static const char *const names[] = {"a single value", "a list", "a mapping"};
    if (node->kind == kind)
        return true;
    reader_fail(reader, node, "expected %s, but this is %s", what, names[node->kind]);
    return false;
}

/* Levenshtein's distance, in one row. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[WORD_MAX + 1];
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return UINT32_MAX;
    for (uint32_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        uint32_t corner = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_len; j++) {
            uint32_t above = row[j];
            uint32_t best = corner + (tolower((unsigned char)a[i - 1]) != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            corner = above;
        }
    }
    return row[b_len];
}

const char *field_nearest(const char *word, const char *const *known, uint32_t count)
{
    const char *nearest = words_meant(word, known, count);
    uint32_t least = nearest != NULL ? 0 : 4;
    size_t len = strlen(word);
    for (uint32_t i = 0; i < count; i++) {
        /* What it begins is as good as one letter off. */
        bool begins = len >= 2 && strncmp(word, known[i], len) == 0;
        uint32_t far = begins ? 1 : distance(word, known[i]);
        if (far < least && far < strlen(known[i])) {
            least = far;
            nearest = known[i];
        }
    }
    return nearest;
}

void field_unknown(struct reader *reader, const struct node *node, const char *const *known,
                   uint32_t known_count)
{
    struct buf list cleanup(buf_deinit);
    const char *nearest = field_nearest(node->key, known, known_count);
    buf_init(&list);
    for (uint32_t i = 0; i < known_count; i++)
        buf_printf(&list, "%s%s", i == 0 ? "" : ", ", known[i]);
    if (nearest != NULL)
        reader_fail(reader, node, "there is no such key: did you mean '%s'?", nearest);
    else
        reader_fail(reader, node, "there is no such key: expected %.*s", (int)list.len,
                    (const char *)list.at);
}

/* ---- Values ---- */

static void expected_bounds(const struct field *field, struct buf *to)
{
    bool time = field->type == FIELD_TIME || field->type == FIELD_OFFSET;
    if (field->min == 0 && field->max == 0)
        return;
    if (time) {
        buf_append_text(to, field->min == 1 ? ", above 0 and at most " : ", from ");
        if (field->min != 1) {
            scenario_print_time(field->min, to);
            buf_append_text(to, " to ");
        }
        scenario_print_time(field->max, to);
    } else if (field->max == 0)
        buf_printf(to, ", at least %lld", (long long)field->min);
    else
        buf_printf(to, ", from %lld to %lld", (long long)field->min, (long long)field->max);
}

static void expected_regions(const struct reader *reader, bool special, struct buf *to)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    for (uint32_t i = 0; i < (special ? cluster->region_count : cluster->data_count); i++)
        buf_printf(to, "%s%s", i == 0 ? "" : ", ", cluster->region[i].name);
    if (special)
        buf_append_text(to, cluster->mode == SCENARIO_STRONG ? ", leader or all" : " or all");
}

static void expected(const struct reader *reader, const struct field *field, struct buf *to)
{
    static const char *const words[] = {
        [FIELD_TEXT] = "a text",
        [FIELD_BOOL] = "true or false",
        [FIELD_WHOLE] = "a whole number",
        [FIELD_SIGNED] = "a whole number, with a minus if it is negative",
        [FIELD_NUMBER] = "a number",
        [FIELD_SHARE] = "a share of at most 1, such as 0.25 or 25%",
        [FIELD_PERCENT] = "a number of hundredths from 0 to 100, such as 25 or 25%",
        [FIELD_TIME] = "a time such as 250ms, 2s, 1m30s or PT1M",
        [FIELD_OFFSET] = "a time such as 200ms, or -200ms for behind",
        [FIELD_BYTES] = "a size such as 512, 4KiB or 10MB",
        [FIELD_BANDWIDTH] = "bytes or bits a second, such as 1MB/s or 8mbit/s",
        [FIELD_FREQUENCY] = "how often, such as 400/s",
        [FIELD_CHOICE] = "",
        [FIELD_REGION] = "",
        [FIELD_REGIONS] = "a list of ",
        [FIELD_TEXTS] = "a list of texts",
        [FIELD_MAP] = "a mapping",
        [FIELD_CUSTOM] = "another value",
    };
    buf_append_text(to, words[field->type]);
    if (field->type == FIELD_CHOICE)
        for (const struct choice *at = field->choices; at->name != NULL; at++)
            buf_printf(to, "%s%s",
                       at == field->choices ? ""
                       : at[1].name == NULL ? " or "
                                            : ", ",
                       at->name);
    else if (field->type == FIELD_REGION || field->type == FIELD_REGIONS)
        expected_regions(reader, field->type == FIELD_REGION, to);
    else if (field->type == FIELD_TEXT || field->type == FIELD_TEXTS)
        buf_printf(to, " of %lld to %lld characters", (long long)field->min, (long long)field->max);
    else
        expected_bounds(field, to);
}

/* Of a word that had to be one of several: the one that was meant, or NULL. */
static const char *meant(const struct reader *reader, const struct field *field, const char *word)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    const char *known[CHOICES_MAX];
    uint32_t count = 0;
    if (field->type == FIELD_CHOICE)
        for (const struct choice *at = field->choices; at->name != NULL; at++)
            known[count++] = at->name;
    else if (field->type == FIELD_REGION || field->type == FIELD_REGIONS)
        for (uint32_t i = 0; i < cluster->region_count; i++)
            known[count++] = cluster->region[i].name;
    check(count <= CHOICES_MAX);
    const char *nearest = field_nearest(word, known, count);
    return nearest != NULL && strcmp(nearest, word) != 0 ? nearest : NULL;
}

static void refuse(struct reader *reader, const struct node *node, const struct field *field)
{
    struct buf text cleanup(buf_deinit);
    const char *nearest = node->kind == NODE_SCALAR ? meant(reader, field, node->text) : NULL;
    buf_init(&text);
    expected(reader, field, &text);
    if (node->kind != NODE_SCALAR)
        reader_fail(reader, node, "expected %.*s, but this is a %s", (int)text.len,
                    (const char *)text.at, node->kind == NODE_LIST ? "list" : "mapping");
    else if (node_is_null(node))
        reader_fail(reader, node, "no value: expected %.*s", (int)text.len, (const char *)text.at);
    else
        reader_fail(reader, node, "expected %.*s, but this is '%.64s'%s%s%s", (int)text.len,
                    (const char *)text.at, node->text, nearest == NULL ? "" : ": did you mean '",
                    nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static bool within(const struct field *field, double value)
{
    return (field->min == 0 && field->max == 0) ||
           (value >= (double)field->min && (field->max == 0 || value <= (double)field->max));
}

static bool set_whole(const struct field *field, struct bytes text, uint64_t *into)
{
    uint64_t value;
    bool good = field->type == FIELD_WHOLE   ? value_whole(text, &value)
                : field->type == FIELD_TIME  ? value_time(text, &value)
                : field->type == FIELD_BYTES ? value_bytes(text, &value)
                                             : value_bandwidth(text, &value);
    if (!good || !within(field, (double)value))
        return false;
    *into = value;
    return true;
}

static bool set_signed(const struct field *field, struct bytes text, int64_t *into)
{
    int64_t value;
    bool good =
        field->type == FIELD_SIGNED ? value_signed(text, &value) : value_offset(text, &value);
    if (!good || !within(field, (double)value))
        return false;
    *into = value;
    return true;
}

static bool set_real(const struct field *field, struct bytes text, double *into)
{
    double value;
    bool good = field->type == FIELD_NUMBER    ? value_number(text, &value)
                : field->type == FIELD_SHARE   ? value_share(text, &value)
                : field->type == FIELD_PERCENT ? value_percent(text, &value)
                                               : value_frequency(text, &value);
    if (!good || !within(field, value))
        return false;
    *into = value;
    return true;
}

static bool good_text(const struct field *field, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] == 0x7f)
            return false;
    return text.len >= (uint64_t)field->min && text.len <= (uint64_t)field->max;
}

static bool set_choice(const struct field *field, struct bytes text, uint8_t *into)
{
    for (const struct choice *at = field->choices; at->name != NULL; at++) {
        if (bytes_is(text, at->name)) {
            *into = at->value;
            return true;
        }
    }
    return false;
}

bool field_is_choice(const struct choice *choices, const struct node *node)
{
    const struct field field = {.choices = choices};
    uint8_t ignored;
    return node->kind == NODE_SCALAR && set_choice(&field, bytes_text(node->text), &ignored);
}

static bool set_region(const struct reader *reader, struct bytes text, uint8_t *into)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    if (bytes_is(text, "all")) {
        *into = SCENARIO_REGION_ALL;
        return true;
    }
    if (bytes_is(text, "leader") && cluster->mode == SCENARIO_STRONG) {
        *into = SCENARIO_REGION_LEADER;
        return true;
    }
    for (uint8_t i = 0; i < cluster->region_count; i++) {
        if (bytes_is(text, cluster->region[i].name)) {
            *into = i;
            return true;
        }
    }
    return reader->lost;
}

/* A single value from its text, which may be the table's default. */
static bool set_scalar(struct reader *reader, const struct field *field, struct bytes text,
                       void *member)
{
    switch (field->type) {
    case FIELD_TEXT:
        if (!good_text(field, text))
            return false;
        *(const char **)member = bytes_copy_text(reader->arena, text);
        return true;
    case FIELD_BOOL:
        return value_bool(text, member);
    case FIELD_WHOLE:
    case FIELD_TIME:
    case FIELD_BYTES:
    case FIELD_BANDWIDTH:
        return set_whole(field, text, member);
    case FIELD_SIGNED:
    case FIELD_OFFSET:
        return set_signed(field, text, member);
    case FIELD_NUMBER:
    case FIELD_SHARE:
    case FIELD_PERCENT:
    case FIELD_FREQUENCY:
        return set_real(field, text, member);
    case FIELD_CHOICE:
        return set_choice(field, text, member);
    case FIELD_REGION:
        return set_region(reader, text, member);
    case FIELD_REGIONS:
    case FIELD_TEXTS:
    case FIELD_MAP:
    case FIELD_CUSTOM:
        break;
    }
    return false;
}

static void read_regions(struct reader *reader, const struct node *node, const struct field *field,
                         uint8_t *into)
{
    const struct scenario_cluster *cluster = &reader->scenario->cluster;
    uint8_t set = 0;
    if (node->kind != NODE_LIST) {
        refuse(reader, node, field);
        return;
    }
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        uint8_t place = SCENARIO_REGION_NONE;
        bool known = at->kind == NODE_SCALAR && set_region(reader, bytes_text(at->text), &place);
        if (!known || (place >= cluster->data_count && !reader->lost))
            refuse(reader, at, field);
        else if (place < cluster->data_count)
            set |= (uint8_t)(1u << place);
    }
    *into = set;
}

static void read_texts(struct reader *reader, const struct node *node, const struct field *field,
                       struct scenario_texts *into)
{
    if (node->kind != NODE_LIST || node->count == 0 || node->count > TEXTS_MAX) {
        refuse(reader, node, field);
        return;
    }
    const char **texts = arena_array(reader->arena, const char *, node->count + 1);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        if (at->kind != NODE_SCALAR || !good_text(field, bytes_text(at->text)))
            refuse(reader, at, field);
        texts[at->index] = at->text;
    }
    *into = (struct scenario_texts){texts, node->count};
}

void field_read(struct reader *reader, const struct node *node, const struct field *field,
                void *into)
{
    void *member = (char *)into + field->offset;
    if (field->type == FIELD_CUSTOM)
        field->read(reader, node, into);
    else if (field->type == FIELD_MAP)
        shape_read(reader, node, field->shape, member);
    else if (field->type == FIELD_REGIONS)
        read_regions(reader, node, field, member);
    else if (field->type == FIELD_TEXTS)
        read_texts(reader, node, field, member);
    else if (node->kind != NODE_SCALAR || node_is_null(node) ||
             !set_scalar(reader, field, bytes_text(node->text), member))
        refuse(reader, node, field);
}

void field_set_standard(struct reader *reader, const struct field *field, void *into)
{
    if (field->standard == NULL)
        return;
    bool good =
        set_scalar(reader, field, bytes_text(field->standard), (char *)into + field->offset);
    check(good);
}

uint64_t shape_read(struct reader *reader, const struct node *node, const struct shape *shape,
                    void *into)
{
    const char *known[64];
    uint64_t given = 0, bad = 0;
    check(shape->count <= array_len(known));
    if (node != NULL && node_is_null(node))
        node = NULL;
    if (node != NULL && !reader_wants(reader, node, NODE_MAP, "a mapping"))
        node = NULL;
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct field *field = &shape->at[i];
        const struct node *child = node == NULL ? NULL : node_find(node, field->key);
        known[i] = field->key;
        field_set_standard(reader, field, into);
        if (child == NULL) {
            if (field->required && node != NULL)
                reader_fail(reader, node, "the key '%s' is missing: %s", field->key, field->help);
            if (field->type == FIELD_MAP) /* the defaults of what is in it */
                shape_read(reader, NULL, field->shape, (char *)into + field->offset);
            continue;
        }
        uint32_t before = reader->errors;
        given |= UINT64_C(1) << i;
        field_read(reader, child, field, into);
        bad |= (uint64_t)(reader->errors > before) << i;
    }
    for (const struct node *at = node == NULL ? NULL : node->first; at != NULL; at = at->next) {
        bool found = false;
        for (uint32_t i = 0; i < shape->count && !found; i++)
            found = strcmp(at->key, known[i]) == 0;
        if (!found)
            field_unknown(reader, at, known, shape->count);
    }
    reader->bad = bad;
    return given;
}
