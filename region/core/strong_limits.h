/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_STRONG_LIMITS_H
#define REGION_STRONG_LIMITS_H

/* The settings of strong tables (struct strong_config) that are numbers: the name in a
 * configuration's section `mrsc`, the member, its bounds and its default. Regions read them, and
 * the harness hands them over, by this one list. */

#define STRONG_LIMIT_MAP(LIMIT)                                                                    \
    LIMIT("heartbeat-ms", heartbeat_ms, 10, 10000, 100)                                            \
    LIMIT("election-ms", election_ms, 50, 60000, 500)                                              \
    LIMIT("election-ms-max", election_ms_max, 50, 600000, 10000)                                   \
    LIMIT("request-timeout-ms", request_timeout_ms, 10, 600000, 2000)                              \
    LIMIT("retry-ms", retry_ms, 10, 60000, 200)                                                    \
    LIMIT("placement-ms", placement_ms, 0, 86400000, 60000)                                        \
    LIMIT("relay-silence-ms", relay_silence_ms, 20, 60000, 300)                                    \
    LIMIT("log-bytes-max", log_bytes_max, 2097152, 1073741824, 16777216)

#define STRONG_LIMIT_COUNT_ONE(name, member, low, high, standard) +1
enum { STRONG_LIMIT_COUNT = 0 STRONG_LIMIT_MAP(STRONG_LIMIT_COUNT_ONE) };

#endif
