/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire within one process: loopback, routes, port states, counters and their sizes.
 */
#include <string.h>

#include "test_fabric.h"
#include "wire/process.h"
#include "wire/route.h"
#include "wire/pkt.h"

static struct test_process a;
static unsigned received;
static struct pkt last;
static uint32_t answers; /* how often receive sends a packet of its own */

static void receive_packet(void *user, const struct pkt *p)
{
	CHECK(user == &a);
	received++;
	last = *p;
	if (answers) {
		struct pkt again = *p;

		answers--;
		again.psn++;
		CHECK(wire_xmit(a.wire, &again) == WIRE_SENT);
	}
}

static void test_loopback(struct test_fabric *fabric)
{
	static unsigned char payload[3000];
	struct run runs[2] = {{payload, 1000}, {payload + 1000, 2000}};
	struct path self = {.src_port = 0, .dst_port = 0};
	struct pkt p = {
		.opcode = BTH_RC | BTH_WRITE_ONLY,
		.dqpn = test_fabric_qpn(0) + 5,
		.npkts = 3,
		.path = &self,
		.payload_len = 3000,
		.runs = runs,
		.nruns = 2,
	};

	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	/* By reference all the way: the same runs. */
	CHECK(received == 1 && last.runs == runs && last.nruns == 2 && last.path == &self);
	/* LRH 8 + BTH 12 + ICRC 4 each, one RETH 16. */
	CHECK(test_process_counter(&a, PORT_XMIT_DATA) == (3 * 24 + 16 + 3000) / 4);
	CHECK(test_process_counter(&a, PORT_RCV_DATA) == (3 * 24 + 16 + 3000) / 4);
	CHECK(test_process_counter(&a, PORT_XMIT_PACKETS) == 3);
	CHECK(test_process_counter(&a, PORT_RCV_PACKETS) == 3);
	CHECK(wire_max_payload(a.wire, &self, p.dqpn, 4096, false) == IB_MAX_MSG_BYTES);
	CHECK(wire_max_payload(a.wire, &self, p.dqpn, 1000, false) == 1073741000);

	answers = 10; /* a receiver may send: an acknowledgement does */
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	CHECK(received == 12 && last.psn == 10);

	/* Nobody owns that number; a multicast; a port that is not there; one that is down. */
	CHECK(!test_process_counter(&a, PORT_XMIT_DISCARDS));
	p.dqpn = 700u << REGISTRY_CHUNK_SHIFT;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	p.dqpn = IB_MULTICAST_QPN;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	p.dqpn = test_fabric_qpn(0);
	self.dst_port = TEST_FABRIC_PORTS;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	self.dst_port = UINT32_MAX;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	self.dst_port = 1; /* up, but of another host than the number's owner */
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	self.dst_port = 0;
	subnet_set_state(&fabric->subnet, 0, IB_PORT_INIT);
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	subnet_set_state(&fabric->subnet, 0, IB_PORT_ACTIVE);
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == 6 * 3);
	CHECK(received == 12);
	wire_attach(a.wire, NULL);
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST && received == 12);
}

/* A number is no address: the process that owns it must be on the host that the packet goes to. */
static void test_routes(struct test_fabric *fabric)
{
	struct path to_self = {.src_port = 0, .dst_port = 0};
	struct path to_other = {.src_port = 0, .dst_port = 1};

	CHECK(route_walk(a.wire, &to_self, test_fabric_qpn(0)) == 1);
	CHECK(route_walk(a.wire, &to_other, test_fabric_qpn(1)) == 2);
	CHECK(route_walk(a.wire, &to_self, test_fabric_qpn(1)) == 0);
	CHECK(route_walk(a.wire, &to_other, test_fabric_qpn(0)) == 0);
	CHECK(!strcmp(route_missing(a.wire, &to_self, test_fabric_qpn(1)),
		      "number-of-another-host"));
	CHECK(!strcmp(route_missing(a.wire, &to_other, 0), "not-to-smi"));
	CHECK(!strcmp(route_missing(a.wire, &to_other, 1), "not-to-gsi"));
	CHECK(!strcmp(route_missing(a.wire, &to_other, 2), "no-owner-of-number"));
	/* Two processes of one host. */
	atomic_store(&fabric->registry->slot_host_plus_1[1], 1);
	CHECK(route_walk(a.wire, &to_self, test_fabric_qpn(1)) == 2);
	CHECK(route_walk(a.wire, &to_other, test_fabric_qpn(1)) == 0);
	atomic_store(&fabric->registry->slot_host_plus_1[1], 2);
	CHECK(wire_max_payload(a.wire, &to_self, test_fabric_qpn(1), 4096, true) ==
	      wire_max_payload(a.wire, &to_self, 700u << REGISTRY_CHUNK_SHIFT, 4096, true));
}

static void expect_route(struct path *path, uint32_t dqpn, uint32_t owner_plus_1)
{
	CHECK(route_owner_plus_1(a.wire, path, dqpn) == owner_plus_1);
	CHECK(!owner_plus_1 ||
	      (atomic_load(&path->route->word) & ROUTE_OWNER_MASK) == owner_plus_1);
}

/* What is remembered holds until the epoch rises, and for that number alone. */
static void remembered_routes(struct test_fabric *fabric)
{
	struct route route = {0};
	struct path path = {.src_port = 0, .dst_port = 1, .route = &route};
	uint32_t qpn = test_fabric_qpn(1);

	expect_route(&path, qpn, 2);
	expect_route(&path, qpn + 1, 2);
	expect_route(&path, test_fabric_qpn(0), 0);
	expect_route(&path, qpn, 2);
	subnet_set_state(&fabric->subnet, 1, IB_PORT_DOWN);
	expect_route(&path, qpn, 0);
	subnet_set_state(&fabric->subnet, 1, IB_PORT_ACTIVE);
	expect_route(&path, qpn, 2);
	subnet_set_state(&fabric->subnet, 0, IB_PORT_DOWN);
	expect_route(&path, qpn, 0);
	subnet_set_state(&fabric->subnet, 0, IB_PORT_ACTIVE);

	/* The owner ends: the daemon frees its numbers, then raises the epoch. */
	expect_route(&path, qpn, 2);
	atomic_store(&fabric->registry->qpn_slot_plus_1[qpn >> REGISTRY_CHUNK_SHIFT], 0);
	CHECK(route_owner_plus_1(a.wire, &path, qpn) == 2);
	subnet_raise_epoch(&fabric->subnet);
	expect_route(&path, qpn, 0);
	/* Somebody gets the number: found without a new epoch. */
	atomic_store(&fabric->registry->qpn_slot_plus_1[qpn >> REGISTRY_CHUNK_SHIFT], 2);
	expect_route(&path, qpn, 2);
	route_forget(&route);
	CHECK(!atomic_load(&route.word));

	/* The peer is in this process: until the epoch rises, that is all there is to compare. */
	path.dst_port = 0;
	qpn = test_fabric_qpn(0);
	CHECK(!route_leads_here(&route, subnet_epoch(&fabric->subnet)));
	CHECK(route_here(a.wire, &path, qpn));
	CHECK(route_leads_here(&route, subnet_epoch(&fabric->subnet)));
	subnet_set_state(&fabric->subnet, 0, IB_PORT_DOWN);
	CHECK(!route_leads_here(&route, subnet_epoch(&fabric->subnet)));
	CHECK(!route_here(a.wire, &path, qpn));
	CHECK(!route_leads_here(&route, subnet_epoch(&fabric->subnet)));
	subnet_set_state(&fabric->subnet, 0, IB_PORT_ACTIVE);
	CHECK(route_here(a.wire, &path, qpn) && !route_here(a.wire, &path, test_fabric_qpn(1)));
	CHECK(route_leads_here(&route, subnet_epoch(&fabric->subnet)));

	/* It is in another one, which is remembered likewise; that it is nowhere is not. */
	route_forget(&route);
	qpn = test_fabric_qpn(1);
	path.dst_port = 1;
	CHECK(!route_leads_away(&route, subnet_epoch(&fabric->subnet)));
	atomic_store(&fabric->registry->qpn_slot_plus_1[qpn >> REGISTRY_CHUNK_SHIFT], 0);
	CHECK(!route_here(a.wire, &path, qpn));
	CHECK(!route_leads_away(&route, subnet_epoch(&fabric->subnet)));
	atomic_store(&fabric->registry->qpn_slot_plus_1[qpn >> REGISTRY_CHUNK_SHIFT], 2);
	CHECK(!route_here(a.wire, &path, qpn));
	CHECK(route_leads_away(&route, subnet_epoch(&fabric->subnet)));
	subnet_raise_epoch(&fabric->subnet);
	CHECK(!route_leads_away(&route, subnet_epoch(&fabric->subnet)));
	CHECK(!route_leads_here(&route, subnet_epoch(&fabric->subnet)));
}

/* A process that cannot be reached is asked for once, not with every packet. */
static void test_unreachable(struct test_fabric *fabric)
{
	struct pkt p = {.opcode = BTH_RC | BTH_ACK, .dqpn = test_fabric_qpn(1), .path = &a.path};

	atomic_store(&fabric->slots[1].alive, 0);
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST && !atomic_load(&fabric->opened));
	atomic_store(&fabric->slots[1].alive, 1);
	fabric->refuse = true;
	for (int i = 0; i < 1000; i++)
		CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	CHECK(atomic_load(&fabric->opened) >= 1 && atomic_load(&fabric->opened) < 100);
	usleep(11000);
	fabric->refuse = false;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
}

static void test_sizes(void)
{
	struct path path = {0};
	struct pkt p = {.opcode = BTH_UD | BTH_SEND_ONLY_IMM, .npkts = 1, .path = &path};

	p.payload_len = 5; /* padded to 8 */
	CHECK(pkt_wire_octets(&p, false) == 8 + 12 + 8 + 4 + 8 + 4);
	path.grh = true;
	CHECK(pkt_wire_octets(&p, false) == 8 + 40 + 12 + 8 + 4 + 8 + 4);
	CHECK(pkt_wire_octets(&p, true) == 14 + 40 + 8 + 12 + 8 + 4 + 8 + 4 + 4);
	path.sgid.raw[10] = path.sgid.raw[11] = 0xff;
	CHECK(pkt_wire_octets(&p, true) == 14 + 20 + 8 + 12 + 8 + 4 + 8 + 4 + 4);
	path.roce_v1 = true;
	CHECK(pkt_wire_octets(&p, true) == 14 + 40 + 12 + 8 + 4 + 8 + 4 + 4);
	path = (struct path){0};
	p = (struct pkt){.opcode = BTH_RC | BTH_READ_REQUEST, .npkts = 100, .path = &path};
	CHECK(pkt_wire_packets(&p) == 1 && pkt_wire_octets(&p, false) == 24 + 16);
	p.opcode = BTH_RC | BTH_READ_RESP_ONLY;
	p.payload_len = 100 * 256;
	CHECK(pkt_wire_packets(&p) == 100);
	CHECK(pkt_wire_octets(&p, false) == 100 * 24 + 2 * 4 + 100 * 256);
	p = (struct pkt){.opcode = BTH_XRC | BTH_FETCH_ADD, .npkts = 1, .path = &path};
	CHECK(pkt_wire_octets(&p, false) == 24 + 4 + 28);
	p.opcode = BTH_RC | BTH_ATOMIC_ACK;
	CHECK(pkt_wire_octets(&p, false) == 24 + 4 + 8);
}

static void test_properties(void)
{
	for (unsigned op = 0; op < BTH_OP_COUNT; op++) {
		const struct bth_props *p = &bth_props[op];
		bool known = p->request || p->response;

		CHECK(known == !!strcmp(bth_op_name((uint8_t)op), "RESERVED"));
		CHECK(!(p->request && p->response));
		CHECK(p->send + p->write + p->read + p->atomic <= 1);
		CHECK(!p->imm || p->last);
		CHECK(!p->aeth || p->response);
		CHECK(!p->reth || (p->request && p->first));
		CHECK(p->atomic_eth == (p->atomic && p->request));
		CHECK(p->atomic_ack == (p->atomic && p->response));
	}
	CHECK(!strcmp(bth_op_name(BTH_XRC | BTH_WRITE_LAST_IMM), "WRITE_LAST_IMM"));
}

/* ---- a link of another kind ---- */

static struct pkt carried;
static uint32_t carried_to, drains;
static enum wire_verdict carry_verdict;

static enum wire_verdict carry_packet(struct link *l, uint32_t to, const struct pkt *p)
{
	CHECK(l->process == a.host);
	carried = *p;
	carried_to = to;
	return carry_verdict;
}

static uint32_t carry_max(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	CHECK(to == 2 && by_reference_ok);
	return 9000;
}

static bool carry_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

static bool carry_drain(struct link *l)
{
	struct path self = {.src_port = 1};
	struct pkt p = {.opcode = BTH_RC | BTH_ACK, .dqpn = test_fabric_qpn(0), .path = &self};

	return !drains++ && wire_process_deliver(l->process, &p);
}

/* An owner that is no process of this machine: what goes there and what comes from there takes
 * another link, and the wire is none the wiser. */
static void other_links(struct test_fabric *fabric)
{
	static const struct link_ops ops = {.xmit = carry_packet,
					    .max_payload = carry_max,
					    .has_room = carry_has_room,
					    .drain = carry_drain};
	struct link l = {.ops = &ops, .fd = -1};
	struct pkt p = {.opcode = BTH_RC | BTH_ACK,
			.dqpn = test_fabric_qpn(1),
			.path = &a.path,
			.npkts = 1};
	uint64_t sent = test_process_counter(&a, PORT_XMIT_PACKETS);
	uint64_t lost = test_process_counter(&a, PORT_XMIT_DISCARDS);
	uint64_t got = test_process_counter(&a, PORT_RCV_PACKETS);
	unsigned before = received;

	wire_process_add_link(a.host, &l, 2, 3);
	CHECK(wire_max_payload(a.wire, &a.path, p.dqpn, 4096, true) == 8192);
	carry_verdict = WIRE_BUSY;
	CHECK(wire_xmit(a.wire, &p) == WIRE_BUSY && carried_to == 2);
	CHECK(carried.dqpn == p.dqpn && carried.path == p.path);
	CHECK(test_process_counter(&a, PORT_XMIT_PACKETS) == sent);
	carry_verdict = WIRE_LOST;
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == lost + 1);
	carry_verdict = WIRE_SENT;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	CHECK(test_process_counter(&a, PORT_XMIT_PACKETS) == sent + 1);
	wire_withdraw(a.wire, p.dqpn, 1); /* it has nothing to take back */
	CHECK(!wire_remote(a.wire, &a.path, p.dqpn));
	CHECK(!route_here(a.wire, &a.path, p.dqpn));

	CHECK(wire_process_progress(a.host) && received == before + 1);
	CHECK(test_process_counter(&a, PORT_RCV_PACKETS) == got + 1);
	CHECK(!wire_process_progress(a.host) && drains == 2);
	/* Still lost at a port that is down. */
	subnet_set_state(&fabric->subnet, 1, IB_PORT_DOWN);
	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST);
	subnet_set_state(&fabric->subnet, 1, IB_PORT_ACTIVE);
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct wire *w;

	test_properties();
	test_sizes();
	test_process_up(&a, fabric, 0, receive_packet, &a);
	CHECK(wire_create(a.host, TEST_FABRIC_PORTS, &w));
	CHECK(wire_port_row(a.wire) == 0 && wire_subnet(a.wire) == &fabric->subnet);
	test_loopback(fabric);
	test_routes(fabric);
	remembered_routes(fabric);
	test_unreachable(fabric);
	test_process_down(&a);
	test_process_up(&a, fabric, 0, receive_packet, &a);
	other_links(fabric);
	test_process_down(&a);
	return 0;
}
