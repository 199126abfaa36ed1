/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, and DynamoDB JSON of an item: read as by the parser alone; refused, or encoded into a
 * canonical item that is written as JSON which reads back to the same bytes. */

#include <stdint.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/api/shapes.h"
#include "region/api/value_json.h"
#include "region/core/item_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare_with_parser(struct json_reader *reader, struct bytes text)
{
    json_t *ours cleanup(json_release) = json_read(reader, text);
    json_t *plain cleanup(json_release) =
        json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    /* What is too much for ours may be JSON; nothing else may differ. */
    check(ours ? json_equal(ours, plain) : !plain || text.len > JSON_SMALL_BYTES_MAX);
}

/* As PutItem takes it: types first, then content. */
static bool read_item(struct arena *arena, struct bytes text, struct bytes *ret)
{
    json_t *json cleanup(json_release) = json_read(NULL, text);
    if (!json || shape_check_types(shape_of_request(OP_PUT_ITEM), json, arena))
        return false;
    json_t *item = json_member(json, "Item");
    return item && !item_from_json(arena, item, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    arena_init(&arena);
    struct buf body cleanup(buf_deinit);
    buf_init(&body);
    buf_append_text(&body, "{\"Item\":");
    buf_append(&body, data, size);
    buf_append_text(&body, "}");
    struct json_reader *reader = json_reader_new();
    /* Plain, then keeping its form, then from what was kept. */
    for (int time = 0; time < 3; time++)
        compare_with_parser(reader, buf_view(&body));
    json_reader_free(reader);
    struct bytes item, again;
    if (read_item(&arena, buf_view(&body), &item)) {
        check(item_check(item));
        buf_reset(&body);
        buf_append_text(&body, "{\"Item\":");
        item_write_json(&body, item);
        buf_append_text(&body, "}");
        check(read_item(&arena, buf_view(&body), &again));
        check(bytes_equal(item, again));
    }
    arena_deinit(&arena);
    return 0;
}
