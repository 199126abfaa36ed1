/* SPDX-License-Identifier: Apache-2.0 */
/* From HTTP parts to an operation. The order of refusals is AWS's: protocol, target,
 * authentication, JSON, types, constraints, and then what the operation's own parser finds. */

#include "region/api/api.h"

#include <strings.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/api/api_internal.h"
#include "region/api/json.h"
#include "region/api/shapes.h"
#include "region/api/sigv4.h"

#define TARGET_PREFIX "DynamoDB_20120810."
#define STREAMS_PREFIX "DynamoDBStreams_20120810."

/* Operations of DynamoDB that this version does not serve. They are named so that a client is told
 * that, and not that it mistyped. */
static const char *const not_served[] = {
    "BatchExecuteStatement",
    "CreateBackup",
    "DeleteBackup",
    "DeleteResourcePolicy",
    "DescribeBackup",
    "DescribeContinuousBackups",
    "DescribeContributorInsights",
    "DescribeExport",
    "DescribeImport",
    "DescribeKinesisStreamingDestination",
    "DescribeTableReplicaAutoScaling",
    "DescribeTimeToLive",
    "DisableKinesisStreamingDestination",
    "EnableKinesisStreamingDestination",
    "ExecuteStatement",
    "ExecuteTransaction",
    "ExportTableToPointInTime",
    "GetResourcePolicy",
    "ImportTable",
    "ListBackups",
    "ListContributorInsights",
    "ListExports",
    "ListImports",
    "ListTagsOfResource",
    "PutResourcePolicy",
    "RestoreTableFromBackup",
    "RestoreTableToPointInTime",
    "TagResource",
    "TransactGetItems",
    "TransactWriteItems",
    "UntagResource",
    "UpdateContinuousBackups",
    "UpdateContributorInsights",
    "UpdateKinesisStreamingDestination",
    "UpdateTableReplicaAutoScaling",
    "UpdateTimeToLive",
};

static bool fail_silently(struct op *op, enum api_error error)
{
    op->result.error = error;
    op->result.message = NULL; /* AWS sends none with these */
    return false;
}

/* A header's value for a message: cut, and ASCII only, as a message must be UTF-8. */
static const char *printable(struct arena *arena, struct bytes text)
{
    char *copy = bytes_copy_text(arena, bytes_make(text.at, text.len < 512 ? text.len : 512));
    for (char *c = copy; *c; c++) {
        if ((uint8_t)*c < 0x20 || (uint8_t)*c >= 0x7f)
            *c = '?';
    }
    return copy;
}

static bool type_is(struct bytes content_type, const char *type)
{
    size_t len = strlen(type);
    if (content_type.len < len || strncasecmp((const char *)content_type.at, type, len) != 0)
        return false;
    return content_type.len == len || content_type.at[len] == ';' || content_type.at[len] == ' ';
}

static bool check_protocol(struct op *op, const struct api_request *request)
{
    if (bytes_starts_with(request->path, bytes_literal("/service/")) ||
        type_is(request->content_type, "application/cbor"))
        return op_fail(op, API_UNKNOWN_RESOURCE,
                       "The protocol rpc-v2-cbor is not available here. Use AWS JSON 1.0: POST / "
                       "with an X-Amz-Target header.");
    bool typed = type_is(request->content_type, "application/x-amz-json-1.0") ||
                 type_is(request->content_type, "application/json");
    if (!bytes_is(request->method, "POST") || (request->body.len > 0 && !typed))
        return fail_silently(op, API_UNKNOWN_RESOURCE);
    if (request->body.len > REQUEST_BYTES_MAX)
        return fail_silently(op, API_REQUEST_TOO_LARGE);
    return true;
}

static enum op_kind kind_of(struct bytes name)
{
    static const char *const names[] = {
#define OP(enumerator, name) name,
        OP_MAP(OP)
#undef OP
    };
    for (int i = 0; i < OP_KIND_COUNT; i++) {
        if (bytes_is(name, names[i]))
            return (enum op_kind)i;
    }
    return OP_KIND_COUNT;
}

/* The settings of a legacy global table are answered as the table is, but for these words in front.
 */
#define GLOBAL_TABLE_PREFIX "Global table not found: "

static bool is_global_table_settings(struct bytes name)
{
    return bytes_is(name, "DescribeGlobalTableSettings") ||
           bytes_is(name, "UpdateGlobalTableSettings");
}

static bool check_target(struct op *op, struct bytes target, bool *ret_settings)
{
    struct bytes prefix = bytes_literal(TARGET_PREFIX);
    if (bytes_starts_with(target, bytes_literal(STREAMS_PREFIX)))
        return op_fail(op, API_UNKNOWN_OPERATION,
                       "DynamoDB Streams is not available in this version of Tidemark.");
    if (!bytes_starts_with(target, prefix))
        return fail_silently(op, API_UNKNOWN_OPERATION);
    struct bytes name = bytes_make(target.at + prefix.len, target.len - prefix.len);
    *ret_settings = is_global_table_settings(name);
    op->kind = *ret_settings ? OP_DESCRIBE_GLOBAL_TABLE : kind_of(name);
    if (op->kind != OP_KIND_COUNT)
        return true;
    for (size_t i = 0; i < array_len(not_served); i++) {
        if (bytes_is(name, not_served[i]))
            return op_fail(op, API_UNKNOWN_OPERATION,
                           "%s is not available in this version of Tidemark.", not_served[i]);
    }
    return fail_silently(op, API_UNKNOWN_OPERATION);
}

/* The Region that the client believes to talk to: the Host's if it names one, else this. */
static const char *endpoint_region(const struct op *op, struct bytes host)
{
    struct bytes named = host_region(host);
    return region_id_name(named.len > 0 ? region_id_find(named) : op->region);
}

static bool check_scope(struct op *op, const struct sigv4 *signature, const char *here,
                        struct bytes date)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    if (!bytes_is(signature->region, here) ||
        !bytes_is(signature->region, region_id_name(op->region)))
        buf_printf(&message,
                   "Credential should be scoped to a valid region, not '%s'. This endpoint serves "
                   "'%s'. ",
                   printable(op->arena, signature->region), here);
    if (!bytes_is(signature->service, "dynamodb"))
        buf_append_text(&message, "Credential should be scoped to correct service: 'dynamodb'. ");
    if (!bytes_is(signature->terminator, "aws4_request"))
        buf_printf(
            &message,
            "Credential should be scoped with a valid terminator: 'aws4_request', not '%s'. ",
            printable(op->arena, signature->terminator));
    if (date.len >= 8 && !bytes_equal(signature->scope_date, bytes_make(date.at, 8)))
        buf_printf(&message,
                   "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
                   "from HTTP: '%s' != '%s', from '%s'.",
                   printable(op->arena, signature->scope_date),
                   printable(op->arena, bytes_make(date.at, 8)), printable(op->arena, date));
    if (message.len == 0)
        return true;
    return op_fail(op, API_INVALID_SIGNATURE, "%s", bytes_copy_text(op->arena, buf_view(&message)));
}

/* Strict: a signature must be there and whole. */
static bool check_signature_form(struct op *op, const struct api_request *request,
                                 const struct sigv4 *signature)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    if (signature->credential.len == 0)
        buf_append_text(&message, "Authorization header requires 'Credential' parameter. ");
    if (signature->signature.len == 0)
        buf_append_text(&message, "Authorization header requires 'Signature' parameter. ");
    if (signature->signed_headers.len == 0)
        buf_append_text(&message, "Authorization header requires 'SignedHeaders' parameter. ");
    if (request->amz_date.len == 0 && signature->date.len == 0)
        buf_append_text(&message, "Authorization header requires existence of either a "
                                  "'X-Amz-Date' or a 'Date' header. ");
    if (message.len > 0)
        return op_fail(op, API_INCOMPLETE_SIGNATURE, "%.*sAuthorization=%s", (int)message.len,
                       (const char *)message.at, printable(op->arena, request->authorization));
    if (!signature->credential_whole)
        return op_fail(op, API_INCOMPLETE_SIGNATURE,
                       "Credential must have exactly 5 slash-delimited elements, e.g. "
                       "keyid/date/region/service/term, got '%s'",
                       printable(op->arena, signature->credential));
    return true;
}

static bool check_authentication(struct op *op, const struct api_config *config,
                                 const struct api_request *request)
{
    struct sigv4 signature;
    bool is_signed = sigv4_read(request->authorization, request->path, &signature);
    const char *here = endpoint_region(op, request->host);
    if (!config->strict_credentials) {
        /* Even here a request that was signed for another Region is not served: it is the classic
         * slip of a failover, and the reason why one runs several Regions. */
        if (!is_signed || !signature.credential_whole)
            return true;
        signature.service = bytes_literal("dynamodb");
        signature.terminator = bytes_literal("aws4_request");
        return check_scope(op, &signature, here, BYTES_NONE);
    }
    if (!is_signed)
        return op_fail(op, API_MISSING_TOKEN, "Request is missing Authentication Token");
    return check_signature_form(op, request, &signature) &&
           check_scope(op, &signature, here,
                       request->amz_date.len > 0 ? request->amz_date : signature.date);
}

static bool parse_operation(struct request *request)
{
    switch (op_shape(request->op->kind)) {
    case OP_SHAPE_READ:
    case OP_SHAPE_WRITE:
        if (request->op->kind == OP_BATCH_GET_ITEM || request->op->kind == OP_BATCH_WRITE_ITEM)
            return parse_batch(request);
        return parse_item(request);
    case OP_SHAPE_RANGE:
        return parse_range(request);
    case OP_SHAPE_CONTROL:
        return parse_control(request);
    }
    unreachable();
}

static bool parse_body(struct op *op, const struct api_config *config, struct bytes body)
{
    json_t *json cleanup(json_release) = json_read(config->json, body);
    if (!json)
        return fail_silently(op, API_SERIALIZATION);
    const struct shape *shape = shape_of_request(op->kind);
    const char *problem = shape_check_types(shape, json, op->arena);
    if (problem)
        return op_fail(op, API_SERIALIZATION, "%s", problem);
    problem = shape_check_constraints(shape, json, op->arena);
    if (problem)
        return op_fail(op, API_VALIDATION, "%s", problem);
    struct request request = {.op = op, .arena = op->arena, .body = json};
    return parse_operation(&request);
}

struct op *api_parse(const struct api_config *config, const struct api_request *request,
                     struct arena *arena)
{
    struct op *op = arena_new(arena, struct op);
    op->kind = OP_KIND_COUNT;
    op->arena = arena;
    op->region = config->region;
    op->scope.arena = arena;
    bool settings = false;
    if (!check_protocol(op, request) || !check_target(op, request->target, &settings) ||
        !check_authentication(op, config, request) || !parse_body(op, config, request->body)) {
        check(op->result.error != API_OK);
        op->answered = true;
        if (settings && op->result.error == API_GLOBAL_TABLE_NOT_FOUND)
            op->result.message += sizeof(GLOBAL_TABLE_PREFIX) - 1;
        return op;
    }
    if (op->kind == OP_DESCRIBE_ENDPOINTS)
        op->host = bytes_text(printable(arena, request->host));
    return op;
}
