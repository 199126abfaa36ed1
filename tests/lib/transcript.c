/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a transcript line by line, runs its commands and compares, or rewrites it. */

#include "tests/lib/transcript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"

static struct buf file_read(const char *path)
{
    struct buf text;
    buf_init(&text);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read; tests run from the top of the tree", path);
    for (size_t got = 1; got;) {
        got = fread(buf_reserve(&text, 4096), 1, 4096, file);
        text.len += got;
    }
    fclose(file);
    return text;
}

static bool line_take(struct bytes *rest, struct bytes *ret)
{
    if (rest->len == 0)
        return false;
    const uint8_t *end = memchr(rest->at, '\n', rest->len);
    *ret = bytes_make(rest->at, end ? (size_t)(end - rest->at) : rest->len);
    size_t used = ret->len + (end ? 1 : 0);
    rest->at += used;
    rest->len -= used;
    return true;
}

/* Takes the ---- and the lines up to an empty one, into *ret. */
static void expected_take(struct bytes *rest, struct buf *ret)
{
    struct bytes line, peek = *rest;
    if (!line_take(&peek, &line) || !bytes_is(line, "----"))
        return;
    *rest = peek;
    while (line_take(rest, &line) && line.len) {
        buf_append_bytes(ret, line);
        buf_append_u8(ret, '\n');
    }
}

void transcript_run(const char *path, transcript_command *command, void *context)
{
    bool rewrite = getenv("REWRITE") != NULL;
    cleanup(buf_deinit) struct buf text = file_read(path);
    cleanup(buf_deinit) struct buf anew = {0};
    struct bytes rest = buf_view(&text), line;
    while (line_take(&rest, &line)) {
        buf_append_bytes(&anew, line);
        buf_append_u8(&anew, '\n');
        if (line.len == 0 || line.at[0] == '#')
            continue;
        cleanup(buf_deinit) struct buf expected = {0};
        cleanup(buf_deinit) struct buf out = {0};
        expected_take(&rest, &expected);
        char *words = xstrndup((const char *)line.at, line.len);
        command(context, words, &out);
        free(words);
        if (!rewrite && !bytes_equal(buf_view(&out), buf_view(&expected)))
            fail_msg("%s: %.*s\n---- expected\n%.*s---- came\n%.*s", path, (int)line.len, line.at,
                     (int)expected.len, expected.at ? (char *)expected.at : "", (int)out.len,
                     out.at ? (char *)out.at : "");
        buf_append_text(&anew, "----\n");
        buf_append_bytes(&anew, buf_view(&out));
        buf_append_text(&anew, "\n");
    }
    if (!rewrite)
        return;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(anew.at, 1, anew.len, file);
    fclose(file);
}
