/* SPDX-License-Identifier: Apache-2.0 */
/* The names of operations and errors that a Region knows (region/core/op.h, region/core/error.h).
 * One that it does not know it refuses when the fault begins, which is late: so they are refused
 * when the file is read. This room may not see those headers; its test compares the tables. */

#include "chaos/scenario/fields.h"

#include <string.h>

#include "conflict/base/check.h"

const char *const scenario_operations[] = {
    "GetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "Scan",
    "BatchGetItem",
    "BatchWriteItem",
    "CreateTable",
    "DescribeTable",
    "ListTables",
    "UpdateTable",
    "DeleteTable",
    "DescribeLimits",
    "DescribeEndpoints",
    "CreateGlobalTable",
    "UpdateGlobalTable",
    "DescribeGlobalTable",
    "ListGlobalTables",
    NULL,
};

const char *const scenario_errors[] = {
    "ValidationException",
    "SerializationException",
    "UnknownOperationException",
    "MissingAuthenticationTokenException",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "UnrecognizedClientException",
    "AccessDeniedException",
    "RequestEntityTooLargeException",
    "ConditionalCheckFailedException",
    "ResourceNotFoundException",
    "ResourceInUseException",
    "LimitExceededException",
    "TableNotFoundException",
    "GlobalTableNotFoundException",
    "ItemCollectionSizeLimitExceededException",
    "ReplicatedWriteConflictException",
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "InternalServerError",
    "ServiceUnavailableException",
    NULL,
};

static uint32_t count_of(const char *const *known)
{
    uint32_t count = 0;
    while (known[count] != NULL)
        count++;
    return count;
}

static void check_name(struct reader *reader, const struct node *node, const char *what,
                       const char *word, const char *const *known)
{
    uint32_t count = count_of(known);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(known[i], word) == 0)
            return;
    const char *nearest = field_nearest(word, known, count);
    if (nearest != NULL)
        reader_fail(reader, node, "there is no %s '%.64s': did you mean %s?", what, word, nearest);
    else
        reader_fail(reader, node, "there is no %s '%.64s': expected one such as %s", what, word,
                    what[0] == 'e' ? "InternalServerError" : "PutItem");
}

void scenario_check_api(struct reader *reader, const struct node *node,
                        const struct scenario_fault *fault)
{
    const struct node *error = node_find(node, "error");
    const struct node *operations = node_find(node, "operations");
    if (error != NULL && fault->error != NULL)
        check_name(reader, error, "error", fault->error, scenario_errors);
    if (operations == NULL)
        return;
    const struct node *at = operations->kind == NODE_LIST ? operations->first : operations;
    for (uint32_t i = 0; i < fault->operations.count && at != NULL; i++, at = at->next)
        check_name(reader, at, "operation", fault->operations.at[i], scenario_operations);
}
