/* SPDX-License-Identifier: Apache-2.0 */
/* Chaos Mesh's NetworkChaos. What it does to packets on their way from the selected pods to the
 * target's, we do to messages from Region to Region. */

#include "chaos/scenario/import_internal.h"
#include "chaos/scenario/value.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* NULL: none, or 0, or it was refused. */
static const char *read_correlation(struct mesh *mesh, const struct node *map)
{
    const char *text = mesh_text(mesh, map, "correlation");
    double share;
    if (text == NULL || *text == 0)
        return NULL;
    if (value_percent(bytes_text(text), &share) && share < 1)
        return share > 0 ? text : NULL;
    reader_fail(&mesh->import.reader, node_find(map, "correlation"),
                "expected a number from 0 to below 100");
    return NULL;
}

/* Delays are drawn each by itself; netem makes the next resemble the last. */
static void refuse_correlation(struct mesh *mesh, const struct node *map)
{
    if (read_correlation(mesh, map) != NULL)
        reader_fail(&mesh->import.reader, node_find(map, "correlation"),
                    "correlation of delays is not supported: only 0");
}

static const struct node *part_of(struct mesh *mesh, const char *key)
{
    const struct node *part = node_find(mesh->spec, key);
    if (part == NULL) {
        reader_fail(&mesh->import.reader, mesh->spec, "the key '%s' is missing", key);
        return NULL;
    }
    return reader_wants(&mesh->import.reader, part, NODE_MAP, "a mapping") ? part : NULL;
}

struct link_fault {
    const char *verb;
    const char *key[3], *value[3]; /* up to three parameters */
};

static void write_link(struct mesh *mesh, const struct link_fault *fault, const char *from,
                       const char *to, bool both)
{
    struct import *import = &mesh->import;
    import_fault(import, 0, mesh->for_ns, fault->verb, mesh->name);
    import_param(import, "from", from);
    import_param(import, "to", to);
    if (both)
        import_param(import, "direction", "both");
    for (size_t i = 0; i < array_len(fault->key) && fault->key[i] != NULL; i++)
        import_param(import, fault->key[i], fault->value[i]);
    import_fault_end(import);
}

/* From each Region of the selector to each of the target, or to all if there is none. */
static void write_links(struct mesh *mesh, const struct link_fault *fault)
{
    static const char *const all[] = {"all"};
    struct places sources = {.count = 0}, targets = {.count = 0};
    const struct node *target = node_find(mesh->spec, "target");
    const char *direction = mesh_text(mesh, mesh->spec, "direction");
    if (!mesh_find_places(mesh, mesh->spec, &sources) ||
        (target != NULL && !mesh_find_places(mesh, target, &targets)))
        return;
    if (direction == NULL)
        direction = "to";
    bool both = strcmp(direction, "both") == 0, back = strcmp(direction, "from") == 0;
    if (!both && !back && strcmp(direction, "to") != 0) {
        reader_fail(&mesh->import.reader, node_find(mesh->spec, "direction"),
                    "expected to, from or both");
        return;
    }
    const char *const *others = target == NULL ? all : targets.at;
    for (uint32_t i = 0; i < sources.count; i++)
        for (uint32_t j = 0; j < (target == NULL ? 1 : targets.count); j++)
            if (strcmp(sources.at[i], others[j]) != 0)
                write_link(mesh, fault, back ? others[j] : sources.at[i],
                           back ? sources.at[i] : others[j], both);
}

/* netem lets this share of packets go at once, and delays all others. */
static void write_reorder(struct mesh *mesh, const struct node *reorder, const char *latency)
{
    static const char *const keys[] = {"reorder", "correlation", "gap", NULL};
    const char *gap = mesh_text(mesh, reorder, "gap");
    const char *share = import_text(&mesh->import, reorder, "reorder");
    double sent_at_once;
    import_keys(&mesh->import, reorder, keys);
    const char *correlation = read_correlation(mesh, reorder);
    if (gap != NULL && strcmp(gap, "0") != 0 && strcmp(gap, "1") != 0) {
        reader_fail(&mesh->import.reader, node_find(reorder, "gap"), "a gap is not supported");
        return;
    }
    if (share == NULL)
        return;
    if (!value_percent(bytes_text(share), &sent_at_once)) {
        reader_fail(&mesh->import.reader, node_find(reorder, "reorder"),
                    "expected a number from 0 to 100");
        return;
    }
    struct buf held cleanup(buf_deinit);
    buf_init(&held);
    buf_printf(&held, "%.9g%c", 100 - 100 * sent_at_once, 0);
    struct link_fault late = {"link.reorder", {"percent", "delay"}, {(char *)held.at, latency}};
    if (correlation != NULL)
        late.key[2] = "correlation", late.value[2] = correlation;
    write_links(mesh, &late);
}

static void write_delay(struct mesh *mesh, const struct node *delay)
{
    static const char *const keys[] = {"latency", "jitter", "correlation", "reorder", NULL};
    const char *latency = import_text(&mesh->import, delay, "latency");
    const char *jitter = mesh_text(mesh, delay, "jitter");
    const struct node *reorder = node_find(delay, "reorder");
    uint64_t jitter_ns = 0;
    import_keys(&mesh->import, delay, keys);
    refuse_correlation(mesh, delay);
    if (latency == NULL)
        return;
    if (jitter != NULL && !value_time(bytes_text(jitter), &jitter_ns)) {
        reader_fail(&mesh->import.reader, node_find(delay, "jitter"), "this is no time");
        return;
    }
    if (reorder != NULL) {
        struct link_fault uneven = {"link.jitter", {"jitter", "distribution"}, {jitter, "normal"}};
        write_reorder(mesh, reorder, latency);
        if (jitter_ns > 0)
            write_links(mesh, &uneven);
        return;
    }
    struct link_fault fault = {"link.delay", {"delay"}, {latency}};
    if (jitter_ns > 0) {
        fault.key[1] = "jitter", fault.value[1] = jitter;
        fault.key[2] = "distribution", fault.value[2] = "normal";
    }
    write_links(mesh, &fault);
}

/* A fault of so many percent: {loss: "25", correlation: "0"}. */
static void write_share(struct mesh *mesh, const struct node *part, const char *verb)
{
    const char *const keys[] = {part->key, "correlation", NULL};
    const char *share = import_text(&mesh->import, part, part->key);
    import_keys(&mesh->import, part, keys);
    const char *correlation = read_correlation(mesh, part);
    if (share == NULL)
        return;
    struct link_fault fault = {verb, {"percent"}, {share}};
    if (correlation != NULL)
        fault.key[1] = "correlation", fault.value[1] = correlation;
    write_links(mesh, &fault);
}

/* Chaos Mesh counts in tc's units: "1mbps" is a million bytes a second. How large its bucket is
 * does not matter to us, but a second rate does. */
static void write_rate(struct mesh *mesh, const struct node *part)
{
    static const struct {
        const char *theirs, *ours;
    } units[] = {{"kbps", "KB/s"},   {"mbps", "MB/s"},   {"gbps", "GB/s"},  {"bps", "B/s"},
                 {"kbit", "kbit/s"}, {"mbit", "mbit/s"}, {"gbit", "gbit/s"}};
    static const char *const keys[] = {"rate", "limit", "buffer", NULL};
    const char *rate = import_text(&mesh->import, part, "rate");
    import_keys(&mesh->import, part, keys);
    if (rate == NULL)
        return;
    size_t digits = strspn(rate, "0123456789.");
    struct buf text cleanup(buf_deinit);
    buf_init(&text);
    for (size_t i = 0; i < array_len(units) && text.len == 0; i++) {
        if (digits > 0 && strcmp(rate + digits, units[i].theirs) == 0)
            buf_printf(&text, "%.*s%s%c", (int)digits, rate, units[i].ours, 0);
    }
    if (text.len == 0) {
        reader_fail(&mesh->import.reader, node_find(part, "rate"),
                    "'%.32s' is no rate such as 100kbps or 1mbps", rate);
    } else {
        struct link_fault fault = {"link.bandwidth", {"rate"}, {(char *)text.at}};
        write_links(mesh, &fault);
    }
}

static void read_network_part(struct mesh *mesh, const char *key, bool optional)
{
    const struct node *part = optional ? node_find(mesh->spec, key) : part_of(mesh, key);
    if (part == NULL || !reader_wants(&mesh->import.reader, part, NODE_MAP, "a mapping"))
        return;
    if (strcmp(key, "delay") == 0)
        write_delay(mesh, part);
    else if (strcmp(key, "loss") == 0)
        write_share(mesh, part, "link.loss");
    else if (strcmp(key, "duplicate") == 0)
        write_share(mesh, part, "link.duplicate");
    else if (strcmp(key, "corrupt") == 0)
        write_share(mesh, part, "link.corrupt");
    else
        write_rate(mesh, part);
}

void mesh_read_network(struct mesh *mesh)
{
    static const char *const keys[] = {
        "action", "mode",     "value",     "selector",        "direction",
        "target", "delay",    "loss",      "duplicate",       "corrupt",
        "rate",   "duration", "bandwidth", "externalTargets", NULL};
    static const char *const parts[] = {"delay",   "loss", "duplicate",
                                        "corrupt", "rate", "bandwidth"};
    const char *action = import_text(&mesh->import, mesh->spec, "action");
    const struct node *external = node_find(mesh->spec, "externalTargets");
    import_keys(&mesh->import, mesh->spec, keys);
    if (external != NULL)
        reader_fail(&mesh->import.reader, external,
                    "externalTargets are not supported: only the cluster's Regions are");
    if (action == NULL)
        return;
    if (strcmp(action, "partition") == 0) {
        static const struct link_fault silent = {"link.blackhole", {NULL}, {NULL}};
        write_links(mesh, &silent);
        return;
    }
    if (strcmp(action, "netem") == 0) {
        for (size_t i = 0; i < array_len(parts); i++)
            read_network_part(mesh, parts[i], true);
        return;
    }
    for (size_t i = 0; i < array_len(parts); i++) {
        if (strcmp(action, parts[i]) == 0) {
            read_network_part(mesh, parts[i], false);
            return;
        }
    }
    reader_fail(&mesh->import.reader, node_find(mesh->spec, "action"),
                "the action %.64s of NetworkChaos is not supported", action);
}
