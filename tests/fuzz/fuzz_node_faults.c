/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever reaches a Region's port may send to set faults: it is taken whole or not at all, and
 * whatever is taken may strike. */

#include <stddef.h>
#include <stdint.h>

#include "conflict/base/check.h"
#include "region/faults.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct faults faults;
    struct buf text;
    enum api_error error = API_OK;
    buf_init(&text);
    faults_init(&faults, size);
    bool good = faults_set(&faults, bytes_make(data, size), 5, &text);
    check(good == (text.len == 0));
    check(good || faults.count == 0);
    check(faults.count <= FAULTS_MAX);
    for (uint64_t i = 0; i < 10; i++) {
        (void)faults_message(&faults, (uint16_t)i);
        if (faults_request(&faults, i, bytes_make(data, size), &error) == FAULTS_FAIL)
            check(error != API_OK && faults_error_text(error) != NULL);
        (void)faults_answer(&faults, i);
    }
    faults_write(&faults, &text);
    buf_deinit(&text);
    return 0;
}
