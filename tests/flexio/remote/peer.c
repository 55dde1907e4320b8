// SPDX-License-Identifier: BSD-2-Clause
/*
 * A plain verbs program, which knows nothing of a DPA: peer ib|eth rc|uc|ud|raw.  It says who it is, then
 * does what lines of standard input say, and answers each with one line.
 */
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "mac_rule.h"
#include "remote.h"

#define PATIENT_S 60
#define BYTES	  (6u << 20)
#define QUEUE	  64u
#define RECEIVES  4096u
#define PIECES	  4u
#define INLINED	  96u
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static uint8_t memory[BYTES];

struct peer {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_flow *flow;
	struct ibv_port_attr port;
	uint32_t to; /* number of the other end */
	unsigned gid_index;
	uint16_t udp_sport;
	uint8_t retries;
	uint32_t flow_label;
	uint8_t rnr_retry;
};

/* RoCE v2 by the address of the link has index 1. */
static void peer_open(struct peer *p, bool ethernet)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list);
	for (int i = 0; list[i] && !p->ctx; i++) {
		p->ctx = ibv_open_device(list[i]);
		CHECK(p->ctx && !ibv_query_port(p->ctx, 1, &p->port));
		if ((p->port.link_layer == IBV_LINK_LAYER_ETHERNET) == ethernet)
			break;
		CHECK(!ibv_close_device(p->ctx));
		p->ctx = NULL;
	}
	ibv_free_device_list(list);
	CHECK(p->ctx);
	p->gid_index = ethernet;
	p->retries = 7;
}

static void peer_make(struct peer *p, enum ibv_qp_type type)
{
	bool raw = type == IBV_QPT_RAW_PACKET;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.cap = {QUEUE, RECEIVES, PIECES, 2, .max_inline_data = INLINED},
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (raw ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0),
		.max_tso_header = raw ? 96 : 0,
	};

	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, QUEUE + RECEIVES, NULL, NULL, 0);
	CHECK(p->pd && p->cq);
	p->mr = ibv_reg_mr(p->pd, memory, BYTES, RIGHTS);
	init.send_cq = init.recv_cq = p->cq;
	init.pd = p->pd;
	p->qp = ibv_create_qp_ex(p->ctx, &init);
	CHECK(p->mr && p->qp);
}

/* A raw packet queue has nobody to meet. */
static void peer_ready(struct peer *p)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	CHECK(!ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_PORT));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(p->qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(p->qp, &a, IBV_QP_STATE));
}

static void peer_introduce(const struct peer *p)
{
	union ibv_gid gid;

	CHECK(!ibv_query_gid(p->ctx, 1, (int)p->gid_index, &gid));
	printf("peer %u %u %u %llu ", p->qp->qp_num, p->port.lid, p->mr->rkey,
	       (unsigned long long)(uintptr_t)memory);
	for (unsigned i = 0; i < 16; i++)
		printf("%02x", gid.raw[i]);
	printf("\n");
}

/* ---- commands; each has its arguments as numbers ---- */

#define ARGS 8

struct words {
	unsigned long long n[ARGS];
	union ibv_gid gid;
};

static void gid_read(const char *hex, union ibv_gid *gid)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned byte = 0;

		CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1);
		gid->raw[i] = (uint8_t)byte;
	}
}

static struct ibv_ah_attr peer_way(const struct peer *p, const struct words *w)
{
	return (struct ibv_ah_attr){
		.dlid = (uint16_t)w->n[1],
		.port_num = 1,
		.is_global = p->port.link_layer == IBV_LINK_LAYER_ETHERNET || w->n[6],
		.grh = {.dgid = w->gid,
			.flow_label = p->flow_label,
			.sgid_index = (uint8_t)p->gid_index,
			.hop_limit = 64},
	};
}

/* from GID_INDEX UDP_PORT RETRIES LABEL: of the next connection; without a port the device takes one */
static void do_from(struct peer *p, const struct words *w)
{
	p->gid_index = (unsigned)w->n[0];
	p->udp_sport = (uint16_t)w->n[1];
	p->retries = (uint8_t)w->n[2];
	p->flow_label = (uint32_t)w->n[3];
	printf("ok\n");
}

/* patience TRIES: how often it asks a receiver that is not ready again, from the next connection on; 7 for ever */
static void do_patience(struct peer *p, const struct words *w)
{
	p->rnr_retry = (uint8_t)w->n[0];
	printf("ok\n");
}

/* connect QPN LID GID MTU RECV_PSN SEND_PSN READS GLOBAL */
static void do_connect(struct peer *p, const struct words *w)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RIGHTS,
		.path_mtu = (enum ibv_mtu)w->n[2],
		.dest_qp_num = (uint32_t)w->n[0],
		.rq_psn = (uint32_t)w->n[3],
		.sq_psn = (uint32_t)w->n[4],
		.max_dest_rd_atomic = (uint8_t)w->n[5],
		.max_rd_atomic = (uint8_t)w->n[5],
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = p->retries,
		.rnr_retry = p->rnr_retry,
		.ah_attr = peer_way(p, w),
	};
	bool rc = p->qp->qp_type == IBV_QPT_RC, ud = p->qp->qp_type == IBV_QPT_UD;

	p->to = a.dest_qp_num;
	CHECK(!ibv_modify_qp(p->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(
		p->qp, &a,
		IBV_QP_STATE |
			(ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(p->qp, &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC
					 : 0)));
	if (p->udp_sport && !ud)
		CHECK(!mlx5dv_modify_qp_udp_sport(p->qp, p->udp_sport));
	if (ud) {
		p->ah = ibv_create_ah(p->pd, &a.ah_attr);
		CHECK(p->ah);
	}
	printf("ok\n");
}

/* frames GID: a raw packet queue takes what is sent to the address whose six bytes the GID begins with. */
static void do_frames(struct peer *p, const struct words *w)
{
	p->flow = mac_rule(p->qp, w->gid.raw);
	CHECK(p->flow);
	printf("ok\n");
}

/* The pieces of such data; how many. */
static int pieces_of(const struct peer *p, uint64_t offset, uint64_t bytes, uint64_t pieces,
		     struct ibv_sge *sge)
{
	if (!pieces)
		pieces = 1;
	CHECK(pieces <= PIECES);
	for (uint64_t i = 0; i < pieces; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)memory + offset,
					  (uint32_t)piece_bytes(bytes, pieces, i), p->mr->lkey};
		offset += sge[i].length;
	}
	return (int)pieces;
}

/* frame OFFSET BYTES CHECKSUMS HEADER MSS PIECES INLINED: sends what lies there; with HEADER in segments */
static void do_frame(struct peer *p, const struct words *w)
{
	struct ibv_sge sge[PIECES];
	struct ibv_send_wr *bad, wr = {
					 .sg_list = sge,
					 .opcode = w->n[3] ? IBV_WR_TSO : IBV_WR_SEND,
					 .send_flags = (w->n[2] ? IBV_SEND_IP_CSUM : 0) |
						       (w->n[6] ? IBV_SEND_INLINE : 0),
				 };

	wr.num_sge = pieces_of(p, w->n[0] + w->n[3], w->n[1] - w->n[3], w->n[5], sge);
	if (w->n[3]) {
		wr.tso.hdr = memory + w->n[0];
		wr.tso.hdr_sz = (uint16_t)w->n[3];
		wr.tso.mss = (uint16_t)w->n[4];
	}
	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	printf("ok\n");
}

/* row OFFSET BYTES CHECKSUMS COUNT: sends frames of so many bytes that lie one behind the other */
static void do_row(struct peer *p, const struct words *w)
{
	for (uint64_t i = 0; i < w->n[3]; i++) {
		struct ibv_sge sge;
		struct ibv_send_wr *bad,
			wr = {
				.sg_list = &sge,
				.num_sge = pieces_of(p, w->n[0] + i * w->n[1], w->n[1], 1, &sge),
				.opcode = IBV_WR_SEND,
				.send_flags = w->n[2] ? IBV_SEND_IP_CSUM : 0,
			};

		CHECK(!ibv_post_send(p->qp, &wr, &bad));
	}
	printf("ok\n");
}

/* template OFFSET BYTES SEED FORM: a frame, to be sent */
static void do_template(struct peer *p, const struct words *w)
{
	(void)p;
	frame_template_of(memory + w->n[0], (uint32_t)w->n[1], (unsigned)w->n[2],
			  (unsigned)w->n[3]);
	printf("ok\n");
}

/* bytes OFFSET BYTES: what lies there */
static void do_bytes(struct peer *p, const struct words *w)
{
	(void)p;
	for (uint64_t i = 0; i < w->n[1]; i++)
		printf("%02x", memory[w->n[0] + i]);
	printf("\n");
}

/* recv COUNT OFFSET BYTES STEP: each so far behind the one before */
static void do_recv(struct peer *p, const struct words *w)
{
	struct ibv_sge sge = {(uintptr_t)memory + w->n[1], (uint32_t)w->n[2], p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (uint64_t i = 0; i < w->n[0]; i++, sge.addr += w->n[3])
		CHECK(!ibv_post_recv(p->qp, &wr, &bad));
	printf("ok\n");
}

/* post OPCODE OFFSET BYTES REMOTE KEY IMM SWAP_ADD COMPARE */
static void do_post(struct peer *p, const struct words *w)
{
	struct ibv_sge sge = {(uintptr_t)memory + w->n[1], (uint32_t)w->n[2], p->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = (enum ibv_wr_opcode)w->n[0],
					 .imm_data = htobe32((uint32_t)w->n[5]),
				 };

	if (p->ah) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->to;
	} else if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = w->n[3];
		wr.wr.atomic.rkey = (uint32_t)w->n[4];
		wr.wr.atomic.swap = w->n[6];
		wr.wr.atomic.compare_add =
			wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? w->n[7] : w->n[6];
	} else {
		wr.wr.rdma.remote_addr = w->n[3];
		wr.wr.rdma.rkey = (uint32_t)w->n[4];
	}
	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	printf("ok\n");
}

/* wait: the next completion is STATUS OPCODE BYTES IMM QPN GRH SYNDROME */
static void do_wait(struct peer *p, const struct words *w)
{
	time_t end = time(NULL) + PATIENT_S;
	struct ibv_wc wc;
	int n;

	(void)w;
	while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
		CHECK(time(NULL) < end);
	CHECK(n == 1);
	printf("%d %d %u %u %u %d\n", wc.status, wc.opcode, wc.byte_len,
	       wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(wc.imm_data) : 0, wc.src_qp,
	       (wc.wc_flags & IBV_WC_GRH) != 0);
}

/* done COUNT: so many completions say success */
static void do_done(struct peer *p, const struct words *w)
{
	time_t end = time(NULL) + PATIENT_S;

	for (uint64_t i = 0; i < w->n[0]; i++) {
		struct ibv_wc wc;

		while (!ibv_poll_cq(p->cq, 1, &wc))
			CHECK(time(NULL) < end);
		CHECK_SAY(!wc.status, "%s", ibv_wc_status_str(wc.status));
	}
	printf("ok\n");
}

/* lost COUNT: so many completions are in error */
static void do_lost(struct peer *p, const struct words *w)
{
	time_t end = time(NULL) + PATIENT_S;

	for (uint64_t i = 0; i < w->n[0]; i++) {
		struct ibv_wc wc;

		while (!ibv_poll_cq(p->cq, 1, &wc))
			CHECK(time(NULL) < end);
		CHECK(wc.status);
	}
	printf("ok\n");
}

/* none: how many completions there are that nobody waited for */
static void do_none(struct peer *p, const struct words *w)
{
	struct ibv_wc wc;

	(void)w;
	printf("%d\n", ibv_poll_cq(p->cq, 1, &wc));
}

/* fill OFFSET BYTES SEED */
static void do_fill(struct peer *p, const struct words *w)
{
	(void)p;
	for (uint64_t i = 0; i < w->n[1]; i++)
		memory[w->n[0] + i] = PATTERN(w->n[2], i);
	printf("ok\n");
}

/* same OFFSET BYTES SEED: how many bytes from the beginning on are the pattern's */
static void do_same(struct peer *p, const struct words *w)
{
	uint64_t i = 0;

	(void)p;
	while (i < w->n[1] && memory[w->n[0] + i] == PATTERN(w->n[2], i))
		i++;
	printf("%llu\n", (unsigned long long)i);
}

/* get OFFSET; set OFFSET VALUE: words in the machine's order */
static void do_get(struct peer *p, const struct words *w)
{
	uint64_t word;

	(void)p;
	memcpy(&word, memory + w->n[0], 8);
	printf("%llu\n", (unsigned long long)word);
}

static void do_set(struct peer *p, const struct words *w)
{
	uint64_t word = w->n[1];

	(void)p;
	memcpy(memory + w->n[0], &word, 8);
	printf("ok\n");
}

/* alike OFFSET WORDS: how many words from there on are the same */
static void do_alike(struct peer *p, const struct words *w)
{
	uint64_t n = 0;

	(void)p;
	while (n < w->n[1] && !memcmp(memory + w->n[0], memory + w->n[0] + 8 * n, 8))
		n++;
	printf("%llu\n", (unsigned long long)n);
}

static const struct {
	const char *name;
	void (*run)(struct peer *p, const struct words *w);
} commands[] = {
	{"connect", do_connect},   {"recv", do_recv},	{"post", do_post},
	{"wait", do_wait},	   {"none", do_none},	{"fill", do_fill},
	{"same", do_same},	   {"get", do_get},	{"set", do_set},
	{"frames", do_frames},	   {"frame", do_frame}, {"bytes", do_bytes},
	{"template", do_template}, {"row", do_row},	{"done", do_done},
	{"from", do_from},	   {"lost", do_lost},	{"patience", do_patience},
	{"alike", do_alike},
};

static void obey(struct peer *p, char *line)
{
	char *rest, *name = strtok_r(line, " \n", &rest), *word;
	struct words w = {{0}, {{0}}};
	unsigned n = 0;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		if (strlen(word) == 32) {
			gid_read(word, &w.gid);
			continue;
		}
		CHECK(n < ARGS);
		w.n[n++] = strtoull(word, NULL, 0);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name)) {
			commands[i].run(p, &w);
			return;
		}
	CHECK_SAY(false, "no command %s", name);
}

static enum ibv_qp_type type_of(const char *name)
{
	static const struct {
		const char *name;
		enum ibv_qp_type type;
	} types[] = {{"rc", IBV_QPT_RC},
		     {"uc", IBV_QPT_UC},
		     {"ud", IBV_QPT_UD},
		     {"raw", IBV_QPT_RAW_PACKET}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, name))
			return types[i].type;
	CHECK_SAY(false, "no type %s", name);
}

int main(int argc, char **argv)
{
	enum ibv_qp_type type;
	struct peer p = {.rnr_retry = 7};
	char line[256];

	CHECK(argc == 3);
	type = type_of(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	peer_open(&p, !strcmp(argv[1], "eth"));
	peer_make(&p, type);
	if (type == IBV_QPT_RAW_PACKET)
		peer_ready(&p);
	peer_introduce(&p);
	while (fgets(line, sizeof(line), stdin))
		obey(&p, line);
	CHECK(!p.flow || !ibv_destroy_flow(p.flow));
	CHECK(!ibv_destroy_qp(p.qp) && (!p.ah || !ibv_destroy_ah(p.ah)));
	CHECK(!ibv_dereg_mr(p.mr) && !ibv_destroy_cq(p.cq) && !ibv_dealloc_pd(p.pd));
	CHECK(!ibv_close_device(p.ctx));
	return 0;
}
