/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, and tables that are read through mappings, where no call is made. While a rule is on their
 * reads, the mappings are made unreadable, so that the first touch of a piece comes to our signal
 * handler; an error is then what it is with a real disk, SIGBUS, and a delay is one. A piece that
 * was read stays readable, as if cached, until rules change. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "chaos/shim/disk_internal.h"

enum { MAPS_MAX = 1024, PIECE_BYTES = 65536 };
#define NS_PER_S UINT64_C(1000000000)

struct map {
    uint8_t *at; /* NULL: free */
    size_t len;
};

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map maps[MAPS_MAX];
static _Atomic uint64_t maps_seen; /* generation that the mappings were last looked at for */
static struct sigaction former;

/* ---- Rules ---- */

/* splitmix64: one number for each draw, whichever thread makes it. */
static uint64_t draw(void)
{
    uint64_t x = control->seed + (atomic_fetch_add(&control->draws, 1) + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static void delay(const struct disk_rule *rule)
{
    uint64_t ns = rule->delay_ns;
    if (rule->jitter_ns > 0) {
        uint64_t shifted = ns + draw() % (2 * rule->jitter_ns + 1);
        ns = shifted > rule->jitter_ns ? shifted - rule->jitter_ns : 0;
    }
    struct timespec left = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* How much of len may still be written; counts it as written. */
static size_t take_room(struct disk_rule *rule, size_t len)
{
    int64_t room = atomic_load(&rule->free_bytes);
    int64_t taken;
    do
        taken = room <= 0 ? 0 : room < (int64_t)len ? room : (int64_t)len;
    while (!atomic_compare_exchange_weak(&rule->free_bytes, &room, room - taken));
    return (size_t)taken;
}

int disk_strike(uint32_t files, uint32_t calls, size_t *len, bool *torn)
{
    for (int i = 0; i < DISK_RULES_MAX; i++) {
        struct disk_rule *rule = &control->rules[i];
        if (atomic_load_explicit(&rule->active, memory_order_acquire) == 0 ||
            (rule->files & files) == 0 || (rule->calls & calls) == 0 ||
            (rule->kind == DISK_TORN && torn == NULL))
            continue;
        if (rule->kind == DISK_FULL) {
            size_t room = take_room(rule, *len);
            if (room == *len)
                continue;
            atomic_fetch_add(&rule->hits, 1);
            if (room == 0)
                return ENOSPC;
            *len = room;
            continue;
        }
        if (rule->share < UINT64_C(1) << 32 && (draw() >> 32) >= rule->share)
            continue;
        atomic_fetch_add(&rule->hits, 1);
        if (rule->kind == DISK_FAIL)
            return EIO;
        if (rule->kind == DISK_SLOW)
            delay(rule);
        if (rule->kind == DISK_TORN) {
            *torn = true;
            *len /= 2;
        }
    }
    return 0;
}

/* ---- Mapped tables ---- */

static bool reads_watched(void)
{
    for (int i = 0; i < DISK_RULES_MAX; i++) {
        const struct disk_rule *rule = &control->rules[i];
        if (atomic_load_explicit(&rule->active, memory_order_acquire) != 0 &&
            (rule->files & DISK_TABLES) != 0 && (rule->calls & DISK_READ) != 0)
            return true;
    }
    return false;
}

static void on_touch(int number, siginfo_t *info, void *context)
{
    uint8_t *at = info->si_addr;
    int kept = errno;
    for (int i = 0; i < MAPS_MAX; i++) {
        const struct map *map = &maps[i];
        if (map->at == NULL || at < map->at || at >= map->at + map->len)
            continue;
        size_t offset = (size_t)(at - map->at) / PIECE_BYTES * PIECE_BYTES;
        size_t len = map->len - offset < PIECE_BYTES ? map->len - offset : PIECE_BYTES;
        size_t whole = len;
        atomic_fetch_add(&control->mapped_reads, 1);
        if (disk_strike(DISK_TABLES, DISK_READ, &whole, NULL) != 0) {
            signal(SIGBUS, SIG_DFL);
            raise(SIGBUS);
        }
        mprotect(map->at + offset, len, PROT_READ);
        errno = kept;
        return;
    }
    /* Not ours: as if we had never been here. */
    if ((former.sa_flags & SA_SIGINFO) != 0 && former.sa_sigaction != NULL) {
        former.sa_sigaction(number, info, context);
        return;
    }
    signal(SIGSEGV, SIG_DFL);
}

/* Under the lock. */
static void protect_maps(void)
{
    bool watched = reads_watched();
    for (int i = 0; i < MAPS_MAX; i++)
        if (maps[i].at != NULL)
            mprotect(maps[i].at, maps[i].len, watched ? PROT_NONE : PROT_READ);
}

void disk_look_at_rules(void)
{
    uint64_t generation = atomic_load(&control->generation);
    if (atomic_load(&maps_seen) == generation)
        return;
    pthread_mutex_lock(&maps_lock);
    if (atomic_exchange(&maps_seen, generation) != generation)
        protect_maps();
    pthread_mutex_unlock(&maps_lock);
}

void disk_keep_map(void *at, size_t len)
{
    static bool handles;
    pthread_mutex_lock(&maps_lock);
    if (!handles) {
        struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO | SA_NODEFER};
        sigaction(SIGSEGV, &action, &former);
        handles = true;
    }
    int i = 0;
    while (i < MAPS_MAX && maps[i].at != NULL)
        i++;
    if (i < MAPS_MAX) {
        maps[i] = (struct map){at, len};
        if (reads_watched())
            mprotect(at, len, PROT_NONE);
    }
    pthread_mutex_unlock(&maps_lock);
}

void disk_drop_map(const void *at)
{
    pthread_mutex_lock(&maps_lock);
    for (int i = 0; i < MAPS_MAX; i++)
        if (maps[i].at == at)
            maps[i].at = NULL;
    pthread_mutex_unlock(&maps_lock);
}
