/* SPDX-License-Identifier: Apache-2.0 */
/* The search goes over a list of calls and returns in order of time. Any call before the first
 * return may come next; taking one lifts its call and return out of the list. At a return whose
 * call is still there, or at the end of the list, the last one taken is put back and the next is
 * tried. What was reached once, as a set of operations done and the item's value, is not tried
 * again: it is remembered by 128 bits of hash, so that a wrong match is out of the question.
 *
 * A read that sees the value as it is, and may come next, may as well come now: an order in which
 * it comes later is as good with it moved here. So it is taken without an alternative, and the
 * search branches over changes only.
 *
 * Two facts narrow a violation. A history cut off at a time, with what had not returned made
 * unknown, is linearizable if the whole is; so the first fatal return is found by bisection. And
 * one that begins at a time, from any value, is linearizable if the whole is, when of the
 * operations under way at its beginning reads are left out and writes are made unknown; so is the
 * last beginning. */

#include "chaos/check/linear.h"

#include <inttypes.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"

struct value {
    bool any; /* before a window: whatever fits */
    bool present;
    int64_t number;
};

struct mark { /* of a set of operations and a value */
    uint64_t a, b;
};

struct memory {
    struct mark *at; /* open addressing; a zero mark is a free place */
    size_t cap, count, cap_max;
};

struct event {
    uint64_t time;
    uint32_t op;
    bool call;
    uint32_t next, previous; /* places in the array; 0 is the head */
};

struct taken {
    uint32_t op;
    bool forced; /* there is no alternative to it */
    struct value before;
};

struct search {
    const struct linear_op *ops;
    uint32_t count;
    struct event *events; /* [0] is the head */
    uint32_t event_count;
    uint32_t *call_of, *return_of; /* op to event; 0: it never returns */
    struct mark *marks;            /* random, of each op */
    struct mark done;
    struct taken *stack;
    uint32_t depth;
    uint32_t left; /* operations that must have happened and are not taken */
    struct memory memory;
};

static bool unknown(const struct linear_op *op)
{
    return op->ret == UINT64_MAX;
}

/* ---- What an operation does to an item ---- */

static bool same(const struct value *value, bool present, int64_t number)
{
    return value->any || (value->present == present && (!present || value->number == number));
}

/* False: it cannot have had the result that it had. */
static bool apply(const struct linear_op *op, const struct value *from, struct value *ret)
{
    *ret = *from;
    switch (op->kind) {
    case LINEAR_READ:
        *ret = (struct value){.present = op->present, .number = op->present ? op->value : 0};
        return same(from, op->present, op->value);
    case LINEAR_PUT:
        *ret = (struct value){.present = true, .number = op->argument};
        return true;
    case LINEAR_IF: {
        bool holds = same(from, op->expected_present, op->expected);
        if (from->any && !unknown(op))
            holds = op->ok;
        if (holds)
            *ret = (struct value){.present = true, .number = op->argument};
        return unknown(op) ? holds : holds == op->ok; /* without effect it need not be taken */
    }
    case LINEAR_ADD:
        if (from->any && !op->observed)
            return true;
        uint64_t base = from->present ? (uint64_t)from->number : 0; /* wraps, as hostile sums may */
        int64_t sum = from->any ? op->value : (int64_t)(base + (uint64_t)op->argument);
        *ret = (struct value){.present = true, .number = sum};
        return !op->observed || sum == op->value;
    case LINEAR_DELETE:
        *ret = (struct value){0};
        return !op->observed || same(from, op->expected_present, op->expected);
    }
    unreachable();
}

static bool only_reads(const struct linear_op *op)
{
    return op->kind == LINEAR_READ || (op->kind == LINEAR_IF && !op->ok && !unknown(op));
}

/* ---- Memory of what was reached ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static struct mark mark_of(const struct search *search, const struct value *value)
{
    uint64_t word = mix((uint64_t)value->number * 4 + value->present * 2u + value->any + 1);
    struct mark mark = {search->done.a ^ word, search->done.b ^ mix(word + 0x9e3779b97f4a7c15u)};
    mark.a += mark.a == 0;
    return mark;
}

static bool memory_add(struct memory *memory, struct mark mark);

static void memory_grow(struct memory *memory)
{
    struct memory larger = {.cap = memory->cap ? memory->cap * 2 : 256, .cap_max = memory->cap_max};
    larger.at = xcalloc(larger.cap, sizeof(*larger.at));
    for (size_t i = 0; i < memory->cap; i++)
        if (memory->at[i].a)
            memory_add(&larger, memory->at[i]);
    free(memory->at);
    *memory = larger;
}

static bool memory_full(const struct memory *memory)
{
    return 2 * memory->count >= memory->cap && memory->cap >= memory->cap_max;
}

/* False if it was there. */
static bool memory_add(struct memory *memory, struct mark mark)
{
    if (2 * memory->count >= memory->cap)
        memory_grow(memory);
    size_t place = mark.a & (memory->cap - 1);
    for (; memory->at[place].a; place = (place + 1) & (memory->cap - 1))
        if (memory->at[place].a == mark.a && memory->at[place].b == mark.b)
            return false;
    memory->at[place] = mark;
    memory->count++;
    return true;
}

/* ---- The list ---- */

static int event_order(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

static void unlink_event(struct search *search, uint32_t at)
{
    struct event *event = &search->events[at];
    search->events[event->previous].next = event->next;
    if (event->next)
        search->events[event->next].previous = event->previous;
}

static void relink_event(struct search *search, uint32_t at)
{
    struct event *event = &search->events[at];
    search->events[event->previous].next = at;
    if (event->next)
        search->events[event->next].previous = at;
}

static void toggle(struct search *search, uint32_t op)
{
    search->done.a ^= search->marks[op].a;
    search->done.b ^= search->marks[op].b;
}

static void take(struct search *search, uint32_t op, bool forced, const struct value *before)
{
    search->stack[search->depth++] = (struct taken){op, forced, *before};
    unlink_event(search, search->call_of[op]);
    if (search->return_of[op])
        unlink_event(search, search->return_of[op]);
    search->left -= !unknown(&search->ops[op]);
    toggle(search, op);
}

/* Puts back the last one that has an alternative, and returns its call; 0 if there is none. */
static uint32_t put_back(struct search *search, struct value *ret_value)
{
    while (search->depth) {
        struct taken taken = search->stack[--search->depth];
        if (search->return_of[taken.op])
            relink_event(search, search->return_of[taken.op]);
        relink_event(search, search->call_of[taken.op]);
        search->left += !unknown(&search->ops[taken.op]);
        toggle(search, taken.op);
        *ret_value = taken.before;
        if (!taken.forced)
            return search->call_of[taken.op];
    }
    return 0;
}

/* Takes all reads that may come next and see the value as it is. */
static void take_reads(struct search *search, const struct value *value)
{
    uint32_t at = search->events[0].next;
    while (at && search->events[at].call) {
        uint32_t op = search->events[at].op;
        struct value after;
        bool forced =
            !value->any && only_reads(&search->ops[op]) && apply(&search->ops[op], value, &after);
        if (forced)
            take(search, op, true, value);
        at = forced ? search->events[0].next : search->events[at].next;
    }
}

static void search_init(struct search *search, const struct linear_op *ops, uint32_t count,
                        size_t memory_max)
{
    *search = (struct search){.ops = ops, .count = count};
    size_t each = 2 * sizeof(struct event) + 2 * sizeof(uint32_t) + sizeof(struct mark) +
                  sizeof(struct taken);
    size_t left = memory_max / each > count ? memory_max - each * count : 0;
    /* A memory that doubles is there one and a half times, so it may reach a third of what is left
     * at a power of two above. */
    while (search->memory.cap_max * 3 * sizeof(struct mark) <= left)
        search->memory.cap_max = search->memory.cap_max ? search->memory.cap_max * 2 : 256;
    search->events = xcalloc(2 * (size_t)count + 1, sizeof(*search->events));
    search->call_of = xcalloc(count, sizeof(uint32_t));
    search->return_of = xcalloc(count, sizeof(uint32_t));
    search->marks = xcalloc(count, sizeof(*search->marks));
    search->stack = xcalloc(count, sizeof(*search->stack));
    struct rng rng;
    rng_init(&rng, 1);
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        search->marks[i] = (struct mark){rng_next(&rng), rng_next(&rng)};
        search->events[++last] = (struct event){.time = ops[i].call, .op = i, .call = true};
        if (unknown(&ops[i]))
            continue;
        search->events[++last] = (struct event){.time = ops[i].ret, .op = i};
        search->left++;
    }
    search->event_count = last;
    qsort(search->events + 1, last, sizeof(*search->events), event_order);
    for (uint32_t i = 0; i <= last; i++) {
        struct event *event = &search->events[i];
        event->next = i < last ? i + 1 : 0;
        event->previous = i ? i - 1 : 0;
        if (i)
            (event->call ? search->call_of : search->return_of)[event->op] = i;
    }
}

static void search_deinit(struct search *search)
{
    free(search->events);
    free(search->call_of);
    free(search->return_of);
    free(search->marks);
    free(search->stack);
    free(search->memory.at);
}

/* Takes the operation whose call is at `at` if it may come next and leads somewhere new. */
static bool try_take(struct search *search, uint32_t at, struct value *value)
{
    uint32_t op = search->events[at].op;
    struct value after;
    if (!apply(&search->ops[op], value, &after))
        return false;
    toggle(search, op);
    bool fresh = memory_add(&search->memory, mark_of(search, &after));
    toggle(search, op);
    if (!fresh)
        return false;
    take(search, op, false, value);
    *value = after;
    take_reads(search, value);
    return true;
}

static enum linear_verdict run(const struct linear_op *ops, uint32_t count, struct value value,
                               size_t memory_max, uint64_t *steps_left)
{
    struct search search;
    search_init(&search, ops, count, memory_max);
    enum linear_verdict verdict = LINEAR_OK;
    take_reads(&search, &value);
    uint32_t at = search.events[0].next;
    while (search.left) {
        if (*steps_left == 0 || memory_full(&search.memory)) {
            verdict = LINEAR_UNKNOWN;
            break;
        }
        --*steps_left;
        if (at && search.events[at].call) {
            at = try_take(&search, at, &value) ? search.events[0].next : search.events[at].next;
        } else {
            at = put_back(&search, &value);
            if (!at) {
                verdict = LINEAR_VIOLATED;
                break;
            }
            at = search.events[at].next;
        }
    }
    search_deinit(&search);
    return verdict;
}

/* ---- Windows ---- */

static enum linear_verdict run_window(const struct linear_op *ops, uint32_t count,
                                      struct linear_window window, size_t memory_max,
                                      uint64_t *steps_left)
{
    struct linear_op *kept = xcalloc(count, sizeof(*kept));
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct linear_op op = ops[i];
        bool cut = op.call < window.from || op.ret > window.to;
        if (op.ret < window.from || op.call > window.to || (cut && op.kind == LINEAR_READ))
            continue;
        if (cut) {
            op.ret = UINT64_MAX;
            op.observed = false;
        }
        kept[kept_count++] = op;
    }
    enum linear_verdict verdict =
        run(kept, kept_count, (struct value){.any = window.from > 0}, memory_max, steps_left);
    free(kept);
    return verdict;
}

static int time_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct linear_window narrow(const struct linear_op *ops, uint32_t count,
                                   const struct linear_budget *budget)
{
    uint64_t steps = budget->steps_max;
    size_t memory_max = budget->memory_max;
    uint64_t *times = xcalloc(2 * (size_t)count, sizeof(*times));
    uint32_t time_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        times[time_count++] = ops[i].call;
        if (!unknown(&ops[i]))
            times[time_count++] = ops[i].ret;
    }
    qsort(times, time_count, sizeof(*times), time_order);
    struct linear_window window = {0, times[time_count - 1]};
    uint32_t low = 0, high = time_count - 1; /* the window to times[high] is violated */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        window.to = times[middle];
        if (run_window(ops, count, window, memory_max, &steps) == LINEAR_VIOLATED)
            high = middle;
        else
            low = middle + 1;
    }
    window.to = times[high];
    uint32_t end = high;
    low = 0;
    while (low < end) { /* the window from times[low] on, or from the start, is violated */
        uint32_t middle = low + (end - low + 1) / 2;
        window.from = times[middle];
        if (run_window(ops, count, window, memory_max, &steps) == LINEAR_VIOLATED)
            low = middle;
        else
            end = middle - 1;
    }
    window.from = times[low];
    if (run_window(ops, count, window, memory_max, &steps) != LINEAR_VIOLATED)
        window.from = 0;
    free(times);
    return window;
}

static int call_order(const void *a, const void *b)
{
    const struct linear_op *x = a, *y = b;
    return x->call < y->call ? -1 : x->call > y->call;
}

enum linear_verdict linear_check_within(struct linear_op *ops, uint32_t count,
                                        const struct linear_budget *budget,
                                        struct linear_window *ret)
{
    if (count == 0)
        return LINEAR_OK;
    qsort(ops, count, sizeof(*ops), call_order);
    uint64_t steps = budget->steps_max;
    enum linear_verdict verdict = run(ops, count, (struct value){0}, budget->memory_max, &steps);
    if (verdict == LINEAR_VIOLATED)
        *ret = narrow(ops, count, budget);
    return verdict;
}

enum linear_verdict linear_check(struct linear_op *ops, uint32_t count, uint64_t steps_max,
                                 struct linear_window *ret)
{
    struct linear_budget budget = {.steps_max = steps_max, .memory_max = SIZE_MAX / 4};
    return linear_check_within(ops, count, &budget, ret);
}

static void print_value(bool present, int64_t value, struct buf *to)
{
    if (present)
        buf_printf(to, "%" PRId64, value);
    else
        buf_append_text(to, "nothing");
}

static void print_op(const struct linear_op *op, struct buf *to)
{
    switch (op->kind) {
    case LINEAR_READ:
        buf_append_text(to, "read ");
        print_value(op->present, op->value, to);
        break;
    case LINEAR_PUT:
        buf_printf(to, "put %" PRId64, op->argument);
        break;
    case LINEAR_IF:
        buf_printf(to, "put %" PRId64 " if it is ", op->argument);
        print_value(op->expected_present, op->expected, to);
        if (!unknown(op))
            buf_append_text(to, op->ok ? ": it was" : ": it was not");
        break;
    case LINEAR_ADD:
        buf_printf(to, "add %" PRId64, op->argument);
        if (op->observed)
            buf_printf(to, " giving %" PRId64, op->value);
        break;
    case LINEAR_DELETE:
        buf_append_text(to, "delete");
        break;
    }
}

void linear_print(const struct linear_op *ops, uint32_t count, struct linear_window window,
                  struct buf *to)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct linear_op *op = &ops[i];
        if (op->ret < window.from || op->call > window.to)
            continue;
        buf_printf(to, "  %" PRIu64 " from %" PRIu64, op->name, op->call);
        if (unknown(op))
            buf_append_text(to, " on: ");
        else
            buf_printf(to, " to %" PRIu64 ": ", op->ret);
        print_op(op, to);
        buf_append_text(to, unknown(op) ? ", outcome unknown\n" : "\n");
    }
}
