/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the table and waits until every Region serves it. Each step begins by asking what there is,
 * so a step whose answer got lost is neither skipped nor harmful when it is done again:
 *
 *     CREATE --made, or there already--> SPREAD --all Replicas ACTIVE--> WAIT --each Region shows
 *                                        |    ^                          them--> PROBE --> done
 *                                        v    |
 *                                         ADD: the first that is missing; in strong mode all
 *
 * Probing, in strong mode only, reads with consistency in each Region: it answers once its group
 * has a leader. */

#include "chaos/drive/drive_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static void prepare_tick(struct drive *drive);

static const struct scenario_cluster *cluster_of(const struct drive *drive)
{
    return &drive->config.scenario->cluster;
}

static void ask(struct drive *drive, uint8_t place, const char *operation, const char *body,
                void (*done)(void *context, const struct http_answer *answer))
{
    drive->chore.request = drive_ask(drive, drive->region[place].admin, place, operation,
                                     bytes_text(body), 10000, done, drive);
}

/* Whether the answer counts: not when the drive goes. */
static bool heard(struct drive *drive)
{
    drive->chore.request = NULL;
    return !drive->freeing;
}

static void on_created(void *context, const struct http_answer *answer)
{
    struct drive *drive = context;
    char scratch[64];
    if (!heard(drive))
        return;
    if (answer->status != 200 &&
        !bytes_is(answer_error_type(answer->body, scratch), "ResourceInUseException")) {
        chore_trouble(drive, 0, "CreateTable", answer);
        return;
    }
    drive->prepare.step = PREPARE_SPREAD;
    prepare_tick(drive);
}

/* The replicas that a Region shows, as bits of their places: all, and those that are ACTIVE. */
static void read_replicas(const struct drive *drive, const json_t *table, uint8_t *ret_all,
                          uint8_t *ret_active)
{
    const struct scenario_cluster *cluster = cluster_of(drive);
    const json_t *replicas = json_object_get(table, "Replicas");
    *ret_all = *ret_active = 0;
    for (size_t i = 0; i < json_array_size(replicas); i++) {
        const json_t *replica = json_array_get(replicas, i);
        const char *name = json_string_value(json_object_get(replica, "RegionName"));
        const char *status = json_string_value(json_object_get(replica, "ReplicaStatus"));
        for (uint8_t place = 0; name != NULL && place < drive->data_count; place++) {
            if (strcmp(name, cluster->region[place].name) != 0)
                continue;
            *ret_all |= (uint8_t)(1u << place);
            if (status != NULL && strcmp(status, "ACTIVE") == 0)
                *ret_active |= (uint8_t)(1u << place);
        }
    }
}

static void on_added(void *context, const struct http_answer *answer)
{
    struct drive *drive = context;
    if (!heard(drive))
        return;
    if (answer->status != 200)
        chore_trouble(drive, 0, "UpdateTable", answer);
    drive->prepare.step = PREPARE_SPREAD; /* at the next tick */
}

static void add_replicas(struct drive *drive)
{
    const struct scenario_cluster *cluster = cluster_of(drive);
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_append_text(&body, "{\"TableName\":\"" REQUEST_TABLE "\"");
    if (drive->strong)
        buf_append_text(&body, ",\"MultiRegionConsistency\":\"STRONG\"");
    buf_append_text(&body, ",\"ReplicaUpdates\":[");
    for (uint8_t place = 1; place < drive->data_count; place++)
        if (drive->strong || place == drive->prepare.adding)
            buf_printf(&body, "%s{\"Create\":{\"RegionName\":\"%s\"}}",
                       drive->strong && place > 1 ? "," : "", cluster->region[place].name);
    buf_append_u8(&body, ']');
    if (drive->strong && scenario_has_witness(cluster))
        buf_printf(&body, ",\"GlobalTableWitnessUpdates\":[{\"Create\":{\"RegionName\":\"%s\"}}]",
                   cluster->region[cluster->data_count].name);
    buf_append(&body, "}", 2);
    ask(drive, 0, "UpdateTable", (const char *)body.at, on_added);
}

/* Goes on from what the Region shows of the table. */
static void on_described(void *context, const struct http_answer *answer)
{
    struct drive *drive = context;
    struct prepare *prepare = &drive->prepare;
    if (!heard(drive))
        return;
    json_t *root cleanup(answer_json_free) = answer_json(answer->body);
    const json_t *table = json_object_get(root, "Table");
    const char *status = json_string_value(json_object_get(table, "TableStatus"));
    if (answer->status == 200)
        chore_trouble(drive, prepare->place, "the table or a replica is not ACTIVE", NULL);
    else
        chore_trouble(drive, prepare->place, "DescribeTable", answer);
    if (answer->status != 200 || status == NULL || strcmp(status, "ACTIVE") != 0)
        return;
    uint8_t all, active;
    uint8_t wanted = (uint8_t)(((1u << drive->data_count) - 1) & ~(1u << prepare->place));
    read_replicas(drive, table, &all, &active);
    if ((wanted & ~active) == 0) {
        prepare->place = prepare->step == PREPARE_SPREAD ? 1 : (uint8_t)(prepare->place + 1);
        prepare->step = PREPARE_WAIT;
        if (prepare->place >= drive->data_count) {
            prepare->place = 0;
            prepare->step = PREPARE_PROBE;
        }
        prepare_tick(drive);
    } else if (prepare->step == PREPARE_SPREAD && (wanted & ~all) != 0 && all == active) {
        prepare->adding = (uint8_t)__builtin_ctz(wanted & ~all);
        prepare->step = PREPARE_ADD;
        prepare_tick(drive);
    }
}

static void on_probed(void *context, const struct http_answer *answer)
{
    struct drive *drive = context;
    if (!heard(drive))
        return;
    if (answer->status != 200) {
        chore_trouble(drive, drive->prepare.place, "GetItem", answer);
        return;
    }
    drive->prepare.place++;
    prepare_tick(drive);
}

static void prepare_tick(struct drive *drive)
{
    struct prepare *prepare = &drive->prepare;
    if (drive->chore.request != NULL)
        return;
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    switch (prepare->step) {
    case PREPARE_CREATE:
        request_write_create(&drive->style, &body);
        buf_append_u8(&body, 0);
        ask(drive, 0, "CreateTable", (const char *)body.at, on_created);
        return;
    case PREPARE_SPREAD:
        prepare->place = 0;
        ask(drive, 0, "DescribeTable", "{\"TableName\":\"" REQUEST_TABLE "\"}", on_described);
        return;
    case PREPARE_ADD:
        add_replicas(drive);
        return;
    case PREPARE_WAIT:
        ask(drive, prepare->place, "DescribeTable", "{\"TableName\":\"" REQUEST_TABLE "\"}",
            on_described);
        return;
    case PREPARE_PROBE: {
        if (!drive->strong || prepare->place >= drive->data_count) {
            chore_end(drive, true);
            return;
        }
        struct history_op probe = {.kind = HISTORY_READ, .strong = true};
        if (drive->style.shape == REQUEST_SET)
            probe.kind = HISTORY_SCAN; /* its key has two parts */
        const char *operation = request_write(&drive->style, &probe, BYTES_NONE, &body);
        buf_append_u8(&body, 0);
        ask(drive, prepare->place, operation, (const char *)body.at, on_probed);
        return;
    }
    }
    unreachable();
}

void drive_prepare(struct drive *drive, uint64_t timeout_ns, drive_done *done, void *context)
{
    drive->prepare = (struct prepare){.step = PREPARE_CREATE};
    if (drive->workload->kind == SCENARIO_EXEC) /* the program makes its own */
        drive->prepare = (struct prepare){.step = PREPARE_PROBE, .place = SCENARIO_REGIONS_MAX};
    chore_begin(drive, timeout_ns, prepare_tick, done, context);
}
