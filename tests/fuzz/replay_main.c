/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files of a corpus directory, so that what the fuzzer once found is an
 * ordinary test for ever after. An empty input is always tried first. */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = xmalloc(size);
    size = fread(data, 1, size, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    int count = 1;
    for (int i = 1; i < argc; i++) {
        DIR *directory = opendir(argv[i]);
        if (!directory) {
            fprintf(stderr, "no corpus at %s\n", argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
            if (entry->d_name[0] == '.')
                continue;
            replay_file(argv[i], entry->d_name);
            count++;
        }
        closedir(directory);
    }
    printf("%d inputs\n", count);
    return 0;
}
