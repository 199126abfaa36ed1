/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the error table, one switch each, so that a new row cannot be forgotten. */

#include "region/core/error.h"

#include "conflict/base/check.h"

int api_error_status(enum api_error error)
{
    switch (error) {
#define ERROR(enumerator, status, name, prefix, retryable)                                         \
    case API_##enumerator:                                                                         \
        return status;
        API_ERROR_MAP(ERROR)
#undef ERROR
    case API_OK:
        return 200;
    case API_ERROR_COUNT:
        break;
    }
    unreachable();
}

const char *api_error_name(enum api_error error)
{
    switch (error) {
#define ERROR(enumerator, status, name, prefix, retryable)                                         \
    case API_##enumerator:                                                                         \
        return name;
        API_ERROR_MAP(ERROR)
#undef ERROR
    case API_OK:
    case API_ERROR_COUNT:
        break;
    }
    unreachable();
}

const char *api_error_prefix(enum api_error error)
{
    switch (error) {
#define ERROR(enumerator, status, name, prefix, retryable)                                         \
    case API_##enumerator:                                                                         \
        return prefix;
        API_ERROR_MAP(ERROR)
#undef ERROR
    case API_OK:
    case API_ERROR_COUNT:
        break;
    }
    unreachable();
}
