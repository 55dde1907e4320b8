// SPDX-License-Identifier: BSD-2-Clause
/* Packets that name another sender than the process that has put them into the channel. */
#include "base/explain.h"
#include "captured.h"
#include "test_fabric.h"
#include "wire/short_send.h"

#define OTHER 2u /* a process that takes no part */

static struct test_process a, b;
static unsigned received;

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

static void count_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
	received++;
}

static uint32_t count_short_sends(void *user, const struct short_send *p)
{
	(void)user;
	received += p->n;
	return p->n;
}

/* Does an acknowledgement of that sender arrive? */
static bool packet_arrives(uint32_t sqpn, uint32_t src_port)
{
	struct path path = a.path;
	const struct pkt p = {
		.opcode = BTH_RC | BTH_ACK,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.dqpn = test_fabric_qpn(1),
		.sqpn = sqpn,
		.npkts = 1,
		.path = &path,
	};
	unsigned before = received;

	path.src_port = src_port;
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	(void)wire_process_progress(b.host);
	return received != before;
}

/* One that does not says why. */
static void expect_dropped(uint32_t sqpn, uint32_t src_port)
{
	bool arrives;

	capture_begin();
	arrives = packet_arrives(sqpn, src_port);
	explain_flush();
	CHECK(strstr(capture_end(), " ACK psn 0x0: dropped: it says that it comes from ") &&
	      !arrives);
}

static void test_senders(const struct wire_client *client)
{
	struct test_fabric *fabric = test_fabric_create();

	atomic_store(&fabric->registry->qpn_slot_plus_1[OTHER + 1], (uint16_t)(OTHER + 1));
	test_process_up(&a, fabric, 0, ignore_packet, NULL);
	test_process_up(&b, fabric, 1, count_packet, NULL);
	wire_attach(b.wire, client);
	test_process_add_channel(&b);
	CHECK(packet_arrives(test_fabric_qpn(0), 0));
	expect_dropped(test_fabric_qpn(OTHER), 0);
	expect_dropped(test_fabric_qpn(1), 0);
	expect_dropped(test_fabric_qpn(0), 1);
	expect_dropped(test_fabric_qpn(0), 0xffffff);
	CHECK(packet_arrives(test_fabric_qpn(0) + 1, 0));
	/* the process that had it has ended */
	atomic_store(&fabric->registry->qpn_slot_plus_1[OTHER + 1], 0);
	CHECK(packet_arrives(test_fabric_qpn(OTHER), 0));
	test_process_down(&b);
	test_process_down(&a);
}

int main(void)
{
	explain_on = true;
	test_senders(&(struct wire_client){.receive = count_packet});
	test_senders(&(struct wire_client){.receive = count_packet,
					   .receive_short_sends = count_short_sends});
	return 0;
}
