// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sniffers: which process makes frames for whom, that each packet comes once to each port that it passes,
 * and that a sniffer that has died is forgotten.
 */
#include "test_fabric.h"
#include "wire/payload.h"
#include "wire/roce.h"
#include "wire/tap.h"

#define BYTES 100u

/* What the sniffer of a port has got. */
struct seen {
	unsigned frames;
	uint32_t bytes;
	struct path path;
	uint8_t frame[ROCE_FRAME_MAX];
};

static struct test_process a, b;
static struct test_fabric *fabric;
static unsigned got;
static struct seen seen_a, seen_b;
static uint8_t payload[BYTES];

static void receive_packet(void *user, const struct pkt *p)
{
	(void)user;
	got += p->payload_len == BYTES;
}

static void sniff_packet(void *user, const struct pkt *p)
{
	struct seen *s = user;
	struct run whole = {s->frame, p->payload_len};

	CHECK(sniffer_is_copy(p) && p->payload_len <= sizeof(s->frame));
	CHECK(payload_pull(&whole, 1, p));
	s->bytes = p->payload_len;
	s->frames++;
}

static void process_up(struct test_process *p, uint16_t slot, struct seen *seen)
{
	struct wire_client client = {
		.receive = receive_packet, .sniff = sniff_packet, .user = seen};

	test_process_up(p, fabric, slot, receive_packet, NULL);
	wire_attach(p->wire, &client);
}

static void send_one(struct test_process *from, uint16_t to, uint32_t psn)
{
	const struct run run = {payload, BYTES};
	struct path path = {
		.src_port = from->slot,
		.dst_port = to,
		.grh = true,
		.sgid.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
		.dgid.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
	};
	const struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY,
			      .dqpn = test_fabric_qpn(to),
			      .psn = psn,
			      .npkts = 1,
			      .path = &path,
			      .payload_len = BYTES,
			      .nruns = 1,
			      .runs = &run};

	CHECK(wire_xmit(from->wire, &p) == WIRE_SENT);
	while (wire_process_progress(a.host) | wire_process_progress(b.host))
		;
}

/* The last frame is that packet, between those ports. */
static void expect_frame(const struct seen *s, unsigned frames, uint16_t from, uint16_t to,
			 uint32_t psn)
{
	const struct subnet_port *ports = fabric->subnet.ports;
	struct roce_packet p;

	CHECK(s->frames == frames);
	CHECK(roce_decode(s->frame, s->bytes, &p) == ROCE_TAKEN);
	CHECK(p.pkt.psn == psn && p.pkt.payload_len == BYTES && p.pkt.nruns == 1);
	CHECK(!memcmp(p.pkt.runs[0].addr, payload, BYTES));
	CHECK(!memcmp(p.smac, ports[from].mac, 6) && !memcmp(p.dmac, ports[to].mac, 6));
	CHECK(p.path.sgid.raw[15] == 1 && p.path.dgid.raw[15] == 2);
}

static bool shows(const struct slot *s, unsigned to)
{
	return atomic_load(&s->sniffers[0]) >> to & 1;
}

static void test_both_ports(void)
{
	const struct slot *slots = fabric->slots;

	send_one(&a, 1, 0);
	CHECK(got == 1 && !seen_a.frames && !seen_b.frames);
	/* the receiving port */
	wire_sniff_begin(b.wire);
	CHECK(shows(&slots[0], 1) && shows(&slots[1], 1));
	CHECK(atomic_load(&slots[0].observers) == 1 && atomic_load(&slots[1].observers) == 1);
	send_one(&a, 1, 1);
	CHECK(got == 2);
	expect_frame(&seen_b, 1, 0, 1, 1);
	/* what it sends itself */
	send_one(&b, 0, 2);
	CHECK(got == 3 && !seen_a.frames);
	expect_frame(&seen_b, 2, 1, 0, 2);
	/* what does not pass it */
	send_one(&a, 0, 3);
	CHECK(got == 4 && seen_b.frames == 2);
	/* what it sends to itself comes once */
	send_one(&b, 1, 4);
	expect_frame(&seen_b, 3, 1, 1, 4);
	/* both ports, each with its own copy */
	wire_sniff_begin(a.wire);
	wire_sniff_begin(a.wire);
	CHECK(atomic_load(&slots[0].observers) == 2);
	send_one(&a, 1, 5);
	expect_frame(&seen_a, 1, 0, 1, 5);
	expect_frame(&seen_b, 4, 0, 1, 5);
	wire_sniff_end(a.wire);
	wire_sniff_end(b.wire);
	CHECK(!shows(&slots[0], 1) && shows(&slots[1], 0));
	send_one(&a, 1, 6);
	expect_frame(&seen_a, 2, 0, 1, 6);
	CHECK(seen_b.frames == 4);
	wire_sniff_end(a.wire);
	CHECK(!atomic_load(&slots[0].observers) && !atomic_load(&slots[1].observers));
	send_one(&a, 1, 7);
	CHECK(seen_a.frames == 2);
}

/* A process that comes later shows what it sends, too. */
static void test_join(void)
{
	wire_sniff_begin(a.wire);
	test_process_down(&b);
	atomic_store(&fabric->slots[1].sniffers[0], 0);
	atomic_store(&fabric->slots[1].observers, 0);
	process_up(&b, 1, &seen_b);
	CHECK(shows(&fabric->slots[1], 0) && atomic_load(&fabric->slots[1].observers) == 1);
	wire_sniff_end(a.wire);
	CHECK(!atomic_load(&fabric->slots[1].observers));
}

/* A sniffer is killed: whoever sends forgets it, whether its slot has another owner or none. */
static void test_dead(void)
{
	struct slot *slots = fabric->slots;

	for (unsigned again = 0; again < 2; again++) {
		atomic_store(&slots[0].sniffers[0], 2);
		atomic_store(&slots[0].observers, 1);
		atomic_store(&slots[1].sniffs, !again);
		atomic_store(&slots[1].alive, again);
		send_one(&a, 0, 9);
		CHECK(!shows(&slots[0], 1) && !atomic_load(&slots[0].observers));
	}
	atomic_store(&slots[1].sniffs, 0);
}

/* What has come from outside of the fabric is at the port that it has come to. */
static void test_arrival(void)
{
	unsigned before = seen_a.frames;
	uint8_t frame[64] = {2, 2, 2, 2, 2, 2};

	wire_sniff_arrival(b.wire, frame, sizeof(frame));
	wire_sniff_begin(a.wire);
	wire_sniff_arrival(b.wire, frame, sizeof(frame));
	CHECK(seen_a.frames == before);
	wire_sniff_arrival(a.wire, frame, sizeof(frame));
	CHECK(seen_a.frames == before + 1 && seen_a.bytes == sizeof(frame) &&
	      !memcmp(seen_a.frame, frame, sizeof(frame)));
	wire_sniff_end(a.wire);
}

int main(void)
{
	fabric = test_fabric_create();
	atomic_store(&fabric->registry->slots_used[0], 3);
	for (unsigned i = 0; i < TEST_FABRIC_PORTS; i++) {
		fabric->subnet.ports[i].ethernet = true;
		memcpy(fabric->subnet.ports[i].mac, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(i + 1)},
		       6);
	}
	for (unsigned i = 0; i < BYTES; i++)
		payload[i] = (uint8_t)(i * 7);
	process_up(&a, 0, &seen_a);
	process_up(&b, 1, &seen_b);
	test_process_add_channel(&a);
	test_process_add_channel(&b);
	test_both_ports();
	test_join();
	test_arrival();
	test_dead();
	test_process_down(&a);
	test_process_down(&b);
	return 0;
}
