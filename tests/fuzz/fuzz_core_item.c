/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from disk or from a peer: item_check lets nothing through that the rest cannot live with,
 * and the cursors stay inside even where it was not asked. */

#include "conflict/base/check.h"
#include "region/core/item.h"
#include "region/core/item_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rewrite(struct bytes attributes, struct buf *to)
{
    struct attribute attribute;
    while (attribute_take(&attributes, &attribute)) {
        check(value_depth(attribute.value) <= ITEM_DEPTH_MAX);
        attribute_write(to, attribute.name, attribute.value);
    }
    check(attributes.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes item = {data, size};
    struct value value;
    (void)item_find(item, bytes_literal("a"), &value);
    if (!item_check(item))
        return 0;
    struct buf out = {0};
    item_begin(&out);
    rewrite(item_attributes(item), &out);
    check(bytes_equal(buf_view(&out), item));
    check(item_size(item) <= 2 * size);
    buf_reset(&out);
    item_write_json(&out, item);
    check(out.at[0] == '{');
    check(out.at[out.len - 1] == '}');
    buf_deinit(&out);
    return 0;
}
