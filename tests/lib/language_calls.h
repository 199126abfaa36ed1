/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LANGUAGE_CALLS_H
#define TESTS_LANGUAGE_CALLS_H

/* Rows of calls on a language.h database, each with the body it must give; a row's `expect` is the
 * whole body, or a part of it when it starts with "~". For cmocka programs; include cmocka.h first.
 */

#include "tests/lib/language.h"

#define INVALID "One or more parameter values were invalid: "
#define VALIDATION "{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"message\":\""
#define SERIALIZATION                                                                              \
    "{\"__type\":\"com.amazon.coral.service#SerializationException\",\"Message\":\""
#define NOT_FOUND                                                                                  \
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\",\"message\":"      \
    "\"Requested resource not found\"}"
#define FAILED "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","
#define PUT(item) "{\"TableName\":\"hash\",\"Item\":" item "}"
#define PUTR(item) "{\"TableName\":\"range\",\"Item\":" item "}"
#define GET(pk) "{\"TableName\":\"hash\",\"Key\":{\"pk\":{\"S\":\"" pk "\"}}}"

struct call {
    const char *operation, *body, *expect;
};

static inline void run(struct language *language, const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *answer = language_call(language, calls[i].operation, calls[i].body);
        const char *expect = calls[i].expect;
        bool ok =
            expect[0] == '~' ? strstr(answer, expect + 1) != NULL : strcmp(answer, expect) == 0;
        if (!ok)
            fail_msg("call %zu %s %.300s\n  got      %s\n  expected %s", i, calls[i].operation,
                     calls[i].body, answer, expect);
    }
}
#define RUN(state, calls) run(state, calls, sizeof(calls) / sizeof(*(calls)))

#endif
