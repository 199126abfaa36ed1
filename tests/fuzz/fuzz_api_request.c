/* SPDX-License-Identifier: Apache-2.0 */
/* A whole request on a small database: the first line of the input is
 * "Operation[;authorization[;host[;accept-encoding]]]", the rest is the body. Whatever comes, there
 * is an answer that is JSON. */

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "tests/lib/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes take_part(struct bytes *line)
{
    const uint8_t *end = line->len > 0 ? memchr(line->at, ';', line->len) : NULL;
    size_t len = end ? (size_t)(end - line->at) : line->len;
    struct bytes part = bytes_make(line->at, len);
    size_t taken = end ? len + 1 : len;
    if (taken > 0)
        line->at += taken;
    line->len -= taken;
    return part;
}

static void add_tables(struct language *language)
{
    struct key_schema hash = {.hash_name = "pk", .hash_type = VALUE_S};
    struct key_schema range = {.hash_name = "pk",
                               .hash_type = VALUE_S,
                               .has_range = true,
                               .range_name = "sk",
                               .range_type = VALUE_N};
    language_add_table(language, "hash", &hash);
    language_add_table(language, "range", &range);
    language_call(
        language, "PutItem",
        "{\"TableName\":\"hash\",\"Item\":{\"pk\":{\"S\":\"a\"},\"l\":{\"L\":[{\"N\":\"1\"}]"
        "},\"m\":{\"M\":{\"x\":{\"SS\":[\"s\"]}}}}}");
    language_call(language, "PutItem",
                  "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"a\"},"
                  "\"sk\":{\"N\":\"1\"}}}");
    language_call(language, "PutItem",
                  "{\"TableName\":\"range\",\"Item\":{\"pk\":{\"S\":\"a\"},"
                  "\"sk\":{\"N\":\"2\"}}}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    struct bytes line = bytes_make(data, end ? (size_t)(end - data) : size);
    struct bytes body = end ? bytes_make(end + 1, size - line.len - 1) : BYTES_NONE;
    struct language *language = language_new();
    add_tables(language);
    char operation[40] = {0};
    struct bytes name = take_part(&line);
    memcpy(operation, name.at ? name.at : (const uint8_t *)"", name.len < 39 ? name.len : 39);
    char target[64];
    struct api_request request = language_request(operation, body, target);
    request.authorization = take_part(&line);
    struct bytes host = take_part(&line);
    if (host.len > 0)
        request.host = host;
    language->config.strict_credentials = request.authorization.len % 2;
    language->rows_per_read = 1;
    const char *answer = language_send(language, &request);
    json_t *json = json_loads(answer, JSON_ALLOW_NUL, NULL);
    check(json_is_object(json));
    json_decref(json);

    struct buf scratch cleanup(buf_deinit);
    buf_init(&scratch);
    struct bytes sent = buf_view(&language->answer);
    struct api_answer finished;
    api_finish(language->op->result.error, line, 1, size, &sent, &scratch, &finished);
    language_free(language);
    return 0;
}
