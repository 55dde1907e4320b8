// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams to queue pair 1 go to the daemon, and those that the daemon brings come to queue pairs. */
#include <string.h>

#include "prm/mad.h"
#include "test_fabric.h"
#include "wire/gsi.h"
#include "wire/route.h"

static struct test_process a;
static struct gsi_datagram sent;
static uint32_t nsent, received;
static bool busy;
static struct pkt last;
static struct path last_path;
static uint8_t last_payload[MAD_BYTES];

static bool send_gsi(void *user, const struct gsi_datagram *d)
{
	CHECK(user == &a);
	sent = *d;
	nsent += !busy;
	return !busy;
}

static void receive_packet(void *user, const struct pkt *p)
{
	CHECK(user == &a && p->nruns == 1 && p->runs[0].len == MAD_BYTES);
	last = *p;
	last_path = *p->path;
	memcpy(last_payload, p->runs[0].addr, MAD_BYTES);
	received++;
}

static uint8_t mad[MAD_BYTES + 1];

static void expect_lost(struct pkt p, const char *why)
{
	uint64_t discards = test_process_counter(&a, PORT_XMIT_DISCARDS);
	uint32_t before = nsent;

	CHECK(wire_xmit(a.wire, &p) == WIRE_LOST && nsent == before);
	CHECK(test_process_counter(&a, PORT_XMIT_DISCARDS) == discards + 1);
	CHECK(!strcmp(route_missing(a.wire, p.path, p.dqpn), why));
}

static void sends(struct test_fabric *fabric, bool ethernet)
{
	struct run run = {mad, MAD_BYTES};
	/* The process finds no way to that LID: the daemon may. */
	struct path path = {.src_port = 0,
			    .dst_port = SUBNET_NONE,
			    .slid = 7,
			    .dlid = 9,
			    .sl = 3,
			    .grh = true,
			    .hop_limit = 5,
			    .traffic_class = 6,
			    .flow_label = 0x12345,
			    .roce_v1 = ethernet};
	struct pkt p = {.opcode = BTH_UD | BTH_SEND_ONLY,
			.pkey = 0xffff,
			.dqpn = 1,
			.sqpn = test_fabric_qpn(0) + 1,
			.qkey = 0x80010000,
			.npkts = 1,
			.path = &path,
			.payload_len = MAD_BYTES,
			.nruns = 1,
			.runs = &run};

	path.sgid.raw[0] = 1;
	path.dgid.raw[0] = 2;
	mad[0] = 1;
	mad[MAD_BYTES - 1] = 0x55;
	nsent = 0;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT && nsent == 1);
	CHECK(sent.row == 0 && sent.qpn == p.sqpn && sent.qkey == p.qkey && sent.pkey == 0xffff);
	CHECK(sent.slid == 7 && sent.dlid == 9 && sent.sl == 3 && sent.hop_limit == 5);
	CHECK(sent.grh && sent.traffic_class == 6 && sent.flow_label == 0x12345);
	CHECK(sent.roce_v1 == ethernet && sent.sgid.raw[0] == 1 && sent.dgid.raw[0] == 2);
	CHECK(!memcmp(sent.mad, mad, MAD_BYTES));
	/* The daemon counts it. */
	CHECK(!test_process_counter(&a, PORT_XMIT_PACKETS));
	/* What is missing is 0. */
	run.len = p.payload_len = 24;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT && nsent == 2 && sent.mad[0] == 1);
	for (uint32_t i = 24; i < MAD_BYTES; i++)
		CHECK(!sent.mad[i]);

	run.len = p.payload_len = MAD_BYTES + 1;
	expect_lost(p, "not-to-gsi");
	run.len = p.payload_len = MAD_BYTES;
	p.opcode = BTH_UC | BTH_SEND_ONLY;
	expect_lost(p, "not-to-gsi");
	p.opcode = BTH_UD | BTH_SEND_ONLY;
	busy = true;
	expect_lost(p, "not-to-gsi");
	busy = false;
	p.dqpn = 0;
	expect_lost(p, "not-to-smi");
	p.dqpn = 1;
	subnet_set_state(&fabric->subnet, 0, IB_PORT_INIT);
	expect_lost(p, "port-down");
	subnet_set_state(&fabric->subnet, 0, IB_PORT_ACTIVE);
	p.dqpn = 2;
	expect_lost(p, "peer-port-down");
}

static void receives(bool ethernet)
{
	struct gsi_datagram d = {.row = 0,
				 .qpn = test_fabric_qpn(0) + 2,
				 .qkey = 0x80010000,
				 .slid = 9,
				 .dlid = 7,
				 .pkey = 0x7fff,
				 .sl = 4,
				 .grh = 1,
				 .roce_v1 = ethernet};

	d.sgid.raw[0] = 2;
	d.mad[MAD_BYTES - 1] = 0x66;
	received = 0;
	CHECK(!wire_process_progress(a.host));
	/* The engine sleeps. */
	atomic_store(&a.fabric->slots[0].driver, SLOT_NOBODY);
	wire_process_take_gsi(a.host, &d);
	CHECK(atomic_load(&a.fabric->slots[0].driver) == SLOT_ENGINE && !received);
	CHECK(wire_process_progress(a.host) && received == 1);
	CHECK(last.opcode == (BTH_UD | BTH_SEND_ONLY) && last.sqpn == 1 && last.dqpn == d.qpn);
	CHECK(last.qkey == d.qkey && last.pkey == 0x7fff && last.payload_len == MAD_BYTES);
	CHECK(last_path.slid == 9 && last_path.dlid == 7 && last_path.sl == 4 && last_path.grh);
	CHECK(last_path.roce_v1 == ethernet && last_path.sgid.raw[0] == 2);
	CHECK(last_payload[MAD_BYTES - 1] == 0x66);
	CHECK(!test_process_counter(&a, PORT_RCV_PACKETS));
	CHECK(!wire_process_progress(a.host));
	/* A port that this process has no wire for. */
	d.row = 1;
	wire_process_take_gsi(a.host, &d);
	d.row = UINT32_MAX;
	wire_process_take_gsi(a.host, &d);
	CHECK(wire_process_progress(a.host) && received == 1);
	/* There is room for so many, and the last ones are lost. */
	d.row = 0;
	for (uint32_t i = 0; i < GSI_WAITING_MOST + 3; i++) {
		d.sl = i & 15;
		wire_process_take_gsi(a.host, &d);
	}
	while (wire_process_progress(a.host))
		;
	CHECK(received == 1 + GSI_WAITING_MOST && last_path.sl == ((GSI_WAITING_MOST - 1) & 15));
}

int main(void)
{
	for (int ethernet = 0; ethernet < 2; ethernet++) {
		struct test_fabric *fabric = test_fabric_create();

		fabric->send_gsi = send_gsi;
		fabric->subnet.ports[0].ethernet = (uint32_t)ethernet;
		test_process_up(&a, fabric, 0, receive_packet, &a);
		sends(fabric, ethernet);
		receives(ethernet);
		test_process_down(&a);
	}
	return 0;
}
