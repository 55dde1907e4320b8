// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connection whose port is controlled: what its row adds up, that it keeps to the rate, and that the row goes
 * back.
 *
 *     device_qp a --- WRITE, loopback --- device_qp b
 */
#include "adapter/qp/flow.h"

#include <string.h>

#include "adapter_device.h"
#include "base/clock.h"
#include "base/hazard.h"
#include "check.h"
#include "wire/flow_control.h"

#define BYTES	   60000u
#define SMALL	   64u
#define PATIENT_NS 60000000000ull
/* The least time between two notifications. */
#define CNP_APART_NS 50000u

static struct test_device device;
static struct device_qp a, b;
static struct mkey *source, *target;
static uint32_t lkey, rkey;
static uint8_t src[BYTES], dst[BYTES];

/* What who controls the port has heard. */
static struct {
	unsigned calls;
	uint32_t events; /* bits */
} told;

static void on_changed(void *user, uint16_t slot, uint32_t row)
{
	(void)user;
	CHECK(slot == 0);
	told.calls++;
	told.events |= atomic_exchange(&device.slots[0].flows[row].happened, 0);
}

static void both_up(void)
{
	device_up(&device);
	atomic_store(&device.registry->slots_used[0], 1);
	device_qp_up(&device, 0, &a, IB_QPT_RC);
	device_qp_up(&device, 0, &b, IB_QPT_RC);
	device_connect(&device, 0, &a, &b);
	lkey = device_mr(&device, 0, a.pdn, src, BYTES, DEVICE_ALL_ACCESS, &source);
	rkey = device_mr(&device, 0, b.pdn, dst, BYTES, DEVICE_ALL_ACCESS, &target);
	memset(&told, 0, sizeof(told));
}

static void both_down(void)
{
	device_qp_down(&a);
	device_qp_down(&b);
	mkey_destroy(device.adapter[0], source);
	mkey_destroy(device.adapter[0], target);
	device_down(&device);
}

static void control_begin(void)
{
	CHECK(!flow_control_begin(device.host, 0, on_changed, NULL));
}

static void post_write(uint32_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(&a, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)dst, rkey);
	device_wqe_data(&w, src, bytes, lkey);
	device_wqe_end(&w);
}

static void progress(void)
{
	uint64_t next = UINT64_MAX;

	(void)adapter_progress(device.adapter[0], &next);
	(void)wire_process_progress(device.host);
}

static void await_completion(void)
{
	uint64_t end = clock_ns() + PATIENT_NS;
	const struct cqe64 *cqe;

	while (!(cqe = device_cq_poll(&a.cq))) {
		CHECK(clock_ns() < end);
		progress();
	}
	CHECK(cqe->op_own >> 4 == CQE_OP_REQ);
}

static void write_done(uint32_t bytes)
{
	post_write(bytes);
	await_completion();
	progress();
}

static uint64_t counter(enum port_counter c)
{
	uint64_t n = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		n += device.slots[0].counters[shard][0][c];
	return n;
}

static unsigned rows_taken(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SLOT_FLOWS; i++)
		n += !!atomic_load(&device.slots[0].flows[i].qpn);
	return n;
}

static void test_uncontrolled(void)
{
	both_up();
	write_done(BYTES);
	CHECK(!flow_row(a.qp) && !rows_taken() && !flow_holds_back(a.qp));
	/* Nobody hears of these. */
	flow_refused(a.qp, FLOW_NACK_RNR);
	CHECK(!rows_taken());
	both_down();
}

static void test_sent(void)
{
	const struct slot_flow *row;
	uint32_t packets;

	both_up();
	control_begin();
	write_done(SMALL);
	row = flow_row(a.qp);
	CHECK(row && rows_taken() == 1 && atomic_load(&row->qpn) == a.qp->qpn);
	CHECK(flow_sent_packets(atomic_load(&row->sent)) == 1 &&
	      flow_sent_bytes(atomic_load(&row->sent)) > SMALL);
	CHECK(told.events == 1u << FLOW_TX && told.calls == 1 && atomic_load(&row->first_ns));
	packets = flow_sent_packets(atomic_load(&row->sent));
	write_done(BYTES);
	CHECK(flow_row(a.qp) == row && flow_sent_bytes(atomic_load(&row->sent)) > SMALL + BYTES);
	CHECK(flow_sent_packets(atomic_load(&row->sent)) > packets + 1 && told.calls > 1);
	CHECK(!memcmp(src, dst, BYTES));
	/* who answers has no flow */
	CHECK(!flow_row(b.qp));
	both_down();
}

/* The slowest rate there is lets some packets through and holds the others back, until it rises. */
static void test_rate(void)
{
	struct slot_flow *row;

	both_up();
	control_begin();
	write_done(SMALL);
	row = flow_row(a.qp);
	atomic_store(&row->rate, 1);
	post_write(BYTES);
	CHECK(flow_holds_back(a.qp) && !device_cq_poll(&a.cq));
	CHECK(flow_sent_bytes(atomic_load(&row->sent)) < BYTES);
	atomic_store(&row->rate, 0);
	await_completion();
	CHECK(!flow_holds_back(a.qp) && flow_sent_bytes(atomic_load(&row->sent)) > BYTES);
	/* as fast as the port, or faster */
	atomic_store(&row->rate, 1u << FLOW_RATE_BITS);
	write_done(BYTES);
	both_down();
}

/* Who controlled it has ended, or has died: what waits goes on, and the row goes back. */
static void test_ends(bool dies)
{
	both_up();
	control_begin();
	write_done(SMALL);
	atomic_store(&flow_row(a.qp)->rate, 1);
	post_write(BYTES);
	CHECK(flow_holds_back(a.qp));
	if (dies)
		/* The word names a process whose generation has gone. */
		atomic_fetch_add(&device.slots[0].alive, 1);
	else
		flow_control_end(device.host, 0);
	CHECK(dies || !flow_holds_back(a.qp));
	await_completion();
	CHECK(!atomic_load(&device.slots[0].flows_by[0]) &&
	      !atomic_load(&device.slots[0].observers));
	/* Who finds the one dead gives the row back; of one that has ended nobody hears who is not observed. */
	CHECK(rows_taken() == !dies);
	if (dies)
		CHECK(!flow_row(a.qp));
	write_done(BYTES);
	flow_control_end(device.host, 0);
	control_begin();
	write_done(BYTES);
	CHECK(rows_taken() == 1 && !atomic_load(&flow_row(a.qp)->rate));
	both_down();
}

static void test_row_of_another(void)
{
	both_up();
	control_begin();
	write_done(SMALL);
	CHECK(rows_taken() == 1);
	flow_end(a.qp);
	CHECK(!rows_taken());
	/* No row is left: it sends without one. */
	for (unsigned i = 0; i < SLOT_FLOWS; i++)
		atomic_store(&device.slots[0].flows[i].qpn, 1);
	write_done(BYTES);
	CHECK(!flow_row(a.qp) && !memcmp(src, dst, BYTES));
	/* One that becomes free is found, and has nothing of the flow before it. */
	atomic_store(&device.slots[0].flows[7].cnps, 5);
	atomic_store(&device.slots[0].flows[7].rate, 1);
	atomic_store(&device.slots[0].flows[7].qpn, 0);
	write_done(BYTES);
	CHECK(flow_row(a.qp) == &device.slots[0].flows[7]);
	CHECK(!atomic_load(&flow_row(a.qp)->cnps) && !atomic_load(&flow_row(a.qp)->rate));
	both_down();
}

static void test_destroyed(void)
{
	both_up();
	control_begin();
	write_done(SMALL);
	CHECK(rows_taken() == 1);
	device_qp_down(&a);
	CHECK(!rows_taken());
	device_qp_up(&device, 0, &a, IB_QPT_RC);
	both_down();
}

/* A request of a came to b through a port that is congested. */
static void congested(uint32_t sqpn)
{
	const struct path path = {.src_port = a.qp->path.src_port,
				  .dst_port = a.qp->path.dst_port,
				  .slid = b.qp->path.dlid,
				  .dlid = a.qp->path.dlid};
	const struct pkt pkt = {.opcode = BTH_RC | BTH_WRITE_ONLY,
				.dqpn = b.qp->qpn,
				.sqpn = sqpn,
				.npkts = 1,
				.path = &path};

	hazard_enter();
	flow_congested(b.qp, &pkt);
	hazard_leave();
}

static void test_notified(void)
{
	uint64_t begin, took;
	uint32_t cnps;

	both_up();
	control_begin();
	write_done(SMALL);
	told.events = 0;
	begin = clock_ns();
	congested(a.qp->qpn);
	congested(a.qp->qpn);
	took = clock_ns() - begin;
	progress();
	cnps = atomic_load(&flow_row(a.qp)->cnps);
	CHECK(cnps == 1 || (cnps == 2 && took >= CNP_APART_NS));
	CHECK(counter(HW_NP_ECN_MARKED) == 2 && counter(HW_NP_CNP_SENT) == cnps &&
	      counter(HW_RP_CNP_HANDLED) == cnps);
	CHECK(told.events == 1u << FLOW_CNP);
	both_down();
}

static void test_stranger(void)
{
	const struct path path = a.qp->path;
	struct pkt cnp = {.opcode = BTH_CNP | 1u, .npkts = 1, .path = &path};

	cnp.dqpn = a.qp->qpn;
	cnp.sqpn = b.qp->qpn + 1;
	hazard_enter();
	flow_receive(a.qp, &cnp);
	CHECK(!atomic_load(&flow_row(a.qp)->cnps));
	cnp.sqpn = b.qp->qpn;
	flow_receive(a.qp, &cnp);
	CHECK(atomic_load(&flow_row(a.qp)->cnps) == 1);
	/* no such opcode */
	cnp.opcode = BTH_CNP | 2u;
	flow_receive(a.qp, &cnp);
	CHECK(atomic_load(&flow_row(a.qp)->cnps) == 1);
	hazard_leave();
}

static void test_probe(void)
{
	struct slot_flow *row;

	both_up();
	control_begin();
	write_done(SMALL);
	row = flow_row(a.qp);
	told.events = 0;
	atomic_fetch_add(&row->probes, 1);
	write_done(SMALL);
	CHECK(told.events & 1u << FLOW_RTT);
	CHECK(atomic_load(&row->probe_sent_ns) &&
	      atomic_load(&row->probe_sent_ns) <= atomic_load(&row->probe_received_ns) &&
	      atomic_load(&row->probe_received_ns) <= atomic_load(&row->probe_answered_ns) &&
	      atomic_load(&row->probe_answered_ns) <= atomic_load(&row->probe_back_ns));
	/* one for each that was asked for */
	told.events = 0;
	write_done(SMALL);
	CHECK(!(told.events & 1u << FLOW_RTT));
	test_stranger();
	both_down();
}

static void test_refused(void)
{
	both_up();
	control_begin();
	write_done(SMALL);
	told.events = 0;
	flow_refused(a.qp, FLOW_NACK_SEQUENCE);
	flow_refused(a.qp, FLOW_NACK_RNR);
	progress();
	CHECK(atomic_load(&flow_row(a.qp)->nacks) == 2);
	CHECK(atomic_load(&flow_row(a.qp)->nack_kind) == FLOW_NACK_RNR);
	CHECK(told.events == 1u << FLOW_NACK);
	both_down();
}

int main(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		src[i] = (uint8_t)(i * 7 + i / 256);
	test_uncontrolled();
	test_sent();
	test_rate();
	test_ends(false);
	test_ends(true);
	test_row_of_another();
	test_destroyed();
	test_notified();
	test_probe();
	test_refused();
	return 0;
}
