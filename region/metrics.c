/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms have fixed bounds, near doubling from 50 microseconds to 2.5 seconds: a local read
 * lies at the bottom, a request that met a cut link or a full disk at the top. Times are in
 * milliseconds, as CloudWatch's are. */

#include "region/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "conflict/base/check.h"

static const struct {
    uint64_t ns;
    const char *ms;
} bounds[HISTOGRAM_BOUNDS] = {
    {50000, "0.05"},    {100000, "0.1"},    {200000, "0.2"},      {400000, "0.4"},
    {800000, "0.8"},    {1500000, "1.5"},   {3000000, "3"},       {6000000, "6"},
    {12000000, "12"},   {25000000, "25"},   {50000000, "50"},     {100000000, "100"},
    {250000000, "250"}, {500000000, "500"}, {1000000000, "1000"}, {2500000000, "2500"},
};

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    unsigned i = 0;
    while (i < HISTOGRAM_BOUNDS && ns > bounds[i].ns)
        i++;
    histogram->buckets[i]++;
    histogram->count++;
    histogram->sum_ns += ns;
}

void metrics_request(struct metrics *metrics, enum op_kind kind, enum api_error error, uint64_t ns)
{
    check(kind <= OP_KIND_COUNT);
    check(error < API_ERROR_COUNT);
    metrics->requests[kind][error]++;
    if (error == API_OK)
        histogram_add(&metrics->latency[kind], ns);
}

void metrics_group(struct metrics *metrics, uint64_t bytes, uint64_t ns, bool written)
{
    if (!written) {
        metrics->groups_refused++;
        return;
    }
    metrics->groups++;
    metrics->group_bytes += bytes;
    histogram_add(&metrics->sync, ns);
}

void metrics_head(struct buf *to, const char *name, const char *type, const char *help)
{
    buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_histogram(struct buf *to, const char *name, const char *labels,
                       const struct histogram *histogram)
{
    const char *comma = *labels ? "," : "";
    uint64_t so_far = 0;
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        so_far += histogram->buckets[i];
        buf_printf(to, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, labels, comma, bounds[i].ms,
                   so_far);
    }
    buf_printf(to, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma,
               histogram->count);
    buf_printf(to, "%s_sum{%s} %.6f\n", name, labels, (double)histogram->sum_ns / 1e6);
    buf_printf(to, "%s_count{%s} %" PRIu64 "\n", name, labels, histogram->count);
}

void metrics_label(struct buf *to, struct bytes value)
{
    buf_append_u8(to, '"');
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '"' || value.at[i] == '\\')
            buf_append_u8(to, '\\');
        if (value.at[i] == '\n')
            buf_append_text(to, "\\n");
        else
            buf_append_u8(to, value.at[i]);
    }
    buf_append_u8(to, '"');
}

static const char *kind_name(unsigned kind)
{
    return kind == OP_KIND_COUNT ? "Unknown" : op_name((enum op_kind)kind);
}

void metrics_write(struct buf *to, const struct metrics *metrics)
{
    metrics_head(to, "tidemark_requests_total", "counter",
                 "Requests answered, by operation, HTTP status and error.");
    for (unsigned kind = 0; kind <= OP_KIND_COUNT; kind++) {
        for (unsigned error = 0; error < API_ERROR_COUNT; error++) {
            if (metrics->requests[kind][error] == 0)
                continue;
            bool ok = error == API_OK;
            buf_printf(
                to,
                "tidemark_requests_total{operation=\"%s\",status=\"%d\",error=\"%s\"} %" PRIu64
                "\n",
                kind_name(kind), ok ? 200 : api_error_status((enum api_error)error),
                ok ? "" : api_error_name((enum api_error)error), metrics->requests[kind][error]);
        }
    }
    metrics_head(to, "SuccessfulRequestLatency", "histogram",
                 "Milliseconds from a request's arrival to its answer.");
    for (unsigned kind = 0; kind <= OP_KIND_COUNT; kind++) {
        if (metrics->latency[kind].count == 0)
            continue;
        char labels[64];
        snprintf(labels, sizeof(labels), "Operation=\"%s\"", kind_name(kind));
        metrics_histogram(to, "SuccessfulRequestLatency", labels, &metrics->latency[kind]);
    }
    metrics_head(to, "tidemark_storage_groups_total", "counter",
                 "Groups of batches written together by the storage thread.");
    buf_printf(to, "tidemark_storage_groups_total %" PRIu64 "\n", metrics->groups);
    metrics_head(to, "tidemark_storage_group_bytes_total", "counter", "Bytes of these groups.");
    buf_printf(to, "tidemark_storage_group_bytes_total %" PRIu64 "\n", metrics->group_bytes);
    metrics_head(to, "tidemark_storage_groups_refused_total", "counter",
                 "Groups refused because there was no space left.");
    buf_printf(to, "tidemark_storage_groups_refused_total %" PRIu64 "\n", metrics->groups_refused);
    metrics_head(
        to, "tidemark_storage_write_milliseconds", "histogram",
        "Milliseconds to write a group, its fsync included where durability asks for one.");
    metrics_histogram(to, "tidemark_storage_write_milliseconds", "", &metrics->sync);
}
