/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared receive queue on a table, with a protection domain, a CQ and memory of its own. */
#pragma once

#include "adapter_device.h"

#define DEVICE_SRQ_BYTES 16384u
#define DEVICE_SRQ_WQES	 16u
#define DEVICE_SRQ_WQE	 64u

struct device_srq {
	struct device_cq cq;
	struct srq *srq;
	uint32_t pdn;
	struct mkey *mkey;
	uint32_t key;
	be32 dbrec;
	uint16_t posted;
	_Alignas(64) uint8_t ring[DEVICE_SRQ_WQES * DEVICE_SRQ_WQE];
	_Alignas(64) uint8_t mem[DEVICE_SRQ_BYTES];
};

/* xrcdn: the domain that it belongs to, and its CQ is named to the device then; 0: none. */
void device_srq_up(struct test_device *r, unsigned dev, struct device_srq *s, uint32_t xrcdn,
		   uint32_t uidx);
/* Its queue may be gone already: s->srq is NULL. */
void device_srq_down(struct test_device *r, unsigned dev, struct device_srq *s);
/* A receive of that many bytes at the beginning of its memory. */
void device_srq_post(struct device_srq *s, uint32_t len);
