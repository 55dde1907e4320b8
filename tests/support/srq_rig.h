/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared receive queue on a table, with a protection domain, a CQ and memory of its own. */
#pragma once

#include "adapter_rig.h"

#define RIG_SRQ_BYTES 16384u
#define RIG_SRQ_WQES  16u
#define RIG_SRQ_WQE   64u

struct rig_srq {
	struct rig_cq cq;
	struct srq *srq;
	uint32_t pdn;
	struct mkey *mkey;
	uint32_t key;
	be32 dbrec;
	uint16_t posted;
	_Alignas(64) uint8_t ring[RIG_SRQ_WQES * RIG_SRQ_WQE];
	_Alignas(64) uint8_t mem[RIG_SRQ_BYTES];
};

/* xrcdn: the domain that it belongs to, and its CQ is named to the device then; 0: none. */
void rig_srq_up(struct rig *r, unsigned dev, struct rig_srq *s, uint32_t xrcdn, uint32_t uidx);
/* Its queue may be gone already: s->srq is NULL. */
void rig_srq_down(struct rig *r, unsigned dev, struct rig_srq *s);
/* A receive of that many bytes at the beginning of its memory. */
void rig_srq_post(struct rig_srq *s, uint32_t len);
