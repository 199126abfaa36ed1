/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. The parser looks at each byte of a string several times over, so it costs ten times
 * as much as the rest of a request, and the values of items are mostly text without a single
 * escape. Such a text is lifted out before the parser comes, which finds an empty string in its
 * place, and is put back into the tree afterwards:
 *
 *     {"pk":{"S":"customer-0001"}}   ->   {"pk":{"S":""}}   ->   tree   ->   tree, whole again
 *                                             "customer-0001", the first empty value ------^
 *
 * Only what every reader of JSON takes as it stands is lifted: printable ASCII without a backslash.
 * Which empty value it was is known by counting them: the tree keeps the order of the text. The
 * scan reads structure only, it judges nothing: a text that it lets pass may still be no JSON, and
 * then the parser says so, as a string stood where it finds one.
 *
 * The scan counts names, too: of one that comes twice the tree keeps one, so then it has fewer.
 * That takes less than to let the parser look each name up before it adds it. */

#include "region/api/json.h"

#include <endian.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { LIFT_BYTES_MIN = 4, FEW_MEMBERS = 3 };

struct lifted {
    struct bytes text;
    uint32_t empties; /* empty values between the one before it and itself */
};

struct scan {
    struct bytes text;
    uint32_t names;
    uint32_t empties; /* since the last that was lifted */
    size_t kept;      /* up to here the text is in reduced, or lifted */
    struct buf reduced;
    struct lifted *lifted;
    uint32_t lifted_count, lifted_cap;
};

static void scan_deinit(struct scan *scan)
{
    buf_deinit(&scan->reduced);
    free(scan->lifted);
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
        buf_reserve(&scan->reduced, scan->text.len);
    if (scan->lifted_count == scan->lifted_cap) {
        scan->lifted_cap = scan->lifted_cap ? scan->lifted_cap * 2 : 8;
        scan->lifted = xrealloc(scan->lifted, scan->lifted_cap * sizeof(*scan->lifted));
    }
    scan->lifted[scan->lifted_count++] =
        (struct lifted){bytes_make(scan->text.at + from, to - from), scan->empties};
    scan->empties = 0;
    buf_append(&scan->reduced, scan->text.at + scan->kept, from - scan->kept);
    scan->kept = to;
}

/* Past the string whose text begins at `from`. */
static size_t scan_string(struct scan *scan, size_t from)
{
    bool plain;
    size_t end = string_end(scan->text, from, &plain), len = end - from;
    if (end == scan->text.len)
        return end;
    if (is_name(scan->text, end + 1))
        scan->names++;
    else if (len == 0)
        scan->empties++;
    else if (len >= LIFT_BYTES_MIN && plain)
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
        if (walk->at->empties > 0) {
            walk->at->empties--;
            return;
        }
        struct bytes text = walk->at->text;
        check(json_string_setn_nocheck(json, (const char *)text.at, text.len) == 0);
        walk->at++;
        walk->left--;
    }
}

json_t *json_read(struct bytes text)
{
    struct scan scan cleanup(scan_deinit) = {.text = text};
    if (!scan_text(&scan))
        return NULL;
    struct bytes rest = text;
    if (scan.lifted_count > 0) {
        buf_append(&scan.reduced, text.at + scan.kept, text.len - scan.kept);
        rest = buf_view(&scan.reduced);
    }
    json_t *json cleanup(json_release) =
        json_loadb((const char *)rest.at, rest.len, JSON_ALLOW_NUL, NULL);
    if (!json)
        return NULL;
    struct walk walk = {.at = scan.lifted, .left = scan.lifted_count};
    put_back(&walk, json);
    if (walk.names != scan.names)
        return NULL;
    check(walk.left == 0);
    return steal(&json);
}

void json_release(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

json_t *json_member(const json_t *object, const char *name)
{
    json_t *member = NULL;
    if (json_object_size(object) > FEW_MEMBERS) {
        member = json_object_get(object, name);
    } else {
        /* So few are compared faster than the name is hashed. */
        size_t len = strlen(name);
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
