// SPDX-License-Identifier: BSD-2-Clause
/* Every kind of request, each way, with a verbs program: on both link layers, on this host and another. */
#include <string.h>

#include "host.h"

#define OTHER_HOST "host2"
#define PLACE	   4096u /* of what the peer writes in our memory, and we in its */
#define GRH_BYTES  40u
#define IMM	   0xcafe0123u

#define MLX5_OPCODE_SEND_IMM 0x0bu /* of the device's header */

/* From one byte to several packets of the path. */
static const uint32_t lengths[] = {1, 12, 1024, 1025, 5000, 70000};

/* Memory of ours becomes a pattern, or has to have it. */
static void end_fill(struct end *e, uint64_t offset, uint32_t bytes, unsigned seed)
{
	end_call(e, &fill, e->data + offset, bytes, seed);
}

static void end_has(struct end *e, uint64_t offset, uint32_t bytes, unsigned seed)
{
	uint64_t right = end_call(e, &same, e->data + offset, bytes, seed);

	CHECK_SAY(right == bytes, "%llu of %u bytes", (unsigned long long)right, bytes);
}

static void peer_has(struct peer *p, uint64_t offset, uint32_t bytes, unsigned seed)
{
	uint64_t right = peer_ask(p, "same %llu %u %u", (unsigned long long)offset, bytes, seed);

	CHECK_SAY(right == bytes, "%llu of %u bytes", (unsigned long long)right, bytes);
}

/* The peer's request has this end, and nothing else came of it. */
static void peer_done(struct peer *p)
{
	struct heard h = peer_wait(p);

	CHECK_SAY(!h.status, "%s", ibv_wc_status_str((enum ibv_wc_status)h.status));
}

/* ---- sends ---- */

static void we_send(struct end *e, struct peer *p, uint32_t bytes, bool imm, bool inlined)
{
	struct heard h;

	end_fill(e, 0, bytes, bytes);
	peer_do(p, "recv 1 0 %u", bytes);
	e->post.bytes = bytes;
	e->post.imm = imm ? IMM : 0;
	e->post.inlined = inlined;
	end_done(e, imm						 ? POST_SEND_IMM
		    : e->made.transport_type == FLEXIO_QPC_ST_UC ? POST_SEND_UC
								 : POST_SEND);
	e->post.inlined = 0;
	h = peer_wait(p);
	CHECK(!h.status && h.opcode == IBV_WC_RECV && h.bytes == bytes);
	CHECK(h.imm == (imm ? IMM : 0));
	peer_has(p, 0, bytes, bytes);
}

static void they_send(struct end *e, struct peer *p, uint32_t bytes, bool imm)
{
	peer_do(p, "fill 0 %u %u", bytes, bytes + 1);
	end_receive(e, 1, e->data, bytes);
	peer_do(p, "post %d 0 %u 0 0 %u", imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, bytes, IMM);
	CHECK(end_take(e, &e->received) == (imm ? DONE_SEND_IMM : DONE_SEND));
	CHECK(e->last.bytes == bytes && e->last.qpn == e->qpn);
	CHECK(e->last.user_index == USER_INDEX && (!imm || e->last.imm == IMM));
	CHECK(e->last.counter == (uint16_t)(e->posts.pi - 1));
	end_has(e, 0, bytes, bytes + 1);
	peer_done(p);
}

/* ---- writes ---- */

static void we_write(struct end *e, struct peer *p, uint32_t bytes, bool imm)
{
	struct heard h;

	end_fill(e, 0, bytes, bytes + 2);
	if (imm)
		peer_do(p, "recv 1 0 8");
	e->post.bytes = bytes;
	e->post.imm = IMM + 1;
	e->post.remote = p->memory + PLACE;
	e->post.rkey = p->rkey;
	end_done(e, imm ? POST_WRITE_IMM : POST_WRITE);
	if (imm) {
		h = peer_wait(p);
		CHECK(!h.status && h.opcode == IBV_WC_RECV_RDMA_WITH_IMM && h.bytes == bytes);
		CHECK(h.imm == IMM + 1);
	} else if (e->made.transport_type == FLEXIO_QPC_ST_UC) {
		/* It has left, and may not have come; a message behind it tells. */
		we_send(e, p, 8, false, false);
	}
	peer_has(p, PLACE, bytes, bytes + 2);
}

static void they_write(struct end *e, struct peer *p, uint32_t bytes, bool imm)
{
	peer_do(p, "fill 0 %u %u", bytes, bytes + 3);
	if (imm)
		end_receive(e, 1, e->data, 8);
	peer_do(p, "post %d 0 %u %llu %u %u", imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		bytes, (unsigned long long)(e->data + PLACE), e->key, IMM);
	peer_done(p);
	if (imm) {
		CHECK(end_take(e, &e->received) == DONE_WRITE_IMM);
		CHECK(e->last.bytes == bytes && e->last.imm == IMM);
	} else if (e->made.transport_type == FLEXIO_QPC_ST_UC) {
		they_send(e, p, 8, false);
	}
	end_has(e, PLACE, bytes, bytes + 3);
}

/* ---- reads and atomics ---- */

static void reads(struct end *e, struct peer *p, uint32_t bytes)
{
	peer_do(p, "fill %u %u %u", PLACE, bytes, bytes + 4);
	e->post.bytes = bytes;
	e->post.remote = p->memory + PLACE;
	e->post.rkey = p->rkey;
	end_done(e, POST_READ);
	CHECK(e->last.bytes == bytes);
	end_has(e, 0, bytes, bytes + 4);

	end_fill(e, PLACE, bytes, bytes + 5);
	peer_do(p, "post %d 0 %u %llu %u", IBV_WR_RDMA_READ, bytes,
		(unsigned long long)(e->data + PLACE), e->key);
	peer_done(p);
	peer_has(p, 0, bytes, bytes + 5);
}

static void our_atomics(struct end *e, struct peer *p)
{
	e->post.bytes = 8;
	e->post.remote = p->memory + PLACE;
	e->post.rkey = p->rkey;
	peer_do(p, "set %u 100", PLACE);
	/* the first compares with something else */
	e->post.compare = 99;
	e->post.swap_add = 7;
	end_done(e, POST_SWAP);
	CHECK(end_call(e, &peek, e->data, 0, 0) == 100);
	CHECK(peer_ask(p, "get %u", PLACE) == 100);
	e->post.compare = 100;
	end_done(e, POST_SWAP);
	CHECK(end_call(e, &peek, e->data, 0, 0) == 100);
	CHECK(peer_ask(p, "get %u", PLACE) == 7);
	end_done(e, POST_ADD);
	CHECK(end_call(e, &peek, e->data, 0, 0) == 7);
	CHECK(peer_ask(p, "get %u", PLACE) == 14);
}

static void their_atomics(struct end *e, struct peer *p)
{
	unsigned long long at = e->data + PLACE;

	end_call(e, &poke, at, 500, 0);
	peer_do(p, "post %d 0 8 %llu %u 0 600 500", IBV_WR_ATOMIC_CMP_AND_SWP, at, e->key);
	peer_done(p);
	CHECK(peer_ask(p, "get 0") == 500 && end_call(e, &peek, at, 0, 0) == 600);
	peer_do(p, "post %d 0 8 %llu %u 0 11", IBV_WR_ATOMIC_FETCH_AND_ADD, at, e->key);
	peer_done(p);
	CHECK(peer_ask(p, "get 0") == 600 && end_call(e, &peek, at, 0, 0) == 611);
}

/* ---- the cases ---- */

static void connected(bool ethernet, bool reliable, bool looped, const char *host)
{
	uint32_t inlined[] = {1, 12, 13, 44};
	struct peer p;
	struct end e;

	end_open(&e, ethernet, reliable ? FLEXIO_QPC_ST_RC : FLEXIO_QPC_ST_UC);
	e.looped = looped;
	end_make(&e);
	peer_up(&p, ethernet, reliable ? "rc" : "uc", host);
	CHECK(!memcmp(&p.gid, &e.gid, 16) == !host);
	end_meet(&e, &p);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned imm = 0; imm < 2; imm++) {
			we_send(&e, &p, lengths[i], imm, false);
			they_send(&e, &p, lengths[i], imm);
			we_write(&e, &p, lengths[i], imm);
			they_write(&e, &p, lengths[i], imm);
			if (reliable)
				reads(&e, &p, lengths[i]);
		}
	for (unsigned i = 0; i < sizeof(inlined) / sizeof(inlined[0]); i++)
		we_send(&e, &p, inlined[i], i & 1, true);
	if (reliable) {
		our_atomics(&e, &p);
		their_atomics(&e, &p);
	}
	end_done(&e, POST_NOP);
	CHECK(end_quiet(&e, &e.sent) && end_quiet(&e, &e.received) && !peer_ask(&p, "none"));
	peer_down(&p);
	end_close(&e);
}

/* The bit that says that three segments follow has to go with two of them. */
static void address_shorten(struct end *e, bool on)
{
	e->post.compact = on;
	((uint8_t *)e->post.address)[8] = on ? 0 : 0x80;
}

static void we_send_datagram(struct end *e, struct peer *p, uint32_t bytes, bool imm)
{
	struct heard h;

	end_fill(e, 0, bytes, bytes + imm);
	peer_do(p, "recv 1 0 %u", bytes + GRH_BYTES);
	e->post.bytes = bytes;
	e->post.opcode = imm ? MLX5_OPCODE_SEND_IMM : 0;
	e->post.imm = imm ? IMM : 0;
	end_done(e, POST_SEND_UD);
	h = peer_wait(p);
	CHECK(!h.status && h.opcode == IBV_WC_RECV && h.bytes == bytes + GRH_BYTES);
	CHECK(h.qpn == e->qpn && h.grh == e->ethernet && h.imm == (imm ? IMM : 0));
	peer_has(p, GRH_BYTES, bytes, bytes + imm);
}

static void datagrams(bool ethernet, bool looped, const char *host)
{
	struct flexio_qp_attr attr;
	struct peer p;
	struct end e;

	end_open(&e, ethernet, FLEXIO_QPC_ST_UD);
	e.looped = looped;
	end_make(&e);
	peer_up(&p, ethernet, "ud", host);
	attr = end_attr(&e, &p);
	end_move(&e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(&p, &e, &attr, 1);
	end_address(&e, &p, &attr);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t bytes = lengths[i];

		we_send_datagram(&e, &p, bytes, false);
		we_send_datagram(&e, &p, bytes, true);
		/* without a GRH one segment says where it goes */
		if (!ethernet) {
			address_shorten(&e, true);
			we_send_datagram(&e, &p, bytes, false);
			we_send_datagram(&e, &p, bytes, true);
			address_shorten(&e, false);
		}
		peer_do(&p, "fill 0 %u %u", bytes, bytes + 1);
		end_receive(&e, 1, e.data, bytes + GRH_BYTES);
		peer_do(&p, "post %d 0 %u 0 0 %u", IBV_WR_SEND_WITH_IMM, bytes, IMM);
		CHECK(end_take(&e, &e.received) == DONE_SEND_IMM);
		CHECK(e.last.bytes == bytes + GRH_BYTES && e.last.imm == IMM);
		end_has(&e, GRH_BYTES, bytes, bytes + 1);
		peer_done(&p);
	}
	peer_down(&p);
	end_close(&e);
}

#define CONNECTED(name, ethernet, reliable)                           \
	static void name(void)                                        \
	{                                                             \
		connected((ethernet), (reliable), false, NULL);       \
		connected((ethernet), (reliable), false, OTHER_HOST); \
	}

CONNECTED(rc_infiniband, false, true)
CONNECTED(rc_roce, true, true)
CONNECTED(uc_infiniband, false, false)
CONNECTED(uc_roce, true, false)

static void ud_infiniband(void)
{
	datagrams(false, false, NULL);
	datagrams(false, false, OTHER_HOST);
}

static void ud_roce(void)
{
	datagrams(true, false, NULL);
	datagrams(true, false, OTHER_HOST);
}

/* With a peer at the own port that the addresses do not lead to. */
static void uc_looped(void)
{
	connected(false, false, true, NULL);
	connected(true, false, true, NULL);
}

static void ud_looped(void)
{
	datagrams(false, true, NULL);
	datagrams(true, true, NULL);
}

const struct host_case kind_cases[] = {
	{"rc_infiniband", rc_infiniband},
	{"rc_roce", rc_roce},
	{"uc_infiniband", uc_infiniband},
	{"uc_roce", uc_roce},
	{"ud_infiniband", ud_infiniband},
	{"ud_roce", ud_roce},
	{"uc_looped", uc_looped},
	{"ud_looped", ud_looped},
	{NULL, NULL},
};
