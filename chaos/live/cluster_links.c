/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a cluster: cut for two causes that are kept apart, and shaped by toxics of their
 * own.
 */

#include <string.h>

#include "chaos/live/cluster.h"
#include "conflict/base/check.h"

#define NS_PER_MS UINT64_C(1000000)

bool link_is_up(const struct cluster_link *link)
{
    return !link->cut && !link->from->isolated && !link->to->isolated;
}

/* Makes the proxy as the link should be. A link's proxy always has its port, so enabling can't
 * fail. */
static void link_settle(struct cluster_link *link)
{
    bool up = link_is_up(link);
    if (up == link->proxy->enabled)
        return;
    if (!up) {
        link->since = proxy_disable(link->proxy);
        return;
    }
    check(proxy_enable(link->proxy) == 0);
    loop_update_time(link->proxy->loop);
    link->since = (struct proxy_instant){link->proxy->loop->wall_ms, link->proxy->loop->mono_ns};
}

void link_cut(struct cluster_link *link, bool cut)
{
    link->cut = cut;
    link_settle(link);
}

void site_isolate(struct site *site, bool isolated)
{
    struct cluster *cluster = site->cluster;
    site->isolated = isolated;
    for (uint32_t i = 0; i < cluster->link_count; i++)
        if (cluster->links[i].from == site || cluster->links[i].to == site)
            link_settle(&cluster->links[i]);
}

/* The link's own toxic of that name and type; NULL: none. A user's own of that name and of another
 * kind makes way. */
static struct toxic *find_own(struct cluster_link *link, const char *name, enum toxic_type type)
{
    struct toxic *toxic = proxy_find_toxic(link->proxy, name);
    if (toxic != NULL && (toxic->type != type || toxic->stream != TOXIC_UPSTREAM)) {
        proxy_remove_toxic(link->proxy, toxic);
        toxic = NULL;
    }
    return toxic;
}

/* Makes the toxic as wished, or removes it if all values are 0. */
static void set_own(struct cluster_link *link, const char *name, const struct toxic *wished)
{
    struct toxic *toxic = find_own(link, name, wished->type);
    if ((wished->value[0] | wished->value[1]) == 0 &&
        (wished->rest_ns[0] | wished->rest_ns[1]) == 0) {
        if (toxic != NULL)
            proxy_remove_toxic(link->proxy, toxic);
        return;
    }
    bool fresh = toxic == NULL;
    if (fresh)
        toxic = toxic_new(wished->type, TOXIC_UPSTREAM, name);
    memcpy(toxic->value, wished->value, sizeof(toxic->value));
    memcpy(toxic->rest_ns, wished->rest_ns, sizeof(toxic->rest_ns));
    toxic->distribution = wished->distribution;
    if (fresh)
        proxy_add_toxic(link->proxy, toxic);
    else
        proxy_update_toxic(link->proxy, toxic);
}

void link_shape(struct cluster_link *link, uint64_t delay_ns, uint64_t jitter_ns,
                enum delay_distribution distribution)
{
    struct toxic wished = {.type = TOXIC_LATENCY, .distribution = distribution};
    toxic_set_latency(&wished, delay_ns, jitter_ns);
    set_own(link, LINK_DELAY_TOXIC, &wished);
}

void link_delay(struct cluster_link *link, uint64_t delay_ms, uint64_t jitter_ms)
{
    link_shape(link, delay_ms * NS_PER_MS, jitter_ms * NS_PER_MS, DELAY_UNIFORM);
}

void link_limit(struct cluster_link *link, uint64_t rate_bytes)
{
    set_own(
        link, LINK_LIMIT_TOXIC,
        &(struct toxic){.type = TOXIC_BANDWIDTH, .value = {(int64_t)((rate_bytes + 999) / 1000)}});
}

uint64_t link_delay_ms(const struct cluster_link *link)
{
    uint64_t total = 0;
    list_each(at, spare, &link->proxy->toxics[TOXIC_UPSTREAM])
    {
        const struct toxic *toxic = container_of(at, struct toxic, link);
        if (toxic->type == TOXIC_LATENCY)
            total += (uint64_t)toxic->value[TOXIC_LATENCY_MS];
    }
    return total;
}

void cluster_proxy_switched(struct cluster *cluster, struct proxy *proxy, bool enabled)
{
    for (uint32_t i = 0; i < cluster->link_count; i++)
        if (cluster->links[i].proxy == proxy)
            link_cut(&cluster->links[i], !enabled);
}

int cluster_reset(struct cluster *cluster)
{
    int failed = 0;
    for (uint32_t i = 0; i < cluster->site_count; i++)
        cluster->sites[i].isolated = false;
    for (uint32_t i = 0; i < cluster->link_count; i++)
        link_cut(&cluster->links[i], false);
    list_each(link, spare, &cluster->proxies.proxies)
    {
        struct proxy *proxy = container_of(link, struct proxy, link);
        int result = proxy->enabled ? 0 : proxy_enable(proxy);
        if (failed == 0)
            failed = result;
        for (int i = 0; i < 2; i++)
            while (!list_empty(&proxy->toxics[i]))
                proxy_remove_toxic(proxy, container_of(proxy->toxics[i].next, struct toxic, link));
    }
    return failed;
}
