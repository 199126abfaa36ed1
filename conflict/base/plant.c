/* SPDX-License-Identifier: Apache-2.0 */
/* The switch of a build with planted bugs; empty in every other. */

#include "conflict/base/plant.h"

#ifdef TIDEMARK_PLANTED
enum plant plant_active = PLANT_NONE;
#endif
