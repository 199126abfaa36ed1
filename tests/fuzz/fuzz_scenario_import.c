/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments of other tools: the first byte picks the tool and the mode. Any text is refused with
 * a message or becomes a scenario that can be read (which the importers themselves see to). */

#include "chaos/scenario/import.h"
#include "conflict/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct import_options options = {.stop_if = "error_rate: '>0.5 for 30s'",
                                     .names = {{"db-west", "eu-west-1"}},
                                     .name_count = 1};
    struct buf to, error;
    if (size == 0)
        return 0;
    options.strong = (data[0] & 2) != 0;
    struct bytes text = bytes_make(data + 1, size - 1);
    buf_init(&to);
    buf_init(&error);
    bool good = (data[0] & 1) != 0
                    ? scenario_import_fis("fuzz", text, &options, &to, &error)
                    : scenario_import_chaos_mesh("fuzz", text, &options, &to, &error);
    check(good == (error.len == 0));
    check(good == (to.len > 0));
    buf_deinit(&to);
    buf_deinit(&error);
    return 0;
}
