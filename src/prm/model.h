/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cards as which a device can pose: what it says of itself on the PCI bus, in sysfs and in
 * answers to queries.  Libraries choose by it which features of a device they use.  The device can
 * do nearly the same things whatever its model is, but it reports only what the card has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Speeds of a lane, as LinkSpeedExtSupported and LinkSpeedExtActive of PortInfo have them. */
enum { LANE_FDR = 1, LANE_EDR = 2, LANE_HDR = 4, LANE_NDR = 8 };
enum { WIDTH_1X = 1, WIDTH_4X = 2, WIDTH_2X = 16 };

struct model {
	const char *name; /* as users write it */
	uint16_t device;  /* PCI device ID; also the part number */
	uint16_t fw_major;
	const char *board; /* PSID */
	uint8_t hw_rev;
	uint8_t lane;	    /* the fastest speed of a lane, on both link layers; ports have four */
	uint32_t clock_khz; /* of time stamps */
	uint8_t steering;   /* format of steering entries; programs may write them if it is not 0 */
	bool dpa;	    /* the card runs programs of its own */
	bool mmo;	    /* copies within memory by a request */
	bool wait_on_time;  /* requests that wait for memory or for a time */
	bool enhanced_cqe;  /* the enhanced layout of compressed completions */
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
