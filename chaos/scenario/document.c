/* SPDX-License-Identifier: Apache-2.0 */
/* The tree is built from libyaml's events, one by one, so that a bound is met before the memory
 * beyond it is used. */

#include "chaos/scenario/document.h"

#include <ctype.h>
#include <yaml.h>

#include "conflict/base/check.h"

#define NO_ANCHORS "anchors and aliases (& and *) are not taken: write the value out"

enum { MISTAKES_MAX = 10 };

struct builder {
    struct arena *arena;
    const char *file;
    struct bytes text;
    struct buf *error;
    struct node **documents;
    uint32_t document_count;
    uint32_t nodes;
    uint32_t depth;
    struct node *open; /* the innermost collection that is not closed; NULL: none */
    const char *key;   /* of the next child of a mapping; NULL: a key is due */
    bool in_document;  /* between its beginning and its root */
    uint32_t mistakes; /* that leave a tree to be read all the same */
};

static bool fail(struct builder *builder, size_t line, const char *reason)
{
    buf_printf(builder->error, "%s:%zu: %s\n", builder->file, line + 1, reason);
    return false;
}

/* A mistake after which the rest can still be read, so that all are told at once. */
static bool go_on(struct builder *builder, size_t line, const char *key, const char *reason)
{
    if (++builder->mistakes > MISTAKES_MAX)
        return fail(builder, line, "and more");
    buf_printf(builder->error, "%s:%zu: %s%s%s\n", builder->file, line + 1, key,
               *key == 0 ? "" : ": ", reason);
    return true;
}

static const char *copy_text(struct builder *builder, const yaml_event_t *event)
{
    struct bytes text = bytes_make(event->data.scalar.value, event->data.scalar.length);
    if (text.len > 0 && memchr(text.at, 0, text.len) != NULL)
        return NULL;
    return bytes_copy_text(builder->arena, text);
}

/* A key as it may stand in a message: one line of ours stays one line. */
static const char *printable(struct builder *builder, const char *key)
{
    char *copy = arena_copy(builder->arena, key, strlen(key) + 1);
    for (char *at = copy; *at != 0; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    return copy;
}

static bool take_key(struct builder *builder, const yaml_event_t *event)
{
    size_t line = event->start_mark.line;
    if (event->type != YAML_SCALAR_EVENT)
        return fail(builder, line, "a key must be a word, not a list or a mapping");
    const char *key = copy_text(builder, event);
    if (key == NULL || *key == 0 || strlen(key) > 255)
        return fail(builder, line, "a key must have 1 to 255 characters, and no NUL");
    builder->key = key;
    return node_find(builder->open, key) == NULL ||
           go_on(builder, line, printable(builder, key), "the key is here twice");
}

/* Puts a new node where the next value belongs. NULL: refused. */
static struct node *add_node(struct builder *builder, const yaml_event_t *event,
                             enum node_kind kind)
{
    size_t line = event->start_mark.line;
    if (++builder->nodes > DOCUMENT_NODES_MAX) {
        fail(builder, line, "the file has too many values (more than 65536)");
        return NULL;
    }
    struct node *node = arena_new(builder->arena, struct node);
    struct node *parent = builder->open;
    node->kind = kind;
    node->line = (uint32_t)line + 1;
    node->parent = parent;
    if (parent == NULL) {
        check(builder->in_document);
        builder->documents[builder->document_count - 1] = node;
        builder->in_document = false;
        return node;
    }
    if (parent->kind == NODE_MAP && parent->count == DOCUMENT_KEYS_MAX) {
        fail(builder, line, "the mapping has too many keys (more than 512)");
        return NULL;
    }
    node->key = builder->key;
    node->index = parent->count++;
    if (parent->last == NULL)
        parent->first = node;
    else
        parent->last->next = node;
    parent->last = node;
    builder->key = NULL;
    return node;
}

static bool open_collection(struct builder *builder, const yaml_event_t *event, enum node_kind kind)
{
    if (builder->depth == DOCUMENT_DEPTH_MAX)
        return fail(builder, event->start_mark.line, "nested too deeply (more than 24)");
    struct node *node = add_node(builder, event, kind);
    if (node == NULL)
        return false;
    builder->depth++;
    builder->open = node;
    return true;
}

static void close_collection(struct builder *builder)
{
    check(builder->open != NULL);
    builder->depth--;
    /* The parent was const only for readers. */
    builder->open = (struct node *)(uintptr_t)builder->open->parent;
    builder->key = NULL;
}

static bool take_scalar(struct builder *builder, const yaml_event_t *event)
{
    struct node *node = add_node(builder, event, NODE_SCALAR);
    if (node == NULL)
        return false;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = copy_text(builder, event);
    if (node->text != NULL)
        return true;
    node->text = "?";
    return go_on(builder, event->start_mark.line, "", "the text holds a NUL");
}

/* What only trees with sharing, or of foreign types, have. */
static bool refuse_exotic(struct builder *builder, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (event->type == YAML_ALIAS_EVENT)
        return fail(builder, event->start_mark.line, NO_ANCHORS);
    if (anchor != NULL && !go_on(builder, event->start_mark.line, "", NO_ANCHORS))
        return false;
    return tag == NULL ||
           go_on(builder, event->start_mark.line, "", "tags (!) are not taken: leave it out");
}

static bool take_event(struct builder *builder, const yaml_event_t *event)
{
    if (!refuse_exotic(builder, event))
        return false;
    bool is_value = event->type == YAML_SCALAR_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
                    event->type == YAML_MAPPING_START_EVENT;
    if (is_value && builder->open != NULL && builder->open->kind == NODE_MAP &&
        builder->key == NULL)
        return take_key(builder, event);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->document_count == DOCUMENTS_MAX)
            return fail(builder, event->start_mark.line, "too many documents (more than 64)");
        builder->document_count++;
        builder->in_document = true;
        return true;
    case YAML_SCALAR_EVENT:
        return take_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(builder, event, NODE_LIST);
    case YAML_MAPPING_START_EVENT:
        return open_collection(builder, event, NODE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_collection(builder);
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
        return true;
    }
    unreachable();
}

/* The reader of bytes runs ahead of the parser, and tells its place in bytes only. */
static size_t line_of(struct bytes text, size_t offset)
{
    size_t line = 0;
    for (size_t i = 0; i < offset && i < text.len; i++)
        line += text.at[i] == '\n';
    return line;
}

static bool take_events(struct builder *builder, yaml_parser_t *parser)
{
    for (bool ended = false; !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            const char *problem = parser->problem == NULL ? "not YAML" : parser->problem;
            size_t line = parser->error == YAML_READER_ERROR
                              ? line_of(builder->text, parser->problem_offset)
                              : parser->problem_mark.line;
            buf_printf(builder->error, "%s:%zu: not YAML: %s%s%s\n", builder->file, line + 1,
                       problem, parser->context == NULL ? "" : " ",
                       parser->context == NULL ? "" : parser->context);
            return false;
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        bool good = take_event(builder, &event);
        yaml_event_delete(&event);
        if (!good)
            return false;
    }
    return builder->document_count > 0 || fail(builder, 0, "the file is empty");
}

bool document_parse(struct arena *arena, const char *file, struct bytes text,
                    struct node *ret[DOCUMENTS_MAX], uint32_t *ret_count, struct buf *error)
{
    struct builder builder = {
        .arena = arena, .file = file, .text = text, .error = error, .documents = ret};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return fail(&builder, 0, "no memory for a parser");
    yaml_parser_set_input_string(&parser, text.at, text.len);
    bool good = take_events(&builder, &parser);
    yaml_parser_delete(&parser);
    *ret_count = good ? builder.document_count : 0;
    return good && builder.mistakes == 0;
}

const struct node *node_find(const struct node *map, const char *key)
{
    if (map == NULL || map->kind != NODE_MAP)
        return NULL;
    for (const struct node *at = map->first; at != NULL; at = at->next)
        if (strcmp(at->key, key) == 0)
            return at;
    return NULL;
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && !node->quoted &&
           (*node->text == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

void node_path(const struct node *node, struct buf *to)
{
    if (node->parent == NULL)
        return;
    node_path(node->parent, to);
    if (node->key == NULL)
        buf_printf(to, "[%u]", node->index);
    else
        buf_printf(to, "%s%.64s", node->parent->parent == NULL ? "" : ".", node->key);
}
