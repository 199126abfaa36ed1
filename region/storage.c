/* SPDX-License-Identifier: Apache-2.0 */
/* Groups are filled on the loop's thread in a queue; the head is lent to the storage thread, which
 * writes it and wakes the loop. Exactly one group is lent at a time, so the two threads share one
 * pointer and one result, under one mutex.
 *
 *     loop:  add add add | flush -> lent ............ done: next flush lends what came meanwhile
 *     thread:                       write and fsync -> wake
 */

#include "region/storage.h"

#include <pthread.h>
#include <signal.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/list.h"

enum { SPARES_MAX = 4 };

struct group {
    struct list link;
    struct buf batches; /* one behind the other: store batches concatenate */
    uint64_t first, last;
};

struct storage {
    struct storage_config config;
    struct list waiting;
    struct list spares;
    uint32_t spare_count;
    bool refusing; /* the disk was full, and storage_resume has not come yet */
    struct group *lent;

    uv_async_t *wake; /* outlives us until libuv has let go of it */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex: */
    struct group *job; /* set by the loop, taken away by the thread when it is written */
    bool stop;
    enum store_outcome outcome; /* of the job that was taken away last */
    uint64_t ns;
};

/* ---- The thread ---- */

static void *storage_run(void *context)
{
    struct storage *storage = context;
    pthread_mutex_lock(&storage->mutex);
    while (!storage->stop) {
        struct group *job = storage->job;
        if (!job) {
            pthread_cond_wait(&storage->changed, &storage->mutex);
            continue;
        }
        pthread_mutex_unlock(&storage->mutex);
        struct store *store = storage->config.store;
        uint64_t start_ns = uv_hrtime();
        enum store_outcome outcome =
            store->ops->write(store, buf_view(&job->batches), storage->config.sync);
        uint64_t ns = uv_hrtime() - start_ns;
        if (outcome == STORE_CORRUPT)
            check_failed(
                "a write has met damage in the store; what can be read is kept. Started with "
                "--discard-damaged-store the Region sets it aside and begins anew",
                __FILE__, __LINE__);
        check(outcome == STORE_OK || outcome == STORE_FULL);

        pthread_mutex_lock(&storage->mutex);
        storage->job = NULL;
        storage->outcome = outcome;
        storage->ns = ns;
        /* Not under the mutex: whom it wakes would take the processor only to wait for it. */
        pthread_mutex_unlock(&storage->mutex);
        uv_async_send(storage->wake);
        pthread_mutex_lock(&storage->mutex);
    }
    pthread_mutex_unlock(&storage->mutex);
    return NULL;
}

/* ---- The loop's side ---- */

static void group_free(struct group *group)
{
    buf_deinit(&group->batches);
    free(group);
}

static void groups_free(struct list *groups)
{
    for (struct list *link = list_take(groups); link; link = list_take(groups))
        group_free(container_of(link, struct group, link));
}

static struct group *group_new(struct storage *storage, uint64_t first)
{
    struct list *link = list_take(&storage->spares);
    struct group *group;
    if (link) {
        storage->spare_count--;
        group = container_of(link, struct group, link);
        buf_reset(&group->batches);
    } else {
        group = xcalloc(1, sizeof(*group));
        buf_init(&group->batches);
    }
    list_init(&group->link);
    group->first = first;
    return group;
}

/* Keeps the memory for the next group, unless it is one of the rare large ones. */
static void group_recycle(struct storage *storage, struct group *group)
{
    if (storage->spare_count == SPARES_MAX ||
        group->batches.cap > 2 * storage->config.group_bytes_max) {
        group_free(group);
        return;
    }
    list_append(&storage->spares, &group->link);
    storage->spare_count++;
}

void storage_add(struct storage *storage, uint64_t id, struct bytes batch)
{
    if (storage->refusing)
        return;
    struct group *group = NULL;
    if (!list_empty(&storage->waiting))
        group = container_of(storage->waiting.prev, struct group, link);
    if (!group || group->batches.len + batch.len > storage->config.group_bytes_max) {
        group = group_new(storage, id);
        list_append(&storage->waiting, &group->link);
    }
    buf_append_bytes(&group->batches, batch);
    group->last = id;
}

bool storage_can_flush(const struct storage *storage)
{
    return !storage->lent && !list_empty(&storage->waiting);
}

void storage_flush(struct storage *storage)
{
    if (!storage_can_flush(storage))
        return;
    storage->lent = container_of(list_take(&storage->waiting), struct group, link);
    pthread_mutex_lock(&storage->mutex);
    check(storage->job == NULL);
    storage->job = storage->lent;
    pthread_mutex_unlock(&storage->mutex);
    pthread_cond_signal(&storage->changed); /* not under the mutex, as above */
}

/* The thread is done with what was lent. */
static void on_wake(uv_async_t *wake)
{
    struct storage *storage = wake->data;
    pthread_mutex_lock(&storage->mutex);
    bool written = storage->lent && !storage->job;
    enum store_outcome outcome = storage->outcome;
    uint64_t ns = storage->ns;
    pthread_mutex_unlock(&storage->mutex);
    if (!written)
        return;
    struct group *group = storage->lent;
    storage->lent = NULL;
    uint64_t id = outcome == STORE_OK ? group->last : group->first;
    uint64_t bytes = group->batches.len;
    group_recycle(storage, group);
    if (outcome == STORE_FULL) {
        /* What waits was made on top of what was just refused. */
        groups_free(&storage->waiting);
        storage->refusing = true;
    }
    storage->config.done(storage->config.context, outcome, id, bytes, ns);
}

void storage_resume(struct storage *storage)
{
    storage->refusing = false;
}

bool storage_idle(const struct storage *storage)
{
    return !storage->lent && list_empty(&storage->waiting);
}

struct storage *storage_new(const struct storage_config *config)
{
    struct storage *storage = xcalloc(1, sizeof(*storage));
    storage->config = *config;
    list_init(&storage->waiting);
    list_init(&storage->spares);
    storage->wake = xcalloc(1, sizeof(*storage->wake));
    check(uv_async_init(&config->loop->uv, storage->wake, on_wake) == 0);
    storage->wake->data = storage;
    pthread_mutex_init(&storage->mutex, NULL);
    pthread_cond_init(&storage->changed, NULL);

    /* Signals are the loop's. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    check(pthread_create(&storage->thread, NULL, storage_run, storage) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return storage;
}

static void on_wake_closed(uv_handle_t *handle)
{
    free(handle);
}

void storage_free(struct storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    storage->stop = true;
    pthread_cond_signal(&storage->changed);
    pthread_mutex_unlock(&storage->mutex);
    pthread_join(storage->thread, NULL);
    uv_close((uv_handle_t *)storage->wake, on_wake_closed);
    if (storage->lent)
        group_free(storage->lent);
    groups_free(&storage->waiting);
    groups_free(&storage->spares);
    pthread_cond_destroy(&storage->changed);
    pthread_mutex_destroy(&storage->mutex);
    free(storage);
}
