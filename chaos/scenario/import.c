/* SPDX-License-Identifier: Apache-2.0 */
/* Text comes out, not structs: a user keeps, reads and edits what was imported, and it passes the
 * same checks as what he writes himself. */

#include "chaos/scenario/import.h"

#include <ctype.h>

#include "chaos/scenario/import_internal.h"
#include "chaos/scenario/value.h"
#include "conflict/base/check.h"

enum { ID_MAX = 48 };

static const char *const standard_regions[] = {"us-east-1", "eu-west-1", "ap-northeast-1"};

bool import_open(struct import *import, const char *file, struct bytes text, const char *tool,
                 const struct import_options *options, struct buf *error)
{
    *import = (struct import){.options = options, .tool = tool};
    arena_init(&import->arena);
    buf_init(&import->name);
    buf_init(&import->about);
    buf_init(&import->faults);
    import->reader =
        (struct reader){.file = file, .arena = &import->arena, .error = error, .scenario = NULL};
    if (text.len > SCENARIO_FILE_MAX) {
        buf_printf(error, "%s: too large: at most %d bytes are read\n", file, SCENARIO_FILE_MAX);
        return false;
    }
    return document_parse(&import->arena, file, text, import->documents, &import->document_count,
                          error);
}

void import_close(struct import *import)
{
    buf_deinit(&import->name);
    buf_deinit(&import->about);
    buf_deinit(&import->faults);
    arena_deinit(&import->arena);
}

static uint32_t region_count(const struct import *import)
{
    return import->options->region_count > 0 ? import->options->region_count
                                             : (uint32_t)array_len(standard_regions);
}

static const char *region_at(const struct import *import, uint32_t i)
{
    return import->options->region_count > 0 ? import->options->regions[i] : standard_regions[i];
}

const char *import_region(const struct import *import, struct bytes word)
{
    for (uint32_t i = 0; i < import->options->name_count; i++)
        if (bytes_is(word, import->options->names[i].selector))
            return import->options->names[i].region;
    for (uint32_t i = 0; i < region_count(import); i++)
        if (bytes_is(word, region_at(import, i)))
            return region_at(import, i);
    return NULL;
}

const char *import_own_region(const struct import *import)
{
    return import->options->region != NULL ? import->options->region : region_at(import, 0);
}

const char *import_text(struct import *import, const struct node *map, const char *key)
{
    const struct node *node = node_find(map, key);
    if (node == NULL) {
        reader_fail(&import->reader, map, "the key '%s' is missing", key);
        return NULL;
    }
    if (!reader_wants(&import->reader, node, NODE_SCALAR, "a text"))
        return NULL;
    return node->text;
}

bool import_time(struct import *import, const struct node *map, const char *key, uint64_t *ret)
{
    const char *text = import_text(import, map, key);
    if (text == NULL)
        return false;
    if (value_time(bytes_text(text), ret) && *ret <= 24 * (uint64_t)SCENARIO_HOUR_NS)
        return true;
    reader_fail(&import->reader, node_find(map, key),
                "'%.64s' is no time of at most 24 hours, such as PT1M or 30s", text);
    return false;
}

void import_keys(struct import *import, const struct node *map, const char *const *known)
{
    uint32_t count = 0;
    while (known[count] != NULL)
        count++;
    for (const struct node *at = map->kind == NODE_MAP ? map->first : NULL; at != NULL;
         at = at->next) {
        bool found = false;
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(at->key, known[i]) == 0;
        if (!found)
            field_unknown(&import->reader, at, known, count);
    }
}

/* ---- Text ---- */

static void append_word(struct buf *to, const char *text)
{
    size_t len = 0;
    for (; *text != 0 && len < ID_MAX; text++, len++)
        buf_append_u8(to, isalnum((unsigned char)*text) || *text == '_' ? (uint8_t)*text : '-');
}

static void append_quoted(struct buf *to, struct bytes text)
{
    buf_append_u8(to, '"');
    for (size_t i = 0; i < text.len && i < 300; i++) {
        if (text.at[i] == '"' || text.at[i] == '\\')
            buf_append_u8(to, '\\');
        buf_append_u8(to, iscntrl(text.at[i]) || text.at[i] >= 0x80 ? ' ' : text.at[i]);
    }
    buf_append_u8(to, '"');
}

/* In the largest unit that is exact. */
static void append_time(struct buf *to, uint64_t ns)
{
    static const struct {
        uint64_t size;
        const char *text;
    } units[] = {{60000000000, "m"}, {1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;
    while (ns % units[i].size != 0)
        i++;
    if (ns == 0)
        buf_append_text(to, "0s");
    else
        buf_printf(to, "%llu%s", (unsigned long long)(ns / units[i].size), units[i].text);
}

void import_fault(struct import *import, uint64_t at_ns, uint64_t for_ns, const char *verb,
                  const char *id)
{
    struct buf *to = &import->faults;
    buf_append_text(to, "      - {at: ");
    append_time(to, at_ns);
    if (for_ns > 0) {
        buf_append_text(to, ", for: ");
        append_time(to, for_ns);
    }
    buf_printf(to, ", do: %s, id: ", verb);
    append_word(to, id);
    buf_printf(to, "-%u", ++import->fault_count);
    if (import->end_ns < at_ns + for_ns)
        import->end_ns = at_ns + for_ns;
}

void import_param(struct import *import, const char *key, const char *value)
{
    buf_printf(&import->faults, ", %s: ", key);
    append_quoted(&import->faults, bytes_text(value));
}

void import_fault_end(struct import *import)
{
    buf_append_text(&import->faults, "}\n");
}

/* The load and the expectations are those that fit every fault; the rest is the user's to say. */
static void write_scenario(struct import *import, struct buf *to)
{
    bool strong = import->options->strong;
    buf_printf(
        to, "# Imported from %s. Say what you expect of it under `expect`.\nname: ", import->tool);
    if (import->name.len == 0)
        buf_append_text(to, "imported");
    else
        buf_append_bytes(to, buf_view(&import->name));
    if (import->about.len > 0) {
        buf_append_text(to, "\nabout: ");
        append_quoted(to, buf_view(&import->about));
    }
    buf_printf(to, "\nseed: 1\ncluster:\n  mode: %s\n  regions: [", strong ? "strong" : "eventual");
    for (uint32_t i = 0; i < region_count(import); i++)
        buf_printf(to, "%s%s", i == 0 ? "" : ", ", region_at(import, i));
    buf_printf(to,
               "]\nworkload: {kind: %s, keys: 64, rate: 200/s}\n"
               "phases:\n  - {name: baseline, for: 5s}\n  - name: experiment\n    for: ",
               strong ? "swap-register" : "lww-conflict");
    append_time(to, import->end_ns > 0 ? import->end_ns : UINT64_C(1000000000));
    buf_append_text(to, "\n    faults:\n");
    buf_append_bytes(to, buf_view(&import->faults));
    buf_append_text(to, "  - {name: heal, do: heal-all, until: {converged: true, timeout: 60s}}\n"
                        "expect: {lost_other: 0, phantoms: 0, converged: true}\n");
    if (import->stops)
        buf_printf(to, "stop_if: {%s}\n", import->options->stop_if);
    /* A run of hours needs more than the standard budget: twice what the faults take. */
    buf_append_text(to, "budgets: {wall: ");
    append_time(to, import->end_ns <= UINT64_C(12) * SCENARIO_HOUR_NS - UINT64_C(600000000000)
                        ? import->end_ns * 2 + UINT64_C(600000000000)
                        : 24 * (uint64_t)SCENARIO_HOUR_NS);
    buf_append_text(to, "}\n");
}

static bool read_back(struct import *import, struct bytes text)
{
    struct scenario scenario;
    struct buf error;
    buf_init(&error);
    scenario_init(&scenario);
    bool good = scenario_read(&scenario, "as a scenario", text, &error);
    if (!good)
        buf_printf(import->reader.error, "%s: its parts do not make a scenario:\n%.*s",
                   import->reader.file, (int)error.len, (const char *)error.at);
    scenario_deinit(&scenario);
    buf_deinit(&error);
    return good;
}

bool import_write(struct import *import, struct buf *to)
{
    struct buf text;
    if (import->reader.errors > 0)
        return false;
    if (import->fault_count == 0) {
        buf_printf(import->reader.error, "%s: there is no fault in it\n", import->reader.file);
        return false;
    }
    buf_init(&text);
    write_scenario(import, &text);
    bool good = read_back(import, buf_view(&text));
    if (good)
        buf_append_bytes(to, buf_view(&text));
    buf_deinit(&text);
    return good;
}
