/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_ERROR_H
#define REGION_ERROR_H

/* Every error the API can answer, in one table: enumerator, HTTP status, name on the wire, the
 * prefix of __type, whether SDKs retry it. */

#define API_PREFIX_DYNAMO "com.amazonaws.dynamodb.v20120810#"
#define API_PREFIX_CORAL "com.amazon.coral.service#"
#define API_PREFIX_VALIDATE "com.amazon.coral.validate#"

/* ERROR(enumerator, status, name, prefix, retryable) */
#define API_ERROR_MAP(ERROR)                                                                       \
    ERROR(VALIDATION, 400, "ValidationException", API_PREFIX_VALIDATE, false)                      \
    ERROR(SERIALIZATION, 400, "SerializationException", API_PREFIX_CORAL, false)                   \
    ERROR(UNKNOWN_OPERATION, 400, "UnknownOperationException", API_PREFIX_CORAL, false)            \
    ERROR(UNKNOWN_RESOURCE, 404, "UnknownOperationException", API_PREFIX_CORAL, false)             \
    ERROR(MISSING_TOKEN, 400, "MissingAuthenticationTokenException", API_PREFIX_CORAL, false)      \
    ERROR(INCOMPLETE_SIGNATURE, 400, "IncompleteSignatureException", API_PREFIX_CORAL, false)      \
    ERROR(INVALID_SIGNATURE, 400, "InvalidSignatureException", API_PREFIX_CORAL, false)            \
    ERROR(UNRECOGNIZED_CLIENT, 400, "UnrecognizedClientException", API_PREFIX_CORAL, false)        \
    ERROR(ACCESS_DENIED, 400, "AccessDeniedException", API_PREFIX_CORAL, false)                    \
    ERROR(REQUEST_TOO_LARGE, 413, "RequestEntityTooLargeException", API_PREFIX_CORAL, false)       \
    ERROR(CONDITION_FAILED, 400, "ConditionalCheckFailedException", API_PREFIX_DYNAMO, false)      \
    ERROR(RESOURCE_NOT_FOUND, 400, "ResourceNotFoundException", API_PREFIX_DYNAMO, false)          \
    ERROR(RESOURCE_IN_USE, 400, "ResourceInUseException", API_PREFIX_DYNAMO, false)                \
    ERROR(LIMIT_EXCEEDED, 400, "LimitExceededException", API_PREFIX_DYNAMO, false)                 \
    ERROR(TABLE_NOT_FOUND, 400, "TableNotFoundException", API_PREFIX_DYNAMO, false)                \
    ERROR(GLOBAL_TABLE_NOT_FOUND, 400, "GlobalTableNotFoundException", API_PREFIX_DYNAMO, false)   \
    ERROR(COLLECTION_TOO_LARGE, 400, "ItemCollectionSizeLimitExceededException",                   \
          API_PREFIX_DYNAMO, false)                                                                \
    ERROR(REPLICATED_WRITE_CONFLICT, 400, "ReplicatedWriteConflictException", API_PREFIX_DYNAMO,   \
          true)                                                                                    \
    ERROR(THROTTLED, 400, "ProvisionedThroughputExceededException", API_PREFIX_DYNAMO, true)       \
    ERROR(THROTTLING, 400, "ThrottlingException", API_PREFIX_CORAL, true)                          \
    ERROR(INTERNAL, 500, "InternalServerError", API_PREFIX_DYNAMO, true)                           \
    ERROR(UNAVAILABLE, 503, "ServiceUnavailableException", API_PREFIX_CORAL, true)

enum api_error {
    API_OK = 0,
#define ERROR(enumerator, status, name, prefix, retryable) API_##enumerator,
    API_ERROR_MAP(ERROR)
#undef ERROR
        API_ERROR_COUNT
};

int api_error_status(enum api_error error);
const char *api_error_name(enum api_error error);   /* "ValidationException" */
const char *api_error_prefix(enum api_error error); /* "com.amazon.coral.validate#" */

#endif
