/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

/* Texts that come from scenarios, files and processes go into JSON, XML and HTML through here and
 * in no other way. Each is hostile: bytes that are not UTF-8, characters that XML forbids, and
 * those that turn the direction of what follows become U+FFFD. */

#include <jansson.h>
#include <stdint.h>

#include "conflict/base/bytes.h"

/* As content or as the value of a quoted attribute, in XML and HTML alike. */
void text_xml(struct bytes text, struct buf *to);
/* With its quotes. */
void text_json(const char *text, struct buf *to);
/* NULL becomes null. */
json_t *text_json_new(const char *text);
/* What text_json_new makes of it, as a text. */
void text_clean(struct bytes text, struct buf *to);

/* For people. 1,234,567 */
void text_count(uint64_t count, struct buf *to);
/* "820 us" with the proper sign, "35 ms", "1.204 s", "2 min 05 s"; "never" for UINT64_MAX. */
void text_duration(uint64_t ns, struct buf *to);
/* The same with a sign before it. */
void text_offset(int64_t ns, struct buf *to);
/* A moment as seconds since the beginning: "+1.204 s". */
void text_moment(uint64_t at_ns, uint64_t began_ns, struct buf *to);
/* "3.2 MB" */
void text_size(uint64_t size, struct buf *to);
/* 2026-01-31T12:00:00.250Z */
void text_date(uint64_t wall_ms, struct buf *to);

#endif
