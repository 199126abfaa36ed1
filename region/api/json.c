/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. The parser looks at each byte of a string several times over, so it costs ten times
 * as much as the rest of a request, and the values of items are mostly text without a single
 * escape. Such a text is lifted out before the parser comes, which finds an empty string in its
 * place, and is put back into the tree afterwards:
 *
 *     {"pk":{"S":"customer-0001"}}   ->   {"pk":{"S":""}}   ->   tree   ->   tree, whole again
 *                                             "customer-0001", the first empty value ------^
 *
 * Only what every reader of JSON takes as it stands is lifted: printable ASCII without a backslash,
 * and what is empty already. So the tree's empty values are those that were lifted, in the order of
 * the text. The scan reads structure only, it judges nothing: a text that it lets pass may still be
 * no JSON, and then the parser says so, as a string stood where it finds one.
 *
 * The scan counts names, too: of one that comes twice the tree keeps one, so then it has fewer.
 * That takes less than to let the parser look each name up before it adds it.
 *
 * What is left after lifting is the request's form, and a program sends few forms, over and over.
 * The trees of those that came at least twice are kept, and the next request of the form only has
 * its texts put in. A form finds its tree by all of its text, so that nothing can take another's
 * place; what a client can do at worst is to have every request parsed. */

#include "region/api/json.h"

#include <endian.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    FEW_MEMBERS = 3,
    FORMS_KEPT = 32,
    FORM_TEXT_MAX = 4096, /* of the whole request: bounds what kept trees take */
    SCRATCH_KEPT_MAX = 64 * 1024
};

struct lifted {
    struct bytes text;
    json_t *node; /* once it is back in the tree */
};

struct scan {
    struct bytes text;
    uint32_t names;
    size_t kept; /* up to here the text is in form, or lifted */
    struct buf form;
    struct lifted *lifted;
    uint32_t lifted_count, lifted_cap;
};

struct form {
    uint64_t seen; /* hash of the last that came to this place and was not kept */
    uint64_t hash;
    struct buf text;
    json_t *tree;   /* NULL: none is kept */
    json_t **texts; /* its empty values */
    uint32_t text_count;
};

struct json_reader {
    struct scan scan; /* for its memory */
    struct form forms[FORMS_KEPT];
};

static void scan_deinit(struct scan *scan)
{
    buf_deinit(&scan->form);
    free(steal(&scan->lifted));
    scan->lifted_cap = 0;
}

static void scan_begin(struct scan *scan, struct bytes text)
{
    scan->text = text;
    scan->names = scan->lifted_count = 0;
    scan->kept = 0;
    buf_reset(&scan->form);
}

/* How many of eight bytes come before the first that ends a string or is not to be lifted with it.
 * These are the classic tests for a byte below, or equal to, a constant: they may borrow, but only
 * from a byte that has met them, and so never say so too early. */
static size_t plain_of_eight(const uint8_t *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t eight;
    memcpy(&eight, at, sizeof(eight));
    eight = le64toh(eight);
    uint64_t quote = eight ^ (ones * '"'), backslash = eight ^ (ones * '\\');
    uint64_t found = (eight | (eight - ones * ' ') | (quote - ones) | (backslash - ones)) & tops;
    return found ? (size_t)__builtin_ctzll(found) / 8 : 8;
}

/* The index of the quote that ends the string whose text begins at `from`; the text's length if
 * there is none. */
static size_t string_end(struct bytes text, size_t from, bool *ret_plain)
{
    bool plain = true;
    size_t i = from;
    while (i < text.len) {
        if (i + 8 <= text.len) {
            size_t skip = plain_of_eight(text.at + i);
            i += skip;
            if (skip == 8)
                continue;
        }
        uint8_t c = text.at[i];
        if (c == '"')
            break;
        plain = plain && c >= ' ' && c < 0x80 && c != '\\';
        i += c == '\\' ? 2 : 1;
    }
    *ret_plain = plain;
    return i < text.len ? i : text.len;
}

/* Whether what follows makes the string before it a member's name. */
static bool is_name(struct bytes text, size_t after)
{
    while (after < text.len && (text.at[after] == ' ' || text.at[after] == '\t' ||
                                text.at[after] == '\n' || text.at[after] == '\r'))
        after++;
    return after < text.len && text.at[after] == ':';
}

static void lift(struct scan *scan, size_t from, size_t to)
{
    if (scan->lifted_count == 0)
        buf_reserve(&scan->form, scan->text.len);
    if (scan->lifted_count == scan->lifted_cap) {
        scan->lifted_cap = scan->lifted_cap ? scan->lifted_cap * 2 : 16;
        scan->lifted = xrealloc(scan->lifted, scan->lifted_cap * sizeof(*scan->lifted));
    }
    scan->lifted[scan->lifted_count++].text = bytes_make(scan->text.at + from, to - from);
    buf_append(&scan->form, scan->text.at + scan->kept, from - scan->kept);
    scan->kept = to;
}

/* Past the string whose text begins at `from`. */
static size_t scan_string(struct scan *scan, size_t from)
{
    bool plain;
    size_t end = string_end(scan->text, from, &plain);
    if (end == scan->text.len)
        return end;
    if (is_name(scan->text, end + 1))
        scan->names++;
    else if (plain)
        lift(scan, from, end);
    return end + 1;
}

/* False when the text is out of bounds. */
static bool scan_text(struct scan *scan)
{
    struct bytes text = scan->text;
    bool small = text.len <= JSON_SMALL_BYTES_MAX;
    uint32_t weight = 0, depth = 0;
    for (size_t i = 0; i < text.len;) {
        uint8_t c = text.at[i++];
        if (c == '"') {
            i = scan_string(scan, i);
        } else if (c == ',') {
            weight++;
        } else if (c == '[' || c == '{') {
            weight += 4;
            depth++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
        if (!small && (weight > JSON_WEIGHT_MAX || depth > JSON_DEPTH_MAX))
            return false;
    }
    return true;
}

/* A walk over the tree, in the text's order. */
struct walk {
    struct lifted *at; /* the next to be put back */
    size_t left;
    size_t names;
};

static void put_text(json_t *node, struct bytes text)
{
    check(json_string_setn_nocheck(node, (const char *)text.at, text.len) == 0);
}

static void put_back(struct walk *walk, json_t *json)
{
    if (json_is_object(json)) {
        walk->names += json_object_size(json);
        for (void *member = json_object_iter(json); member;
             member = json_object_iter_next(json, member))
            put_back(walk, json_object_iter_value(member));
    } else if (json_is_array(json)) {
        size_t i;
        json_t *element;
        json_array_foreach(json, i, element)
        {
            put_back(walk, element);
        }
    } else if (walk->left > 0 && json_is_string(json) && json_string_length(json) == 0) {
        walk->at->node = json;
        put_text(json, walk->at->text);
        walk->at++;
        walk->left--;
    }
}

static json_t *parse(struct scan *scan, struct bytes form)
{
    json_t *json cleanup(json_release) =
        json_loadb((const char *)form.at, form.len, JSON_ALLOW_NUL, NULL);
    if (!json)
        return NULL;
    struct walk walk = {.at = scan->lifted, .left = scan->lifted_count};
    put_back(&walk, json);
    if (walk.names != scan->names)
        return NULL;
    check(walk.left == 0);
    return steal(&json);
}

static void form_forget(struct form *form)
{
    json_release(&form->tree);
    buf_deinit(&form->text);
    free(steal(&form->texts));
}

static void form_keep(struct form *form, uint64_t hash, struct bytes text, const struct scan *scan,
                      json_t *tree)
{
    form_forget(form);
    form->hash = hash;
    buf_append_bytes(&form->text, text);
    form->tree = json_incref(tree);
    form->text_count = scan->lifted_count;
    form->texts = xmalloc((scan->lifted_count + 1) * sizeof(json_t *));
    for (uint32_t i = 0; i < scan->lifted_count; i++)
        form->texts[i] = scan->lifted[i].node;
}

/* The tree that is kept of a form, with these texts in it. */
static json_t *form_fill(const struct form *form, const struct scan *scan)
{
    check(form->tree->refcount == 1); /* who had it last has given it back */
    check(form->text_count == scan->lifted_count);
    for (uint32_t i = 0; i < form->text_count; i++)
        put_text(form->texts[i], scan->lifted[i].text);
    return json_incref(form->tree);
}

static json_t *parse_or_fill(struct json_reader *reader, struct scan *scan, struct bytes text)
{
    uint64_t hash = XXH3_64bits(text.at, text.len);
    struct form *form = &reader->forms[hash % FORMS_KEPT];
    if (form->tree && form->hash == hash && bytes_equal(buf_view(&form->text), text))
        return form_fill(form, scan);
    json_t *json = parse(scan, text);
    if (json && form->seen == hash)
        form_keep(form, hash, text, scan, json);
    form->seen = hash;
    return json;
}

static json_t *read_with(struct json_reader *reader, struct scan *scan)
{
    if (!scan_text(scan))
        return NULL;
    struct bytes text = scan->text;
    if (scan->lifted_count > 0) {
        buf_append(&scan->form, text.at + scan->kept, text.len - scan->kept);
        text = buf_view(&scan->form);
    }
    if (!reader || scan->text.len > FORM_TEXT_MAX || text.len == 0)
        return parse(scan, text);
    return parse_or_fill(reader, scan, text);
}

json_t *json_read(struct json_reader *reader, struct bytes text)
{
    if (!reader) {
        struct scan scan cleanup(scan_deinit) = {.text = text};
        return read_with(NULL, &scan);
    }
    struct scan *scan = &reader->scan;
    scan_begin(scan, text);
    json_t *json = read_with(reader, scan);
    if (scan->form.cap > SCRATCH_KEPT_MAX ||
        scan->lifted_cap > SCRATCH_KEPT_MAX / sizeof(*scan->lifted))
        scan_deinit(scan);
    return json;
}

struct json_reader *json_reader_new(void)
{
    return xcalloc(1, sizeof(struct json_reader));
}

struct json_reader *json_reader_free(struct json_reader *reader)
{
    if (!reader)
        return NULL;
    for (uint32_t i = 0; i < FORMS_KEPT; i++)
        form_forget(&reader->forms[i]);
    scan_deinit(&reader->scan);
    free(reader);
    return NULL;
}

void json_release(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

json_t *json_member_find(const json_t *object, const char *name, size_t len)
{
    json_t *member = NULL;
    if (json_object_size(object) > FEW_MEMBERS) {
        member = json_object_get(object, name);
    } else {
        /* So few are compared faster than the name is hashed. */
        json_t *owner = (json_t *)(uintptr_t)object;
        for (void *at = json_object_iter(owner); at && !member;
             at = json_object_iter_next(owner, at)) {
            if (json_object_iter_key_len(at) == len &&
                memcmp(json_object_iter_key(at), name, len) == 0)
                member = json_object_iter_value(at);
        }
    }
    return json_is_null(member) ? NULL : member;
}

struct bytes json_text(const json_t *string)
{
    return bytes_make(json_string_value(string), json_string_length(string));
}

struct bytes json_copy_text(struct arena *arena, const json_t *string)
{
    return bytes_copy(arena, json_text(string));
}
