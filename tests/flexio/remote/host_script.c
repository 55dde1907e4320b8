// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code that does what lines of standard input say, which are those of the verbs program (peer.c):
 * so both can be given the same script, and what they send and answer be compared.
 */
#include <string.h>

#include "host.h"

#define WORDS	  8u
#define GID_WORD  32u /* characters */
#define FRAME_MAX 9000u
#define CHECKSUMS 0xc000u /* of IP, and of TCP or UDP */
#define SEND_IMM  0x0bu	  /* the opcode of a send with immediate data */

/* What lines say of the connection before they ask for it. */
struct way {
	unsigned gid_index;
	uint16_t udp_sport;
	uint8_t retries;
	uint32_t flow_label; /* of datagrams */
	union ibv_gid gid;
};

static struct way way;

/* template OFFSET BYTES SEED FORM */
static void script_template(struct end *e, const uint64_t *w)
{
	uint8_t made[FRAME_MAX];

	CHECK(w[1] >= FRAME_HEADERS + 20 * !!(w[3] & FRAME_IPV6) && w[1] <= sizeof(made));
	frame_template_of(made, (uint32_t)w[1], (unsigned)w[2], (unsigned)w[3]);
	OK(flexio_host2dev_memcpy(e->p, made, w[1], e->data + w[0]));
}

/* frame OFFSET BYTES CHECKSUMS HEADER MSS PIECES INLINED */
static void script_frame(struct end *e, const uint64_t *w)
{
	e->post.header = e->data + w[0];
	e->post.header_bytes = w[3];
	e->post.data = e->data + w[0] + w[3];
	e->post.bytes = w[1] - w[3];
	e->post.checksums = w[2] ? CHECKSUMS : 0;
	e->post.mss = w[4];
	e->post.pieces = w[5];
	e->post.inlined = w[6];
	end_post(e, w[3] ? POST_SEGMENTS : POST_FRAME);
	e->post.inlined = 0;
}

/* row OFFSET BYTES CHECKSUMS COUNT: in one request */
static void script_row(struct end *e, const uint64_t *w)
{
	e->post.header_bytes = e->post.mss = 0;
	e->post.data = e->data + w[0];
	e->post.bytes = w[1];
	e->post.checksums = w[2] ? CHECKSUMS : 0;
	e->post.frames = w[3];
	end_post(e, POST_FRAMES);
}

/* done COUNT: a request has one completion here, however many frames it has */
static void script_done(struct end *e, const uint64_t *w)
{
	(void)w;
	end_take(e, &e->sent);
	CHECK_SAY(e->last.opcode == DONE_REQUEST, "syndrome 0x%llx",
		  (unsigned long long)e->last.syndrome);
}

/* fill OFFSET BYTES SEED */
static void script_fill(struct end *e, const uint64_t *w)
{
	end_call(e, &fill, e->data + w[0], w[1], w[2]);
}

/* from GID_INDEX UDP_PORT RETRIES LABEL: of the next connection; without a port the device takes one */
static void script_from(struct end *e, const uint64_t *w)
{
	(void)e;
	way.gid_index = (unsigned)w[0];
	way.udp_sport = (uint16_t)w[1];
	way.retries = (uint8_t)w[2];
	way.flow_label = (uint32_t)w[3];
}

/* The label has the last 20 bits of the address's eighth word. */
static void script_label(struct end *e)
{
	uint8_t *av = (uint8_t *)e->post.address;

	av[29] |= (uint8_t)(way.flow_label >> 16);
	av[30] = (uint8_t)(way.flow_label >> 8);
	av[31] = (uint8_t)way.flow_label;
}

/* connect QPN LID GID MTU RECV_PSN SEND_PSN READS */
static void script_connect(struct end *e, const uint64_t *w)
{
	const struct peer to = {.qpn = (uint32_t)w[0], .lid = (uint32_t)w[1], .gid = way.gid};
	struct flexio_qp_attr attr = end_attr(e, &to);

	attr.gid_table_index = (uint8_t)way.gid_index;
	attr.udp_sport = way.udp_sport;
	attr.path_mtu = (enum flexio_qp_qpc_mtu)w[2];
	attr.next_rcv_psn = (uint32_t)w[3];
	attr.next_send_psn = (uint32_t)w[4];
	attr.retry_count = way.retries;
	end_move(e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	end_address(e, &to, &attr);
	script_label(e);
}

/* recv COUNT OFFSET BYTES: each behind the one before */
static void script_recv(struct end *e, const uint64_t *w)
{
	end_receive(e, (unsigned)w[0], e->data + w[1], (uint32_t)w[2]);
}

/* post OPCODE OFFSET BYTES REMOTE KEY IMM SWAP_ADD COMPARE: the opcode is that of verbs */
static void script_post(struct end *e, const uint64_t *w)
{
	static const uint8_t kinds[] = {
		[IBV_WR_RDMA_WRITE] = POST_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = POST_WRITE_IMM,
		[IBV_WR_SEND] = POST_SEND,
		[IBV_WR_SEND_WITH_IMM] = POST_SEND_IMM,
		[IBV_WR_RDMA_READ] = POST_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = POST_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = POST_ADD,
	};
	bool datagram = e->made.transport_type == FLEXIO_QPC_ST_UD;

	CHECK(w[0] < sizeof(kinds));
	e->post.data = e->data + w[1];
	e->post.bytes = w[2];
	e->post.remote = w[3];
	e->post.rkey = w[4];
	e->post.imm = w[5];
	e->post.swap_add = w[6];
	e->post.compare = w[7];
	e->post.opcode = datagram && w[0] == IBV_WR_SEND_WITH_IMM ? SEND_IMM : 0;
	end_post(e, datagram ? POST_SEND_UD : (enum post_kind)kinds[w[0]]);
}

/* lost COUNT: so many completions are in error */
static void script_lost(struct end *e, const uint64_t *w)
{
	for (uint64_t i = 0; i < w[0]; i++)
		CHECK(end_take(e, &e->sent) == DONE_REQUEST_ERROR);
}

/* done COUNT, where each request has a completion of its own */
static void script_all_done(struct end *e, const uint64_t *w)
{
	for (uint64_t i = 0; i < w[0]; i++)
		script_done(e, w);
}

struct order {
	const char *name;
	void (*run)(struct end *e, const uint64_t *w);
};

static const struct order frame_orders[] = {
	{"template", script_template},
	{"frame", script_frame},
	{"row", script_row},
	{"done", script_done},
	{NULL, NULL},
};

static const struct order packet_orders[] = {
	{"fill", script_fill},	     {"from", script_from},
	{"connect", script_connect}, {"post", script_post},
	{"done", script_all_done},   {"lost", script_lost},
	{"recv", script_recv},	     {NULL, NULL},
};

static void script_obey(struct end *e, const struct order *orders, char *line)
{
	char *rest, *name = strtok_r(line, " \n", &rest), *word;
	uint64_t w[WORDS] = {0};
	unsigned n = 0;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		if (strlen(word) == GID_WORD) {
			gid_read(word, &way.gid);
			continue;
		}
		CHECK(n < WORDS);
		w[n++] = strtoull(word, NULL, 0);
	}
	for (const struct order *o = orders; o->name; o++)
		if (!strcmp(o->name, name)) {
			o->run(e, w);
			return;
		}
	CHECK_SAY(false, "no order %s", name);
}

static void script_frames(void)
{
	struct flexio_sq *sq;
	char line[256];
	struct end e;

	end_open(&e, true, 0);
	sq = frames_open(&e, &e.sent, true);
	while (fgets(line, sizeof(line), stdin))
		script_obey(&e, frame_orders, line);
	OK(flexio_sq_destroy(sq));
	end_close(&e);
}

/* As the verbs program says who it is. */
static void script_introduce(const struct end *e)
{
	printf("peer %u %u %u %llu ", e->qpn, e->lid, e->key, (unsigned long long)e->data);
	for (unsigned i = 0; i < sizeof(e->gid.raw); i++)
		printf("%02x", e->gid.raw[i]);
	printf("\n");
}

/* Each line is answered with one, as the verbs program does: so somebody can wait until it is obeyed. */
static void script_packets(uint32_t transport)
{
	char line[256];
	struct end e;

	setvbuf(stdout, NULL, _IOLBF, 0);
	end_open(&e, true, transport);
	end_make(&e);
	script_introduce(&e);
	while (fgets(line, sizeof(line), stdin)) {
		script_obey(&e, packet_orders, line);
		printf("ok\n");
	}
	end_close(&e);
}

static void script_rc(void)
{
	script_packets(FLEXIO_QPC_ST_RC);
}

static void script_uc(void)
{
	script_packets(FLEXIO_QPC_ST_UC);
}

static void script_ud(void)
{
	script_packets(FLEXIO_QPC_ST_UD);
}

const struct host_case script_cases[] = {
	{"script_frames", script_frames},
	{"script_rc", script_rc},
	{"script_uc", script_uc},
	{"script_ud", script_ud},
	{NULL, NULL},
};
