/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a cluster. The file and the options set a value through the same function, so
 * that a value is refused in the same words wherever it came from. */

#include "chaos/live/config.h"

#include <cyaml/cyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "chaos/live/address.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define DELAY_MS_MAX UINT64_C(3600000)

static void replace(char **slot, const char *text)
{
    char *copy = text == NULL ? NULL : xstrdup(text);
    free(*slot);
    *slot = copy;
}

void config_init(struct config *config)
{
    *config = (struct config){.port = 8000, .seed = 1, .log_level = "warn"};
    static const char *const default_regions[] = {"us-east-1", "eu-west-1", "ap-northeast-1"};
    for (size_t i = 0; i < array_len(default_regions); i++)
        config->regions[config->region_count++] = region_id_find(bytes_text(default_regions[i]));
    replace(&config->control, "127.0.0.1:8474");
    replace(&config->listen, "127.0.0.1");
}

void config_deinit(struct config *config)
{
    free(config->control);
    free(config->listen);
    free(config->data);
    free(config->links);
}

bool parse_whole(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == 0)
        return false;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

static bool find_region(struct bytes name, uint16_t *ret, struct buf *error)
{
    *ret = region_id_find(name);
    if (*ret != REGION_ID_NONE)
        return true;
    buf_printf(error,
               "no AWS Region is named '%.*s': expected names such as us-east-1,eu-west-1, as "
               "`aws configure` knows them",
               (int)(name.len < 64 ? name.len : 64), (const char *)name.at);
    return false;
}

static bool add_region(struct config *config, struct bytes name, struct buf *error)
{
    uint16_t id;
    if (!find_region(name, &id, error))
        return false;
    for (uint32_t i = 0; i < config->region_count; i++) {
        if (config->regions[i] == id) {
            buf_printf(error, "region %s is listed twice: name each region once",
                       region_id_name(id));
            return false;
        }
    }
    config->regions[config->region_count++] = id;
    return true;
}

bool config_set_regions(struct config *config, const char *text, struct buf *error)
{
    config->region_count = 0;
    for (const char *at = text;;) {
        size_t len = strcspn(at, ",");
        if (!add_region(config, bytes_make(at, len), error))
            return false;
        if (at[len] == 0)
            return true;
        at += len + 1;
    }
}

bool config_set_port(struct config *config, const char *text, struct buf *error)
{
    uint64_t port;
    if (!parse_whole(text, 65535, &port)) {
        buf_printf(error, "'%.64s' is no port: expected a number from 0 to 65535 (0: any free one)",
                   text);
        return false;
    }
    config->port = (uint16_t)port;
    return true;
}

bool config_set_control(struct config *config, const char *text, struct buf *error)
{
    struct address address;
    struct sockaddr_storage numeric;
    if (!address_parse(bytes_text(text), &address) || !address_numeric(&address, &numeric)) {
        buf_printf(error,
                   "'%.64s' is no address to listen on: expected IP:PORT, such as 127.0.0.1:8474",
                   text);
        return false;
    }
    char printed[ADDRESS_MAX];
    address_print(&address, printed);
    replace(&config->control, printed);
    return true;
}

bool config_set_listen(struct config *config, const char *text, struct buf *error)
{
    struct address address = {.port = 0};
    struct sockaddr_storage numeric;
    snprintf(address.host, sizeof(address.host), "%s", text);
    if (!address_numeric(&address, &numeric)) {
        buf_printf(error,
                   "'%.64s' is no host to listen on: expected an IP address, such as 0.0.0.0",
                   text);
        return false;
    }
    replace(&config->listen, text);
    return true;
}

bool config_set_durability(struct config *config, const char *text, struct buf *error)
{
    if (strcmp(text, "fsync") == 0) {
        config->durability = DURABILITY_FSYNC;
    } else if (strcmp(text, "os") == 0) {
        config->durability = DURABILITY_OS;
    } else {
        buf_printf(error,
                   "durability '%.64s' is unknown: expected fsync (survives power loss) or os "
                   "(survives the death of the process)",
                   text);
        return false;
    }
    return true;
}

bool config_set_log_level(struct config *config, const char *text, struct buf *error)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < array_len(levels); i++) {
        if (strcmp(text, levels[i]) == 0) {
            config->log_level = levels[i];
            return true;
        }
    }
    buf_printf(error, "log_level '%.64s' is unknown: expected debug, info, warn or error", text);
    return false;
}

bool config_set_clock(struct config *config, const char *text, struct buf *error)
{
    if (strcmp(text, "hybrid") == 0) {
        config->clock = CLOCK_HYBRID;
    } else if (strcmp(text, "wall") == 0) {
        config->clock = CLOCK_WALL;
    } else {
        buf_printf(
            error,
            "clock '%.64s' is unknown: expected hybrid (never behind a write it has seen) or "
            "wall (the plain clock, so that skew shows)",
            text);
        return false;
    }
    return true;
}

bool config_set_seed(struct config *config, const char *text, struct buf *error)
{
    if (parse_whole(text, UINT64_MAX, &config->seed))
        return true;
    buf_printf(error, "'%.64s' is no seed: expected a whole number", text);
    return false;
}

bool config_set_witness(struct config *config, const char *text, struct buf *error)
{
    (void)config;
    buf_printf(
        error,
        "a witness (%.64s) belongs to strongly consistent global tables, which this version "
        "does not have: leave the setting out, and list the region under regions if it is to "
        "hold a replica",
        text);
    return false;
}

void config_set_data(struct config *config, const char *text)
{
    replace(&config->data, text);
}

bool config_check(const struct config *config, struct buf *error)
{
    if (config->port != 0 && config->port + config->region_count > 65535) {
        buf_printf(
            error,
            "port %u leaves no room for %u regions behind it: the regions take the ports that "
            "follow it, up to 65535",
            config->port, config->region_count);
        return false;
    }
    for (uint32_t i = 0; i < config->link_count; i++) {
        bool found[2] = {false, false};
        uint16_t ends[2] = {config->links[i].from, config->links[i].to};
        for (uint32_t j = 0; j < config->region_count; j++)
            for (int k = 0; k < 2; k++)
                found[k] |= config->regions[j] == ends[k];
        if (!found[0] || !found[1] || ends[0] == ends[1]) {
            buf_printf(
                error,
                "links: %s -> %s is no link of this cluster: a link joins two of its regions",
                region_id_name(ends[0]), region_id_name(ends[1]));
            return false;
        }
    }
    return true;
}

/* ---- The file ---- */

struct file_link {
    char *from, *to;
    uint64_t *delay_ms, *jitter_ms;
};

struct file {
    char **regions;
    uint32_t regions_count;
    char *port, *control, *listen, *data, *durability, *clock, *seed, *witness, *log_level;
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
    TEXT_FIELD(witness),
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
        "expected: regions, port, control, listen, data, durability, clock, log_level, seed, "
        "links [{from, to, delay_ms, jitter_ms}]");
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
        if (!find_region(bytes_text(from->from), &link.from, error) ||
            !find_region(bytes_text(from->to), &link.to, error))
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
        {"witness", offsetof(struct file, witness), config_set_witness},
    };
    for (size_t i = 0; i < array_len(setters); i++) {
        const char *text = *(char *const *)(const void *)((const char *)file + setters[i].offset);
        *ret_field = setters[i].name;
        if (text != NULL && !setters[i].set(config, text, error))
            return false;
    }
    if (file->data != NULL)
        config_set_data(config, file->data);
    *ret_field = "regions";
    if (file->regions_count > 0)
        config->region_count = 0;
    for (uint32_t i = 0; i < file->regions_count; i++)
        if (!add_region(config, bytes_text(file->regions[i]), error))
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
