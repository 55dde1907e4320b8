// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/congestion. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_pcc.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>

#include "congestion.h"

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t poke(uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return 0;
}

__dpa_rpc__ uint64_t table_of(uint64_t gvmi)
{
	return flexio_dev_get_pcc_table_base((uint16_t)gvmi);
}

static uint64_t ring_now(uint64_t ccq, uint64_t rate, uint64_t probe, uint64_t next)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_cc_ring_db(ctx, (uint16_t)ccq, (uint32_t)rate, (uint32_t)probe,
				     (flexio_dev_cc_db_next_act_t)next);
}

__dpa_rpc__ uint64_t ring(uint64_t ccq, uint64_t rate, uint64_t probe, uint64_t next)
{
	return ring_now(ccq, rate, probe, next);
}

__dpa_rpc__ uint64_t ring_by(uint64_t outbox, uint64_t ccq, uint64_t rate)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_outbox_config(ctx, (uint16_t)outbox))
		return 2;
	return ring_now(ccq, rate, 0, CC_DB_NEXT_ACT_SINGLE);
}

/* What the table says of the flow. */
__dpa_rpc__ uint64_t rate_of_flow(uint64_t ccq)
{
	const struct flexio_dev_pcc_table *table =
		(const struct flexio_dev_pcc_table *)(uintptr_t)flexio_dev_get_pcc_table_base(0);
	const struct flexio_dev_pcc_flow *flows =
		(const struct flexio_dev_pcc_flow *)(uintptr_t)table->flows;

	return __atomic_load_n(&flows[ccq].rate, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t events_waiting(uint64_t unused)
{
	const struct flexio_dev_pcc_table *table =
		(const struct flexio_dev_pcc_table *)(uintptr_t)flexio_dev_get_pcc_table_base(0);

	(void)unused;
	return __atomic_load_n(&table->produced, __ATOMIC_SEQ_CST) -
	       __atomic_load_n(&table->consumed, __ATOMIC_SEQ_CST);
}

/* Puts a write or a frame into the ring, and rings. */
__dpa_rpc__ uint64_t queue_send(uint64_t addr)
{
	struct queue *q = (struct queue *)(uintptr_t)addr;
	union flexio_dev_sqe_seg *s = (union flexio_dev_sqe_seg *)(uintptr_t)q->ring +
				      (q->pi & (DEPTH - 1)) * (1u << LOG_SQE_NUM_SEGS);
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)q->pi++, (uint32_t)q->number, 2,
				     q->remote ? FLEXIO_CTRL_SEG_RDMA_WRITE
					       : FLEXIO_CTRL_SEG_SEND_EN);
	if (q->remote)
		flexio_dev_swqe_seg_rdma_set(s + 1, (uint32_t)q->rkey, q->remote);
	else
		flexio_dev_swqe_seg_eth_set(s + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, (uint32_t)q->bytes, (uint32_t)q->key, q->data);
	__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
	return flexio_dev_qp_sq_ring_db(ctx, (uint16_t)q->pi, (uint32_t)q->number);
}

/* 0: the next request has not completed yet; 1: it has; 2: in error. */
__dpa_rpc__ uint64_t queue_done(uint64_t addr)
{
	struct queue *q = (struct queue *)(uintptr_t)addr;
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)q->cq_ring + (q->ci & (DEPTH - 1));

	if (flexio_dev_cqe_get_owner(cqe) != (q->ci / DEPTH & 1))
		return 0;
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)q->cq_record, (uint32_t)++q->ci);
	return flexio_dev_cqe_get_opcode(cqe) ? 2 : 1;
}

static void take(struct control *c, struct flexio_dev_pcc_table *table,
		 const struct flexio_dev_pcc_event *e)
{
	struct flexio_dev_pcc_flow *flow = flexio_dev_pcc_flow(table, e);

	c->wrong += e->type > 7 || e->ccq_id >= table->flow_entries ||
		    flow->flow_tag != e->flow_tag || flow->flow_qpn != e->flow_qpn ||
		    e->sn != flow->data[1];
	c->flows += !flow->data[0];
	flow->data[0] = 1;
	flow->data[1]++;
	c->of_type[e->type & 7]++;
	c->ccq = e->ccq_id;
	c->tag = e->flow_tag;
	c->qpn = e->flow_qpn;
	c->port = e->port;
	if (e->type == FLEXIO_DEV_PCC_EVENT_TX) {
		c->bytes += e->sent_bytes;
		c->packets += e->sent_packets;
		c->last_bytes = e->sent_bytes;
		c->last_packets = e->sent_packets;
		c->last_32bytes = e->tx.sent_32bytes;
		c->last_16_bits_packets = e->tx.sent_pkts;
		c->wrong += e->tx.flow_qpn != e->flow_qpn || !e->sent_packets;
	} else if (e->type == FLEXIO_DEV_PCC_EVENT_NACK) {
		c->nacks += e->nack.count;
		c->nack_kind = e->subtype;
	} else if (e->type == FLEXIO_DEV_PCC_EVENT_RTT) {
		c->round_trip = e->timestamp - e->rtt.sent;
		c->wrong += (int32_t)(e->rtt.received - e->rtt.sent) < 0 ||
			    (int32_t)(e->rtt.answered - e->rtt.received) < 0 ||
			    (int32_t)(e->timestamp - e->rtt.answered) < 0;
	}
	__atomic_fetch_add(&c->events, 1, __ATOMIC_SEQ_CST);
}

__dpa_global__ void control_flows(uint64_t arg)
{
	struct flexio_dev_pcc_table *table =
		(struct flexio_dev_pcc_table *)(uintptr_t)flexio_dev_get_pcc_table_base(0);
	struct control *c = (struct control *)(uintptr_t)arg;
	const struct flexio_dev_pcc_event *e;

	__atomic_fetch_add(&c->activations, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&c->holds, __ATOMIC_SEQ_CST) && (e = flexio_dev_pcc_next(table))) {
		uint16_t ccq = e->ccq_id;

		take(c, table, e);
		flexio_dev_pcc_take(table);
		if (c->rate)
			ring_now(ccq, c->rate, c->probe, c->next);
	}
	flexio_dev_thread_reschedule();
}
