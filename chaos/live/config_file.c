/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's settings from a YAML file. libcyaml checks the file's shape and refuses unknown keys;
 * values are set by the functions that the options use. */

#include "chaos/live/config.h"

#include <cyaml/cyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define DELAY_MS_MAX UINT64_C(3600000)

struct file_link {
    char *from, *to;
    uint64_t *delay_ms, *jitter_ms;
};

struct file {
    char **regions, **witness;
    uint32_t regions_count, witness_count;
    char *port, *control, *listen, *data, *durability, *clock, *seed, *log_level;
    struct {
        char *conflict;
        uint64_t *limit[STRONG_LIMIT_COUNT];
    } mrsc;
    struct file_link *links;
    uint32_t links_count;
};

static const cyaml_schema_field_t link_fields[] = {
    CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER, struct file_link, from, 1, 64),
    CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER, struct file_link, to, 1, 64),
    CYAML_FIELD_UINT_PTR("delay_ms", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file_link,
                         delay_ms),
    CYAML_FIELD_UINT_PTR("jitter_ms", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file_link,
                         jitter_ms),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t region_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 64)};
static const cyaml_schema_value_t link_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct file_link, link_fields)};

#define TEXT_FIELD(name)                                                                           \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file, name, 1,  \
                           4096)
/* The position of a member in the list. */
enum {
#define MRSC_PLACE(name, member, low, high, standard) MRSC_##member,
    STRONG_LIMIT_MAP(MRSC_PLACE)
#undef MRSC_PLACE
};
static const cyaml_schema_field_t mrsc_fields[] = {
    {.key = "conflict",
     .value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char, 1, 64)},
     .data_offset = 0},
#define MRSC_FIELD(name, member, low, high, standard)                                              \
    {.key = #member,                                                                               \
     .value = {CYAML_VALUE_UINT(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, uint64_t)},              \
     .data_offset =                                                                                \
         offsetof(struct file, mrsc.limit[MRSC_##member]) - offsetof(struct file, mrsc)},
    STRONG_LIMIT_MAP(MRSC_FIELD)
#undef MRSC_FIELD
        CYAML_FIELD_END,
};
static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_SEQUENCE("regions", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file, regions,
                         &region_value, 1, REGION_ID_MAX),
    TEXT_FIELD(port),
    TEXT_FIELD(control),
    TEXT_FIELD(listen),
    TEXT_FIELD(data),
    TEXT_FIELD(durability),
    TEXT_FIELD(clock),
    TEXT_FIELD(log_level),
    TEXT_FIELD(seed),
    CYAML_FIELD_SEQUENCE("witness", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file, witness,
                         &region_value, 0, REGION_ID_MAX),
    CYAML_FIELD_MAPPING("mrsc", CYAML_FLAG_OPTIONAL, struct file, mrsc, mrsc_fields),
    CYAML_FIELD_SEQUENCE("links", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file, links,
                         &link_value, 0, CONFIG_LINKS_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t file_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file, file_fields)};

/* libcyaml tells the field and the line only through its log. */
static void on_log(cyaml_log_t level, void *context, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
static void on_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    char line[512];
    if (level < CYAML_LOG_ERROR)
        return;
    vsnprintf(line, sizeof(line), format, args);
    buf_append_text(context, line);
}

/* On which line a file names a key, as far as one can see without parsing; 0: nowhere. libcyaml
 * forgets the lines of what it accepts, and gives a key that it does not know that of the value
 * before. */
static unsigned find_line(const char *path, const char *name, size_t name_len)
{
    char line[1024];
    unsigned number = 0, found = 0;
    FILE *file = name_len == 0 ? NULL : fopen(path, "re");
    while (file != NULL && found == 0 && fgets(line, sizeof(line), file) != NULL) {
        number++;
        for (const char *at = line; (at = memmem(at, strlen(at), name, name_len)) != NULL; at++) {
            bool starts = at == line || strchr(" \t{,-", at[-1]) != NULL;
            const char *after = at + name_len + strspn(at + name_len, " \t");
            if (starts && *after == ':')
                found = number;
        }
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static void tell_refusal(const char *path, cyaml_err_t failed, const struct buf *log,
                         struct buf *error)
{
    static const char unexpected[] = "Unexpected key: ";
    buf_printf(error, "%s: %s\n", path, cyaml_strerror(failed));
    buf_append_bytes(error, buf_view(log));
    const char *key =
        log->len == 0 ? NULL : memmem(log->at, log->len, unexpected, sizeof(unexpected) - 1);
    if (key != NULL) {
        key += sizeof(unexpected) - 1;
        size_t left = (size_t)((const char *)log->at + log->len - key);
        const char *end = memchr(key, '\n', left);
        size_t len = end == NULL ? left : (size_t)(end - key);
        unsigned line = find_line(path, key, len);
        if (line > 0)
            buf_printf(error, "  the key '%.*s' is on line: %u\n", (int)len, key, line);
    }
    buf_append_text(
        error,
        "expected: regions, witness, port, control, listen, data, durability, clock, log_level, "
        "seed, links [{from, to, delay_ms, jitter_ms}], mrsc {conflict, heartbeat_ms, ...}");
}

static bool apply_links(struct config *config, const struct file *file, struct buf *error)
{
    free(config->links);
    config->links = xcalloc(file->links_count, sizeof(*config->links));
    config->link_count = 0;
    for (uint32_t i = 0; i < file->links_count; i++) {
        const struct file_link *from = &file->links[i];
        struct link_config link = {.delay_ms = from->delay_ms == NULL ? 0 : *from->delay_ms,
                                   .jitter_ms = from->jitter_ms == NULL ? 0 : *from->jitter_ms};
        if (!config_find_region(bytes_text(from->from), &link.from, error) ||
            !config_find_region(bytes_text(from->to), &link.to, error))
            return false;
        if (link.delay_ms > DELAY_MS_MAX || link.jitter_ms > DELAY_MS_MAX) {
            buf_printf(error, "links: a delay is at most %llu ms",
                       (unsigned long long)DELAY_MS_MAX);
            return false;
        }
        config->links[config->link_count++] = link;
    }
    return true;
}

static bool apply_mrsc(struct config *config, const struct file *file, struct buf *error)
{
    for (uint32_t i = 0; i < STRONG_LIMIT_COUNT; i++) {
        const uint64_t *value = file->mrsc.limit[i];
        if (value != NULL && !config_set_mrsc(config, i, *value, error))
            return false;
    }
    return file->mrsc.conflict == NULL ||
           config_set_mrsc_conflict(config, file->mrsc.conflict, error);
}

static bool apply_lists(struct config *config, const struct file *file, struct buf *error,
                        const char **ret_field)
{
    *ret_field = "regions";
    if (file->regions_count > 0)
        config->region_count = 0;
    for (uint32_t i = 0; i < file->regions_count; i++)
        if (!config_add_region(config->regions, &config->region_count, bytes_text(file->regions[i]),
                               error))
            return false;
    *ret_field = "witness";
    for (uint32_t i = 0; i < file->witness_count; i++)
        if (!config_add_region(config->witnesses, &config->witness_count,
                               bytes_text(file->witness[i]), error))
            return false;
    return true;
}

/* ret_field is the one that was refused. */
static bool apply(struct config *config, const struct file *file, struct buf *error,
                  const char **ret_field)
{
    static const struct {
        const char *name;
        size_t offset;
        bool (*set)(struct config *, const char *, struct buf *);
    } setters[] = {
        {"port", offsetof(struct file, port), config_set_port},
        {"control", offsetof(struct file, control), config_set_control},
        {"listen", offsetof(struct file, listen), config_set_listen},
        {"durability", offsetof(struct file, durability), config_set_durability},
        {"clock", offsetof(struct file, clock), config_set_clock},
        {"log_level", offsetof(struct file, log_level), config_set_log_level},
        {"seed", offsetof(struct file, seed), config_set_seed},
    };
    for (size_t i = 0; i < array_len(setters); i++) {
        const char *text = *(char *const *)(const void *)((const char *)file + setters[i].offset);
        *ret_field = setters[i].name;
        if (text != NULL && !setters[i].set(config, text, error))
            return false;
    }
    if (file->data != NULL)
        config_set_data(config, file->data);
    if (!apply_lists(config, file, error, ret_field))
        return false;
    *ret_field = "mrsc";
    if (!apply_mrsc(config, file, error))
        return false;
    *ret_field = "links";
    return file->links_count == 0 || apply_links(config, file, error);
}

bool config_load(struct config *config, const char *path, struct buf *error)
{
    struct buf log;
    struct file *file = NULL;
    buf_init(&log);
    const cyaml_config_t cyaml = {.log_fn = on_log,
                                  .log_ctx = &log,
                                  .mem_fn = cyaml_mem,
                                  .log_level = CYAML_LOG_ERROR,
                                  .flags = CYAML_CFG_DOCUMENT_DELIM};
    cyaml_err_t failed = cyaml_load_file(path, &cyaml, &file_value, (cyaml_data_t **)&file, NULL);
    bool good = failed == CYAML_OK;
    if (!good) {
        tell_refusal(path, failed, &log, error);
    } else if (file != NULL) {
        struct buf reason;
        const char *field = "";
        buf_init(&reason);
        good = apply(config, file, &reason, &field);
        if (!good)
            buf_printf(error, "%s:%u: %s: %.*s", path, find_line(path, field, strlen(field)), field,
                       (int)reason.len, (const char *)reason.at);
        buf_deinit(&reason);
    }
    cyaml_free(&cyaml, &file_value, file, 0);
    buf_deinit(&log);
    return good;
}
