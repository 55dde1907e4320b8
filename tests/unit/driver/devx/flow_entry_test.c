// SPDX-License-Identifier: BSD-2-Clause
/*
 * The entry of a table of the device (SET_FLOW_TABLE_ENTRY): made by op_mod 0, and changed by op_mod 1
 * while frames come, part by part.
 */
#include "raw_queues.h"

#include "prm/cmd_flow.h"

#define ONE_DEST (FLOW_ENTRY_BYTES + FLOW_DEST_BYTES)

static struct queue a, b, sq;
static uint64_t tir_a, tir_b, table, group, entry, counter_handle;
static uint32_t tirn_a, tirn_b, tablen, groupn, counter;
static uint16_t sent;

static struct flow *rule_to_table(void)
{
	struct uobj *obj = uobj_any(&u.file, table);
	struct flow_attr attr = {
		.value.src_mac = {0x02, 0, 0, 0, 0, 0x02},
		.mask.src_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.table = obj->class->table(obj),
	};
	struct flow *flow;

	CHECK(attr.table && !flow_create(device.adapter[ETHERNET], &attr, &flow));
	return flow;
}

static uint8_t *entry_context(void)
{
	return in + FLOW_ENTRY_CONTEXT;
}

static void entry_begin(uint32_t op_mod, uint32_t changes, uint32_t action)
{
	begin(PRM_OP_SET_FLOW_TABLE_ENTRY);
	prm_set(in, CMD_IN_OP_MOD, op_mod);
	prm_set(in, FLOW_IN_TYPE, FLOW_TABLE_NIC_RX);
	prm_set(in, FLOW_IN_TABLE, tablen);
	prm_set(in, FLOW_ENTRY_CHANGES, changes);
	prm_set(entry_context(), FLOW_CONTEXT_GROUP, groupn);
	prm_set(entry_context(), FLOW_CONTEXT_ACTION, action);
}

static void entry_to(uint32_t tirn)
{
	prm_set(entry_context(), FLOW_CONTEXT_DESTS, 1);
	prm_set(in + FLOW_ENTRY_BYTES, FLOW_DEST_TYPE, FLOW_DEST_TIR);
	prm_set(in + FLOW_ENTRY_BYTES, FLOW_DEST_NUMBER, tirn);
}

static void frame(void)
{
	put_frame(&sq, sent, (uint8_t)sent, key);
	CHECK(ring(&sq, ++sent) && polled(&sq));
}

/* A frame comes to that queue alone, with that tag. */
static void expect_to(struct queue *q, uint32_t tag)
{
	const struct cqe64 *cqe;

	frame();
	cqe = polled(q);
	CHECK(cqe && be32_get(cqe->sop_drop_qpn) == tag);
	q->record[DBREC_RECV] = be32_of(ENTRIES + q->ci);
	CHECK(!polled(&a) && !polled(&b));
}

static void expect_dropped(void)
{
	frame();
	CHECK(!polled(&a) && !polled(&b));
}

static uint64_t counted(void)
{
	struct uobj *obj = uobj_any(&u.file, counter_handle);
	uint64_t packets, bytes;

	flow_counter_read(obj->class->counter(obj), &packets, &bytes);
	return packets;
}

static void table_up(void)
{
	begin(PRM_OP_CREATE_FLOW_TABLE);
	tablen = made(FLOW_TABLE_BYTES, &table);
	begin(PRM_OP_CREATE_FLOW_GROUP);
	prm_set(in, FLOW_IN_TABLE, tablen);
	groupn = made(FLOW_GROUP_BYTES, &group);
	entry_begin(1, 0, FLOW_ENTRY_FORWARD);
	entry_to(tirn_a);
	CHECK(create(ONE_DEST, &entry) == -EINVAL); /* there is nothing to change */
	entry_begin(0, 0, FLOW_ENTRY_FORWARD);
	entry_to(tirn_a);
	prm_set(entry_context(), FLOW_CONTEXT_TAG, 5);
	CHECK(!create(ONE_DEST, &entry));
}

static void test_changes(void)
{
	expect_to(&a, 5);
	CHECK(destroy(tir_a) == -EBUSY);
	/* where it leads; the tag of the command does not count */
	entry_begin(1, FLOW_CHANGE_DESTS, FLOW_ENTRY_FORWARD);
	entry_to(tirn_b);
	prm_set(entry_context(), FLOW_CONTEXT_TAG, 9);
	CHECK(!modify(entry, ONE_DEST));
	expect_to(&b, 5);
	CHECK(!destroy(tir_a) && destroy(tir_b) == -EBUSY);
	/* the tag alone */
	entry_begin(1, FLOW_CHANGE_TAG, 0);
	prm_set(entry_context(), FLOW_CONTEXT_TAG, 9);
	CHECK(!modify(entry, FLOW_ENTRY_BYTES));
	expect_to(&b, 9);
	/* the action, and back: the list is still there */
	entry_begin(1, FLOW_CHANGE_ACTION, FLOW_ENTRY_DROP);
	CHECK(!modify(entry, FLOW_ENTRY_BYTES));
	expect_dropped();
	entry_begin(1, FLOW_CHANGE_ACTION | FLOW_CHANGE_COUNTERS,
		    FLOW_ENTRY_FORWARD | FLOW_ENTRY_COUNT);
	prm_set(entry_context(), FLOW_CONTEXT_COUNTERS, 1);
	prm_set(in + FLOW_ENTRY_BYTES, FLOW_DEST_COUNTER, counter);
	CHECK(!modify(entry, ONE_DEST));
	expect_to(&b, 9);
	CHECK(counted() == 1);
	/* no change at all */
	entry_begin(1, 0, 0);
	CHECK(!modify(entry, FLOW_ENTRY_BYTES));
	expect_to(&b, 9);
	CHECK(counted() == 2);
	entry_begin(1, FLOW_CHANGE_ACTION, FLOW_ENTRY_FORWARD);
	CHECK(!modify(entry, FLOW_ENTRY_BYTES));
	expect_to(&b, 9);
	CHECK(counted() == 2);
}

/* What is refused leaves the entry as it is. */
static void test_refusals(void)
{
	entry_begin(2, FLOW_CHANGE_ACTION, FLOW_ENTRY_DROP);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EINVAL);
	entry_begin(1, FLOW_CHANGE_ACTION, FLOW_ENTRY_DROP);
	prm_set(in, FLOW_ENTRY_INDEX, 1);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EINVAL);
	entry_begin(1, FLOW_CHANGE_ACTION | 0x10, FLOW_ENTRY_DROP);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EREMOTEIO);
	entry_begin(1, FLOW_CHANGE_ACTION, FLOW_ENTRY_DROP | 0x10);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EREMOTEIO);
	entry_begin(1, FLOW_CHANGE_ACTION, FLOW_ENTRY_DROP);
	prm_set(in, FLOW_IN_TABLE, tablen + 1);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EREMOTEIO);
	entry_begin(1, FLOW_CHANGE_DESTS, FLOW_ENTRY_FORWARD);
	entry_to(tirn_b);
	CHECK(modify(entry, FLOW_ENTRY_BYTES) == -EREMOTEIO); /* the list is cut off */
	entry_to(tirn_b);
	prm_set(in + FLOW_ENTRY_BYTES, FLOW_DEST_TYPE, 7);
	CHECK(modify(entry, ONE_DEST) == -EREMOTEIO);
	expect_to(&b, 9);
}

int main(void)
{
	int skipped = queues_up();
	struct flow *flow;

	if (skipped)
		return skipped;
	rq_up(&a);
	rq_up(&b);
	sq_up(&sq);
	tir_request(&a);
	tirn_a = made(TIR_BYTES, &tir_a);
	tir_request(&b);
	tirn_b = made(TIR_BYTES, &tir_b);
	begin(PRM_OP_ALLOC_FLOW_COUNTER);
	CHECK(!create(CMD_IN_BYTES, &counter_handle));
	counter = prm_get32(out, FLOW_COUNTER_OUT_NUMBER);
	table_up();
	flow = rule_to_table();
	test_changes();
	test_refusals();
	flow_destroy(flow);
	CHECK(!destroy(entry) && !destroy(group) && !destroy(table) && !destroy(tir_b) &&
	      !destroy(counter_handle));
	queue_down(&a);
	queue_down(&b);
	queue_down(&sq);
	return queues_down();
}
