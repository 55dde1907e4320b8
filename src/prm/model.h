/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cards as which a device can pose: what it says of itself on the PCI bus, in sysfs and in
 * answers to queries.  Libraries choose by it which features of a device they use; the device can
 * do the same things whatever its model is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model {
	const char *name; /* as users write it */
	uint16_t device;  /* PCI device ID; also the part number */
	uint16_t fw_major;
	const char *board; /* PSID */
	bool dpa;	   /* the card runs programs of its own */
	uint8_t steering;  /* format of steering entries; programs may write them if it is not 0 */
};

#define MODEL_VENDOR_IEEE 0x02c9u
#define MODEL_FW_MINOR	  41u
#define MODEL_FW_SUBMINOR 1000u
#define MODEL_DEFAULT	  0u

extern const struct model models[];
extern const size_t models_count;

/* The model with that index, which may come from outside. */
const struct model *model_at(uint32_t index);
/* The index of the model with that name, or -1. */
int model_find(const char *name);
