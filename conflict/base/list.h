/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

/* An intrusive, circular, doubly linked list: the link lives in the element, so an element can be
 * removed in constant time without finding it. A head points to itself when empty. */

#include <stdbool.h>
#include <stddef.h>

#include "conflict/base/check.h"

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}
static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}
static inline void list_append(struct list *head, struct list *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}
/* The link is left empty, so removing it again does no harm. */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}
/* First link, removed; NULL when empty. */
static inline struct list *list_take(struct list *head)
{
    if (list_empty(head))
        return NULL;
    struct list *first = head->next;
    list_remove(first);
    return first;
}
/* Moves all of from to the end of to. */
static inline void list_append_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* The element that was removed may be the current one. */
#define list_each(link, spare, head)                                                               \
    for (struct list *link = (head)->next, *spare = link->next; link != (head);                    \
         link = spare, spare = link->next)

#endif
