/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_CONFIG_H
#define REGION_CONFIG_H

/* Everything about the process that can be chosen, from flags and a YAML file into one struct. A
 * flag and the file's key have one name and one rule; flags win. Every limit of the parts below is
 * such a key, listed with its default and its bounds in config.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conflict/base/trace.h"
#include "net/server.h"
#include "region/core/region.h"

struct config_peer {
    uint16_t region;
    char *address; /* "127.0.0.1:8002" */
};

struct config {
    char *listen;      /* the API, and peers */
    char *peer_listen; /* NULL; else peers come here, in plain text even when `listen` speaks TLS */
    char *data;
    char *tls_certificate, *tls_key; /* both or neither */
    struct config_peer peers[VV_MAX];
    uint32_t peer_count;
    bool sync; /* durability: fsync, else os */
    bool strict_credentials;
    bool discard_damaged_store; /* set it aside and start empty (setaside.h) */
    int64_t clock_offset_ms, clock_rate_ppm;
    enum trace_level log_level;

    struct region_config core; /* region, peers and clock_mode are set; seed and traces are not */
    struct server_limits server;
    uint64_t cache_bytes, write_buffer_bytes; /* store_leveldb.h */
    uint64_t group_bytes_max;                 /* written in one go; a larger batch goes alone */
    uint64_t connect_ms_max, backoff_ms_min, backoff_ms_max; /* net/grpc.h */
    uint64_t drain_ms; /* how long requests may take to finish after SIGTERM */
};

/* Reads the command line, and the file it names. False: the reason is in error. Exits by itself for
 * --help,
 * --version and flags that do not exist. */
bool config_load(int argc, char **argv, struct config *ret, char *error, size_t error_len);
/* The same for tidemark-witness, which holds witnesses of strong tables and nothing else. */
bool config_load_witness(int argc, char **argv, struct config *ret, char *error, size_t error_len);
void config_deinit(struct config *config);

#endif
