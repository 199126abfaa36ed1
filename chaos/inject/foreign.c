/* SPDX-License-Identifier: Apache-2.0 */
/* What others have done to the cluster meanwhile, by its control API, which is open to whoever
 * looks in: links cut, slowed or struck by toxics, Regions isolated or stopped. None of it is a
 * fault of the scenario, and "all faults undone" has to be true when a run heals. So healing undoes
 * it, too, and says what it was: what it did before stays explained, and the run comes to its end.
 * Whoever wants a cut that outlasts healing wants a fault of the scenario. */

#include <string.h>

#include "chaos/inject/inject_internal.h"

static void note(struct inject *inject, uint8_t region, const char *format, const char *a,
                 const char *b)
{
    struct outcome *outcome = inject->config.outcome;
    char text[200];
    snprintf(text, sizeof(text), format, a, b);
    outcome_event(outcome, inject_now(inject), region, "note",
                  "%s, which was no fault of this run; healed all the same", text);
}

/* The scenario's own toxics of a link are its shape, by these names. */
static struct toxic *foreign_toxic(const struct inject *inject, const struct cluster_link *link)
{
    for (int i = 0; i < 2 && list_empty(&inject->faults); i++)
        list_each(at, spare, &link->proxy->toxics[i])
        {
            struct toxic *toxic = container_of(at, struct toxic, link);
            if (strcmp(toxic->name, LINK_DELAY_TOXIC) != 0 &&
                strcmp(toxic->name, LINK_LIMIT_TOXIC) != 0)
                return toxic;
        }
    return NULL;
}

static bool is_cut(struct inject *inject, uint32_t from, uint32_t to)
{
    return inject_link(inject, from, to)->cut && inject->cuts[from][to] == 0;
}

static bool is_stopped(const struct place *place)
{
    return place->site->state == SITE_PAUSED && place->pauses == 0;
}

uint32_t foreign_count(struct inject *inject)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < inject->place_count; i++) {
        count += inject->places[i].site->isolated || is_stopped(&inject->places[i]);
        for (uint32_t j = 0; j < inject->place_count; j++)
            count += i != j && (is_cut(inject, i, j) ||
                                foreign_toxic(inject, inject_link(inject, i, j)) != NULL);
    }
    return count;
}

static void heal_link(struct inject *inject, uint8_t from, uint8_t to)
{
    struct cluster_link *link = inject_link(inject, from, to);
    const char *a = inject_name(inject, from), *b = inject_name(inject, to);
    if (is_cut(inject, from, to)) {
        note(inject, from, "the link %s -> %s was cut", a, b);
        link_cut(link, false);
    }
    for (struct toxic *toxic; (toxic = foreign_toxic(inject, link)) != NULL;) {
        note(inject, from, "the link %s -> %s had a toxic", a, b);
        proxy_remove_toxic(link->proxy, toxic);
    }
}

void foreign_heal(struct inject *inject)
{
    for (uint8_t i = 0; i < inject->place_count; i++) {
        struct place *place = &inject->places[i];
        if (place->site->isolated) {
            note(inject, i, "%s was isolated%s", place->site->name, "");
            site_isolate(place->site, false);
        }
        if (is_stopped(place)) {
            struct buf error = {0};
            note(inject, i, "%s was stopped%s", place->site->name, "");
            (void)site_resume(place->site, &error);
            buf_deinit(&error);
        }
        for (uint8_t j = 0; j < inject->place_count; j++)
            if (i != j)
                heal_link(inject, i, j);
    }
}
