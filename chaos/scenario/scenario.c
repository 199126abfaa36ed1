/* SPDX-License-Identifier: Apache-2.0 */
/* From text to scenario: YAML to a tree, the tree to the struct by the tables. */

#include "chaos/scenario/scenario.h"

#include <errno.h>
#include <stdio.h>

#include "chaos/scenario/fields.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

void scenario_init(struct scenario *scenario)
{
    *scenario = (struct scenario){.name = "", .about = ""};
    arena_init(&scenario->arena);
}

void scenario_deinit(struct scenario *scenario)
{
    arena_deinit(&scenario->arena);
}

/* Names of directories and of test suites are made from it. */
static void check_name(struct reader *reader, const struct node *root)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *name = reader->scenario->name;
    if (name[strspn(name, good)] != 0)
        reader_fail(reader, node_find(root, "name"),
                    "'%.64s' may have letters, digits, - and _ only", name);
}

/* Adds an empty part, so that its reader sets the defaults. */
static void add_part(struct reader *reader, struct node *root, const char *key)
{
    if (node_find(root, key) != NULL)
        return;
    struct node *part = arena_new(reader->arena, struct node);
    *part = (struct node){.kind = NODE_MAP, .line = root->line, .key = key, .parent = root};
    part->next = root->first;
    root->first = part;
    if (root->last == NULL)
        root->last = part;
    root->count++;
}

bool scenario_read(struct scenario *scenario, const char *file, struct bytes text,
                   struct buf *error)
{
    struct node *documents[DOCUMENTS_MAX];
    uint32_t count;
    struct reader reader = {
        .file = file, .arena = &scenario->arena, .error = error, .scenario = scenario};
    check(scenario->phases == NULL);
    if (text.len > SCENARIO_FILE_MAX) {
        buf_printf(error, "%s: too large: a scenario has at most %d bytes\n", file,
                   SCENARIO_FILE_MAX);
        return false;
    }
    if (!document_parse(&scenario->arena, file, text, documents, &count, error)) {
        if (count == 0)
            return false;
        reader.errors = 1; /* told already; the rest of the file may hold more */
    }
    if (count > 1)
        reader_fail(&reader, documents[1], "a second document: a file holds one scenario");
    if (!reader_wants(&reader, documents[0], NODE_MAP, "a scenario, which is a mapping"))
        return false;
    add_part(&reader, documents[0], "workload");
    add_part(&reader, documents[0], "cluster");
    shape_read(&reader, documents[0], &scenario_shape_top, scenario);
    check_name(&reader, documents[0]);
    scenario_check_sense(&reader, documents[0]);
    return reader.errors == 0;
}

bool scenario_load(struct scenario *scenario, const char *path, struct buf *error)
{
    struct buf text cleanup(buf_deinit);
    buf_init(&text);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        buf_printf(error, "%s: cannot be read: %s\n", path, strerror(errno));
        return false;
    }
    /* One byte more than is good, so that scenario_read refuses what is too large. */
    size_t len = fread(buf_reserve(&text, SCENARIO_FILE_MAX + 1), 1, SCENARIO_FILE_MAX + 1, file);
    int failed = ferror(file) != 0 ? errno : 0;
    fclose(file);
    if (failed != 0) {
        buf_printf(error, "%s: cannot be read: %s\n", path, strerror(failed));
        return false;
    }
    text.len = len;
    return scenario_read(scenario, path, buf_view(&text), error);
}
