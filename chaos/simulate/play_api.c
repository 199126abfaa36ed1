/* SPDX-License-Identifier: Apache-2.0 */
/* What faults make of clients and of their requests, before a Region sees them. */

#include "chaos/simulate/play_internal.h"

bool play_client_blocked(struct play *play, uint8_t place, enum scenario_how *ret)
{
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        if (!fault->active || fault->spec->verb != VERB_CLIENT_BLOCK ||
            !(fault->regions >> place & 1) || fault->spec->how == SCENARIO_RESET)
            continue;
        fault->hits++;
        *ret = (enum scenario_how)fault->spec->how;
        return true;
    }
    return false;
}

static bool names(const struct scenario_texts *operations, enum op_kind kind)
{
    for (uint32_t i = 0; i < operations->count; i++)
        if (strcmp(operations->at[i], op_name(kind)) == 0)
            return true;
    return operations->count == 0;
}

static enum api_error error_named(const char *name)
{
    for (enum api_error error = API_OK + 1; error < API_ERROR_COUNT; error++)
        if (strcmp(api_error_name(error), name) == 0)
            return error;
    return API_INTERNAL;
}

enum api_error play_api_fault(struct play *play, uint8_t place, enum op_kind kind)
{
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        const struct scenario_fault *spec = fault->spec;
        bool api = spec->verb == VERB_API_ERROR || spec->verb == VERB_API_THROTTLE;
        if (!fault->active || !api || !(fault->regions >> place & 1) ||
            !names(&spec->operations, kind) || rng_unit(&play->cluster.sim.rng) >= spec->share)
            continue;
        fault->hits++;
        return spec->verb == VERB_API_THROTTLE ? API_THROTTLED : error_named(spec->error);
    }
    return API_OK;
}
