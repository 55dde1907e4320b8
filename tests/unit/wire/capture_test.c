// SPDX-License-Identifier: BSD-2-Clause
/* Captures: what comes into the ring, of which packets and how much, and the frames made of it. */
#include "base/record_ring.h"
#include "base/trace.h"
#include "test_fabric.h"
#include "wire/capture.h"
#include "wire/roce.h"

#define PAYLOAD	  1000u
#define ICRC_PLUS 6u /* with the VCRC */

static struct test_process a;
static struct record_ring ring;
static uint8_t payload[CAPTURE_PAYLOAD_MAX];
static struct path self = {.src_port = 0, .dst_port = 0, .slid = 3, .dlid = 5, .sl = 2};
static unsigned got;

static void receive_packet(void *user, const struct pkt *p)
{
	(void)user, (void)p;
	got++;
}

static struct capture_attr attr_of(uint32_t snaplen)
{
	return (struct capture_attr){
		.id = 1,
		.ports = 1,
		.want = {.events = CAPTURE_EVENT_PACKET,
			 .snaplen = snaplen,
			 .ring_bytes = CAPTURE_RING_BYTES_MIN},
	};
}

static void capture_open(const struct capture_attr *attr)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	CHECK(fd >= 0 &&
	      !ftruncate(fd, (off_t)record_ring_file_bytes(CAPTURE_RING_BYTES_MIN, SLOT_PORTS)));
	CHECK(!wire_capture_begin(a.host, attr, fd));
	CHECK(!record_ring_map(&ring, fd, CAPTURE_RING_BYTES_MIN, SLOT_PORTS));
	CHECK(atomic_load(&ring.head->joined) && atomic_load(wire_observers(a.wire)) == 1);
	close(fd);
}

static void capture_close(void)
{
	wire_capture_end(a.host, 1);
	CHECK(!atomic_load(wire_observers(a.wire)));
	record_ring_unmap(&ring);
}

static struct pkt packet_of(uint8_t opcode, uint32_t bytes)
{
	static struct run run;

	run = (struct run){payload, bytes};
	return (struct pkt){
		.opcode = opcode,
		.dqpn = test_fabric_qpn(0),
		.sqpn = 0x1234,
		.pkey = 0xffff,
		.psn = 77,
		.npkts = 1,
		.path = &self,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &run,
		.va = 0x123456789abcdef0,
		.rkey = 0x40201,
		.dma_len = bytes,
	};
}

static void send_packet(uint8_t opcode, uint32_t bytes)
{
	const struct pkt p = packet_of(opcode, bytes);

	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
}

/* Takes the next record. */
static const struct captured *take(bool received)
{
	static struct captured c; /* points into itself */
	static uint8_t copy[2 * CAPTURE_PAYLOAD_MAX];
	const struct capture_head *head = (const struct capture_head *)copy;
	const void *record;
	uint32_t bytes;

	CHECK(record_ring_look(&ring, &record, &bytes) == RECORD_RING_RECORD);
	memcpy(copy, record, bytes);
	record_ring_take(&ring, record, bytes);
	CHECK(head->received == received && head->ns && !head->row);
	CHECK(capture_unpack(head, bytes, &c));
	/* A record that was cut anywhere is malformed, or at least not read behind its end. */
	for (uint32_t n = 0; n < sizeof(*head) + head->header_bytes; n++)
		CHECK(!capture_unpack(head, n, &c));
	CHECK(capture_unpack(head, bytes, &c));
	return &c;
}

static void expect_nothing(void)
{
	const void *record;
	uint32_t bytes;

	CHECK(record_ring_look(&ring, &record, &bytes) == RECORD_RING_EMPTY);
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static void test_frames(void)
{
	const struct capture_attr attr = attr_of(CAPTURE_SNAPLEN);
	uint8_t frame[ROCE_FRAME_MAX];

	capture_open(&attr);
	send_packet(BTH_RC | BTH_WRITE_ONLY, PAYLOAD + 1);
	for (unsigned received = 0; received < 2; received++) {
		const struct captured *c = take(received);
		uint32_t n = infiniband_encode(&c->packet.pkt, frame, sizeof(frame));

		CHECK(c->packet.pkt.psn == 77 && c->bytes == PAYLOAD + 1);
		CHECK(n == LRH_OCTETS + BTH_OCTETS + RETH_OCTETS + PAYLOAD + 4 + ICRC_PLUS);
		/* LRH: SL and LNH, DLID, length in words to the ICRC, SLID. */
		CHECK(get16(frame) == 0x0022 && get16(frame + 2) == 5 && get16(frame + 6) == 3);
		CHECK(get16(frame + 4) * 4 == n - 2);
		/* BTH: opcode, pad count. */
		CHECK(frame[8] == BTH_WRITE_ONLY && frame[9] == 0x70);
		CHECK(!memcmp(frame + 36, payload, PAYLOAD + 1) && !frame[36 + PAYLOAD + 1]);
	}
	expect_nothing();
	/* The form of DC is not public, and has the octets that counters count. */
	send_packet(BTH_DC | BTH_SEND_ONLY, 8);
	for (unsigned received = 0; received < 2; received++) {
		const struct captured *c = take(received);

		CHECK(infiniband_encode(&c->packet.pkt, frame, sizeof(frame)) ==
		      pkt_wire_octets(&c->packet.pkt, false) + 2);
	}
	capture_close();
}

static void test_snaplen(void)
{
	const struct capture_attr attr = attr_of(100);

	capture_open(&attr);
	send_packet(BTH_RC | BTH_SEND_ONLY, PAYLOAD);
	for (unsigned received = 0; received < 2; received++) {
		const struct captured *c = take(received);

		CHECK(c->bytes == 100 && c->packet.pkt.payload_len == PAYLOAD);
		CHECK(c->packet.pkt.nruns == 2 && c->runs[0].len == 100);
		CHECK(!memcmp(c->runs[0].addr, payload, 100));
	}
	send_packet(BTH_RC | BTH_ACK, PAYLOAD);
	CHECK(!take(false)->bytes && !take(true)->bytes);
	capture_close();
}

static void matches(struct capture_term t, bool wanted)
{
	struct capture_attr attr = attr_of(CAPTURE_SNAPLEN);

	for (t.differs = 0; t.differs < 2; t.differs++) {
		attr.want.nterms = 1;
		attr.want.term[0] = t;
		capture_open(&attr);
		send_packet(BTH_RC | BTH_SEND_ONLY, 4);
		if (wanted != t.differs) {
			(void)take(false);
			(void)take(true);
		}
		expect_nothing();
		capture_close();
	}
}

static void test_terms(void)
{
	const uint64_t rc = UINT64_C(1) << 32;

	matches((struct capture_term){CAPTURE_QPN, 0, 0x1234, {{0}}}, true);
	matches((struct capture_term){CAPTURE_QPN, 0, test_fabric_qpn(0), {{0}}}, true);
	matches((struct capture_term){CAPTURE_DQPN, 0, 0x1234, {{0}}}, false);
	matches((struct capture_term){CAPTURE_SQPN, 0, 0x1234, {{0}}}, true);
	matches((struct capture_term){CAPTURE_LID, 0, 5, {{0}}}, true);
	matches((struct capture_term){CAPTURE_SLID, 0, 5, {{0}}}, false);
	matches((struct capture_term){CAPTURE_DLID, 0, 5, {{0}}}, true);
	matches((struct capture_term){CAPTURE_GID, 0, 0, {{0}}}, false);
	matches((struct capture_term){CAPTURE_PKEY, 0, 0xffff, {{0}}}, true);
	matches((struct capture_term){CAPTURE_OPCODES, 0, rc | 1 << BTH_SEND_ONLY, {{0}}}, true);
	matches((struct capture_term){CAPTURE_OPCODES, 0, rc | 1 << BTH_ACK, {{0}}}, false);
	matches((struct capture_term){CAPTURE_OPCODES, 0, rc << 1 | 1 << BTH_SEND_ONLY, {{0}}},
		false);
	matches((struct capture_term){CAPTURE_FIELDS, 0, 0, {{0}}}, false);
}

/* Nobody waits for a reader that takes nothing, and what is lost is counted. */
static void test_full(void)
{
	const struct capture_attr attr = attr_of(CAPTURE_SNAPLEN);
	const unsigned packets = 2 * CAPTURE_RING_BYTES_MIN / PAYLOAD;
	uint64_t dropped;
	unsigned n = 0;
	const void *record;
	uint32_t bytes;

	got = 0;
	capture_open(&attr);
	for (unsigned i = 0; i < packets; i++)
		send_packet(BTH_RC | BTH_SEND_ONLY, PAYLOAD);
	CHECK(got == packets);
	dropped = atomic_load(&ring.head->dropped[0]);
	while (record_ring_look(&ring, &record, &bytes) == RECORD_RING_RECORD) {
		record_ring_take(&ring, record, bytes);
		n++;
	}
	CHECK(n && dropped && n + dropped == 2 * packets);
	capture_close();
}

/* Other ports, and several captures at once. */
static void test_several(void)
{
	struct capture_attr attr = attr_of(CAPTURE_SNAPLEN);
	int fd = memfd_create("ring", MFD_CLOEXEC);

	CHECK(!ftruncate(fd, (off_t)record_ring_file_bytes(CAPTURE_RING_BYTES_MIN, SLOT_PORTS)));
	capture_open(&attr);
	attr.id = 2;
	attr.ports = 2;
	CHECK(!wire_capture_begin(a.host, &attr, fd));
	wire_capture_end(a.host, 3);
	CHECK(atomic_load(wire_observers(a.wire)) == 2);
	send_packet(BTH_RC | BTH_SEND_ONLY, 4);
	(void)take(false);
	(void)take(true);
	expect_nothing();
	wire_captures_end(a.host);
	CHECK(!atomic_load(wire_observers(a.wire)));
	record_ring_unmap(&ring);
	attr.want.ring_bytes = 12345;
	CHECK(wire_capture_begin(a.host, &attr, fd) == -EINVAL);
	close(fd);
}

/* Trace points instead of packets: nothing goes another way for them, and only those that are wanted
 * come. */
static void test_events(void)
{
	static const char wanted[] = "wqe.done qpn=0x7 wqe=3 status=SUCCESS";
	struct capture_attr attr = attr_of(1);
	int fd = memfd_create("ring", MFD_CLOEXEC);
	const struct capture_head *head;
	const void *record;
	uint32_t bytes;

	CHECK(!ftruncate(fd, (off_t)record_ring_file_bytes(CAPTURE_RING_BYTES_MIN, SLOT_PORTS)));
	attr.want.events = CAPTURE_EVENT_WQE;
	CHECK(!wire_capture_begin(a.host, &attr, fd));
	CHECK(!record_ring_map(&ring, fd, CAPTURE_RING_BYTES_MIN, SLOT_PORTS));
	CHECK(!atomic_load(wire_observers(a.wire)));
	send_packet(BTH_RC | BTH_SEND_ONLY, 4);
	trace(doorbell, noticed, "hook", "SQ", 7);
	trace(wqe, done, 7, 3, "SUCCESS");
	CHECK(record_ring_look(&ring, &record, &bytes) == RECORD_RING_RECORD);
	head = record;
	CHECK(head->kind == CAPTURE_TRACE && head->bytes == sizeof(wanted) - 1 &&
	      !memcmp(head + 1, wanted, head->bytes));
	record_ring_take(&ring, record, bytes);
	expect_nothing();
	wire_capture_end(a.host, 1);
	CHECK(wire_captures_let_go(a.host) && !trace_is_on(wqe, done));
	trace(wqe, done, 7, 4, "SUCCESS");
	expect_nothing();
	record_ring_unmap(&ring);
	/* All but packets; bypass.left would make requests take another way. */
	attr.want.events = CAPTURE_EVENTS_TRACED;
	CHECK(!wire_capture_begin(a.host, &attr, fd));
	CHECK(trace_is_on(wqe, done) && trace_is_on(doorbell, noticed) && trace_is_on(nak, sent) &&
	      trace_is_on(dpa, enter) && !trace_is_on(bypass, left));
	wire_captures_end(a.host);
	CHECK(!trace_is_on(wqe, done) && !trace_is_on(nak, sent));
	attr.want.events = CAPTURE_EVENT_DECISION;
	CHECK(!wire_capture_begin(a.host, &attr, fd));
	CHECK(!trace_is_on(wqe, done) && !trace_is_on(doorbell, noticed) && trace_is_on(nak, sent));
	wire_captures_end(a.host);
	close(fd);
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	test_process_up(&a, fabric, 0, receive_packet, NULL);
	test_frames();
	test_snaplen();
	test_terms();
	test_full();
	test_several();
	test_events();
	test_process_down(&a);
	return 0;
}
