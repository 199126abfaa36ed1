/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_TABLE_H
#define REGION_TABLE_H

/* What a Region knows of one table: its schema and settings, its place in a global table, and the
 * figures DescribeTable shows. Read by the language (keys, validation, descriptions), changed only
 * by the control plane (region/core/control.c). */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/bytes.h"
#include "conflict/version.h"
#include "region/core/item.h"

enum {
    TABLE_NAME_MIN = 3,
    TABLE_NAME_MAX = 255,
    TABLE_PARTITIONS_MAX = 64,
    TABLE_KEY_NAME_MAX = 255,
    TABLE_ID_LEN = 16
};

enum table_status { TABLE_CREATING, TABLE_ACTIVE, TABLE_UPDATING, TABLE_DELETING };
enum replica_status {
    REPLICA_CREATING,
    REPLICA_ACTIVE,
    REPLICA_UPDATING,
    REPLICA_DELETING,
    REPLICA_CREATION_FAILED
};
enum billing_mode { BILLING_PROVISIONED, BILLING_PAY_PER_REQUEST };
enum stream_view { STREAM_NONE, STREAM_KEYS_ONLY, STREAM_NEW_IMAGE, STREAM_OLD_IMAGE, STREAM_BOTH };
enum table_mode { TABLE_REGIONAL, TABLE_EVENTUAL, TABLE_STRONG };

struct key_schema {
    char hash_name[TABLE_KEY_NAME_MAX + 1];
    enum value_type hash_type; /* S, N or B */
    bool has_range;
    char range_name[TABLE_KEY_NAME_MAX + 1];
    enum value_type range_type;
};

struct table_replica {
    uint16_t region; /* region_id.h */
    enum replica_status status;
};

struct table {
    char name[TABLE_NAME_MAX + 1];
    uint32_t number;                /* of this table in this Region's store; never reused */
    uint8_t id[TABLE_ID_LEN];       /* this Region's TableId, a UUID */
    uint8_t group_id[TABLE_ID_LEN]; /* the same in all replicas: tells a table from an earlier one
                                       of the same name */
    enum table_status status;
    enum table_mode mode;
    struct key_schema key;
    uint64_t created_wall_ms;
    uint32_t partition_count; /* hash ranges of equal size; the same in all replicas */

    enum billing_mode billing;
    uint64_t read_units, write_units; /* 0 under PAY_PER_REQUEST */
    enum stream_view stream;
    uint64_t stream_wall_ms; /* when it was last switched on: its label */
    bool deletion_protection;
    bool table_class_infrequent;
    bool sse_enabled;

    struct table_replica replicas[VV_MAX]; /* the other members, in the order they were added as
                                              seen from here */
    uint32_t replica_count;
    uint16_t witness; /* TABLE_STRONG: the Region that keeps the log without the items; 0: none */
    enum replica_status witness_status;

    uint64_t item_count; /* exact, of what is durable */
    uint64_t size_bytes;
};

#endif
