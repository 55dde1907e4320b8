// SPDX-License-Identifier: BSD-2-Clause
/* Faults on demand: what each rule does to packets that come, and that the same seed does the same. */
#include "test_fabric.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hazard.h"
#include "wire/fault.h"
#include "wire/payload.h"
#include "wire/pkt.h"

#define MTU  1024u
#define SENT 1000u

static struct test_fabric *fabric;
static struct test_process a, b;

/* What has come to the second process. */
static struct {
	uint32_t n;
	uint32_t psn[4 * SENT];
	uint64_t deadline; /* asked for by the wire */
} got;

static void receive_packet(void *user, const struct pkt *p)
{
	uint8_t bytes[MTU];
	const struct run run = {bytes, sizeof(bytes)};

	(void)user;
	CHECK(p->payload_len == MTU && payload_pull(&run, 1, p));
	for (uint32_t i = 0; i < MTU; i++)
		CHECK(bytes[i] == (uint8_t)(p->psn + i));
	CHECK(got.n < array_size(got.psn));
	got.psn[got.n++] = p->psn;
}

static void wake_at(void *user, uint64_t deadline_ns)
{
	(void)user;
	got.deadline = deadline_ns;
}

static void receive_nothing(void *user, const struct pkt *p)
{
	(void)user, (void)p;
}

static void drain(void)
{
	while (wire_process_progress(b.host))
		;
}

static void send_as(uint8_t opcode, uint32_t psn)
{
	uint8_t bytes[MTU];
	const struct run run = {bytes, sizeof(bytes)};
	const struct pkt p = {.opcode = opcode,
			      .dqpn = test_fabric_qpn(1),
			      .sqpn = test_fabric_qpn(0),
			      .psn = psn,
			      .npkts = 1,
			      .path = &a.path,
			      .payload_len = MTU,
			      .nruns = 1,
			      .runs = &run};

	for (uint32_t i = 0; i < MTU; i++)
		bytes[i] = (uint8_t)(psn + i);
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	drain();
}

static void send_psn(uint32_t psn)
{
	send_as(BTH_RC | BTH_SEND_ONLY, psn & IB_PSN_MASK);
}

/* What waits comes when its time has come, in the order of these times. */
static void wait_late(void)
{
	while (got.deadline) {
		while (clock_ns() < got.deadline)
			;
		got.deadline = 0;
		wire_deliver_late(b.wire);
	}
}

/* Sets the only rule; NULL: none. */
static void rule_set(const struct fault_rule *rule)
{
	static uint32_t set;
	struct fault_rules *rules = &fabric->registry->faults;

	rules->rule[0] = rule ? *rule : (struct fault_rule){0};
	rules->rule[0].set = rule ? ++set : 0;
	atomic_store(&rules->n, rule ? 1 : 0);
	atomic_fetch_add(&rules->sequence, 2);
	for (uint32_t slot = 0; slot < 2; slot++) {
		atomic_fetch_and(&fabric->slots[slot].observers, ~SLOT_HAS_FAULTS);
		if (rule)
			atomic_fetch_or(&fabric->slots[slot].observers, SLOT_HAS_FAULTS);
	}
	memset(&fabric->slots[1].faults, 0, sizeof(fabric->slots[1].faults));
	memset(&got, 0, sizeof(got));
}

static uint64_t seen(void)
{
	return atomic_load(&fabric->slots[1].faults[0].seen);
}

static uint64_t done(void)
{
	return atomic_load(&fabric->slots[1].faults[0].done);
}

static uint64_t counter(enum port_counter c)
{
	uint64_t sum = 0;

	for (uint32_t shard = 0; shard < SLOT_SHARDS; shard++)
		sum += atomic_load(&fabric->slots[1].counters[shard][0][c]);
	return sum;
}

static void test_loss(void)
{
	const struct fault_rule rule = {.loss_ppm = FAULT_ALL / 10, .seed = 5};
	uint64_t before = counter(PORT_RCV_PACKETS);
	uint32_t first[SENT], n;

	rule_set(&rule);
	for (uint32_t i = 0; i < SENT; i++)
		send_psn(0xfffff0 + i);
	n = got.n;
	/* 100 of 1000, six standard deviations either way. */
	CHECK(SENT - n > 43 && SENT - n < 157);
	CHECK(seen() == SENT && done() == SENT - n);
	CHECK(counter(PORT_RCV_PACKETS) - before == n);
	memcpy(first, got.psn, n * sizeof(first[0]));
	/* The same from another PSN on, in a rule that was set anew. */
	rule_set(NULL);
	send_psn(0);
	CHECK(got.n == 1);
	rule_set(&rule);
	for (uint32_t i = 0; i < SENT; i++)
		send_psn(0x777000 + i);
	CHECK(got.n == n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(((first[i] - 0xfffff0) & IB_PSN_MASK) == got.psn[i] - 0x777000);
}

/* What is sent again meets another draw, so nothing is lost for ever. */
static void test_again(void)
{
	const struct fault_rule rule = {.loss_ppm = FAULT_ALL / 2, .seed = 1};

	rule_set(&rule);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t before = got.n, tries = 0;

		for (; got.n == before && tries < 64; tries++)
			send_psn(0x123000 + i);
		CHECK(got.n == before + 1);
	}
}

static void test_selectors(void)
{
	const struct {
		struct fault_rule rule;
		bool concerns;
	} cases[] = {
		{{.ops = 1u << BTH_SEND_ONLY}, true},
		{{.ops = 1u << BTH_WRITE_ONLY}, false},
		{{.qpn = (1 << REGISTRY_CHUNK_SHIFT)}, true},
		{{.qpn = (2 << REGISTRY_CHUNK_SHIFT)}, true},
		{{.qpn = (3 << REGISTRY_CHUNK_SHIFT)}, false},
		{{.from_row_plus_1 = 1}, true},
		{{.from_row_plus_1 = 2}, false},
		{{.to_row_plus_1 = 2}, true},
		{{.to_row_plus_1 = 1}, false},
		{{.from_host_plus_1 = 1}, true},
		{{.from_host_plus_1 = 2}, false},
		{{.to_host_plus_1 = 2}, true},
		{{.to_host_plus_1 = 1}, false},
		{{.link_row_plus_1 = 1}, true},
		{{.link_row_plus_1 = 2}, true},
		{{.link_row_plus_1 = 3}, false},
		{{.from_host_plus_1 = 1, .to_host_plus_1 = 2, .ops = 1u << BTH_SEND_ONLY}, true},
		{{.from_host_plus_1 = 1, .to_host_plus_1 = 2, .ops = 1u << BTH_ACK}, false},
	};

	for (uint32_t i = 0; i < array_size(cases); i++) {
		struct fault_rule rule = cases[i].rule;

		rule.loss_ppm = FAULT_ALL;
		rule_set(&rule);
		send_psn(i);
		CHECK(got.n == !cases[i].concerns && seen() == cases[i].concerns);
	}
}

static void test_chosen(void)
{
	const struct fault_rule rule = {
		.loss_ppm = FAULT_ALL, .first = 3, .count = 2, .ops = 1u << BTH_SEND_ONLY};

	rule_set(&rule);
	for (uint32_t i = 0; i < 6; i++) {
		send_as(BTH_RC | BTH_WRITE_ONLY, 100 + 2 * i);
		send_psn(101 + 2 * i);
	}
	CHECK(got.n == 10 && seen() == 6 && done() == 2);
	for (uint32_t i = 0; i < got.n; i++)
		CHECK(got.psn[i] != 105 && got.psn[i] != 107);
}

static void test_corrupt(void)
{
	const struct fault_rule rule = {.corrupt_ppm = FAULT_ALL};
	uint64_t before = counter(PORT_RCV_ERRORS);

	rule_set(&rule);
	send_psn(1);
	CHECK(!got.n && counter(PORT_RCV_ERRORS) == before + 1);
}

static void test_duplicate(void)
{
	const struct fault_rule rule = {.duplicate_ppm = FAULT_ALL};

	rule_set(&rule);
	send_psn(1);
	send_psn(2);
	CHECK(got.n == 4 && got.psn[0] == 1 && got.psn[1] == 1 && got.psn[2] == 2);
}

static void test_delay(void)
{
	const struct fault_rule rule = {.delay_us = 2000};
	uint64_t begin = clock_ns();

	rule_set(&rule);
	for (uint32_t i = 0; i < 8; i++)
		send_psn(i);
	CHECK(!got.n || clock_ns() - begin > 2000000);
	wait_late();
	CHECK(clock_ns() - begin >= 2000000 && got.n == 8);
	for (uint32_t i = 0; i < 8; i++)
		CHECK(got.psn[i] == i);
}

static void check_order(uint32_t n)
{
	CHECK(got.n == n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(got.psn[i] == i);
}

/* All come, none before its time, and none overtakes another. */
static void test_jitter(void)
{
	const struct fault_rule rule = {.jitter_us = 3000, .seed = 3};

	rule_set(&rule);
	for (uint32_t i = 0; i < 64; i++)
		send_psn(i);
	wait_late();
	check_order(64);
}

/* A delay that becomes shorter, or ends, lets nobody overtake those that wait. */
static void test_delay_ends(void)
{
	const struct fault_rule rule = {.delay_us = 5000}, shorter = {.delay_us = 1};
	const struct fault_rule *then[] = {NULL, &shorter};

	for (uint32_t how = 0; how < array_size(then); how++) {
		uint64_t deadline;

		rule_set(&rule);
		for (uint32_t i = 0; i < 4; i++)
			send_psn(i);
		deadline = got.deadline;
		rule_set(then[how]);
		for (uint32_t i = 4; i < 8; i++)
			send_psn(i);
		CHECK(!got.n);
		got.deadline = got.deadline ? got.deadline : deadline;
		wait_late();
		check_order(8);
		/* Nothing waits, so nobody looks any more. */
		rule_set(NULL);
		CHECK(!atomic_load(&fabric->slots[1].observers));
		send_psn(8);
		CHECK(got.n == 1);
	}
}

static void test_reorder(void)
{
	const struct fault_rule rule = {.reorder_ppm = FAULT_ALL};

	rule_set(&rule);
	for (uint32_t i = 0; i < 4; i++)
		send_psn(i);
	/* Each that waits is overtaken by the next one. */
	CHECK(got.n == 4 && got.psn[0] == 1 && got.psn[1] == 0 && got.psn[2] == 3 &&
	      got.psn[3] == 2);
	/* One that nobody overtakes comes in the end. */
	send_psn(4);
	CHECK(got.n == 4);
	wait_late();
	CHECK(got.n == 5 && got.psn[4] == 4);
}

static void test_rate(void)
{
	/* A packet has some 1,050 octets, so it takes 84 us. */
	const struct fault_rule rule = {.rate_mbps = 100};
	uint64_t begin = clock_ns();

	rule_set(&rule);
	for (uint32_t i = 0; i < 50; i++)
		send_psn(i);
	wait_late();
	CHECK(got.n == 50 && clock_ns() - begin >= 50u * MTU * 80);
}

/* A frame takes its own octets and the FCS, and none of headers that it does not have. */
static void test_rate_of_frames(void)
{
	const struct fault_rule rule = {.rate_mbps = 1};
	const uint64_t takes = (MTU + ETHERNET_FCS) * 8000ull;
	uint8_t bytes[MTU];
	const struct run run = {bytes, sizeof(bytes)};
	const struct pkt p = {
		.opcode = BTH_RAW, .path = &a.path, .payload_len = MTU, .nruns = 1, .runs = &run};
	uint64_t begin;

	for (uint32_t i = 0; i < MTU; i++)
		bytes[i] = (uint8_t)i;
	rule_set(&rule);
	begin = clock_ns();
	hazard_enter();
	CHECK(fault_takes(b.wire, &p));
	hazard_leave();
	CHECK(got.deadline >= begin + takes && got.deadline <= clock_ns() + takes);
	wait_late();
}

/* Requests fail by their order, kind, transport and share; the share repeats. */
static void test_requests(void)
{
	const struct fault_rule third = {.kind = FAULT_REQUESTS,
					 .syndrome = 21,
					 .vendor_err = 129,
					 .first = 3,
					 .count = 1,
					 .ops = 1u << BTH_WRITE_ONLY,
					 .reliable_only = 1};
	const struct fault_rule some = {
		.kind = FAULT_REQUESTS, .syndrome = 4, .some_ppm = FAULT_ALL / 10, .seed = 8};
	struct fault_request q = {.qpn = 5, .dst_port = 1, .op = BTH_WRITE_ONLY, .reliable = true};
	uint8_t syndrome = 0, vendor_err = 0;
	uint32_t failed[2] = {0}, sum[2] = {0};

	rule_set(&third);
	/* A rule for requests leaves packets alone. */
	send_psn(1);
	CHECK(got.n == 1);
	CHECK(!fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	q.op = BTH_SEND_ONLY;
	CHECK(!fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	q.op = BTH_WRITE_ONLY;
	q.reliable = false;
	CHECK(!fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	q.reliable = true;
	CHECK(!fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	CHECK(fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	CHECK(syndrome == 21 && vendor_err == 129 && seen() == 3 && done() == 1);
	CHECK(!fault_request_fails(b.wire, &q, &syndrome, &vendor_err));
	for (uint32_t round = 0; round < 2; round++) {
		rule_set(&some);
		for (uint32_t i = 0; i < SENT; i++)
			if (fault_request_fails(b.wire, &q, &syndrome, &vendor_err)) {
				failed[round]++;
				sum[round] += i;
			}
	}
	CHECK(failed[0] > 43 && failed[0] < 157 && failed[0] == failed[1] && sum[0] == sum[1]);
}

/* Receives fail by the packet that begins their message. */
static void test_receives(void)
{
	const struct fault_rule rule = {.kind = FAULT_RECEIVES,
					.syndrome = 4,
					.first = 2,
					.count = 1,
					.from_row_plus_1 = 1,
					.ops = 1u << BTH_SEND_ONLY};
	struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY, .path = &a.path};
	uint8_t syndrome = 0;

	rule_set(&rule);
	CHECK(!fault_receive_fails(b.wire, &p, &syndrome));
	p.opcode = BTH_RC | BTH_WRITE_ONLY_IMM;
	CHECK(!fault_receive_fails(b.wire, &p, &syndrome) && seen() == 1);
	p.opcode = BTH_RC | BTH_SEND_ONLY;
	CHECK(fault_receive_fails(b.wire, &p, &syndrome) && syndrome == 4 && done() == 1);
	CHECK(!fault_receive_fails(b.wire, &p, &syndrome) && seen() == 3);
	CHECK(!fault_of_links(b.wire));
}

/* A port buffers so much and no more, and keeps nothing when it goes. */
static void test_full(void)
{
	const struct fault_rule rule = {.delay_us = 10000000};
	const uint32_t n = 20000;

	rule_set(&rule);
	for (uint32_t i = 0; i < n; i++)
		send_psn(i);
	CHECK(!got.n && got.deadline);
	/* One that the rule does not concern waits behind them, and is lost as well. */
	rule_set(NULL);
	send_psn(n);
	CHECK(!got.n);
}

int main(void)
{
	const struct wire_client client = {.receive = receive_packet, .wake_at = wake_at};

	fabric = test_fabric_create();
	test_process_up(&a, fabric, 0, receive_nothing, NULL);
	test_process_up(&b, fabric, 1, receive_nothing, NULL);
	send_psn(0);
	test_process_add_channel(&b);
	drain();
	wire_attach(b.wire, &client);
	test_loss();
	test_again();
	test_selectors();
	test_chosen();
	test_corrupt();
	test_duplicate();
	test_delay();
	test_jitter();
	test_reorder();
	test_delay_ends();
	test_rate();
	test_rate_of_frames();
	test_requests();
	test_receives();
	test_full();
	test_process_down(&a);
	test_process_down(&b);
	return 0;
}
