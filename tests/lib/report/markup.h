/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPORT_MARKUP_H
#define TESTS_REPORT_MARKUP_H

/* Whether a text is well-formed XML, as far as our reports use it: elements that nest, attributes
 * that are quoted and given once, no entity but the five and numbers, no character that XML
 * forbids. NULL if it is; else what is wrong. ret_at is where. */

#include <stddef.h>

#include "conflict/base/bytes.h"

const char *markup_fault(struct bytes text, size_t *ret_at);

#endif
