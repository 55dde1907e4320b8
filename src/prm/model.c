// SPDX-License-Identifier: BSD-2-Clause
#include "prm/model.h"

#include <string.h>

#include "base/compiler.h"

/*
 * Device IDs come from pci.ids, vendor 15b3.  Each generation has its major version of firmware.
 * docs/fidelity.md names the source of each value.
 */
const struct model models[] = {
	[MODEL_DEFAULT] = {"bluefield-3", 0xa2dc, 32, "MT_0000000883", 1, LANE_NDR, 1000000, 2,
			   .dpa = true, .mmo = true, .wait_on_time = true, .enhanced_cqe = true},
	{"bluefield-2", 0xa2d6, 24, "MT_0000000375", 1, LANE_EDR, 1000000, 1, .mmo = true},
	{"connectx-7", 0x1021, 28, "MT_0000000838", 0, LANE_NDR, 1000000, 2, .mmo = true,
	 .wait_on_time = true, .enhanced_cqe = true},
	{"connectx-6dx", 0x101d, 22, "MT_0000000359", 0, LANE_EDR, 1000000, 1},
	{"connectx-6", 0x101b, 20, "MT_0000000223", 0, LANE_HDR, 156250},
	{"connectx-5", 0x1017, 16, "MT_0000000011", 0, LANE_EDR, 78125},
};

const size_t models_count = array_size(models);

const struct model *model_at(uint32_t index)
{
	return &models[index < models_count ? index : MODEL_DEFAULT];
}

int model_find(const char *name)
{
	for (size_t i = 0; i < models_count; i++)
		if (!strcmp(models[i].name, name))
			return (int)i;
	return -1;
}
