// SPDX-License-Identifier: BSD-2-Clause
/*
 * Taps: what is sent and what is delivered is seen, packet by packet, for as long as somebody
 * looks.
 */
#include "test_fabric.h"
#include "wire/pkt.h"
#include "wire/tap.h"

#define MTU 1024u

struct watcher {
	struct tap tap;
	unsigned seen[2]; /* by enum tap_point */
	uint32_t port_row;
	struct pkt last;
};

static struct test_process a, b;
static unsigned got_a, got_b;
static struct watcher watch_a, watch_b;

static void tap_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
		       const struct pkt *p)
{
	struct watcher *w = container_of(t, struct watcher, tap);

	/* On loopback nothing is delivered before it was sent. */
	if (at == TAP_DELIVERED && p->path->src_port == p->path->dst_port)
		CHECK(w->seen[TAP_DELIVERED] < w->seen[TAP_SENT]);
	/* What has left already has a time, and whoever orders packets knows that it is to come. */
	CHECK(!ns == (at == TAP_DELIVERED || p->path->src_port == p->path->dst_port));
	if (ns) {
		uint64_t since = sending_earliest(&wire_slots(a.wire)[wire_slot(a.wire)]);

		CHECK(since && since <= ns);
	}
	w->seen[at]++;
	w->port_row = port_row;
	w->last = *p;
}

static void receive_packet(void *user, const struct pkt *p)
{
	(void)p;
	++*(unsigned *)user;
}

static void watch_process(struct test_process *st, struct watcher *w)
{
	*w = (struct watcher){.tap.packet = tap_packet};
	wire_tap_attach(st->host, &w->tap);
}

static uint32_t largest_payload(struct test_process *from, const struct path *path, uint16_t to)
{
	return wire_max_payload(from->wire, path, test_fabric_qpn(to), MTU, true);
}

static enum wire_verdict send_psn(struct test_process *from, const struct path *path, uint16_t to,
				  uint32_t psn)
{
	static unsigned char bytes[MTU];
	const struct run run = {bytes, sizeof(bytes)};
	struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY,
			.dqpn = test_fabric_qpn(to),
			.psn = psn,
			.npkts = 1,
			.path = path,
			.payload_len = MTU,
			.nruns = 1,
			.runs = &run};

	return wire_xmit(from->wire, &p);
}

static void test_loopback(void)
{
	const struct path self = {.src_port = 0, .dst_port = 0};
	struct watcher second;

	CHECK(!atomic_load(wire_observers(a.wire)) && largest_payload(&a, &self, 0) > MTU);
	watch_process(&a, &watch_a);
	watch_process(&a, &second);
	CHECK(atomic_load(wire_observers(a.wire)) == 2 && largest_payload(&a, &self, 0) == MTU);
	/* Without an MTU: what any link takes. */
	CHECK(wire_max_payload(a.wire, &self, test_fabric_qpn(0), 0, true) >= 4096);
	CHECK(send_psn(&a, &self, 0, 7) == WIRE_SENT && got_a == 1);
	CHECK(watch_a.seen[TAP_SENT] == 1 && watch_a.seen[TAP_DELIVERED] == 1);
	CHECK(watch_a.last.psn == 7 && watch_a.last.payload_len == MTU && !watch_a.port_row);
	wire_tap_detach(a.host, &watch_a.tap);
	CHECK(largest_payload(&a, &self, 0) == MTU);
	CHECK(send_psn(&a, &self, 0, 8) == WIRE_SENT);
	CHECK(watch_a.seen[TAP_SENT] == 1 && second.seen[TAP_SENT] == 2);
	wire_tap_detach(a.host, &second.tap);
	wire_tap_detach(a.host, &second.tap);
	CHECK(!atomic_load(wire_observers(a.wire)) && largest_payload(&a, &self, 0) > MTU);
	CHECK(send_psn(&a, &self, 0, 9) == WIRE_SENT && second.seen[TAP_SENT] == 2);
}

static void drain_both(void)
{
	while (wire_process_progress(b.host))
		;
}

/* Whichever of the two is observed, packets between them have the path MTU. */
static void between_processes(struct test_fabric *fabric)
{
	uint32_t psn = 0;

	CHECK(send_psn(&a, &a.path, 1, psn++) == WIRE_SENT);
	test_process_add_channel(&b);
	drain_both();
	CHECK(got_b == 1 && largest_payload(&a, &a.path, 1) > MTU);
	watch_process(&b, &watch_b);
	CHECK(largest_payload(&a, &a.path, 1) == MTU && largest_payload(&b, &b.path, 0) == MTU);
	CHECK(send_psn(&a, &a.path, 1, psn++) == WIRE_SENT);
	drain_both();
	CHECK(watch_b.seen[TAP_DELIVERED] == 1 && !watch_b.seen[TAP_SENT]);
	CHECK(watch_b.port_row == 1 && watch_b.last.psn == 1);

	/* What found no room was not sent. */
	watch_process(&a, &watch_a);
	while (send_psn(&a, &a.path, 1, psn) == WIRE_SENT)
		psn++;
	CHECK(watch_a.seen[TAP_SENT] == psn - 2 && watch_a.last.psn == psn - 1);
	drain_both();
	CHECK(watch_b.seen[TAP_DELIVERED] == psn - 1 && watch_b.last.psn == psn - 1);
	/* Nor what has no way. */
	subnet_set_state(&fabric->subnet, 1, IB_PORT_DOWN);
	CHECK(send_psn(&a, &a.path, 1, psn) == WIRE_LOST);
	CHECK(watch_a.seen[TAP_SENT] == psn - 2);
	CHECK(sending_earliest(&wire_slots(a.wire)[wire_slot(a.wire)]) == UINT64_MAX);
	subnet_set_state(&fabric->subnet, 1, IB_PORT_ACTIVE);

	wire_tap_detach(b.host, &watch_b.tap);
	CHECK(largest_payload(&a, &a.path, 1) == MTU && largest_payload(&b, &b.path, 0) == MTU);
	wire_tap_detach(a.host, &watch_a.tap);
	CHECK(largest_payload(&a, &a.path, 1) > MTU);
}

/* A packet to many is sent once, and delivered where somebody wants it. */
static void to_many(void)
{
	const struct path group = {.src_port = 0, .grh = true, .dgid.raw = {0xff, 0x12}};
	struct pkt p = {.opcode = BTH_UD | BTH_SEND_ONLY,
			.dqpn = IB_MULTICAST_QPN,
			.npkts = 1,
			.path = &group};

	watch_process(&a, &watch_a);
	watch_process(&b, &watch_b);
	wire_listen(b.wire, wire_group(&group.dgid));
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	drain_both();
	CHECK(watch_a.seen[TAP_SENT] == 1 && !watch_a.seen[TAP_DELIVERED]);
	CHECK(!watch_b.seen[TAP_DELIVERED]); /* the port has no client for groups */
	wire_unlisten(b.wire, wire_group(&group.dgid));
	wire_tap_detach(a.host, &watch_a.tap);
	wire_tap_detach(b.host, &watch_b.tap);
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();

	test_process_up(&a, fabric, 0, receive_packet, &got_a);
	test_process_up(&b, fabric, 1, receive_packet, &got_b);
	test_loopback();
	between_processes(fabric);
	to_many();
	test_process_down(&a);
	test_process_down(&b);
	return 0;
}
