/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_ITEM_JSON_H
#define REGION_ITEM_JSON_H

/* An encoded item as DynamoDB JSON, in one pass, with no tree and no allocation per attribute:
 * {"name":{"S":"text"},...}. (JSON to item lives in region/api, beside the parser.) */

#include "region/core/item.h"

/* A JSON string literal, quotes included. text must be UTF-8. */
void json_write_string(struct buf *to, struct bytes text);
/* {"S":"..."} */
void value_write_json(struct buf *to, struct value value);
/* {"a":{...},...}; an empty run gives {}. */
void attributes_write_json(struct buf *to, struct bytes attributes);
void item_write_json(struct buf *to, struct bytes item);

#endif
