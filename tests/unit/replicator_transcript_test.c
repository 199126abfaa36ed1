/* SPDX-License-Identifier: Apache-2.0 */
/* The transcripts of tests/trace/replicator_*.txt: what the replicators of a small cluster say to
 * each other and to their owners. The commands are at the end of this file. */

#include "tests/lib/replicator_cluster.h"
#include "tests/lib/transcript.h"

enum { WORDS_MAX = 8 };

struct script {
    struct cluster *cluster;
    struct replicator_config config;
    char *words[WORDS_MAX];
    int word_count;
};

static struct node *node_named(const struct script *script, int word)
{
    assert_true(word < script->word_count);
    for (int i = 0; i < NODES; i++)
        if (strcmp(script->cluster->nodes[i].name, script->words[word]) == 0)
            return &script->cluster->nodes[i];
    fail_msg("no node %s", script->words[word]);
    return NULL;
}

static uint64_t number(const struct script *script, int word, uint64_t otherwise)
{
    return word < script->word_count ? strtoull(script->words[word], NULL, 10) : otherwise;
}

/* config window=N apply=N batch=N records=N log=N grace=N */
static void do_config(struct script *script)
{
    struct replicator_config *config = &script->config;
    for (int i = 1; i < script->word_count; i++) {
        char *value = strchr(script->words[i], '=');
        assert_non_null(value);
        *value++ = '\0';
        uint64_t n = strtoull(value, NULL, 10);
        const char *name = script->words[i];
        if (!strcmp(name, "window"))
            config->window_bytes_max = config->apply_bytes_max = n;
        else if (!strcmp(name, "records"))
            config->batch_records_max = (uint32_t)n;
        else if (!strcmp(name, "log"))
            config->log_bytes_max = n;
        else if (!strcmp(name, "grace"))
            config->tombstone_grace_ms = n;
        else
            fail_msg("no setting %s", name);
    }
    cluster_free(script->cluster);
    script->cluster = cluster_new(*config, 1);
}

/* group us eu: starts them as each other's members. */
static void do_group(struct script *script)
{
    for (int i = 1; i < script->word_count; i++) {
        struct node *node = node_named(script, i);
        for (int peer = 1; peer < script->word_count; peer++)
            if (peer != i)
                node->members[node->member_count++] = node_named(script, peer)->region;
        node_start(node);
    }
}

/* add us eu: us learns that eu is a member. */
static void do_add(struct script *script)
{
    struct node *node = node_named(script, 1), *peer = node_named(script, 2);
    node->members[node->member_count++] = peer->region;
    if (node->replicator)
        replicator_add_member(node->replicator, node->replica, peer->region);
}

static void do_remove(struct script *script)
{
    struct node *node = node_named(script, 1), *peer = node_named(script, 2);
    for (uint32_t i = 0; i < node->member_count; i++)
        if (node->members[i] == peer->region)
            node->members[i] = node->members[--node->member_count];
    replicator_remove_member(node->replicator, node->replica, peer->region);
}

/* raw us eu HEX: these bytes as a frame on the stream that us opened. */
static void do_raw(struct script *script, bool opener)
{
    struct node *from = node_named(script, 1), *to = node_named(script, 2);
    uint8_t bytes[256];
    size_t len = 0;
    const char *hex = script->word_count > 3 ? script->words[3] : "";
    for (; hex[0] && hex[1] && len < sizeof(bytes); hex += 2) {
        char pair[3] = {hex[0], hex[1], '\0'};
        bytes[len++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    struct replicator_input in = node_input(to, REPLICATOR_FRAME);
    in.peer = from->region;
    in.outbound = !opener;
    in.bytes = bytes_make(bytes, len);
    node_step(to, &in);
}

static void do_show(struct script *script)
{
    struct cluster *cluster = script->cluster;
    struct node *node = node_named(script, 1);
    for (uint32_t i = 0; i < node->row_count; i++) {
        struct record record = row_record(&node->rows[i]);
        say(cluster, "%.*s = %.*s (%s:%llu)", (int)node->rows[i].key.len, node->rows[i].key.at,
            record_is_tombstone(&record) ? 7 : (int)record.item.len,
            record_is_tombstone(&record) ? "deleted" : (const char *)record.item.at,
            node_of(cluster, record.version.origin)->name, (unsigned long long)record.version.seq);
    }
    for (uint32_t i = 0; i < node->vv.count; i++)
        say(cluster, "has %s up to %llu", node_of(cluster, node->vv.at[i].origin)->name,
            (unsigned long long)node->vv.at[i].seq);
    say(cluster, "logs %u from %llu", node->log_count, (unsigned long long)node->log_first);
}

static void do_lag(struct script *script)
{
    struct node *node = node_named(script, 1), *peer = node_named(script, 2);
    struct replication_lag lag = {0};
    replica_lag(node->replica, peer->region, script->cluster->now_ms * 1000000, &lag);
    say(script->cluster, "pending %llu, oldest %llu ms, p50 %.1f p99 %.1f ms of %llu, %s%s",
        (unsigned long long)lag.pending, (unsigned long long)lag.oldest_ms, lag.p50_ms, lag.p99_ms,
        (unsigned long long)lag.count, lag.connected ? "connected" : "not connected",
        lag.stalled ? ", stalled" : "");
}

static void do_drop(struct script *script, bool opener)
{
    struct node *from = node_named(script, 1), *to = node_named(script, 2);
    struct frame_queue *queue = &script->cluster->queues[node_index(from)][node_index(to)][opener];
    assert_true(queue->count > 0);
    buf_deinit(&queue->frames[0]);
    queue->count--;
    memmove(queue->frames, queue->frames + 1, queue->count * sizeof(queue->frames[0]));
}

static void do_repeat(struct script *script)
{
    struct node *from = node_named(script, 1), *to = node_named(script, 2);
    struct frame_queue *queue = &script->cluster->queues[node_index(from)][node_index(to)][1];
    assert_true(queue->count > 0);
    struct buf twice = {0};
    buf_append_bytes(&twice, buf_view(&queue->frames[0]));
    memmove(queue->frames + 1, queue->frames, queue->count * sizeof(queue->frames[0]));
    queue->frames[0] = twice;
    queue->count++;
}

static bool do_node(struct script *script, const char *verb)
{
    struct cluster *cluster = script->cluster;
    struct node *node = script->word_count > 1 ? node_named(script, 1) : NULL;
    if (!strcmp(verb, "write"))
        node_write(node, script->words[2], script->words[3]);
    else if (!strcmp(verb, "delete"))
        node_write(node, script->words[2], NULL);
    else if (!strcmp(verb, "kill"))
        node_stop(node);
    else if (!strcmp(verb, "restart"))
        node_start(node);
    else if (!strcmp(verb, "wipe"))
        node_wipe(node);
    else if (!strcmp(verb, "set-back")) {
        node_wipe(node);
        node->epoch--;
    } else if (!strcmp(verb, "outrun"))
        replica_note_epoch(node->replica, ++node->epoch);
    else if (!strcmp(verb, "hold"))
        node->hold = true;
    else if (!strcmp(verb, "release"))
        node->hold = false;
    else if (!strcmp(verb, "full"))
        node_fail_applies(node);
    else if (!strcmp(verb, "work"))
        node_work(node);
    else if (!strcmp(verb, "unreadable"))
        node->read_fails = true;
    else if (!strcmp(verb, "readable"))
        node->read_fails = false;
    else if (!strcmp(verb, "tables"))
        replicator_set_tables(node->replicator, bytes_text(script->words[2]));
    else if (!strcmp(verb, "trace"))
        cluster->trace = true;
    else
        return false;
    return true;
}

static bool do_link(struct script *script, const char *verb)
{
    struct cluster *cluster = script->cluster;
    if (!strcmp(verb, "connect")) {
        stream_up(node_named(script, 1), node_named(script, 2));
    } else if (!strcmp(verb, "cut")) {
        stream_down(node_named(script, 1), node_named(script, 2), true, true);
    } else if (!strcmp(verb, "deliver")) {
        for (uint64_t n = number(script, 3, 1); n > 0; n--)
            if (!deliver(node_named(script, 1), node_named(script, 2), true))
                say(cluster, "nothing to deliver");
    } else if (!strcmp(verb, "answer")) {
        for (uint64_t n = number(script, 3, 1); n > 0; n--)
            if (!deliver(node_named(script, 1), node_named(script, 2), false))
                say(cluster, "nothing to deliver");
    } else if (!strcmp(verb, "drop")) {
        do_drop(script, true);
    } else if (!strcmp(verb, "drop-answer")) {
        do_drop(script, false);
    } else if (!strcmp(verb, "repeat")) {
        do_repeat(script);
    } else if (!strcmp(verb, "raw")) {
        do_raw(script, true);
    } else if (!strcmp(verb, "raw-answer")) {
        do_raw(script, false);
    } else if (!strcmp(verb, "settle")) {
        cluster_settle(cluster);
    } else if (!strcmp(verb, "quiet")) {
        cluster->out = NULL;
        cluster_settle(cluster);
    } else if (!strcmp(verb, "pass")) { /* ms, in heartbeats; what is said meanwhile is left out */
        cluster->out = NULL;
        for (uint64_t n = number(script, 1, 0); n > 0; n -= n < 200 ? n : 200) {
            cluster->now_ms += n < 200 ? n : 200;
            cluster_timeout(cluster);
            cluster_settle(cluster);
        }
    } else if (!strcmp(verb, "wait")) { /* ms, at once */
        cluster->now_ms += number(script, 1, 0);
        cluster_timeout(cluster);
    } else {
        return false;
    }
    return true;
}

/*  config NAME=N...         starts over
 *  group NODE...            starts nodes as each other's members
 *  add|remove NODE PEER     changes what NODE holds for members
 *  connect|cut FROM TO      the stream that FROM opens
 *  deliver|answer FROM TO N frames of the opener, of the acceptor
 *  drop|drop-answer|repeat|raw|raw-answer
 *  settle, quiet            all that moves, in writing or not
 *  pass MS, wait MS         time, with all that moves (not written) or in one step
 *  write|delete NODE KEY    a local write
 *  set-back|outrun NODE     a lost disk, but numbers go on as before; an epoch above them
 *  kill|restart|wipe|hold|release|full|work|unreadable|readable|tables NODE
 *  show NODE, lag NODE PEER
 */
static void command(void *context, char *line, struct buf *out)
{
    struct script *script = context;
    script->word_count = 0;
    while (*line && script->word_count < WORDS_MAX) {
        script->words[script->word_count++] = line;
        line += strcspn(line, " ");
        if (*line)
            *line++ = '\0';
    }
    const char *verb = script->words[0];
    script->cluster->out = out;
    if (!strcmp(verb, "config"))
        do_config(script);
    else if (!strcmp(verb, "group"))
        do_group(script);
    else if (!strcmp(verb, "add"))
        do_add(script);
    else if (!strcmp(verb, "remove"))
        do_remove(script);
    else if (!strcmp(verb, "show"))
        do_show(script);
    else if (!strcmp(verb, "lag"))
        do_lag(script);
    else if (!do_link(script, verb) && !do_node(script, verb))
        fail_msg("no command %s", verb);
    script->cluster->out = NULL;
}

static void run(void **state)
{
    struct script script = {.config = cluster_config()};
    script.cluster = cluster_new(script.config, 1);
    transcript_run(*state, command, &script);
    cluster_free(script.cluster);
}

#define TRANSCRIPT(name)                                                                           \
    {                                                                                              \
#name, run, NULL, NULL, "tests/trace/replicator_" #name ".txt"                             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRANSCRIPT(stream),   TRANSCRIPT(gap),     TRANSCRIPT(window),    TRANSCRIPT(reconnect),
        TRANSCRIPT(snapshot), TRANSCRIPT(trim),    TRANSCRIPT(tombstone), TRANSCRIPT(disk),
        TRANSCRIPT(hostile),  TRANSCRIPT(members), TRANSCRIPT(past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
