/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a cluster. The file (config_file.c) and the options set a value through the same
 * function, so that a value is refused in the same words wherever it came from. */

#include "chaos/live/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "chaos/live/address.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/version.h"

/* A region's peers are bounded by what the version vector of a table can name. */
enum { CLUSTER_MAX = VV_MAX };

static const struct {
    const char *name;
    uint64_t low, high;
} mrsc_limits[STRONG_LIMIT_COUNT] = {
#define MRSC_LIMIT(name, member, low, high, standard) {"mrsc." name, low, high},
    STRONG_LIMIT_MAP(MRSC_LIMIT)
#undef MRSC_LIMIT
};

const char *config_mrsc_name(uint32_t index)
{
    check(index < STRONG_LIMIT_COUNT);
    return mrsc_limits[index].name;
}

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

bool config_find_region(struct bytes name, uint16_t *ret, struct buf *error)
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

static bool listed(const uint16_t *list, uint32_t count, uint16_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

/* Distinct ids never outgrow a list of REGION_ID_MAX. */
bool config_add_region(uint16_t *list, uint32_t *count, struct bytes name, struct buf *error)
{
    uint16_t id;
    if (!config_find_region(name, &id, error))
        return false;
    if (listed(list, *count, id)) {
        buf_printf(error, "region %s is listed twice: name each region once", region_id_name(id));
        return false;
    }
    list[(*count)++] = id;
    return true;
}

static bool set_list(uint16_t *list, uint32_t *count, const char *text, struct buf *error)
{
    *count = 0;
    for (const char *at = text;;) {
        size_t len = strcspn(at, ",");
        if (!config_add_region(list, count, bytes_make(at, len), error))
            return false;
        if (at[len] == 0)
            return true;
        at += len + 1;
    }
}

bool config_set_regions(struct config *config, const char *text, struct buf *error)
{
    return set_list(config->regions, &config->region_count, text, error);
}

bool config_set_witness(struct config *config, const char *text, struct buf *error)
{
    return set_list(config->witnesses, &config->witness_count, text, error);
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
    buf_printf(error, "'%.64s' is no seed: expected a whole number from 0 to %llu", text,
               (unsigned long long)UINT64_MAX);
    return false;
}

bool config_set_mrsc(struct config *config, uint32_t index, uint64_t value, struct buf *error)
{
    check(index < STRONG_LIMIT_COUNT);
    if (value < mrsc_limits[index].low || value > mrsc_limits[index].high) {
        buf_printf(error, "%s: expected a number from %llu to %llu, came %llu",
                   mrsc_limits[index].name, (unsigned long long)mrsc_limits[index].low,
                   (unsigned long long)mrsc_limits[index].high, (unsigned long long)value);
        return false;
    }
    config->mrsc[index].set = true;
    config->mrsc[index].value = value;
    return true;
}

bool config_set_mrsc_conflict(struct config *config, const char *text, struct buf *error)
{
    config->mrsc_serialize = strcmp(text, "serialize") == 0;
    if (config->mrsc_serialize || strcmp(text, "aws") == 0)
        return true;
    buf_printf(error,
               "conflict '%.64s' is unknown: expected aws (a write of an item that another region "
               "is modifying is refused) or serialize (it waits its turn)",
               text);
    return false;
}

void config_set_data(struct config *config, const char *text)
{
    replace(&config->data, text);
}

static bool member(const struct config *config, uint16_t id)
{
    return listed(config->regions, config->region_count, id) ||
           listed(config->witnesses, config->witness_count, id);
}

static bool check_links(const struct config *config, struct buf *error)
{
    for (uint32_t i = 0; i < config->link_count; i++) {
        uint16_t from = config->links[i].from, to = config->links[i].to;
        if (from != to && member(config, from) && member(config, to))
            continue;
        buf_printf(error,
                   "links: %s -> %s is no link of this cluster: a link joins two of its regions",
                   region_id_name(from), region_id_name(to));
        return false;
    }
    return true;
}

bool config_check(const struct config *config, struct buf *error)
{
    uint32_t count = config->region_count + config->witness_count;
    if (config->port != 0 && config->port + count > 65535) {
        buf_printf(
            error,
            "port %u leaves no room for %u regions behind it: the regions take the ports that "
            "follow it, up to 65535",
            config->port, count);
        return false;
    }
    if (count > CLUSTER_MAX) {
        buf_printf(error, "%u regions are too many: expected at most %u, witnesses included", count,
                   CLUSTER_MAX);
        return false;
    }
    for (uint32_t i = 0; i < config->witness_count; i++) {
        uint16_t id = config->witnesses[i];
        if (!listed(config->regions, config->region_count, id))
            continue;
        buf_printf(error,
                   "region %s is under regions and under witness: a region with replicas can hold "
                   "witnesses as it is, so name it under regions only",
                   region_id_name(id));
        return false;
    }
    return check_links(config, error);
}
