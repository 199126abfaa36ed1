/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_JSON_MEMORY_H
#define REGION_JSON_MEMORY_H

/* Memory for jansson, which asks for some forty small pieces to read a request of a new form, and
 * gives them all back before the next. */

/* Before jansson is used for the first time. What it makes must be given back by the thread that
 * made it, and a text that it returns not by free(). */
void json_memory_install(void);

#endif
