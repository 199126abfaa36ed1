/* SPDX-License-Identifier: Apache-2.0 */
/* The last block of a LevelDB log, whatever is in it. */

#include "region/store_tail.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    (void)store_tail_sound(bytes_make(data, len));
    return 0;
}
