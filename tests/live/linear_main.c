/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what clients of a live cluster saw. Standard input holds one operation a line, of seven
 * words; the verdict on each key goes to standard output, and below a violated one the smallest
 * window of operations that no order explains, named by their lines.
 *
 *      KEY CALL RETURN KIND  ARGUMENT EXPECTED  RESULT
 *       k1   17     29 read         -        -  VALUE | none
 *       k1   18      ? put         41        -  -
 *       k1   30     34 if          42  41|none  ok | not
 *       k1   35     36 add          1        -  SUM | ?
 *       k1   37     38 delete       -        -  VALUE | none | ?
 *
 * CALL and RETURN are times of one clock; RETURN is ? when nobody knows whether the operation was
 * done. The status is 0 if every history is linearizable, 1 if one is not, 2 if that could not be
 * found out within the bounds, 3 if the input is none. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/check/linear.h"
#include "conflict/base/alloc.h"

enum { WORD_MAX = 63, WORDS = 7, OPS_MAX = 1 << 22, STEPS_MAX = 100 * 1000 * 1000 };
enum { EXIT_OK, EXIT_VIOLATED, EXIT_UNKNOWN, EXIT_INPUT };
static const size_t MEMORY_MAX = (size_t)1 << 30;
static const int64_t TIME_MAX = INT64_MAX / 2;

struct line {
    char key[WORD_MAX + 1];
    struct linear_op op;
};

static void free_pointer(void *slot)
{
    free(*(void **)slot);
}

/* A number, or a word that stands for none: then *ret_number stays. */
static bool read_word(const char *word, const char *none, bool *ret_number, int64_t *ret)
{
    char *end;
    *ret_number = strcmp(word, none) != 0;
    if (!*ret_number)
        return true;
    errno = 0;
    *ret = strtoll(word, &end, 10);
    return end != word && *end == 0 && errno == 0;
}

/* A call is moved before whatever returned in the same instant: that only allows more orders. */
static bool read_times(const char *call, const char *ret, struct linear_op *op)
{
    int64_t from, to = TIME_MAX;
    bool number;
    if (!read_word(call, "", &number, &from) || !number || from < 0 || from > TIME_MAX)
        return false;
    if (!read_word(ret, "?", &number, &to) || to < from || to > TIME_MAX)
        return false;
    op->call = 2 * (uint64_t)from;
    op->ret = number ? 2 * (uint64_t)to + 1 : UINT64_MAX;
    return true;
}

static bool read_kind(const char *kind, const char *argument, const char *expected,
                      const char *result, struct linear_op *op)
{
    bool number, known = op->ret != UINT64_MAX;
    if (strcmp(kind, "read") == 0) {
        op->kind = LINEAR_READ;
        return known && read_word(result, "none", &op->present, &op->value);
    }
    if (strcmp(kind, "delete") == 0) {
        op->kind = LINEAR_DELETE;
        op->observed = strcmp(result, "?") != 0;
        return !op->observed ||
               (known && read_word(result, "none", &op->expected_present, &op->expected));
    }
    if (!read_word(argument, "-", &number, &op->argument) || !number)
        return false;
    if (strcmp(kind, "put") == 0) {
        op->kind = LINEAR_PUT;
        return true;
    }
    if (strcmp(kind, "add") == 0) {
        op->kind = LINEAR_ADD;
        return read_word(result, "?", &op->observed, &op->value) && (known || !op->observed);
    }
    op->kind = LINEAR_IF;
    op->ok = strcmp(result, "ok") == 0;
    return strcmp(kind, "if") == 0 && (!known || op->ok || strcmp(result, "not") == 0) &&
           read_word(expected, "none", &op->expected_present, &op->expected);
}

static bool read_line(const char *text, struct line *ret)
{
    char words[WORDS][WORD_MAX + 1];
    *ret = (struct line){0};
    for (int i = 0; i < WORDS; i++) {
        size_t len = strcspn(text, " \n");
        if (len == 0 || len > WORD_MAX)
            return false;
        memcpy(words[i], text, len);
        words[i][len] = 0;
        text += len + (text[len] == ' ');
    }
    if (*text != 0 && strcmp(text, "\n") != 0)
        return false;
    memcpy(ret->key, words[0], sizeof(ret->key));
    return read_times(words[1], words[2], &ret->op) &&
           read_kind(words[3], words[4], words[5], words[6], &ret->op);
}

/* The number of lines, or UINT32_MAX after telling which one is wrong. */
static uint32_t read_lines(struct line **ret)
{
    struct line *lines = NULL;
    char *text cleanup(free_pointer) = NULL;
    size_t text_cap = 0;
    uint32_t count = 0, cap = 0;
    while (getline(&text, &text_cap, stdin) > 0) {
        if (count == cap) {
            cap = cap ? 2 * cap : 1024;
            lines = xrealloc(lines, cap * sizeof(*lines));
        }
        if (count == OPS_MAX || !read_line(text, &lines[count])) {
            fprintf(stderr, "line %u is no operation, or one too many: %s", count + 1, text);
            free(lines);
            return UINT32_MAX;
        }
        lines[count].op.name = count + 1;
        count++;
    }
    *ret = lines;
    return count;
}

static int line_order(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int by_key = strcmp(x->key, y->key);
    return by_key ? by_key : x->op.name < y->op.name ? -1 : 1;
}

static enum linear_verdict judge(const struct line *lines, uint32_t count)
{
    static const char *const texts[] = {
        [LINEAR_OK] = "ok", [LINEAR_VIOLATED] = "violated", [LINEAR_UNKNOWN] = "unknown"};
    const struct linear_budget budget = {.steps_max = STEPS_MAX, .memory_max = MEMORY_MAX};
    struct linear_op *ops = xcalloc(count, sizeof(*ops));
    struct linear_window window;
    for (uint32_t i = 0; i < count; i++)
        ops[i] = lines[i].op;
    enum linear_verdict verdict = linear_check_within(ops, count, &budget, &window);
    printf("%s %s of %u\n", lines[0].key, texts[verdict], count);
    if (verdict == LINEAR_VIOLATED) {
        struct buf to;
        buf_init(&to);
        linear_print(ops, count, window, &to);
        fwrite(to.at, 1, to.len, stdout);
        buf_deinit(&to);
    }
    free(ops);
    return verdict;
}

int main(void)
{
    struct line *lines cleanup(free_pointer) = NULL;
    uint32_t count = read_lines(&lines);
    if (count == UINT32_MAX)
        return EXIT_INPUT;
    if (count > 0)
        qsort(lines, count, sizeof(*lines), line_order);
    bool violated = false, undecided = false;
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && strcmp(lines[to].key, lines[from].key) == 0;)
            to++;
        enum linear_verdict verdict = judge(lines + from, to - from);
        violated |= verdict == LINEAR_VIOLATED;
        undecided |= verdict == LINEAR_UNKNOWN;
    }
    return violated ? EXIT_VIOLATED : undecided ? EXIT_UNKNOWN : EXIT_OK;
}
