/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and file. libcyaml checks the file's shape and refuses unknown keys; it hands every
 * value over as text, so that a value is read, bounded and refused by the same function whether it
 * came from a flag or from the file. */

#include "region/config.h"

#include <argp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cyaml/cyaml.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/config_internal.h"

/* ---- The file ---- */

struct file_values {
    char *value[CONFIG_NAMES]; /* NULL for absent; the peer option's is not used */
    char **peers;
    uint32_t peer_count;
};

static const cyaml_schema_value_t text_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

/* What the file has at its top, and in its section; each list has its end mark. */
struct file_fields {
    cyaml_schema_field_t top[CONFIG_NAMES + 2], section[CONFIG_NAMES + 1];
};

/* The name within the section; NULL for one at the top. */
static const char *name_in_section(const char *name)
{
    static const char prefix[] = CONFIG_SECTION ".";
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? name + sizeof(prefix) - 1 : NULL;
}

/* A field for each name. The section's fields lie in the same array of values, so the section is a
 * mapping at offset 0. */
static void build_fields(struct file_fields *fields)
{
    unsigned top = 0, section = 0;
    for (unsigned i = 0; i < CONFIG_NAMES; i++) {
        const char *name = config_name_at(i).name, *inner = name_in_section(name);
        cyaml_schema_field_t *field = inner ? &fields->section[section++] : &fields->top[top++];
        if (i == CONFIG_PEER)
            *field = (cyaml_schema_field_t)CYAML_FIELD_SEQUENCE_COUNT(
                "peer", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct file_values, peers,
                peer_count, &text_schema, 0, VV_MAX - 1);
        else
            *field = (cyaml_schema_field_t){
                .key = inner ? inner : name,
                .data_offset = (uint32_t)(offsetof(struct file_values, value) + i * sizeof(char *)),
                .value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char, 0,
                                             CYAML_UNLIMITED)},
            };
    }
    fields->section[section] = (cyaml_schema_field_t)CYAML_FIELD_END;
    fields->top[top++] = (cyaml_schema_field_t){
        .key = CONFIG_SECTION,
        .value = {CYAML_VALUE_MAPPING(CYAML_FLAG_OPTIONAL, struct file_values, fields->section)},
    };
    fields->top[top] = (cyaml_schema_field_t)CYAML_FIELD_END;
}

/* libcyaml tells the field and the line in its log: one line of it is the error, the others lead
 * there. */
static void keep_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    (void)level;
    struct buf *text = context;
    char line[512];
    vsnprintf(line, sizeof(line), format, args);
    line[strcspn(line, "\n")] = '\0';
    if (text->len > 0)
        buf_append_text(text, "; ");
    buf_append_text(text, line);
}

static bool line_sets(const char *text, const char *name)
{
    const char *at = text + strspn(text, " \t\"'");
    size_t len = strlen(name);
    return strncmp(at, name, len) == 0 && at[len + strspn(at + len, " \"'")] == ':';
}

/* On which line the file sets a name, as far as that can be seen without parsing; 0: unknown.
 * libcyaml forgets the lines of what it accepts. What is not seen in a section is where the section
 * is. */
static unsigned find_line(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const char *inner = name_in_section(name);
    char text[1024];
    unsigned line = 0, found = 0, section = 0;
    while (!found && fgets(text, sizeof(text), file)) {
        line++;
        if (inner && !section)
            section = line_sets(text, CONFIG_SECTION) ? line : 0;
        else if (line_sets(text, inner ? inner : name))
            found = line;
    }
    fclose(file);
    return found ? found : section;
}

/* For a key that it does not know, libcyaml gives the line of the value before. */
static void explain_file(const char *path, cyaml_err_t outcome, const char *text, char *error,
                         size_t error_len)
{
    static const char unexpected[] = "Unexpected key: ";
    const char *found = strstr(text, unexpected);
    if (outcome != CYAML_ERR_INVALID_KEY || !found) {
        snprintf(error, error_len, "%s: %s: %s", path, cyaml_strerror(outcome), text);
        return;
    }
    found += strlen(unexpected);
    char name[128];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(found, ";"), found);
    unsigned line = find_line(path, name);
    if (line > 0)
        snprintf(error, error_len, "%s:%u: %s: there is no such key", path, line, name);
    else
        snprintf(error, error_len, "%s: %s: there is no such key", path, name);
}

static bool set_from_file(struct config *config, const char *path, unsigned index, const char *text,
                          char *error, size_t error_len)
{
    char where[512];
    unsigned line = find_line(path, config_name_at(index).name);
    if (line > 0)
        snprintf(where, sizeof(where), "%.400s:%u: %s", path, line, config_name_at(index).name);
    else
        snprintf(where, sizeof(where), "%.400s: %s", path, config_name_at(index).name);
    return config_set(config, index, text, where, error, error_len);
}

static bool apply_file(struct config *config, const char *path, const struct file_values *values,
                       char *error, size_t error_len)
{
    for (unsigned i = 0; i < CONFIG_NAMES; i++) {
        if (i != CONFIG_PEER && values->value[i] &&
            !set_from_file(config, path, i, values->value[i], error, error_len))
            return false;
    }
    for (uint32_t i = 0; i < values->peer_count; i++) {
        if (!set_from_file(config, path, CONFIG_PEER, values->peers[i], error, error_len))
            return false;
    }
    return true;
}

static bool load_file(struct config *config, const char *path, char *error, size_t error_len)
{
    struct file_fields fields = {0};
    build_fields(&fields);
    const cyaml_schema_value_t top = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file_values, fields.top)};
    struct buf text cleanup(buf_deinit);
    buf_init(&text);
    const cyaml_config_t reader = {
        .log_fn = keep_log,
        .log_ctx = &text,
        .log_level = CYAML_LOG_ERROR,
        .mem_fn = cyaml_mem,
    };
    struct file_values *values = NULL;
    cyaml_err_t outcome = cyaml_load_file(path, &reader, &top, (cyaml_data_t **)&values, NULL);
    if (outcome != CYAML_OK) {
        buf_append_u8(&text, 0);
        explain_file(path, outcome, (const char *)text.at, error, error_len);
        return false;
    }
    /* An empty file gives nothing. */
    bool good = !values || apply_file(config, path, values, error, error_len);
    cyaml_free(&reader, &top, values, 0);
    return good;
}

/* ---- The command line ---- */

struct flags {
    const char *file;
    struct {
        unsigned index; /* config_internal.h; CONFIG_NAMES: --set */
        const char *text;
    } * at;
    unsigned count;
};

enum { KEY_FIRST = 1000, KEY_SET = 5000, KEY_CONFIG };

static error_t take_flag(int key, char *argument, struct argp_state *state)
{
    struct flags *flags = state->input;
    if (key == KEY_CONFIG) {
        flags->file = argument;
        return 0;
    }
    if (key != KEY_SET && (key < KEY_FIRST || key >= KEY_FIRST + CONFIG_OPTIONS + 1))
        return ARGP_ERR_UNKNOWN;
    flags->at[flags->count].index = key == KEY_SET ? CONFIG_NAMES : (unsigned)(key - KEY_FIRST);
    flags->at[flags->count++].text = argument ? argument : "true";
    return 0;
}

/* NAME=VALUE of a limit or an option. */
static bool apply_set(struct config *config, const char *text, char *error, size_t error_len)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    for (unsigned i = 0; equals && i < CONFIG_NAMES; i++) {
        if (bytes_is(bytes_make(text, len), config_name_at(i).name))
            return config_set(config, i, equals + 1, config_name_at(i).name, error, error_len);
    }
    snprintf(error, error_len,
             "--set: expected NAME=VALUE with a name of the configuration, got \"%s\"", text);
    return false;
}

static bool apply_flags(struct config *config, const struct flags *flags, char *error,
                        size_t error_len)
{
    for (unsigned i = 0; i < flags->count; i++) {
        unsigned index = flags->at[i].index;
        if (index == CONFIG_NAMES) {
            if (!apply_set(config, flags->at[i].text, error, error_len))
                return false;
            continue;
        }
        char where[64];
        snprintf(where, sizeof(where), "--%s", config_name_at(index).name);
        if (!config_set(config, index, flags->at[i].text, where, error, error_len))
            return false;
    }
    return true;
}

static void parse_flags(int argc, char **argv, bool witness, struct flags *ret)
{
    enum { PARTITIONS = CONFIG_OPTIONS }; /* the first limit, the only one with a flag of its own */
    struct argp_option listed[CONFIG_OPTIONS + 4] = {0};
    for (unsigned i = 0; i < CONFIG_OPTIONS; i++) {
        struct config_name name = config_name_at(i);
        listed[i] =
            (struct argp_option){name.name, KEY_FIRST + (int)i, name.argument, 0, name.help, 0};
    }
    listed[CONFIG_OPTIONS] =
        (struct argp_option){"partitions", KEY_FIRST + PARTITIONS, "N", 0, "Of a new table (4)", 0};
    listed[CONFIG_OPTIONS + 1] =
        (struct argp_option){"config",
                             KEY_CONFIG,
                             "FILE",
                             0,
                             "YAML with the same names, and with every limit; flags win",
                             0};
    listed[CONFIG_OPTIONS + 2] = (struct argp_option){
        "set", KEY_SET, "NAME=VALUE", 0, "Sets any name of the configuration file (repeatable)", 0};
    const struct argp argp = {
        listed,
        take_flag,
        NULL,
        witness ? "A witness of strongly consistent global tables: it stores the newest writes for "
                  "the other two members, no items, and answers no DynamoDB requests."
                : "One Region of a Tidemark cluster: the DynamoDB API, its storage, and "
                  "replication to its peers.",
        NULL,
        NULL,
        NULL};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, ret);
}

/* ---- The whole ---- */

static void set_defaults(struct config *config)
{
    memset(config, 0, sizeof(*config));
    config->listen = xstrdup("127.0.0.1:8000");
    config->sync = true;
    config->log_level = TRACE_INFO;
    config->core.clock_mode = HLC_HYBRID;
    config_set_limits(config);
}

/* What no single value can break. */
static const char *find_contradiction(const struct config *config)
{
    const struct replicator_config *replication = &config->core.replication;
    if (config->core.region == REGION_ID_NONE)
        return "--region is required";
    if (!config->data)
        return "--data is required";
    if (!config->tls_certificate != !config->tls_key)
        return "--tls-certificate and --tls-key belong together";
    if (config->tls_certificate && config->peer_count > 0 && !config->peer_listen)
        return "peers speak plain text: with TLS, --peer needs --peer-listen";
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (config->peers[i].region == config->core.region)
            return "--peer names this Region itself";
    }
    if (replication->batch_bytes_max > replication->frame_bytes_max)
        return "batch-bytes-max must not be above frame-bytes-max";
    if (replication->frame_bytes_max > config->server.message_bytes_max)
        return "frame-bytes-max must not be above message-bytes-max";
    if (config->server.body_bytes_max > config->server.body_bytes_total_max)
        return "body-bytes-max must not be above body-bytes-total-max";
    if (config->backoff_ms_min > config->backoff_ms_max)
        return "backoff-ms-min must not be above backoff-ms-max";
    const struct strong_config *strong = &config->core.strong;
    if (strong->election_ms < 2 * strong->heartbeat_ms)
        return "mrsc.election-ms must be at least twice mrsc.heartbeat-ms";
    if (strong->election_ms > strong->election_ms_max)
        return "mrsc.election-ms must not be above mrsc.election-ms-max";
    if (strong->retry_ms > strong->request_timeout_ms)
        return "mrsc.retry-ms must not be above mrsc.request-timeout-ms";
    return NULL;
}

/* The cores want numbers where we hold names and addresses. */
static void fill_cores(struct config *config)
{
    struct region_config *core = &config->core;
    core->peer_count = core->replication.peer_count = config->peer_count;
    core->replication.region = core->region;
    for (uint32_t i = 0; i < config->peer_count; i++)
        core->peers[i] = core->replication.peers[i] = config->peers[i].region;
}

static bool load(int argc, char **argv, bool witness, struct config *ret, char *error,
                 size_t error_len)
{
    struct flags flags = {.at = xcalloc((size_t)argc + 1, sizeof(*flags.at))};
    parse_flags(argc, argv, witness, &flags);
    set_defaults(ret);
    ret->core.witness_only = witness;
    bool good = (!flags.file || load_file(ret, flags.file, error, error_len)) &&
                apply_flags(ret, &flags, error, error_len);
    free(flags.at);
    const char *contradiction = good ? find_contradiction(ret) : NULL;
    if (contradiction)
        snprintf(error, error_len, "%s", contradiction);
    if (!good || contradiction) {
        config_deinit(ret);
        return false;
    }
    fill_cores(ret);
    return true;
}

bool config_load(int argc, char **argv, struct config *ret, char *error, size_t error_len)
{
    return load(argc, argv, false, ret, error, error_len);
}

bool config_load_witness(int argc, char **argv, struct config *ret, char *error, size_t error_len)
{
    return load(argc, argv, true, ret, error, error_len);
}

void config_deinit(struct config *config)
{
    free(config->listen);
    free(config->peer_listen);
    free(config->data);
    free(config->tls_certificate);
    free(config->tls_key);
    for (uint32_t i = 0; i < config->peer_count; i++)
        free(config->peers[i].address);
    memset(config, 0, sizeof(*config));
}
