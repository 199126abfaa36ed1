/* SPDX-License-Identifier: Apache-2.0 */
/* Chaos Mesh: each document is one experiment, and all of a file begin together. It selects pods by
 * words (labels, namespaces, node names); here a word stands for a Region if it is the name of one
 * or the user said so. An experiment without a duration lasts as long as the others. */

#include "chaos/scenario/import.h"

#include <stdio.h>

#include "chaos/scenario/import_internal.h"
#include "chaos/scenario/value.h"
#include "conflict/base/check.h"

#define STANDARD_FOR_NS UINT64_C(20000000000)

/* ---- Selectors ---- */

static void add_place(struct mesh *mesh, const char *word, struct places *places)
{
    const char *region = import_region(&mesh->import, bytes_text(word));
    if (region == NULL)
        return;
    for (uint32_t i = 0; i < places->count; i++)
        if (strcmp(places->at[i], region) == 0)
            return;
    if (places->count < SCENARIO_REGIONS_MAX)
        places->at[places->count++] = region;
}

/* Every value of the selector, and the keys of `pods`, which are namespaces. Depth is that of the
 * document. */
static void add_places(struct mesh *mesh, const struct node *node, struct places *places)
{
    if (node->kind == NODE_SCALAR)
        add_place(mesh, node->text, places);
    for (const struct node *at = node->first; at != NULL; at = at->next) {
        if (at->key != NULL && node->key != NULL && strcmp(node->key, "pods") == 0)
            add_place(mesh, at->key, places);
        add_places(mesh, at, places);
    }
}

/* Of `spec` or of `spec.target`: {mode, selector}. */
bool mesh_find_places(struct mesh *mesh, const struct node *of, struct places *places)
{
    static const char *const modes[] = {"one", "all", "fixed", "fixed-percent",
                                        "random-max-percent"};
    struct reader *reader = &mesh->import.reader;
    const char *mode = import_text(&mesh->import, of, "mode");
    const struct node *selector = node_find(of, "selector");
    bool known = false;
    if (mode == NULL)
        return false;
    for (size_t i = 0; i < array_len(modes); i++)
        known |= strcmp(mode, modes[i]) == 0;
    if (!known) {
        reader_fail(reader, node_find(of, "mode"), "there is no mode '%.64s'", mode);
        return false;
    }
    if (selector == NULL) {
        reader_fail(reader, of, "the key 'selector' is missing");
        return false;
    }
    add_places(mesh, selector, places);
    if (places->count == 0) {
        reader_fail(reader, selector,
                    "nothing in it stands for a Region of the cluster: say which word does, such "
                    "as app=%s",
                    import_own_region(&mesh->import));
        return false;
    }
    if (places->count > 1 && strcmp(mode, "all") != 0) {
        reader_fail(reader, node_find(of, "mode"),
                    "the mode %.64s would draw some of several Regions: only all is supported",
                    mode);
        return false;
    }
    return true;
}

/* ---- Common ---- */

const char *mesh_text(struct mesh *mesh, const struct node *map, const char *key)
{
    return node_find(map, key) == NULL ? NULL : import_text(&mesh->import, map, key);
}

/* ---- TimeChaos ---- */

static void read_time(struct mesh *mesh)
{
    static const char *const keys[] = {"mode",     "value",          "selector", "timeOffset",
                                       "clockIds", "containerNames", "duration", NULL};
    struct import *import = &mesh->import;
    struct places places = {.count = 0};
    const struct node *clocks = node_find(mesh->spec, "clockIds");
    const char *offset = import_text(import, mesh->spec, "timeOffset");
    int64_t ns;
    import_keys(import, mesh->spec, keys);
    for (const struct node *at = clocks == NULL ? NULL : clocks->first; at != NULL; at = at->next)
        if (at->kind != NODE_SCALAR || strcmp(at->text, "CLOCK_REALTIME") != 0)
            reader_fail(&import->reader, at, "only CLOCK_REALTIME is supported");
    if (offset == NULL || !mesh_find_places(mesh, mesh->spec, &places))
        return;
    if (!value_offset(bytes_text(offset), &ns)) {
        reader_fail(&import->reader, node_find(mesh->spec, "timeOffset"), "this is no time");
        return;
    }
    char whole[32]; /* as fine as a clock here is */
    snprintf(whole, sizeof(whole), "%lldms", (long long)(ns / 1000000));
    if (ns > -1000000 && ns < 1000000) {
        reader_fail(&import->reader, node_find(mesh->spec, "timeOffset"),
                    "less than a millisecond is no offset that anybody here would notice");
        return;
    }
    for (uint32_t i = 0; i < places.count; i++) {
        import_fault(import, 0, mesh->for_ns, "clock.offset", mesh->name);
        import_param(import, "region", places.at[i]);
        import_param(import, "offset", whole);
        import_fault_end(import);
    }
}

/* ---- IOChaos ---- */

/* One of our kinds of call, if the methods are of one; NULL: told that they are of several. */
static const char *find_calls(struct mesh *mesh)
{
    static const struct {
        const char *method, *calls;
    } known[] = {{"read", "read"},
                 {"write", "write"},
                 {"fsync", "sync"},
                 {"flush", "sync"},
                 {"fsyncdir", "sync"}};
    const struct node *methods = node_find(mesh->spec, "methods");
    const char *calls = NULL;
    if (methods == NULL || methods->first == NULL)
        return "any";
    for (const struct node *at = methods->first; at != NULL; at = at->next) {
        const char *one = NULL;
        for (size_t i = 0; i < array_len(known); i++)
            if (at->kind == NODE_SCALAR && strcmp(at->text, known[i].method) == 0)
                one = known[i].calls;
        if (one == NULL) {
            reader_fail(&mesh->import.reader, at,
                        "this method is not supported: read, write, fsync and flush are");
            return NULL;
        }
        if (calls != NULL && strcmp(calls, one) != 0) {
            reader_fail(&mesh->import.reader, methods,
                        "several kinds of method in one experiment are not supported: name one, or "
                        "none for all");
            return NULL;
        }
        calls = one;
    }
    return calls;
}

/* NULL: told that the path is of none of our classes. */
static const char *find_files(struct mesh *mesh)
{
    const char *path = mesh_text(mesh, mesh->spec, "path");
    if (path == NULL || *path == 0)
        return "any";
    size_t len = strlen(path);
    if (path[len - 1] == '*')
        return strstr(path, "MANIFEST") != NULL ? "manifest" : "any";
    if (len > 4 && strcmp(path + len - 4, ".log") == 0)
        return "log";
    if (len > 4 && strcmp(path + len - 4, ".ldb") == 0)
        return "tables";
    reader_fail(&mesh->import.reader, node_find(mesh->spec, "path"),
                "this path is not supported: one ends in .log, .ldb, MANIFEST* or *");
    return NULL;
}

struct disk_fault {
    const char *verb;
    bool has_files, has_calls, has_percent;
    const char *delay; /* NULL: none */
};

static bool find_disk_fault(struct mesh *mesh, const char *action, const char *calls,
                            struct disk_fault *ret)
{
    struct import *import = &mesh->import;
    if (strcmp(action, "latency") == 0) {
        const char *delay = import_text(import, mesh->spec, "delay");
        *ret = (struct disk_fault){"disk.slow", true, true, true, delay};
        return delay != NULL;
    }
    if (strcmp(action, "fault") != 0) {
        reader_fail(&import->reader, node_find(mesh->spec, "action"),
                    "the action %.64s of IOChaos is not supported: latency and fault are; nearest "
                    "to mistake is disk.bitflip",
                    action);
        return false;
    }
    const char *number = import_text(import, mesh->spec, "errno");
    if (number == NULL)
        return false;
    if (strcmp(number, "28") == 0) /* ENOSPC */
        *ret = (struct disk_fault){"disk.full", false, false, false, NULL};
    else if (strcmp(number, "5") == 0 && strcmp(calls, "sync") == 0) /* EIO */
        *ret = (struct disk_fault){"disk.fsync_error", true, false, true, NULL};
    else if (strcmp(number, "5") == 0)
        *ret = (struct disk_fault){"disk.io_error", true, true, true, NULL};
    else
        reader_fail(&import->reader, node_find(mesh->spec, "errno"),
                    "this error is not supported: 5 (EIO) and 28 (ENOSPC) are");
    return ret->verb != NULL;
}

static void write_disk(struct mesh *mesh, const struct disk_fault *fault, const char *region,
                       const char *files, const char *calls)
{
    struct import *import = &mesh->import;
    const char *percent = mesh_text(mesh, mesh->spec, "percent");
    import_fault(import, 0, mesh->for_ns, fault->verb, mesh->name);
    import_param(import, "region", region);
    if (fault->delay != NULL)
        import_param(import, "delay", fault->delay);
    if (fault->has_files)
        import_param(import, "files", files);
    if (fault->has_calls)
        import_param(import, "calls", calls);
    if (percent != NULL && fault->has_percent)
        import_param(import, "percent", percent);
    else if (percent != NULL && strcmp(percent, "100") != 0)
        reader_fail(&import->reader, node_find(mesh->spec, "percent"),
                    "%s hits every call: only 100 is supported", fault->verb);
    import_fault_end(import);
}

static void read_io(struct mesh *mesh)
{
    static const char *const keys[] = {"action",     "mode",           "value",   "selector",
                                       "volumePath", "path",           "methods", "delay",
                                       "errno",      "percent",        "attr",    "mistake",
                                       "duration",   "containerNames", NULL};
    struct places places = {.count = 0};
    struct disk_fault fault = {0};
    const char *action = import_text(&mesh->import, mesh->spec, "action");
    const char *calls = find_calls(mesh), *files = find_files(mesh);
    import_keys(&mesh->import, mesh->spec, keys);
    if (action == NULL || calls == NULL || files == NULL ||
        !find_disk_fault(mesh, action, calls, &fault) ||
        !mesh_find_places(mesh, mesh->spec, &places))
        return;
    for (uint32_t i = 0; i < places.count; i++)
        write_disk(mesh, &fault, places.at[i], files, calls);
}

/* ---- The file ---- */

/* How long those experiments last that do not say: as long as the longest that does. */
static uint64_t longest(const struct mesh *mesh)
{
    uint64_t most = 0, one;
    for (uint32_t i = 0; i < mesh->import.document_count; i++) {
        const struct node *spec = node_find(mesh->import.documents[i], "spec");
        const struct node *duration = node_find(spec, "duration");
        if (duration != NULL && duration->kind == NODE_SCALAR &&
            value_time(bytes_text(duration->text), &one) && one > most)
            most = one;
    }
    return most > 0 ? most : STANDARD_FOR_NS;
}

static void read_experiment(struct mesh *mesh, const struct node *root, uint64_t standard_for_ns)
{
    static const char *const keys[] = {"apiVersion", "kind", "metadata", "spec", "status", NULL};
    struct import *import = &mesh->import;
    if (!reader_wants(&import->reader, root, NODE_MAP, "an experiment, which is a mapping"))
        return;
    const char *version = import_text(import, root, "apiVersion");
    const char *kind = import_text(import, root, "kind");
    const char *name = mesh_text(mesh, node_find(root, "metadata"), "name");
    mesh->spec = node_find(root, "spec");
    mesh->name = name == NULL ? "experiment" : name;
    import_keys(import, root, keys);
    if (version == NULL || kind == NULL)
        return;
    if (strncmp(version, "chaos-mesh.org/", 15) != 0) {
        reader_fail(&import->reader, node_find(root, "apiVersion"),
                    "expected chaos-mesh.org/v1alpha1");
        return;
    }
    if (mesh->spec == NULL || mesh->spec->kind != NODE_MAP) {
        reader_fail(&import->reader, root, "the mapping 'spec' is missing");
        return;
    }
    mesh->for_ns = standard_for_ns;
    if (node_find(mesh->spec, "duration") != NULL &&
        !import_time(import, mesh->spec, "duration", &mesh->for_ns))
        return;
    if (strcmp(kind, "NetworkChaos") == 0)
        mesh_read_network(mesh);
    else if (strcmp(kind, "TimeChaos") == 0)
        read_time(mesh);
    else if (strcmp(kind, "IOChaos") == 0)
        read_io(mesh);
    else
        reader_fail(&import->reader, node_find(root, "kind"),
                    "the kind %.64s is not supported: NetworkChaos, TimeChaos and IOChaos are",
                    kind);
}

bool scenario_import_chaos_mesh(const char *file, struct bytes text,
                                const struct import_options *options, struct buf *to,
                                struct buf *error)
{
    struct mesh mesh = {0};
    bool good = import_open(&mesh.import, file, text, "Chaos Mesh", options, error);
    if (good) {
        uint64_t standard_for_ns = longest(&mesh);
        buf_append_text(&mesh.import.name, "chaos-mesh");
        for (uint32_t i = 0; i < mesh.import.document_count; i++)
            if (!node_is_null(mesh.import.documents[i]))
                read_experiment(&mesh, mesh.import.documents[i], standard_for_ns);
        good = import_write(&mesh.import, to);
    }
    import_close(&mesh.import);
    return good;
}
