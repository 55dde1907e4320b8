// SPDX-License-Identifier: BSD-2-Clause
/*
 * modified DEVICE TABLE: ibv_modify_qp of every type of queue pair, from every state to every other one.  A mask is accepted
 * if, and only if, TABLE says so (modify_qp.tsv): with each needed attribute missing, with each other attribute added, and
 * with masks drawn at random.  A refusal is EINVAL and changes no state.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "random.h"
#include "verbs_device.h"

#define DRAWN 60u /* random masks a transition */
#define SKIP  77

enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR, STATES };
static const char *const states[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const struct {
	uint32_t bit;
	const char *name;
} attributes[] = {
#define ATTRIBUTE(name)              \
	{                            \
		IBV_QP_##name, #name \
	}
	ATTRIBUTE(STATE),
	ATTRIBUTE(CUR_STATE),
	ATTRIBUTE(EN_SQD_ASYNC_NOTIFY),
	ATTRIBUTE(ACCESS_FLAGS),
	ATTRIBUTE(PKEY_INDEX),
	ATTRIBUTE(PORT),
	ATTRIBUTE(QKEY),
	ATTRIBUTE(AV),
	ATTRIBUTE(PATH_MTU),
	ATTRIBUTE(TIMEOUT),
	ATTRIBUTE(RETRY_CNT),
	ATTRIBUTE(RNR_RETRY),
	ATTRIBUTE(RQ_PSN),
	ATTRIBUTE(MAX_QP_RD_ATOMIC),
	ATTRIBUTE(ALT_PATH),
	ATTRIBUTE(MIN_RNR_TIMER),
	ATTRIBUTE(SQ_PSN),
	ATTRIBUTE(MAX_DEST_RD_ATOMIC),
	ATTRIBUTE(PATH_MIG_STATE),
	ATTRIBUTE(CAP),
	ATTRIBUTE(DEST_QPN),
	ATTRIBUTE(RATE_LIMIT),
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

/* What the core takes out of the masks of XRC, because programs pass those of RC. */
#define NOT_OF_INI (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define NOT_OF_TGT (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

static const struct kind {
	const char *name;
	enum ibv_qp_type type;
	enum mlx5dv_dc_type dc;
	uint32_t ignored;
	bool sqe; /* a request that fails stops the send queue alone */
} kinds[] = {
	{"rc", IBV_QPT_RC, 0, 0, false},
	{"uc", IBV_QPT_UC, 0, 0, true},
	{"ud", IBV_QPT_UD, 0, 0, true},
	{"raw_packet", IBV_QPT_RAW_PACKET, 0, 0, false},
	{"xrc_send", IBV_QPT_XRC_SEND, 0, NOT_OF_INI, false},
	{"xrc_recv", IBV_QPT_XRC_RECV, 0, NOT_OF_TGT, false},
	{"dci", IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCI, 0, false},
	{"dct", IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCT, 0, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct rule {
	bool there;
	uint32_t needs, may;
} rules[KINDS][STATES][STATES];

static struct device_port port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static unsigned tried, wrong;

/* ---- the table ---- */

static uint32_t bits_of(char *names)
{
	uint32_t bits = 0;

	for (char *save, *name = strtok_r(names, " \n", &save); name;
	     name = strtok_r(NULL, " \n", &save)) {
		size_t i = 0;

		if (strcmp(name, "-") == 0)
			continue;
		while (i < ATTRIBUTES && strcmp(attributes[i].name, name) != 0)
			i++;
		if (i == ATTRIBUTES)
			device_die("no attribute %s", name);
		bits |= attributes[i].bit;
	}
	return bits;
}

static int state_of(const char *name)
{
	for (int s = 0; s < STATES; s++)
		if (strcmp(states[s], name) == 0)
			return s;
	device_die("no state %s", name);
}

static size_t kind_of(const char *name)
{
	for (size_t k = 0; k < KINDS; k++)
		if (strcmp(kinds[k].name, name) == 0)
			return k;
	device_die("no type %s", name);
}

static void read_table(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		device_die("%s: %m", path);
	while (fgets(line, sizeof(line), f)) {
		char *save, *type = strtok_r(line, "\t", &save),
			    *from = strtok_r(NULL, "\t", &save), *to = strtok_r(NULL, "\t", &save),
			    *needs = strtok_r(NULL, "\t", &save);

		if (*line == '#')
			continue;
		if (!needs)
			device_die("a row without columns");
		rules[kind_of(type)][state_of(from)][state_of(to)] = (struct rule){
			.there = true,
			.needs = bits_of(needs),
			.may = bits_of(save) | IBV_QP_STATE,
		};
	}
	fclose(f);
}

/* ---- queue pairs in a state ---- */

static struct ibv_qp *create(const struct kind *k)
{
	bool dct = k->dc == MLX5DV_DCTYPE_DCT, receives = k->type != IBV_QPT_XRC_SEND && !k->dc;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = k->type,
		.comp_mask =
			k->type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = pd,
		.send_cq = k->type == IBV_QPT_XRC_RECV ? NULL : cq,
		.recv_cq = receives || k->dc ? cq : NULL,
		.srq = dct ? srq : NULL,
		.cap = {dct ? 0 : 4, receives ? 4 : 0, dct ? 0 : 1, receives ? 1 : 0, 0},
		.xrcd = xrcd,
	};
	struct mlx5dv_qp_init_attr dc = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = k->dc, .dct_access_key = 1},
	};

	return k->dc ? mlx5dv_create_qp(port.ctx, &attr, &dc) : ibv_create_qp_ex(port.ctx, &attr);
}

/* A target of DC needs a port, and no address that leads anywhere. */
static int modify(const struct kind *k, struct ibv_qp *qp, int from, int to, uint32_t mask)
{
	struct device_address self = {
		.gid = port.gid, .qpn = qp->qp_num, .psn = 5, .lid = port.attr.lid};
	struct ibv_qp_attr attr = {
		.qp_state = (enum ibv_qp_state)to,
		.cur_qp_state = (enum ibv_qp_state)from,
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = DEVICE_QKEY,
		.dest_qp_num = qp->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = device_ah_attr(&port, &self),
		.alt_ah_attr = device_ah_attr(&port, &self),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.port_num = DEVICE_PORT,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.alt_port_num = DEVICE_PORT,
	};

	if (k->dc == MLX5DV_DCTYPE_DCT)
		memset(&attr.ah_attr.grh.dgid, 0, sizeof(attr.ah_attr.grh.dgid));
	return ibv_modify_qp(qp, &attr, (int)mask);
}

/* A request with a key of nobody. */
static void stop_send_queue(const struct kind *k, struct ibv_qp *qp)
{
	struct device_address self = {.gid = port.gid, .qpn = qp->qp_num, .lid = port.attr.lid};
	struct ibv_ah_attr to = device_ah_attr(&port, &self);
	struct ibv_sge entry = {.addr = (uintptr_t)&self, .length = 4, .lkey = 0x1234};
	struct ibv_send_wr wr = {.sg_list = &entry, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah *ah = NULL;
	struct ibv_wc wc;

	if (k->type == IBV_QPT_UD) {
		ah = ibv_create_ah(pd, &to);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = DEVICE_QKEY;
	}
	if (ibv_post_send(qp, &wr, &bad))
		device_die("a request: %m");
	for (uint64_t end = device_now_ns() + 5000000000u; device_qp_state(qp) != IBV_QPS_SQE;)
		if (device_now_ns() > end)
			device_die("%s: the send queue does not stop", k->name);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	if (ah)
		ibv_destroy_ah(ah);
}

/* NULL: the type has no such state. */
static struct ibv_qp *in_state(size_t kind, int state)
{
	static const int ways[STATES][5] = {
		[INIT] = {INIT},	  [RTR] = {INIT, RTR},
		[RTS] = {INIT, RTR, RTS}, [SQD] = {INIT, RTR, RTS, SQD},
		[SQE] = {INIT, RTR, RTS}, [ERR] = {INIT, ERR},
	};
	const struct kind *k = &kinds[kind];
	struct ibv_qp *qp;
	int from = RESET;

	if (state == SQE && !k->sqe)
		return NULL;
	qp = create(k);
	if (!qp)
		device_die("%s: %m", k->name);
	for (const int *to = ways[state]; *to; from = *to++) {
		const struct rule *r = &rules[kind][from][*to];

		if (r->there && !modify(k, qp, from, *to, r->needs | IBV_QP_STATE))
			continue;
		if (r->there)
			device_die("%s from %s to %s: %m", k->name, states[from], states[*to]);
		ibv_destroy_qp(qp);
		return NULL;
	}
	if (state == SQE)
		stop_send_queue(k, qp);
	return qp;
}

/* ---- each mask ---- */

static bool accepted(size_t kind, int from, int to, uint32_t mask)
{
	const struct rule *r = &rules[kind][from][mask & IBV_QP_STATE ? to : from];

	mask &= ~kinds[kind].ignored;
	/* ib_core refuses alternate paths on RoCE. */
	return r->there && (mask & r->needs) == r->needs && !(mask & ~(r->needs | r->may)) &&
	       !(mask & IBV_QP_ALT_PATH && port.ethernet);
}

static void try_mask(size_t kind, int from, int to, uint32_t mask, struct ibv_qp **qp)
{
	const struct kind *k = &kinds[kind];
	int want = accepted(kind, from, to, mask) ? 0 : EINVAL;
	int got = modify(k, *qp, from, to, mask), now = want		      ? from
							: mask & IBV_QP_STATE ? to
									      : from;

	tried++;
	if (got != want) {
		wrong++;
		printf("wrong: %s from %s to %s, mask 0x%x: %s, and Linux says %s\n", k->name,
		       states[from], states[to], mask, strerrorname_np(got), strerrorname_np(want));
	} else if (k->dc != MLX5DV_DCTYPE_DCT && device_qp_state(*qp) != (enum ibv_qp_state)now) {
		wrong++;
		printf("wrong: %s from %s to %s, mask 0x%x: %s afterwards\n", k->name, states[from],
		       states[to], mask, states[device_qp_state(*qp)]);
	}
	if (got)
		return;
	ibv_destroy_qp(*qp);
	*qp = in_state(kind, from);
}

static void try_transition(size_t kind, int from, int to, struct rnd *rnd)
{
	const struct rule *r = &rules[kind][from][to];
	struct ibv_qp *qp = in_state(kind, from);

	if (!qp)
		return;
	for (size_t i = 0; i < ATTRIBUTES; i++) {
		try_mask(kind, from, to, (r->needs | IBV_QP_STATE) ^ attributes[i].bit, &qp);
		try_mask(kind, from, to, r->needs ^ attributes[i].bit, &qp);
	}
	try_mask(kind, from, to, r->needs | IBV_QP_STATE, &qp);
	try_mask(kind, from, to, r->needs | r->may, &qp);
	for (unsigned n = 0; n < DRAWN; n++) {
		uint32_t mask = r->needs | IBV_QP_STATE;

		for (size_t i = 0; i < ATTRIBUTES; i++)
			if (rnd_percent(rnd, r->may & attributes[i].bit ? 50 : 3))
				mask ^= attributes[i].bit;
		try_mask(kind, from, to, mask, &qp);
	}
	ibv_destroy_qp(qp);
}

static bool can_create(const struct kind *k)
{
	struct ibv_qp *qp;

	if (k->type == IBV_QPT_RAW_PACKET && !port.ethernet)
		return false;
	qp = create(k);
	if (!qp && errno == EPERM)
		return false;
	if (!qp)
		device_die("%s: %m", k->name);
	ibv_destroy_qp(qp);
	return true;
}

int main(int argc, char **argv)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr receives = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct rnd rnd = {1};

	if (argc != 3)
		device_die("usage: modified DEVICE TABLE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_table(argv[2]);
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 16, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &receives);
	xrcd = ibv_open_xrcd(port.ctx, &domain);
	if (!pd || !cq || !srq || !xrcd)
		device_die("what queue pairs need: %m");
	for (size_t k = 0; k < KINDS; k++)
		for (int from = 0; can_create(&kinds[k]) && from < STATES; from++)
			for (int to = 0; to < STATES; to++)
				try_transition(k, from, to, &rnd);
	printf("%u masks, %u answered otherwise\n", tried, wrong);
	return wrong != 0;
}
