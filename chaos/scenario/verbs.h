/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_VERBS_H
#define SCENARIO_VERBS_H

/* Every fault that a scenario can ask for, and every parameter of one. These two tables are what
 * the parser, its messages and the published schema are made from; the runner switches on the
 * enumerators. A verb that holds lasts until its `for` is over, or the scenario undoes it by its
 * id, by the verb named in `undo`, or by heal-all; whatever is left is healed when the run ends. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

/* PARAM(enumerator, key, type of fields.h, member of struct scenario_fault, minimum, maximum, names
 * of a choice or NULL, default when it is optional, help) Times are in nanoseconds. A maximum of 0
 * means that the type's own bound is enough. */
#define SCENARIO_HOUR_NS (3600 * INT64_C(1000000000))
#define SCENARIO_PARAM_MAP(PARAM)                                                                  \
    PARAM(REGION, "region", REGION, region, 0, 0, NULL, NULL,                                      \
          "A Region of the cluster, `leader` (the one that leads most groups then) or `all`")      \
    PARAM(FROM, "from", REGION, from, 0, 0, NULL, NULL, "The Region that sends, or `all`")         \
    PARAM(TO, "to", REGION, to, 0, 0, NULL, NULL, "The Region that receives, or `all`")            \
    PARAM(DIRECTION, "direction", CHOICE, direction, 0, 0, scenario_directions, "one",             \
          "one: only what `from` sends to `to`; both: also the way back")                          \
    PARAM(DELAY, "delay", TIME, delay_ns, 1, SCENARIO_HOUR_NS, NULL, "10ms",                       \
          "Added to each message")                                                                 \
    PARAM(JITTER, "jitter", TIME, jitter_ns, 0, SCENARIO_HOUR_NS, NULL, "0ms",                     \
          "How far a delay may be off, as the distribution says")                                  \
    PARAM(DISTRIBUTION, "distribution", CHOICE, distribution, 0, 0, scenario_distributions,        \
          "uniform", "How jitter is spread: uniform within it, or with it as the deviation")       \
    PARAM(RATE, "rate", BANDWIDTH, rate_bytes, 1, 0, NULL, "1MB/s",                                \
          "Bytes a second, as in 10MB/s")                                                          \
    PARAM(PERIOD, "period", TIME, period_ns, 1000000, SCENARIO_HOUR_NS, NULL, "1s",                \
          "From one beginning to the next")                                                        \
    PARAM(PERCENT, "percent", PERCENT, share, 0, 0, NULL, "100", "How many of them, of a hundred") \
    PARAM(CORRELATION, "correlation", PERCENT, correlation, 0, 0, NULL, "0",                       \
          "How much each resembles the one before, so that they come in runs; `percent` stays")    \
    PARAM(SHAPE, "shape", CHOICE, shape, 0, 0, scenario_shapes, "one", "Who can still reach whom") \
    PARAM(                                                                                         \
        HOW, "how", CHOICE, how, 0, 0, scenario_hows, "cut",                                       \
        "cut: reset and refuse; blackhole: accept and stay silent; refuse: new connections only; " \
        "reset: open ones once")                                                                   \
    PARAM(SIGNAL, "signal", CHOICE, signal, 0, 0, scenario_signals, "KILL",                        \
          "KILL, TERM, ABRT, INT, QUIT, SEGV")                                                     \
    PARAM(LOSE_UNSYNCED, "lose_unsynced", BOOL, lose_unsynced, 0, 0, NULL, "false",                \
          "As at a power cut, drop what was written and not yet synced")                           \
    PARAM(DOWN, "down", TIME, down_ns, 1000000, SCENARIO_HOUR_NS, NULL, "1s",                      \
          "How long it stays down; of what has a period, in each, and half of that if not given")  \
    PARAM(OFFSET, "offset", OFFSET, offset_ns, -SCENARIO_HOUR_NS * 8784, SCENARIO_HOUR_NS * 8784,  \
          NULL, "0s", "How far ahead; behind when negative")                                       \
    PARAM(PPM, "ppm", SIGNED, ppm, -500000, 500000, NULL, "0",                                     \
          "Microseconds gained in each second; lost when negative")                                \
    PARAM(FILES, "files", CHOICE, files, 0, 0, scenario_files, "any",                              \
          "LevelDB's log, its tables, its manifest, or any file of the Region")                    \
    PARAM(CALLS, "calls", CHOICE, calls, 0, 0, scenario_calls, "any", "read, write, sync or any")  \
    PARAM(FREE, "free", BYTES, free_bytes, 0, 0, NULL, "0", "How much may still be written")       \
    PARAM(BITS, "bits", WHOLE, bits, 1, 1000000, NULL, "1",                                        \
          "How many bits, each in another place")                                                  \
    PARAM(SIZE, "size", BYTES, size, 1, 0, NULL, "4KiB", "How much of the end goes")               \
    PARAM(TABLE, "table", TEXT, table, 1, 255, NULL, NULL, "The table; all if none is named")      \
    PARAM(OPERATIONS, "operations", TEXTS, operations, 1, 64, NULL, NULL,                          \
          "Names of DynamoDB operations such as PutItem; all if none are named")                   \
    PARAM(ERROR, "error", TEXT, error, 1, 128, NULL, "InternalServerError",                        \
          "The error's type as AWS names it")                                                      \
    PARAM(FAULT, "fault", TEXT, fault, 1, 64, NULL, NULL, "The id of another fault")

enum scenario_param {
#define PARAM(enumerator, key, type, member, min, max, names, standard, help) PARAM_##enumerator,
    SCENARIO_PARAM_MAP(PARAM)
#undef PARAM
        SCENARIO_PARAM_COUNT
};
#define PARAM_BIT(name) (UINT32_C(1) << PARAM_##name)

enum scenario_lasting {
    VERB_ONCE,   /* over at once; `for` is refused */
    VERB_HOLDS,  /* for `for`, or until undone */
    VERB_REPEATS /* once; with `for`, every `period` for so long */
};

#define LINK_ENDS (PARAM_BIT(FROM) | PARAM_BIT(TO))
#define KILL_HOW (PARAM_BIT(SIGNAL) | PARAM_BIT(LOSE_UNSYNCED))

/* VERB(enumerator, name, lasting, required parameters, optional ones, undo, help)
 * undo: the verb that ends it, for a scenario that wants to choose the moment; HEAL_ALL when only
 * `for`, `undo` and heal-all do. */
#define SCENARIO_VERB_MAP(VERB)                                                                    \
    VERB(LINK_CUT, "link.cut", HOLDS, LINK_ENDS, PARAM_BIT(DIRECTION), HEAL_ALL,                   \
         "Resets the link's connections and refuses new ones")                                     \
    VERB(LINK_BLACKHOLE, "link.blackhole", HOLDS, LINK_ENDS, PARAM_BIT(DIRECTION), HEAL_ALL,       \
         "Accepts connections and delivers nothing")                                               \
    VERB(LINK_RESET, "link.reset", REPEATS, LINK_ENDS, PARAM_BIT(DIRECTION) | PARAM_BIT(PERIOD),   \
         HEAL_ALL, "Resets the link's connections; new ones are let in")                           \
    VERB(LINK_DELAY, "link.delay", HOLDS, LINK_ENDS | PARAM_BIT(DELAY),                            \
         PARAM_BIT(DIRECTION) | PARAM_BIT(JITTER) | PARAM_BIT(DISTRIBUTION), HEAL_ALL,             \
         "Adds a delay to what the link has already")                                              \
    VERB(LINK_JITTER, "link.jitter", HOLDS, LINK_ENDS | PARAM_BIT(JITTER),                         \
         PARAM_BIT(DIRECTION) | PARAM_BIT(DISTRIBUTION), HEAL_ALL, "Makes the delay uneven")       \
    VERB(LINK_BANDWIDTH, "link.bandwidth", HOLDS, LINK_ENDS | PARAM_BIT(RATE),                     \
         PARAM_BIT(DIRECTION), HEAL_ALL, "Lets no more through a second")                          \
    VERB(LINK_FLAP, "link.flap", HOLDS, LINK_ENDS | PARAM_BIT(PERIOD),                             \
         PARAM_BIT(DIRECTION) | PARAM_BIT(DOWN), HEAL_ALL,                                         \
         "Cuts the link at each period's beginning, for `down`")                                   \
    VERB(LINK_LOSS, "link.loss", HOLDS, LINK_ENDS | PARAM_BIT(PERCENT),                            \
         PARAM_BIT(DIRECTION) | PARAM_BIT(CORRELATION), HEAL_ALL, "Drops messages")                \
    VERB(LINK_DUPLICATE, "link.duplicate", HOLDS, LINK_ENDS | PARAM_BIT(PERCENT),                  \
         PARAM_BIT(DIRECTION) | PARAM_BIT(CORRELATION), HEAL_ALL, "Delivers messages twice")       \
    VERB(LINK_CORRUPT, "link.corrupt", HOLDS, LINK_ENDS | PARAM_BIT(PERCENT),                      \
         PARAM_BIT(DIRECTION) | PARAM_BIT(CORRELATION), HEAL_ALL,                                  \
         "Turns one bit of a message; the receiver must find it out and close the stream")         \
    VERB(LINK_REORDER, "link.reorder", HOLDS, LINK_ENDS | PARAM_BIT(PERCENT),                      \
         PARAM_BIT(DIRECTION) | PARAM_BIT(DELAY) | PARAM_BIT(CORRELATION), HEAL_ALL,               \
         "Holds messages back for `delay`, so that later ones overtake them")                      \
    VERB(PARTITION, "partition", HOLDS, PARAM_BIT(SHAPE), PARAM_BIT(REGION) | PARAM_BIT(HOW),      \
         HEAL_ALL, "Cuts several links at once, after a shape")                                    \
    VERB(REPLICATION_PAUSE, "replication.pause", HOLDS, PARAM_BIT(REGION), 0, HEAL_ALL,            \
         "Holds all that goes into and out of a Region; its clients notice nothing (AWS FIS)")     \
    VERB(CLIENT_BLOCK, "client.block", HOLDS, PARAM_BIT(REGION), PARAM_BIT(HOW), HEAL_ALL,         \
         "Keeps clients from a Region; replication goes on")                                       \
    VERB(PROCESS_KILL, "process.kill", HOLDS, PARAM_BIT(REGION), KILL_HOW, PROCESS_START,          \
         "Ends a Region's process")                                                                \
    VERB(PROCESS_START, "process.start", ONCE, PARAM_BIT(REGION), 0, HEAL_ALL,                     \
         "Starts what was killed, on the same data")                                               \
    VERB(PROCESS_RESTART, "process.restart", ONCE, PARAM_BIT(REGION), KILL_HOW | PARAM_BIT(DOWN),  \
         HEAL_ALL, "Ends a Region's process and starts it after `down`")                           \
    VERB(PROCESS_RESTART_LOOP, "process.restart-loop", HOLDS,                                      \
         PARAM_BIT(REGION) | PARAM_BIT(PERIOD), KILL_HOW | PARAM_BIT(DOWN), PROCESS_START,         \
         "Ends a Region's process at each period's beginning and starts it after `down`")          \
    VERB(PROCESS_PAUSE, "process.pause", HOLDS, PARAM_BIT(REGION), 0, PROCESS_RESUME,              \
         "Stops a Region's process as it is (SIGSTOP)")                                            \
    VERB(PROCESS_HICCUP, "process.hiccup", HOLDS, PARAM_BIT(REGION) | PARAM_BIT(PERIOD),           \
         PARAM_BIT(DOWN), PROCESS_RESUME,                                                          \
         "Stops a Region's process at each period's beginning, for `down` (SIGSTOP)")              \
    VERB(PROCESS_RESUME, "process.resume", ONCE, PARAM_BIT(REGION), 0, HEAL_ALL,                   \
         "Lets a paused process go on (SIGCONT)")                                                  \
    VERB(CLOCK_OFFSET, "clock.offset", HOLDS, PARAM_BIT(REGION) | PARAM_BIT(OFFSET), 0,            \
         CLOCK_RESET, "Sets a Region's wall clock so far off")                                     \
    VERB(CLOCK_RATE, "clock.rate", HOLDS, PARAM_BIT(REGION) | PARAM_BIT(PPM), 0, CLOCK_RESET,      \
         "Lets a Region's wall clock run fast or slow")                                            \
    VERB(CLOCK_STEP, "clock.step", HOLDS, PARAM_BIT(REGION) | PARAM_BIT(OFFSET), 0, CLOCK_RESET,   \
         "Moves a Region's wall clock on from where it is")                                        \
    VERB(CLOCK_STROBE, "clock.strobe", HOLDS,                                                      \
         PARAM_BIT(REGION) | PARAM_BIT(OFFSET) | PARAM_BIT(PERIOD), 0, CLOCK_RESET,                \
         "Moves the clock by the offset and back, half a period each")                             \
    VERB(CLOCK_RESET, "clock.reset", ONCE, PARAM_BIT(REGION), 0, HEAL_ALL,                         \
         "Puts a Region's clock right")                                                            \
    VERB(DISK_FULL, "disk.full", HOLDS, PARAM_BIT(REGION), PARAM_BIT(FREE), HEAL_ALL,              \
         "No space is left (ENOSPC)")                                                              \
    VERB(DISK_SLOW, "disk.slow", HOLDS, PARAM_BIT(REGION) | PARAM_BIT(DELAY),                      \
         PARAM_BIT(JITTER) | PARAM_BIT(FILES) | PARAM_BIT(CALLS) | PARAM_BIT(PERCENT), HEAL_ALL,   \
         "Calls to the disk take longer")                                                          \
    VERB(DISK_FSYNC_ERROR, "disk.fsync_error", HOLDS, PARAM_BIT(REGION),                           \
         PARAM_BIT(FILES) | PARAM_BIT(PERCENT), HEAL_ALL, "fsync fails (EIO)")                     \
    VERB(DISK_IO_ERROR, "disk.io_error", HOLDS, PARAM_BIT(REGION),                                 \
         PARAM_BIT(FILES) | PARAM_BIT(CALLS) | PARAM_BIT(PERCENT), HEAL_ALL,                       \
         "Calls to the disk fail (EIO)")                                                           \
    VERB(DISK_BITFLIP, "disk.bitflip", ONCE, PARAM_BIT(REGION),                                    \
         PARAM_BIT(FILES) | PARAM_BIT(BITS), HEAL_ALL, "Flips bits in what is on the disk")        \
    VERB(DISK_TRUNCATE, "disk.truncate", ONCE, PARAM_BIT(REGION),                                  \
         PARAM_BIT(FILES) | PARAM_BIT(SIZE), HEAL_ALL, "Cuts the end off the newest file")         \
    VERB(DISK_TORN_WRITE, "disk.torn_write", HOLDS, PARAM_BIT(REGION), PARAM_BIT(FILES),           \
         PROCESS_START, "Writes only half of the next write, and ends the process there")          \
    VERB(DISK_WIPE, "disk.wipe", HOLDS, PARAM_BIT(REGION), 0, PROCESS_START,                       \
         "Ends a Region's process and removes its data")                                           \
    VERB(LEADER_KILL, "leader.kill", HOLDS, 0, PARAM_BIT(TABLE) | KILL_HOW, PROCESS_START,         \
         "Ends the process that leads the table's groups (strong mode)")                           \
    VERB(LEADER_TRANSFER, "leader.transfer", ONCE, 0, PARAM_BIT(TABLE) | PARAM_BIT(TO), HEAL_ALL,  \
         "Hands leadership to another Region (strong mode)")                                       \
    VERB(API_ERROR, "api.error", HOLDS, PARAM_BIT(REGION),                                         \
         PARAM_BIT(PERCENT) | PARAM_BIT(OPERATIONS) | PARAM_BIT(ERROR), HEAL_ALL,                  \
         "Answers requests with an error instead of carrying them out")                            \
    VERB(API_THROTTLE, "api.throttle", HOLDS, PARAM_BIT(REGION),                                   \
         PARAM_BIT(PERCENT) | PARAM_BIT(OPERATIONS), HEAL_ALL,                                     \
         "Answers requests with ProvisionedThroughputExceededException")                           \
    VERB(UNDO, "undo", ONCE, PARAM_BIT(FAULT), 0, HEAL_ALL, "Ends the fault that has this id")     \
    VERB(HEAL_ALL, "heal-all", ONCE, 0, 0, HEAL_ALL, "Undoes all that is not yet undone")

enum scenario_verb {
#define VERB(enumerator, ...) VERB_##enumerator,
    SCENARIO_VERB_MAP(VERB)
#undef VERB
        SCENARIO_VERB_COUNT
};

struct scenario_verb_info {
    const char *name;
    enum scenario_lasting lasting;
    uint32_t required, optional; /* sets of PARAM_BIT */
    enum scenario_verb undo;
    const char *help;
};

const struct scenario_verb_info *scenario_verb_info(enum scenario_verb verb);
/* SCENARIO_VERB_COUNT: there is none of that name. */
enum scenario_verb scenario_verb_find(struct bytes name);

#endif
