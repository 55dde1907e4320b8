/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamically connected transport on a table: two initiators, two targets, each target with a
 * shared receive queue, a CQ and memory of its own.
 */
#pragma once

#include "adapter_device.h"
#include "srq_device.h"

#define DC_BYTES DEVICE_SRQ_BYTES
#define DC_KEY	 0x1122334455667788ull
#define DC_UIDX	 0x55u

struct dc_target {
	struct device_srq q;
	struct qp *qp;
};

struct dc_pair {
	struct test_device device;
	unsigned dev;
	struct device_qp dci[2];
	struct dc_target dct[2];
	uint8_t src[DC_BYTES];
	struct mkey *ms[2];
};

#define DC_DCI_INIT (IB_QP_PKEY_INDEX | IB_QP_PORT)
#define DC_DCI_RTS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_SQ_PSN)
#define DC_DCT_INIT (DC_DCI_INIT | IB_QP_ACCESS_FLAGS)
#define DC_DCT_RTR  (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER)

/* Where a request goes, and of which stream it is. */
struct dc_to {
	unsigned dct;
	uint64_t key;
	uint16_t stream;
};

/* log_errored: of the initiators' streams, so many may be in error; below 0: no streams. */
void dc_pair_up(struct dc_pair *t, unsigned dev, int log_errored);
void dc_pair_down(struct dc_pair *t);
void dc_dci_up(struct dc_pair *t, struct device_qp *q, int log_errored);
void dc_dci_to_rts(struct dc_pair *t, struct device_qp *q);
void dc_begin(struct dc_pair *t, unsigned dci, struct device_wqe *w, uint8_t opcode, uint32_t imm,
	      struct dc_to to);
void dc_send(struct dc_pair *t, unsigned dci, struct dc_to to, uint32_t off, uint32_t len);
void dc_write(struct dc_pair *t, unsigned dci, struct dc_to to, uint32_t rkey, uint32_t lkey);
void dc_expect_sent(struct dc_pair *t, unsigned dci, uint8_t opcode);
void dc_expect_failed(struct dc_pair *t, unsigned dci, uint8_t syndrome);
void dc_expect_received(struct dc_pair *t, unsigned dct, unsigned dci, uint32_t off, uint32_t len);
enum ib_qp_state dc_state_of(struct qp *qp);
