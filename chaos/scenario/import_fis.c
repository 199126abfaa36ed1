/* SPDX-License-Identifier: Apache-2.0 */
/* AWS Fault Injection Service: a template names actions, each of which starts with the experiment
 * or after others, and lasts for a duration. The Region that an action is about is that of its
 * target's ARNs, or the one in which the experiment runs. */

#include "chaos/scenario/import.h"

#include "chaos/scenario/import_internal.h"
#include "chaos/scenario/value.h"
#include "conflict/base/check.h"

enum { ACTIONS_MAX = 128 };

enum action_kind {
    ACTION_WAIT,
    ACTION_PAUSE,     /* replication.pause */
    ACTION_CROSS,     /* between the experiment's Region and `region` */
    ACTION_SUBNET,    /* `scope` decides */
    ACTION_ENDPOINT,  /* clients reach the Region no more */
    ACTION_API_ERROR, /* inject-api-* */
    ACTION_API_UNAVAILABLE,
    ACTION_API_THROTTLE
};

static const struct {
    const char *id;
    enum action_kind kind;
} kinds[] = {
    {"aws:fis:wait", ACTION_WAIT},
    {"aws:dynamodb:global-table-pause-replication", ACTION_PAUSE},
    {"aws:network:route-table-disrupt-cross-region-connectivity", ACTION_CROSS},
    {"aws:network:transit-gateway-disrupt-cross-region-connectivity", ACTION_CROSS},
    {"aws:network:disrupt-connectivity", ACTION_SUBNET},
    {"aws:network:disrupt-vpc-endpoint", ACTION_ENDPOINT},
    {"aws:fis:inject-api-internal-error", ACTION_API_ERROR},
    {"aws:fis:inject-api-unavailable-error", ACTION_API_UNAVAILABLE},
    {"aws:fis:inject-api-throttle-error", ACTION_API_THROTTLE},
};

struct action {
    const struct node *node;
    const struct node *parameters; /* NULL: none */
    enum action_kind kind;
    uint64_t for_ns, at_ns;
    enum { NOT_TIMED, TIMING, TIMED } state;
};

struct fis {
    struct import import;
    const struct node *template;
    struct action action[ACTIONS_MAX];
    uint32_t action_count;
};

/* ---- Actions ---- */

static bool read_kind(struct fis *fis, struct action *action)
{
    const char *id = import_text(&fis->import, action->node, "actionId");
    const char *ids[array_len(kinds)];
    if (id == NULL)
        return false;
    for (size_t i = 0; i < array_len(kinds); i++) {
        ids[i] = kinds[i].id;
        if (strcmp(kinds[i].id, id) == 0) {
            action->kind = kinds[i].kind;
            return true;
        }
    }
    const struct node *node = node_find(action->node, "actionId");
    const char *nearest = field_nearest(id, ids, array_len(ids));
    if (nearest != NULL)
        reader_fail(&fis->import.reader, node,
                    "the action %.80s is not supported: did you mean %s?", id, nearest);
    else
        reader_fail(&fis->import.reader, node,
                    "the action %.80s is not supported: supported are wait, pause-replication of "
                    "DynamoDB global tables, disruption of networks, and inject-api-*",
                    id);
    return false;
}

static void read_action(struct fis *fis, const struct node *node)
{
    static const char *const keys[] = {"actionId", "description", "parameters",
                                       "targets",  "startAfter",  NULL};
    struct import *import = &fis->import;
    if (!reader_wants(&import->reader, node, NODE_MAP, "an action, which is a mapping"))
        return;
    struct action *action = &fis->action[fis->action_count];
    *action = (struct action){.node = node, .parameters = node_find(node, "parameters")};
    import_keys(import, node, keys);
    if (!read_kind(fis, action))
        return;
    if (action->parameters == NULL) {
        reader_fail(&import->reader, node, "the key 'parameters' is missing: it has the duration");
        return;
    }
    if (import_time(import, action->parameters, "duration", &action->for_ns) && action->for_ns == 0)
        reader_fail(&import->reader, action->parameters, "a duration of nothing");
    fis->action_count++;
}

static struct action *find_action(struct fis *fis, const char *name)
{
    for (uint32_t i = 0; i < fis->action_count; i++)
        if (strcmp(fis->action[i].node->key, name) == 0)
            return &fis->action[i];
    return NULL;
}

/* An action begins when all that it starts after have ended. The depth is bounded by the number of
 * actions, as a circle is told at once. */
static void time_action(struct fis *fis, struct action *action)
{
    struct reader *reader = &fis->import.reader;
    const struct node *after = node_find(action->node, "startAfter");
    if (action->state == TIMED)
        return;
    if (action->state == TIMING) {
        reader_fail(reader, action->node, "it starts after itself, by way of others");
        return;
    }
    action->state = TIMING;
    if (after != NULL && reader_wants(reader, after, NODE_LIST, "a list of actions")) {
        for (const struct node *at = after->first; at != NULL; at = at->next) {
            struct action *other = at->kind == NODE_SCALAR ? find_action(fis, at->text) : NULL;
            if (other == NULL) {
                reader_fail(reader, at, "there is no such action");
                continue;
            }
            time_action(fis, other);
            uint64_t end = other->at_ns + other->for_ns;
            action->at_ns = end > action->at_ns ? end : action->at_ns;
        }
    }
    if (action->at_ns + action->for_ns > 24 * (uint64_t)SCENARIO_HOUR_NS)
        reader_fail(reader, action->node, "it ends more than 24 hours after the beginning");
    action->state = TIMED;
}

/* ---- Regions ---- */

/* "arn:aws:dynamodb:us-east-1:...": the fourth field. */
static struct bytes arn_region(const char *arn)
{
    for (int i = 0; i < 3 && arn != NULL; i++) {
        arn = strchr(arn, ':');
        arn += arn != NULL;
    }
    return arn == NULL ? BYTES_NONE : bytes_make(arn, strcspn(arn, ":"));
}

/* NULL, after telling why: the target is of no Region of the cluster, or of several. */
static const char *target_region(struct fis *fis, const struct node *target)
{
    struct import *import = &fis->import;
    const struct node *arns = node_find(target, "resourceArns");
    const char *found = import_region(import, bytes_text(target->key));
    if (found != NULL)
        return found;
    for (const struct node *at = arns == NULL ? NULL : arns->first; at != NULL; at = at->next) {
        struct bytes name = at->kind == NODE_SCALAR ? arn_region(at->text) : BYTES_NONE;
        const char *region = import_region(import, name);
        if (region == NULL) {
            reader_fail(&import->reader, at, "its Region is none of the cluster's");
            return NULL;
        }
        if (found != NULL && strcmp(found, region) != 0) {
            reader_fail(&import->reader, at, "the target's ARNs are of several Regions");
            return NULL;
        }
        found = region;
    }
    return found != NULL ? found : import_own_region(import);
}

static const char *action_region(struct fis *fis, const struct action *action)
{
    const struct node *names = node_find(action->node, "targets");
    const struct node *targets = node_find(fis->template, "targets");
    if (names == NULL || names->kind != NODE_MAP || names->first == NULL)
        return import_own_region(&fis->import);
    const struct node *name = names->first;
    const struct node *target = name->kind == NODE_SCALAR ? node_find(targets, name->text) : NULL;
    if (target == NULL) {
        reader_fail(&fis->import.reader, name, "there is no such target");
        return NULL;
    }
    return target_region(fis, target);
}

/* ---- Faults ---- */

static void write_cross(struct fis *fis, const struct action *action, const char *region)
{
    struct import *import = &fis->import;
    const char *name = import_text(import, action->parameters, "region");
    const char *other = name == NULL ? NULL : import_region(import, bytes_text(name));
    if (name == NULL)
        return;
    if (other == NULL || strcmp(other, region) == 0) {
        reader_fail(&import->reader, node_find(action->parameters, "region"),
                    "'%.64s' is no other Region of the cluster", name);
        return;
    }
    import_fault(import, action->at_ns, action->for_ns, "link.blackhole", action->node->key);
    import_param(import, "from", region);
    import_param(import, "to", other);
    import_param(import, "direction", "both");
    import_fault_end(import);
}

static void write_region_fault(struct fis *fis, const struct action *action, const char *verb,
                               const char *region)
{
    import_fault(&fis->import, action->at_ns, action->for_ns, verb, action->node->key);
    import_param(&fis->import, "region", region);
}

/* A denied packet is dropped, not answered. */
static void write_blocked_clients(struct fis *fis, const struct action *action, const char *region)
{
    write_region_fault(fis, action, "client.block", region);
    import_param(&fis->import, "how", "blackhole");
    import_fault_end(&fis->import);
}

static void write_subnet(struct fis *fis, const struct action *action, const char *region)
{
    const char *scope = import_text(&fis->import, action->parameters, "scope");
    if (scope == NULL)
        return;
    if (strcmp(scope, "all") != 0 && strcmp(scope, "dynamodb") != 0)
        reader_fail(&fis->import.reader, node_find(action->parameters, "scope"),
                    "the scope %.64s is not supported: only all and dynamodb concern a table",
                    scope);
    else
        write_blocked_clients(fis, action, region);
}

/* "PutItem,GetItem" as a list. */
static void write_operations(struct import *import, const char *names)
{
    buf_append_text(&import->faults, ", operations: [");
    for (const char *at = names; *at != 0;) {
        size_t len = strcspn(at, ", ");
        for (size_t i = 0; i < len; i++)
            if ((at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z')
                buf_append_u8(&import->faults, (uint8_t)at[i]);
        at += len;
        at += strspn(at, ", ");
        buf_append_text(&import->faults, *at == 0 ? "" : ", ");
    }
    buf_append_text(&import->faults, "]");
}

static void write_api(struct fis *fis, const struct action *action, const char *region)
{
    struct import *import = &fis->import;
    const struct node *percentage = node_find(action->parameters, "percentage");
    const struct node *operations = node_find(action->parameters, "operations");
    const char *service = import_text(import, action->parameters, "service");
    double share;
    if (service == NULL)
        return;
    if (strcmp(service, "dynamodb") != 0) {
        reader_fail(&import->reader, node_find(action->parameters, "service"),
                    "the service %.64s is not supported: only dynamodb is here", service);
        return;
    }
    if (percentage != NULL &&
        (percentage->kind != NODE_SCALAR || !value_percent(bytes_text(percentage->text), &share))) {
        reader_fail(&import->reader, percentage, "expected a number from 0 to 100");
        return;
    }
    write_region_fault(fis, action,
                       action->kind == ACTION_API_THROTTLE ? "api.throttle" : "api.error", region);
    if (percentage != NULL)
        import_param(import, "percent", percentage->text);
    if (action->kind == ACTION_API_UNAVAILABLE)
        import_param(import, "error", "ServiceUnavailableException");
    if (operations != NULL && operations->kind == NODE_SCALAR && *operations->text != 0)
        write_operations(import, operations->text);
    import_fault_end(import);
}

static void write_action(struct fis *fis, const struct action *action)
{
    static const char *const parameters[] = {
        "duration", "region",     "scope",      "prefixListIdentifier",
        "service",  "percentage", "operations", NULL};
    import_keys(&fis->import, action->parameters, parameters);
    if (action->kind == ACTION_WAIT) {
        if (fis->import.end_ns < action->at_ns + action->for_ns)
            fis->import.end_ns = action->at_ns + action->for_ns;
        return;
    }
    const char *region = action_region(fis, action);
    if (region == NULL)
        return;
    switch (action->kind) {
    case ACTION_WAIT:
        break;
    case ACTION_PAUSE:
        write_region_fault(fis, action, "replication.pause", region);
        import_fault_end(&fis->import);
        break;
    case ACTION_CROSS:
        write_cross(fis, action, region);
        break;
    case ACTION_SUBNET:
        write_subnet(fis, action, region);
        break;
    case ACTION_ENDPOINT:
        write_blocked_clients(fis, action, region);
        break;
    case ACTION_API_ERROR:
    case ACTION_API_UNAVAILABLE:
    case ACTION_API_THROTTLE:
        write_api(fis, action, region);
        break;
    }
}

/* ---- The template ---- */

static void read_targets(struct fis *fis)
{
    const struct node *targets = node_find(fis->template, "targets");
    struct reader *reader = &fis->import.reader;
    if (targets == NULL || !reader_wants(reader, targets, NODE_MAP, "a mapping of targets"))
        return;
    for (const struct node *at = targets->first; at != NULL; at = at->next) {
        const struct node *mode = node_find(at, "selectionMode");
        if (mode != NULL && (mode->kind != NODE_SCALAR || (strcmp(mode->text, "ALL") != 0 &&
                                                           strcmp(mode->text, "COUNT(1)") != 0)))
            reader_fail(reader, mode,
                        "only ALL and COUNT(1) are supported: a Region is hit as a whole");
    }
}

static void read_stops(struct fis *fis)
{
    const struct node *stops = node_find(fis->template, "stopConditions");
    struct reader *reader = &fis->import.reader;
    if (stops == NULL || !reader_wants(reader, stops, NODE_LIST, "a list of stop conditions"))
        return;
    for (const struct node *at = stops->first; at != NULL; at = at->next) {
        const char *source = import_text(&fis->import, at, "source");
        if (source == NULL || strcmp(source, "none") == 0)
            continue;
        fis->import.stops = true;
        if (fis->import.options->stop_if == NULL)
            reader_fail(reader, at,
                        "%.64s is not supported, as there are no alarms here: say what stands "
                        "for it, such as error_rate: '>0.5 for 30s'",
                        source);
    }
}

static void read_template(struct fis *fis)
{
    static const char *const keys[] = {"description",
                                       "targets",
                                       "actions",
                                       "stopConditions",
                                       "roleArn",
                                       "tags",
                                       "logConfiguration",
                                       "experimentOptions",
                                       "id",
                                       "arn",
                                       "creationTime",
                                       "lastUpdateTime",
                                       "clientToken",
                                       "experimentReportConfiguration",
                                       "targetAccountConfigurationsCount",
                                       NULL};
    struct import *import = &fis->import;
    const struct node *actions = node_find(fis->template, "actions");
    const struct node *about = node_find(fis->template, "description");
    import_keys(import, fis->template, keys);
    if (about != NULL && about->kind == NODE_SCALAR)
        buf_append_text(&import->about, about->text);
    if (actions == NULL || actions->kind != NODE_MAP || actions->count > ACTIONS_MAX) {
        reader_fail(&import->reader, actions == NULL ? fis->template : actions,
                    "expected a mapping 'actions' of at most %d", ACTIONS_MAX);
        return;
    }
    read_targets(fis);
    read_stops(fis);
    for (const struct node *at = actions->first; at != NULL; at = at->next)
        read_action(fis, at);
    for (uint32_t i = 0; i < fis->action_count; i++)
        time_action(fis, &fis->action[i]);
    for (uint32_t i = 0; i < fis->action_count && import->reader.errors == 0; i++)
        write_action(fis, &fis->action[i]);
}

bool scenario_import_fis(const char *file, struct bytes text, const struct import_options *options,
                         struct buf *to, struct buf *error)
{
    struct fis fis = {0};
    bool good =
        import_open(&fis.import, file, text, "an AWS FIS experiment template", options, error);
    if (good) {
        const struct node *root = fis.import.documents[0];
        const struct node *inner = node_find(root, "experimentTemplate");
        fis.template = inner == NULL ? root : inner;
        buf_append_text(&fis.import.name, "fis-experiment");
        good = reader_wants(&fis.import.reader, fis.template, NODE_MAP, "an experiment template");
        if (good) {
            read_template(&fis);
            good = import_write(&fis.import, to);
        }
    }
    import_close(&fis.import);
    return good;
}
