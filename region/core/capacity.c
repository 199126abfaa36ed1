/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation consumes, as AWS bills it: reads by 4 KB, half as much when eventually
 * consistent; writes by 1 KB of the larger of the old and the new image. Kept in half units, so
 * that no figure is ever a fraction. */

#include "conflict/base/check.h"
#include "region/core/op_internal.h"

enum { READ_UNIT_BYTES = 4096, WRITE_UNIT_BYTES = 1024 };

void capacity_prepare(struct op *op)
{
    bool read = op_shape(op->kind) != OP_SHAPE_WRITE;
    uint32_t count = op->group_count > 0 ? op->group_count : 1;
    op->result.capacity = arena_array(op->arena, struct op_capacity, count);
    op->result.capacity_count = count;
    for (uint32_t i = 0; i < count; i++) {
        op->result.capacity[i].table_name =
            op->group_count > 0 ? op->groups[i].table_name : op->table_name;
        op->result.capacity[i].read = read;
    }
}

void capacity_add(struct op *op, uint32_t group, uint64_t half_units)
{
    check(group < op->result.capacity_count);
    op->result.capacity[group].half_units += half_units;
}

uint64_t capacity_read(uint64_t bytes, bool consistent)
{
    uint64_t units = (bytes + READ_UNIT_BYTES - 1) / READ_UNIT_BYTES;
    if (units == 0)
        units = 1;
    return consistent ? 2 * units : units;
}

uint64_t capacity_write(uint64_t bytes)
{
    uint64_t units = (bytes + WRITE_UNIT_BYTES - 1) / WRITE_UNIT_BYTES;
    return 2 * (units ? units : 1);
}
