/* SPDX-License-Identifier: Apache-2.0 */
/* What all operations share: their names, how the region core carries them, and how they fail. */

#include "region/core/op.h"

#include <stdarg.h>
#include <stdio.h>

#include "conflict/base/check.h"

const char *op_name(enum op_kind kind)
{
    switch (kind) {
#define OP(enumerator, name)                                                                       \
    case OP_##enumerator:                                                                          \
        return name;
        OP_MAP(OP)
#undef OP
    case OP_KIND_COUNT:
        return "Unknown";
    }
    unreachable();
}

enum op_shape op_shape(enum op_kind kind)
{
    switch (kind) {
    case OP_GET_ITEM:
    case OP_BATCH_GET_ITEM:
        return OP_SHAPE_READ;
    case OP_PUT_ITEM:
    case OP_UPDATE_ITEM:
    case OP_DELETE_ITEM:
    case OP_BATCH_WRITE_ITEM:
        return OP_SHAPE_WRITE;
    case OP_QUERY:
    case OP_SCAN:
        return OP_SHAPE_RANGE;
    case OP_CREATE_TABLE:
    case OP_DESCRIBE_TABLE:
    case OP_LIST_TABLES:
    case OP_UPDATE_TABLE:
    case OP_DELETE_TABLE:
    case OP_DESCRIBE_LIMITS:
    case OP_DESCRIBE_ENDPOINTS:
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
    case OP_LIST_GLOBAL_TABLES:
        return OP_SHAPE_CONTROL;
    case OP_KIND_COUNT:
        break;
    }
    unreachable();
}

bool op_fail(struct op *op, enum api_error error, const char *format, ...)
{
    check(error != API_OK);
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    check(len >= 0);
    char *message = arena_alloc(op->arena, (size_t)len + 1);
    vsnprintf(message, (size_t)len + 1, format, again);
    va_end(again);
    op->result.error = error;
    op->result.message = message;
    return false;
}
