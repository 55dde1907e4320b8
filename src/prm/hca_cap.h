/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capability pages with which QUERY_HCA_CAP answers.  A library may read any of hundreds of
 * bits.  All are zero except those in the table of hca_cap.c, which has a bit only when the feature
 * behind it works.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/model.h"

/* Mailbox of QUERY_HCA_CAP: the page follows a 16-byte header. */
#define HCA_CAP_IN_BYTES   16u
#define HCA_CAP_HEADER	   16u
#define HCA_CAP_PAGE_BYTES 4096u
#define HCA_CAP_OUT_BYTES  (HCA_CAP_HEADER + HCA_CAP_PAGE_BYTES)

/* op_mod is type << 1 | (0 maximum, 1 current). */
enum hca_cap_type {
	HCA_CAP_GENERAL = 0x00,
	HCA_CAP_ETHERNET_OFFLOADS = 0x01,
	HCA_CAP_ODP = 0x02,
	HCA_CAP_ATOMIC = 0x03,
	HCA_CAP_ROCE = 0x04,
	HCA_CAP_NIC_FLOW_TABLE = 0x07,
	HCA_CAP_ESW_FLOW_TABLE = 0x08,
	HCA_CAP_ESW = 0x09,
	HCA_CAP_QOS = 0x0c,
	HCA_CAP_DEVICE_MEMORY = 0x0f,
	HCA_CAP_VIRTIO_NET = 0x16,
	HCA_CAP_CRYPTO = 0x1a,
	HCA_CAP_GENERAL_2 = 0x20,
	HCA_CAP_DPA = 0x24, /* prm/cmd_dpa.h */
};

/* Where the device memory of steering lies, how large it is, and which addresses lead where. */
struct hca_cap_icm {
	uint64_t steering, modify, pattern;
	uint32_t log_steering, log_modify, log_pattern;
	uint64_t drop, allow, uplink;
	uint32_t format; /* format of steering entries; 0: programs do not write any */
};

/* What differs from device to device. */
struct hca_cap_values {
	bool ethernet;
	uint32_t ports;
	uint32_t gids;	/* a power of two */
	uint32_t pkeys; /* a power of two; the page says at least 128 */
	const struct model *model;
	struct hca_cap_icm icm;
};

/* Fills a page; false for a type that this device does not have. */
bool hca_cap_page(enum hca_cap_type type, const struct hca_cap_values *v,
		  uint8_t page[HCA_CAP_PAGE_BYTES]) must_check;
