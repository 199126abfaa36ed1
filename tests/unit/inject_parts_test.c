/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no cluster: which links a fault means, what is done to files, what a journal undoes.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chaos/inject/inject_internal.h"
#include "conflict/base/alloc.h"

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/tidemark-parts-XXXXXX");
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    disk_wipe(NULL, directory);
    return rmdir(directory);
}

static void path_of(const char *name, char ret[128])
{
    snprintf(ret, 128, "%s/%s", directory, name);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    path_of(name, path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static uint64_t size_of(const char *name)
{
    char path[128];
    struct stat status;
    path_of(name, path);
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : UINT64_MAX;
}

/* ---- Pairs ---- */

/* Against the plain definition, over all there is. */
static void pairs_are_what_from_and_to_mean(void **state)
{
    (void)state;
    static const uint8_t others[] = {SCENARIO_REGION_ALL, SCENARIO_REGION_NONE};
    for (uint8_t count = 1; count <= PLACES_MAX; count++) {
        for (unsigned from = 0; from < count + 2u; from++) {
            for (unsigned to = 0; to < count + 2u; to++) {
                for (int both = 0; both < 2; both++) {
                    uint8_t pairs[PLACES_MAX];
                    uint8_t a = from < count ? (uint8_t)from : others[from - count];
                    uint8_t b = to < count ? (uint8_t)to : others[to - count];
                    target_pairs(count, a, b, both, pairs);
                    for (unsigned i = 0; i < PLACES_MAX; i++) {
                        for (unsigned j = 0; j < PLACES_MAX; j++) {
                            bool there = (a == i || a == SCENARIO_REGION_ALL) &&
                                         (b == j || b == SCENARIO_REGION_ALL);
                            bool back = both && (a == j || a == SCENARIO_REGION_ALL) &&
                                        (b == i || b == SCENARIO_REGION_ALL);
                            bool wanted = i < count && j < count && i != j && (there || back);
                            assert_int_equal(pairs[i] >> j & 1, wanted);
                        }
                    }
                }
            }
        }
    }
}

/* ---- Files ---- */

static void kinds_of_files(void **state)
{
    (void)state;
    assert_int_equal(disk_kind_of("000003.log"), DISK_LOG);
    assert_int_equal(disk_kind_of("000005.ldb"), DISK_TABLES);
    assert_int_equal(disk_kind_of("MANIFEST-000002"), DISK_MANIFEST);
    assert_int_equal(disk_kind_of("CURRENT"), DISK_MANIFEST);
    assert_int_equal(disk_kind_of("000001.dbtmp"), DISK_MANIFEST);
    assert_int_equal(disk_kind_of("LOCK"), DISK_OTHER);
}

static unsigned bits_set(const char *name, size_t len)
{
    char path[128];
    unsigned count = 0;
    path_of(name, path);
    FILE *file = fopen(path, "rb");
    for (size_t i = 0; i < len; i++)
        count += (unsigned)__builtin_popcount((unsigned)fgetc(file));
    fclose(file);
    return count;
}

static void bits_flip_each_in_its_place(void **state)
{
    (void)state;
    struct rng rng;
    char zeros[128], path[128];
    rng_init(&rng, 7);
    memset(zeros, 0, sizeof(zeros));
    path_of("000001.log", path);
    FILE *file = fopen(path, "wb");
    fwrite(zeros, 1, 100, file);
    fclose(file);
    write_file("000002.ldb", "abc");
    write_file("empty.log", "");
    assert_int_equal(disk_flip(directory, DISK_LOG, 60, &rng), 60);
    assert_int_equal(bits_set("000001.log", 100), 60);
    /* No more than there are; other files stay. */
    assert_int_equal(disk_flip(directory, DISK_LOG, 10000, &rng), 800);
    assert_int_equal(bits_set("000001.log", 100), 740);
    assert_int_equal(size_of("000002.ldb"), 3);
    assert_int_equal(disk_flip(directory, DISK_MANIFEST, 1, &rng), 0);
    char aside[300];
    snprintf(aside, sizeof(aside), "%s" DISK_ASIDE, directory);
    for (int i = 0; i < 2; i++) { /* the second loss takes the first one's place */
        write_file("000002.ldb", "abc");
        assert_int_equal(disk_set_aside(NULL, directory, aside), i == 0 ? 3 : 1);
        assert_int_equal(size_of("000002.ldb"), UINT64_MAX);
    }
    write_file("000001.log", "abc");
    write_file("000003.log", "defg");
    write_file("000005.log", "");
    assert_int_equal(disk_truncate(directory, DISK_LOG, 3), 3); /* of the newest with anything */
    assert_int_equal(size_of("000003.log"), 1);
    assert_int_equal(disk_truncate(directory, DISK_LOG, 100), 1);
    assert_int_equal(disk_truncate(directory, DISK_LOG, 100), 3);
    assert_int_equal(disk_truncate(directory, DISK_LOG, 100), 0);
    assert_int_equal(disk_wipe(NULL, directory), 3);
    assert_int_equal(disk_wipe(NULL, aside), 1);
    assert_int_equal(rmdir(aside), 0);
    write_file("000002.ldb", "abc");
    assert_int_equal(disk_wipe(NULL, directory), 1);
    assert_int_equal(size_of("000002.ldb"), UINT64_MAX);
}

/* As the shim writes it down. */
static struct disk_file *note(struct disk *disk, int at, const char *name, uint64_t synced)
{
    struct disk_control *control = (struct disk_control *)disk_control(disk);
    struct disk_file *file = &control->files[at];
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->used = 1;
    file->synced = synced;
    return file;
}

static void what_is_not_synced_is_lost(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s.disk", directory);
    struct disk *disk = disk_new(path, directory, 1);
    assert_non_null(disk);
    write_file("000001.log", "0123456789");
    write_file("000002.log", "0123456789");
    write_file("000003.log", "0123456789");
    note(disk, 0, "000001.log", 4);
    note(disk, 1, "000002.log", 10);
    note(disk, 7, "missing.log", 0);
    note(disk, 9, "", 0); /* the directory */
    struct disk_loss loss = disk_lose_unsynced(disk);
    assert_int_equal(loss.files, 1);
    assert_int_equal(loss.bytes, 6);
    assert_int_equal(loss.failed, 0);
    assert_int_equal(size_of("000001.log"), 4);
    assert_int_equal(size_of("000002.log"), 10);
    assert_int_equal(size_of("000003.log"), 10); /* nobody has written to it */
    assert_int_equal(disk_lose_unsynced(disk).files, 0);
    disk_wipe(disk, directory);
    disk_free(disk);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void rules_are_bounded(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s.disk", directory);
    struct disk *disk = disk_new(path, directory, 1);
    struct disk_wish wish = {.kind = DISK_FAIL, .files = DISK_LOG, .calls = DISK_SYNC, .share = 1};
    for (int i = 0; i < DISK_RULES_MAX; i++)
        assert_int_equal(disk_begin(disk, &wish), i);
    assert_int_equal(disk_begin(disk, &wish), -1);
    disk_end(disk, 5);
    assert_int_equal(disk_begin(disk, &wish), 5);
    assert_int_equal(disk_hits(disk, 5), 0);
    disk_free(disk);
    assert_null(disk_new("/nowhere/at/all", directory, 1));
    assert_int_equal(errno, ENOENT);
}

/* ---- The journal ---- */

static void a_journal_undoes_what_is_ours(void **state)
{
    (void)state;
    struct buf error;
    char path[128], control[128], other[128];
    buf_init(&error);
    path_of("journal", path);
    path_of("x.disk", control);
    path_of("other", other);
    assert_int_equal(journal_recover(path, &error), 0); /* there is none */

    struct disk *disk = disk_new(control, directory, 1);
    write_file("other", "precious");
    struct journal *journal = journal_open(path);
    journal_add_file(journal, control);
    journal_add_file(journal, other);
    journal_add_process(journal, getpid()); /* runs, and is no program of ours */
    FILE *file = fopen(path, "ab");
    fputs("{\"undo\":\"process\",\"pid\":1,", file); /* torn */
    fclose(file);
    assert_int_equal(journal_recover(path, &error), 1);
    assert_int_not_equal(access(control, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    journal_close(journal);
    disk_free(disk);
    buf_deinit(&error);
}

static void copy_program(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *source = fopen(from, "rb"), *target = fopen(to, "wb");
    assert_true(source != NULL && target != NULL);
    for (size_t len; (len = fread(bytes, 1, sizeof(bytes), source)) > 0;)
        assert_int_equal(fwrite(bytes, 1, len, target), len);
    fclose(source);
    fclose(target);
    assert_int_equal(chmod(to, 0700), 0);
}

/* A stopped process of ours that has outlived its harness. */
static void a_journal_ends_processes(void **state)
{
    (void)state;
    struct buf error;
    char path[128], program[128], text[32];
    buf_init(&error);
    path_of("journal", path);
    path_of("tidemark-sleeper", program);
    copy_program("/bin/sleep", program);
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, "1000", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], text, sizeof(text)), 0); /* the program has begun */
    close(ready[0]);
    struct journal *journal = journal_open(path);
    journal_add_process(journal, pid);
    kill(pid, SIGSTOP);
    assert_int_equal(journal_recover(path, &error), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    journal_close(journal);
    buf_deinit(&error);
}

static void what_is_no_journal_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"hello\n",
                                        "{}\n",
                                        "[]\n",
                                        "{\"undo\":\"file\"}\n",
                                        "{\"undo\":\"process\",\"pid\":1}\n",
                                        "{\"undo\":\"process\",\"pid\":-5}\n",
                                        "\n"};
    char path[128];
    path_of("journal", path);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct buf error;
        buf_init(&error);
        write_file("journal", lines[i]);
        assert_int_equal(journal_recover(path, &error), -1);
        assert_true(error.len > 0);
        assert_int_equal(access(path, F_OK), 0); /* whatever it is, it stays */
        buf_deinit(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_what_from_and_to_mean),
        cmocka_unit_test(kinds_of_files),
        cmocka_unit_test_setup_teardown(bits_flip_each_in_its_place, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(what_is_not_synced_is_lost, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(rules_are_bounded, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_journal_undoes_what_is_ours, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(a_journal_ends_processes, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_is_no_journal_is_refused, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
