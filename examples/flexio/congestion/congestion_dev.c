// SPDX-License-Identifier: BSD-2-Clause
/*
 * The DPA's part: each event of a flow is answered with the rate that the flow is to have.
 *
 * A flow begins with the rate that the host has asked for.  A notification of congestion cuts it by an
 * eighth, and each round trip that was measured without one in between gives an eighth of what is
 * missing back.
 */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_pcc.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stdint.h>

#include "congestion.h"

/* What the handler keeps of a flow, in the words that the table has for it. */
enum flow_word { FLOW_RATE, FLOW_NOTIFIED };

#define LEAST_RATE 64u

static uint32_t rate_asked_for(const struct control *c, const struct flexio_dev_pcc_table *table)
{
	uint64_t rate = c->megabytes * 1000000 * FLEXIO_DEV_PCC_RATE_MAX / table->bytes_per_second;

	if (!c->megabytes || rate > FLEXIO_DEV_PCC_RATE_MAX)
		return FLEXIO_DEV_PCC_RATE_MAX;
	return rate ? (uint32_t)rate : 1;
}

static void note_round_trip(struct control *c, const struct flexio_dev_pcc_event *e)
{
	/* What the other end took to answer is not the way's. */
	uint32_t ns = e->timestamp - e->rtt.sent - (e->rtt.answered - e->rtt.received);

	if (!c->probes++ || ns < c->shortest_ns)
		c->shortest_ns = ns;
}

static void count_event(struct control *c, const struct flexio_dev_pcc_event *e)
{
	c->events++;
	switch (e->type) {
	case FLEXIO_DEV_PCC_EVENT_TX:
		c->bytes += e->sent_bytes;
		c->packets += e->sent_packets;
		break;
	case FLEXIO_DEV_PCC_EVENT_CNP:
		c->notified += e->cnp.count;
		break;
	case FLEXIO_DEV_PCC_EVENT_NACK:
		c->refused += e->nack.count;
		break;
	case FLEXIO_DEV_PCC_EVENT_RTT:
		note_round_trip(c, e);
		break;
	default:
		break;
	}
}

static uint32_t next_rate(const struct control *c, uint32_t most,
			  const struct flexio_dev_pcc_event *e, uint32_t *data)
{
	uint32_t rate = data[FLOW_RATE];

	if (!c->reacts)
		return most;
	if (e->type == FLEXIO_DEV_PCC_EVENT_CNP) {
		rate -= rate / 8;
		data[FLOW_NOTIFIED] = 1;
	} else if (e->type == FLEXIO_DEV_PCC_EVENT_RTT) {
		if (!data[FLOW_NOTIFIED])
			rate += (most - rate) / 8 + 1;
		data[FLOW_NOTIFIED] = 0;
	}
	if (rate > most)
		rate = most;
	return rate < LEAST_RATE ? LEAST_RATE : rate;
}

static void answer(struct flexio_dev_thread_ctx *ctx, struct control *c,
		   struct flexio_dev_pcc_table *table, const struct flexio_dev_pcc_event *e)
{
	uint32_t *data = flexio_dev_pcc_flow(table, e)->data, most = rate_asked_for(c, table);
	uint32_t begins = !data[FLOW_RATE];

	count_event(c, e);
	if (begins) {
		data[FLOW_RATE] = most;
		c->flows++;
	}
	data[FLOW_RATE] = next_rate(c, most, e, data);
	c->last_rate = data[FLOW_RATE];
	if (!c->lowest_rate || c->last_rate < c->lowest_rate)
		c->lowest_rate = c->last_rate;
	/* The next probe is asked for when the last has come back. */
	flexio_dev_cc_ring_db(ctx, e->ccq_id, data[FLOW_RATE],
			      begins || e->type == FLEXIO_DEV_PCC_EVENT_RTT, CC_DB_NEXT_ACT_SINGLE);
}

__dpa_global__ void control_flows(uint64_t arg)
{
	struct flexio_dev_pcc_table *table =
		(struct flexio_dev_pcc_table *)(uintptr_t)flexio_dev_get_pcc_table_base(0);
	struct control *c = (struct control *)(uintptr_t)arg;
	const struct flexio_dev_pcc_event *e;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	while ((e = flexio_dev_pcc_next(table))) {
		answer(ctx, c, table, e);
		flexio_dev_pcc_take(table);
	}
	flexio_dev_thread_reschedule();
}

/* A word of the control, for the host; and another value for the rate. */
__dpa_rpc__ uint64_t control_read(uint64_t control, uint64_t word)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)control + word, __ATOMIC_RELAXED);
}

__dpa_rpc__ uint64_t control_limit(uint64_t control, uint64_t megabytes)
{
	__atomic_store_n(&((struct control *)(uintptr_t)control)->megabytes, megabytes,
			 __ATOMIC_RELAXED);
	return 0;
}
