/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_VALUE_JSON_H
#define API_VALUE_JSON_H

/* AttributeValues in DynamoDB JSON to the item encoding. The JSON has passed shape_check_types, so
 * every member has its right type; what is left to refuse is content: no type or several, bad
 * numbers, empty and repeating sets, nesting. Everything made lives in the arena. */

#include "conflict/base/arena.h"
#include "region/api/json.h"
#include "region/core/item.h"

/* Each returns NULL when all is well, else AWS's message for a ValidationException. A JSON null
 * stands for a value without a type. The message of attribute_name_problem is to be introduced. */
const char *value_from_json(struct arena *arena, const json_t *json, struct value *ret);
/* What is wrong with the name of an attribute. */
const char *attribute_name_problem(struct bytes name);
/* Of a map of attributes: Item, Key, ExclusiveStartKey. */
const char *item_from_json(struct arena *arena, const json_t *json, struct bytes *ret);

#endif
