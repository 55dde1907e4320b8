// SPDX-License-Identifier: BSD-2-Clause
/*
 * MADs as they arrive at any port, and what agents send: a net of two hosts and two switches with the
 * agents of all ports, and programs' agents with and without RMPP.  Whatever travels, each send ends
 * once, nothing stays in a queue, and a directed route leaves its pointers inside of the MAD.
 */
#include <string.h>

#include "fabric/daemon/mad/impair.h"
#include "fabric/daemon/pma/pma.h"
#include "fabric/daemon/sma/sma.h"
#include "fuzz.h"
#include "test_mad.h"

#define AGENTS	 4u
#define MOST_OPS 64u

enum op {
	OP_EMIT, /* a packet with any headers */
	OP_SEND,
	OP_RUN,
	OP_REGISTER,
	OP_LINK,
	OP_COUNT,
};

struct user {
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t taken, sent;
	bool there;
};

static struct test_mad m;
static struct sma sma;
static struct pma pma;
static struct user users[AGENTS];

static void user_receive(struct mad_agent *a, struct mad_message *msg)
{
	(void)a;
	MUST(msg->length >= MAD_RMPP_BYTES && (msg->owned || msg->length <= MAD_BYTES));
	/* All of it is there to be read. */
	for (uint32_t i = 0; i < msg->length; i += 16)
		MUST(*(const volatile uint8_t *)(msg->data + i) <= 255);
}

static void user_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		      int status)
{
	struct user *u = container_of(a, struct user, agent);

	(void)note, (void)header, (void)status;
	u->sent++;
	MUST(u->sent <= u->taken + 1);
}

static const struct mad_agent_ops ops = {user_receive, user_sent};

void target_init(void)
{
}

static void fuzz_net_open(void)
{
	test_mad_open(&m);
	test_net_raise(&m.t);
	MUST(!sma_open(&sma, &m.mad));
	MUST(!pma_open(&pma, &m.mad));
}

static void user_close(struct user *u)
{
	if (!u->there)
		return;
	mad_agent_unregister(&u->agent);
	MUST(u->sent == u->taken && !u->scope.count);
	u->there = false;
}

static void fuzz_net_close(void)
{
	for (uint32_t i = 0; i < AGENTS; i++)
		user_close(&users[i]);
	test_mad_run(&m, 0);
	MUST(!m.mad.queued && !m.mad.nsends && !m.mad.nagents && !m.mad.receive_bytes);
	pma_close(&pma);
	sma_close(&sma);
	MUST(m.mad.impair || !m.loop.ntimers);
	test_mad_close(&m);
}

static uint32_t end_port(uint8_t n)
{
	const uint32_t rows[] = {m.t.h1, m.t.h2, m.t.s1, m.t.s2};

	return rows[n % 4];
}

static const uint8_t classes[] = {MAD_CLASS_SMP_LID,	MAD_CLASS_SMP_DIRECTED,
				  MAD_CLASS_SA,		MAD_CLASS_PERF,
				  MAD_CLASS_CONGESTION, MAD_CLASS_VENDOR_MELLANOX,
				  MAD_CLASS_DEV_MGMT,	0x32};

/* The input says the header; then it changes bytes anywhere. */
static void read_mad(struct input *in, uint8_t *mad, size_t bytes)
{
	memset(mad, 0, bytes);
	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = classes[in_u8(in) % sizeof(classes)];
	mad[MAD_AT_CLASS_VERSION] = mad[MAD_AT_CLASS] == MAD_CLASS_SA ? 2 : 1;
	mad[MAD_AT_METHOD] = in_u8(in);
	mad[MAD_AT_TID + 3] = in_u8(in);
	mad[MAD_AT_TID + 7] = in_u8(in) & 3;
	mad_put16(mad, MAD_AT_ATTRIBUTE, in_u16(in));
	if (mad_is_directed(mad)) {
		memset(&mad[MAD_AT_DR_SLID], 0xff, 4);
		mad[MAD_AT_HOP_POINTER] = in_u8(in);
		mad[MAD_AT_HOP_COUNT] = in_u8(in);
		in_bytes(in, &mad[MAD_AT_DR_INITIAL + 1], 4);
		in_bytes(in, &mad[MAD_AT_DR_RETURN + 1], 4);
	} else if (mad_class_has_rmpp(mad[MAD_AT_CLASS])) {
		in_bytes(in, &mad[MAD_AT_RMPP_VERSION], 12);
	}
	for (uint32_t n = in_u8(in) % 16; n; n--) {
		uint8_t at = in_u8(in);

		mad[at] = in_u8(in);
	}
}

static void op_emit(struct input *in)
{
	struct mad_packet *p = mad_packet_get(&m.mad);

	MUST(p);
	p->row = end_port(in_u8(in));
	read_mad(in, p->mad, MAD_BYTES);
	p->sqpn = p->dqpn = !mad_is_smp(p->mad);
	p->slid = in_u8(in) % 6;
	p->dlid = (uint16_t)(in_u8(in) % 6);
	if (p->dlid == 5)
		p->dlid = in_u16(in);
	p->pkey = in_u8(in) ? 0xffff : in_u16(in);
	p->grh = in_u8(in) & 1;
	if (in_u8(in) == 1)
		p->dqpn = in_u8(in);
	mad_emit(&m.mad, p);
}

static void op_send(struct input *in)
{
	static uint8_t message[20000];
	struct user *u = &users[in_u8(in) % AGENTS];
	struct mad_send_attr s = {.mad = message, .length = in_u16(in) % sizeof(message)};

	read_mad(in, message, sizeof(message));
	s.to = (struct mad_address){.lid = in_u8(in) % 6,
				    .qpn = in_u8(in) % 3,
				    .sl = in_u8(in) % 17,
				    .path_bits = in_u8(in),
				    .pkey_index = in_u8(in),
				    .grh = in_u8(in) & 1,
				    .gid_index = in_u8(in) % 9};
	s.timeout_ms = in_u8(in);
	s.retries = in_u8(in) % 4;
	if (s.length % 4)
		s.length = MAD_BYTES;
	if (!u->there)
		return;
	u->taken += !mad_agent_send(&u->agent, &s);
}

static void op_register(struct input *in)
{
	struct user *u = &users[in_u8(in) % AGENTS];
	uint8_t class = in_u8(in) % (sizeof(classes) + 1), how = in_u8(in);
	struct mad_agent_attr attr = {.row = end_port(in_u8(in)),
				      .class = class ? classes[class - 1] : 0,
				      .class_version = how & 1 ? 1 : 2,
				      .rmpp_version = how >> 1 & 1,
				      .user_rmpp = how >> 2 & 1,
				      .qpn = how >> 3 & 1,
				      .oui = {0, how >> 7, how >> 4 & 1}};

	attr.methods[0] = in_u64(in);
	attr.methods[1] = in_u64(in);
	user_close(u);
	memset(u, 0, sizeof(*u));
	u->there = !mad_agent_register(&m.mad, &u->agent, &attr, &ops, &u->scope);
}

static void op_link(struct input *in)
{
	const struct impair_link how = {.loss_ppm = in_u8(in) * 2000u,
					.duplicate_ppm = in_u8(in) * 1000u,
					.delay_us = in_u8(in) * 10u,
					.jitter_us = in_u8(in) * 100u};

	net_pull(&m.t.net, m.t.s1 + 8, in_u8(in) & 1);
	if (!m.mad.impair)
		m.mad.impair = impair_open(1);
	MUST(m.mad.impair && !impair_set(m.mad.impair, SUBNET_NONE, &how));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	fuzz_net_open();
	for (uint32_t n = 0; in.left && n < MOST_OPS; n++)
		switch (in_u8(&in) % OP_COUNT) {
		case OP_EMIT:
			op_emit(&in);
			break;
		case OP_SEND:
			op_send(&in);
			break;
		case OP_RUN:
			test_mad_run(&m, in_u16(&in) % 3000);
			break;
		case OP_REGISTER:
			op_register(&in);
			break;
		default:
			op_link(&in);
		}
	fuzz_net_close();
	return 0;
}

/* ---- seeds ---- */

static void put_agent(struct seed *s, uint32_t user, uint32_t class, uint32_t how, uint32_t row)
{
	put_u8(s, OP_REGISTER);
	put_u8(s, user);
	put_u8(s, class);
	put_u8(s, how);
	put_u8(s, row);
	put_u64(s, ~0ull);
	put_u64(s, ~0ull);
}

static void put_mad(struct seed *s, uint32_t class, uint32_t method, uint32_t attribute)
{
	put_u8(s, class);
	put_u8(s, method);
	put_u8(s, 1);
	put_u8(s, 1);
	put_u16(s, attribute);
}

static void put_run(struct seed *s, uint32_t ms)
{
	put_u8(s, OP_RUN);
	put_u16(s, ms);
}

/* A long question of the first agent that does RMPP to the second, and time for its end. */
static void put_question(struct seed *s)
{
	static const uint8_t rmpp[12] = {0, 0, MAD_RMPP_ACTIVE};

	put_u8(s, OP_SEND);
	put_u8(s, 0);
	put_u16(s, 8000);
	put_mad(s, 2, MAD_GET_TABLE, 0x11);
	put_bytes(s, rmpp, sizeof(rmpp));
	put_u8(s, 0);
	put_u8(s, 4); /* LID */
	put_u8(s, 1); /* QP */
	for (uint32_t i = 0; i < 5; i++)
		put_u8(s, 0);
	put_u8(s, 100);
	put_u8(s, 1);
	put_run(s, 2999);
}

void target_seeds(struct seed *s)
{
	static const uint8_t path[] = {0, 3, 1, 8, 1, 0, 0, 0, 0, 0, 0};

	/* A directed Get of NodeInfo over both switches. */
	put_u8(s, OP_EMIT);
	put_u8(s, 0);
	put_mad(s, 1, MAD_GET, SMP_NODE_INFO);
	put_bytes(s, path, sizeof(path));
	put_run(s, 10);
	put_end(s, "directed");

	/* Between two agents that do RMPP. */
	put_agent(s, 0, 3, 2 | 8, 0);
	put_agent(s, 1, 3, 2 | 8, 1);
	put_question(s);
	put_end(s, "rmpp");

	/* Counters, by LID. */
	put_u8(s, OP_EMIT);
	put_u8(s, 0);
	put_mad(s, 3, MAD_GET, 0x12);
	put_u8(s, 0);
	put_u8(s, 1);
	put_u8(s, 4);
	put_u8(s, 1);
	put_run(s, 1);
	put_end(s, "counters");
}
