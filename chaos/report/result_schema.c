/* SPDX-License-Identifier: Apache-2.0 */
/* The published shape of result.json, as a table: each line is a place in it, what may stand there,
 * and what it means. A place is a path; [] goes into the objects of a list. */

#include "chaos/report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/history.h"
#include "conflict/base/check.h"

/* Types: "text", "text?" (or null), "truth", "count", "count?" (or null), "moment", "moment?",
 * "number?", "share", "object", "list", "texts", "enum a b c", "points" (pairs of numbers),
 * "figures" (an object of counts). A count beyond 2^53 is a text of its digits. */
static const struct {
    const char *path, *type, *help;
} places[] = {
    {"version", "enum 1", "Of this shape; it grows when a reader must change"},
    {"result", "enum pass wrong harness unknown slow", "What the exit code means"},
    {"exit", "count", "0 pass, 1 wrong, 2 harness, 3 unknown, 4 only timing"},
    {"verdict", "text", "One sentence for people"},
    {"run", "object", "The run"},
    {"run.scenario", "text", "Its name"},
    {"run.file", "text", "Where it was read from"},
    {"run.tidemark", "text", "The version that ran it"},
    {"run.seed", "count", "Of everything that was drawn"},
    {"run.started", "text", "In UTC"},
    {"run.duration_ns", "count", "From the first phase to the end"},
    {"run.asked_per_s", "count?",
     "Operations a second that the workload asked for while no fault held; null: not measured"},
    {"run.begun_per_s", "count?", "Those of them that were begun"},
    {"run.stopped", "text?", "Why it ended early"},
    {"run.harness", "text?", "What went wrong with the run itself"},
    {"run.reproduce", "text", "The command that does it again"},
    {"cluster", "object", "What it ran on"},
    {"cluster.mode", "enum eventual strong", "How Regions agree"},
    {"cluster.durability", "enum fsync os", "What an acknowledged write survives"},
    {"cluster.clock", "enum hybrid wall", "What versions are made of"},
    {"cluster.workload", "text", "What the clients did"},
    {"cluster.regions", "list", "In the scenario's order"},
    {"cluster.regions[].name", "text", "As AWS names it"},
    {"cluster.regions[].witness", "truth", "It holds no data that clients could read"},
    {"phases", "list", "As they came to pass"},
    {"phases[].name", "text", ""},
    {"phases[].from_ns", "moment", ""},
    {"phases[].to_ns", "moment", ""},
    {"phases[].timed_out", "truth", "What it waited for did not come in time"},
    {"faults", "list", "As they came to pass"},
    {"faults[].id", "text", ""},
    {"faults[].verb", "text", ""},
    {"faults[].target", "text?", "Whom it hit"},
    {"faults[].regions", "texts", "Whom it concerned"},
    {"faults[].from_ns", "moment", ""},
    {"faults[].to_ns", "moment?", "null: it lasted to the end"},
    {"faults[].evidence", "text?", "How it is known to have taken effect"},
    {"faults[].effective", "truth", "It took effect"},
    {"faults[].refused", "truth", "It could not be begun"},
    {"operations", "list", "How many operations came to what"},
    {"operations[].region", "text", "Whose endpoint was asked"},
    {"operations[].kind", "kinds", ""},
    {"operations[].ok", "count", "Done"},
    {"operations[].failed", "count", "Certainly not done"},
    {"operations[].info", "count", "Nobody knows"},
    {"reasons", "list", "Why operations were not ok"},
    {"reasons[].region", "text", ""},
    {"reasons[].reason", "reasons", ""},
    {"reasons[].count", "count", ""},
    {"latency", "list", "Of answers, from when they were due"},
    {"latency[].region", "text", ""},
    {"latency[].class", "enum write read_strong read_weak", ""},
    {"latency[].answered", "count", ""},
    {"latency[].failed", "count", ""},
    {"latency[].info", "count", ""},
    {"latency[].p50_ns", "count?", ""},
    {"latency[].p90_ns", "count?", ""},
    {"latency[].p99_ns", "count?", ""},
    {"latency[].p999_ns", "count?", ""},
    {"latency[].max_ns", "count?", ""},
    {"latency[].buckets", "points", "The greatest latency of a bucket, and how many fell into it"},
    {"rpo", "object", "What was lost; null where no checker could tell"},
    {"rpo.count", "count?", "Acknowledged writes that only a lost Region had"},
    {"rpo.ns", "count?", "Age of the oldest of them when its Region was lost"},
    {"rpo.bytes", "count?", "Their size"},
    {"rpo.lost_lww", "count?", "Acknowledged writes that lost to a concurrent one"},
    {"rpo.lost_other", "count?", "Acknowledged writes that are missing without a reason"},
    {"rpo.unjudged", "count?", "Acknowledged writes that nobody can tell of"},
    {"rpo.count_by_regions", "count?", "What the Regions themselves count as lost"},
    {"rpo.count_by_regions_why", "text?", "Why that is not known"},
    {"rpo.lost_ns", "moment?", "When a Region was lost, the last time"},
    {"rpo.lost_regions", "texts", ""},
    {"rpo.disk_losses", "list", "Each time that a Region lost data"},
    {"rpo.disk_losses[].region", "text", ""},
    {"rpo.disk_losses[].at_ns", "moment", "The end of its last process that had them"},
    {"rpo.disk_losses[].why", "enum wiped discarded damaged unsynced down",
     "discarded: the damaged store was set aside; damaged: it serves what is left of it"},
    {"rpo.gone_regions", "texts", "Those where the table itself was gone in the end"},
    {"rpo.losses", "list", "The first 1000"},
    {"rpo.losses[]", "operation", ""},
    {"rpo.losses[].class", "enum unreplicated lww other", ""},
    {"rpo.losses[].age_ns", "count?", "unreplicated: since it was acknowledged, when it was lost"},
    {"rto", "list", "How long until service again, after the first fault"},
    {"rto[].region", "text", ""},
    {"rto[].class", "enum write read_strong read_weak", ""},
    {"rto[].baseline_count", "count", "Operations before the fault"},
    {"rto[].baseline_p50_ns", "count", ""},
    {"rto[].baseline_p99_ns", "count", ""},
    {"rto[].count", "count", "Operations after the fault"},
    {"rto[].first_success_ns", "count?", "null: never"},
    {"rto[].rto_ns", "count?", "null: never"},
    {"rto[].unavailable_ns", "count", "In bins of 100 ms with less than half answered"},
    {"staleness", "list", "How old was what was read"},
    {"staleness[].region", "text", ""},
    {"staleness[].strong", "truth", "Reads that asked for consistency"},
    {"staleness[].reads", "count", ""},
    {"staleness[].stale", "count", "Reads that missed a write acknowledged before they began"},
    {"staleness[].p50_ns", "count", "Time since the newest write that was missed"},
    {"staleness[].p99_ns", "count", ""},
    {"staleness[].max_ns", "count", ""},
    {"staleness[].age_p50_ns", "count", "Time since the oldest write that was missed"},
    {"staleness[].age_p99_ns", "count", ""},
    {"staleness[].age_max_ns", "count", ""},
    {"staleness[].max_k", "count", "Most writes that one read missed"},
    {"staleness[].curve", "points",
     "The share of reads that see all writes acknowledged ns before"},
    {"lost_updates", "object", "Writes that another overwrote unseen; not those of rpo.count"},
    {"lost_updates.count", "count?", "null: the workload cannot tell"},
    {"lost_updates.late", "count?", "Those of them that came too late to be seen"},
    {"lost_updates.unjudged", "count?",
     "Writes beside those of which nobody can tell whether they are lost"},
    {"lost_updates.pairs", "list", "The first 1000, the late ones included"},
    {"lost_updates.pairs[].lost", "object", ""},
    {"lost_updates.pairs[].lost", "operation", ""},
    {"lost_updates.pairs[].kept", "object", ""},
    {"lost_updates.pairs[].kept", "operation", ""},
    {"lost_updates.pairs[].base", "count?", "The operation that both wrote over; null: absence"},
    {"lost_updates.pairs[].late", "truth", ""},
    {"lost_updates.pairs[].open", "truth",
     "So many are lost, but nobody can tell whether this is one of them"},
    {"convergence", "object", "Whether all Regions came to hold the same"},
    {"convergence.healed_ns", "moment?", "The last heal"},
    {"convergence.converged_ns", "moment?", "null: never seen"},
    {"convergence.different", "count?", "Items that some Regions hold differently in the end"},
    {"convergence.zombies", "count?", "Deleted items that came back"},
    {"checkers", "list", "What each checker says"},
    {"checkers[].name", "text", ""},
    {"checkers[].verdict", "enum ok unknown wrong", ""},
    {"checkers[].text", "text", ""},
    {"checkers[].took_ns", "count", ""},
    {"checkers[].figures", "figures", "null: never"},
    {"checkers[].counterexample", "list", "The fewest operations that show what is wrong"},
    {"checkers[].counterexample[]", "operation", ""},
    {"checkers[].counterexample[].text", "text", ""},
    {"expectations", "list", "Each line of `expect`"},
    {"expectations[].expect", "text", "As the scenario has it"},
    {"expectations[].metric", "text", ""},
    {"expectations[].actual", "number?", "null: never, if it is known. Times are in ns"},
    {"expectations[].known", "truth", "There was something to measure"},
    {"expectations[].holds", "truth", ""},
    {"expectations[].timing", "truth", "It is only about time (exit code 4)"},
};

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    check(json != NULL);
    return json;
}

/* {"enum": the words of a text}; a word of digits is a number. */
static json_t *choice(const char *words)
{
    json_t *list = json_array();
    while (*words != 0) {
        size_t len = strcspn(words, " ");
        char *end;
        long number = strtol(words, &end, 10);
        json_array_append_new(list,
                              end == words + len ? json_integer(number) : json_stringn(words, len));
        words += len + (words[len] == ' ');
    }
    return json_pack("{s:o}", "enum", list);
}

static json_t *choice_of_kinds(void)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < HISTORY_KIND_COUNT; i++)
        json_array_append_new(list, json_string(history_kind_text((enum history_kind)i)));
    return json_pack("{s:o}", "enum", list);
}

static json_t *choice_of_reasons(void)
{
    json_t *list = json_array();
    for (uint32_t i = HISTORY_REASON_NONE + 1; i < HISTORY_REASON_COUNT; i++)
        json_array_append_new(list, json_string(history_reason_text((enum history_reason)i)));
    return json_pack("{s:o}", "enum", list);
}

static json_t *schema_of(const char *type)
{
    static const struct {
        const char *type, *schema;
    } simple[] = {
        {"text", "{\"type\":\"string\"}"},
        {"text?", "{\"type\":[\"string\",\"null\"]}"},
        {"truth", "{\"type\":\"boolean\"}"},
        {"count", "{\"type\":[\"integer\",\"string\"],\"minimum\":0,\"pattern\":\"^[0-9]+$\"}"},
        {"count?",
         "{\"type\":[\"integer\",\"string\",\"null\"],\"minimum\":0,\"pattern\":\"^[0-9]+$\"}"},
        {"moment", "{\"type\":\"integer\"}"},
        {"moment?", "{\"type\":[\"integer\",\"null\"]}"},
        {"number?", "{\"type\":[\"number\",\"null\"]}"},
        {"texts", "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
        {"points", "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"minItems\":2,"
                   "\"maxItems\":2,\"items\":{\"type\":[\"number\",\"string\"]}}}"},
        {"figures", "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"integer\","
                    "\"string\",\"null\"]}}"},
        {"object", "{\"type\":\"object\",\"properties\":{},\"required\":[],"
                   "\"additionalProperties\":false}"},
        {"list", "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{},"
                 "\"required\":[],\"additionalProperties\":false}}"},
    };
    if (strncmp(type, "enum ", 5) == 0)
        return choice(type + 5);
    if (strcmp(type, "kinds") == 0)
        return choice_of_kinds();
    if (strcmp(type, "reasons") == 0)
        return choice_of_reasons();
    for (size_t i = 0; i < array_len(simple); i++)
        if (strcmp(simple[i].type, type) == 0)
            return parse(simple[i].schema);
    unreachable();
}

/* Adds a member to an object's schema; every one is required. */
static void add_member(json_t *object, const char *name, size_t len, const char *type,
                       const char *help)
{
    json_t *schema = schema_of(type);
    char key[64];
    check(len < sizeof(key));
    memcpy(key, name, len);
    key[len] = 0;
    if (*help != 0)
        json_object_set_new(schema, "description", json_string(help));
    check(json_object_set_new(json_object_get(object, "properties"), key, schema) == 0);
    json_array_append_new(json_object_get(object, "required"), json_string(key));
}

/* An operation of the history, wherever one is named. */
static void add_operation(json_t *object)
{
    static const struct {
        const char *key, *type, *help;
    } members[] = {
        {"operation", "count", "Its line in history.ndjson.gz, from 0"},
        {"region", "text", ""},
        {"table", "count", ""},
        {"key", "count", ""},
        {"value", "count?", "What it wrote; 0: nothing"},
        {"invoke_ns", "moment", ""},
        {"return_ns", "moment", ""},
    };
    for (size_t i = 0; i < array_len(members); i++)
        add_member(object, members[i].key, strlen(members[i].key), members[i].type,
                   members[i].help);
}

static void add_place(json_t *top, const char *path, const char *type, const char *help)
{
    json_t *at = top;
    for (;;) {
        size_t len = strcspn(path, ".[");
        bool last = path[len] == 0;
        if (last && strcmp(type, "operation") != 0) {
            add_member(at, path, len, type, help);
            return;
        }
        json_t *next = json_object_getn(json_object_get(at, "properties"), path, len);
        check(next != NULL); /* the table names it further up */
        at = path[len] == '[' ? json_object_get(next, "items") : next;
        path += len + (path[len] == '[' ? 2 : 0);
        if (*path == 0) {
            add_operation(at);
            return;
        }
        path++; /* the dot */
    }
}

void report_result_schema(struct buf *to)
{
    json_t *schema =
        json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
                  "The result of a Tidemark chaos run");
    json_t *body = schema_of("object");
    json_object_update(schema, body);
    json_decref(body);
    for (size_t i = 0; i < array_len(places); i++)
        add_place(schema, places[i].path, places[i].type, places[i].help);
    char *text = json_dumps(schema, JSON_INDENT(1));
    check(text != NULL);
    buf_append_text(to, text);
    buf_append_u8(to, '\n');
    free(text);
    json_decref(schema);
}
