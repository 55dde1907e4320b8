// SPDX-License-Identifier: BSD-2-Clause
/*
 * MADs between queue pairs and queue pair 1 of ports.
 * Usage: gsi_mads DEVICE [LID...]  A queue pair and a program with a umad file, both at the device's port, ask each other and
 *                                  answer, with each kind of address that the port has.  Keys that do not fit, queue pair 0 and
 *                                  what is no MAD lead nowhere.  Then the queue pair asks the ports with these LIDs for their
 *                                  ClassPortInfo of performance management.  Two datagrams have a bad Q_Key.
 *        gsi_mads DEVICE flood N   The queue pair sends N questions to its own port, and takes no answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY	   0x80010000u
#define OTHER_QKEY 0x2222u
#define MAD_BYTES  256u
#define GRH_BYTES  40u
#define WAIT_MS	   20000
#define CLASS_PERF 4
#define CLASS_OURS 0x32
#define GET	   1
#define GET_RESP   0x81
#define AT_METHOD  3
#define AT_TID	   15 /* the last byte */

#define must(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
	fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, line, what, errno);
	exit(1);
}

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_port_attr port;
static union ibv_gid gid;
static unsigned gid_index;
static bool global;
/* Messages that go out, and places for those that come: one for each queue pair. */
static uint8_t out[MAD_BYTES + 1], in[2][GRH_BYTES + MAD_BYTES];
static struct ibv_mr *out_mr, *in_mr;
static uint8_t *umad, *umad_mad;
static int file, agent;

static const uint8_t oui[3] = {0, 0x14, 5};

/* ---- a queue pair ---- */

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *in;
};

static void end_receive(const struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->in, sizeof(in[0]), in_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	must(!ibv_post_recv(e->qp, &wr, &bad));
}

static struct end end_open(uint32_t qkey, uint8_t *place)
{
	struct end e = {.cq = ibv_create_cq(context, 64, NULL, NULL, 0), .in = place};
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq, .recv_cq = e.cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_UD};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	e.qp = ibv_create_qp(pd, &init);
	must(e.cq && e.qp);
	must(!ibv_modify_qp(e.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(e.qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	end_receive(&e);
	return e;
}

static struct ibv_ah *address(uint16_t lid)
{
	struct ibv_ah_attr attr = {.port_num = 1, .dlid = lid, .is_global = global};
	struct ibv_ah *ah;

	attr.grh.dgid = gid;
	attr.grh.sgid_index = (uint8_t)gid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(pd, &attr);
	must(ah != NULL);
	return ah;
}

static struct ibv_wc completion(const struct end *e)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void end_send(const struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		     uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)out, bytes, out_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {ah, qpn, qkey}};

	must(!ibv_post_send(e->qp, &wr, &bad));
}

/* A question or an answer to queue pair 1; its own answer may come before its completion. */
static void end_send_mad(const struct end *e, struct ibv_ah *ah, struct ibv_wc *answer)
{
	bool sent = false;

	end_send(e, ah, 1, QKEY, MAD_BYTES);
	while (!sent || (answer && answer->opcode != IBV_WC_RECV)) {
		struct ibv_wc wc = completion(e);

		if (wc.opcode == IBV_WC_SEND)
			sent = true;
		else if (answer)
			*answer = wc;
		else
			must(!"a datagram that nobody awaits");
	}
}

/* What has come is the MAD of a port's queue pair 1. */
static void came(const struct end *e, const struct ibv_wc *wc, uint16_t lid, uint8_t method,
		 uint8_t tid)
{
	must(wc->opcode == IBV_WC_RECV && wc->byte_len == GRH_BYTES + MAD_BYTES);
	must(wc->src_qp == 1 && wc->slid == lid && wc->pkey_index == 0);
	must(wc->sl == 0 || port.link_layer == IBV_LINK_LAYER_ETHERNET);
	must(!!(wc->wc_flags & IBV_WC_GRH) == global);
	must(e->in[GRH_BYTES + AT_METHOD] == method && e->in[GRH_BYTES + AT_TID] == tid);
	end_receive(e);
}

static void question(uint8_t class, uint8_t tid)
{
	memset(out, 0, sizeof(out));
	out[0] = 1;
	out[1] = class;
	out[2] = 1;
	out[AT_METHOD] = GET;
	out[AT_TID] = tid;
	if (class == CLASS_PERF)
		out[17] = 1;
	else
		memcpy(out + 37, oui, sizeof(oui));
}

/* ---- the program with the file ---- */

static void file_open(const char *device)
{
	long methods[16 / sizeof(long)] = {1l << GET};
	uint8_t ours[3];

	memcpy(ours, oui, sizeof(oui));
	must(!umad_init());
	file = umad_open_port(device, 1);
	must(file >= 0);
	agent = umad_register_oui(file, CLASS_OURS, 0, ours, methods);
	must(agent >= 0);
	umad = calloc(1, umad_size() + MAD_BYTES);
	must(umad != NULL);
	umad_mad = umad_get_mad(umad);
}

/* Returns the status of what came. */
static int file_take(uint8_t method, uint8_t tid)
{
	int length = MAD_BYTES;

	must(umad_recv(file, umad, &length, WAIT_MS) == agent);
	must(umad_mad[AT_METHOD] == method && umad_mad[AT_TID] == tid);
	return umad_status(umad);
}

static void asks_file(const struct end *e, uint8_t tid)
{
	const ib_mad_addr_t *from = umad_get_mad_addr(umad);
	struct ibv_wc wc = {0};

	question(CLASS_OURS, tid);
	end_send_mad(e, address(port.lid), NULL);
	must(!file_take(GET, tid));
	must(ntohl(from->qpn) == e->qp->qp_num && ntohs(from->lid) == port.lid);
	must(!!from->grh_present == global && from->pkey_index == 0);
	must(!global || (!memcmp(from->gid, gid.raw, sizeof(gid)) && from->gid_index == gid_index));
	/* The address is the one that it came from. */
	umad_mad[AT_METHOD] = GET_RESP;
	must(!umad_send(file, agent, umad, MAD_BYTES, 0, 0));
	wc = completion(e);
	came(e, &wc, port.lid, GET_RESP, tid);
}

static void file_ask(const struct end *e, uint8_t tid, int timeout_ms)
{
	ib_mad_addr_t to = {.hop_limit = 64};

	question(CLASS_OURS, tid);
	memset(umad, 0, umad_size());
	memcpy(umad_mad, out, MAD_BYTES);
	must(!umad_set_addr(umad, port.lid, (int)e->qp->qp_num, 0, (int)QKEY));
	memcpy(to.gid, gid.raw, sizeof(gid));
	must(!umad_set_grh(umad, global ? &to : NULL));
	umad_get_mad_addr(umad)->gid_index = (uint8_t)gid_index; /* umad_set_grh leaves it out */
	must(!umad_send(file, agent, umad, MAD_BYTES, timeout_ms, 0));
}

static void file_asks(const struct end *e, uint8_t tid)
{
	struct ibv_wc wc;

	file_ask(e, tid, WAIT_MS);
	wc = completion(e);
	came(e, &wc, port.lid, GET, tid);
	memcpy(out, e->in + GRH_BYTES, MAD_BYTES);
	out[AT_METHOD] = GET_RESP;
	end_send_mad(e, address(port.lid), NULL);
	must(!file_take(GET_RESP, tid));
}

/* ---- what leads nowhere ---- */

static void leads_nowhere(const struct end *e)
{
	struct ibv_ah *ah = address(port.lid);
	struct end other = end_open(OTHER_QKEY, in[1]);
	struct ibv_wc wc;

	question(CLASS_OURS, 100);
	end_send(e, ah, 1, OTHER_QKEY, MAD_BYTES); /* a bad Q_Key */
	end_send(e, ah, 0, QKEY, MAD_BYTES);
	end_send(e, ah, 1, QKEY, MAD_BYTES + 1);
	for (int i = 0; i < 3; i++)
		must(completion(e).opcode == IBV_WC_SEND);
	file_ask(&other, 101, 0);
	/* All of these have been judged when this has its answer. */
	asks_file(e, 102);
	file_asks(e, 103);
	must(!ibv_poll_cq(other.cq, 1, &wc));
}

/* ---- the ports' own answers ---- */

static void asks_port(const struct end *e, uint16_t lid, uint8_t tid)
{
	struct ibv_wc answer = {0};

	question(CLASS_PERF, tid);
	end_send_mad(e, address(lid), &answer);
	came(e, &answer, lid, GET_RESP, tid);
	must(e->in[GRH_BYTES + 4] == 0 && e->in[GRH_BYTES + 5] == 0);
}

static void flood(const struct end *e, unsigned n)
{
	struct ibv_ah *ah = address(port.lid);

	question(CLASS_PERF, 1);
	for (unsigned i = 0; i < n; i++) {
		end_send(e, ah, 1, QKEY, MAD_BYTES);
		while (completion(e).opcode != IBV_WC_SEND)
			;
	}
}

static void device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list != NULL);
	while (*list && strcmp(ibv_get_device_name(*list), name) != 0)
		list++;
	context = *list ? ibv_open_device(*list) : NULL;
	must(context && !ibv_query_port(context, 1, &port));
	pd = ibv_alloc_pd(context);
	must(pd != NULL);
	out_mr = ibv_reg_mr(pd, out, sizeof(out), IBV_ACCESS_LOCAL_WRITE);
	in_mr = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	must(out_mr && in_mr);
	must(!ibv_query_gid(context, 1, 0, &gid));
	global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* With that entry of the port's table, if there is one. */
static void each_asks(const struct end *e, unsigned index)
{
	static uint8_t tid;

	gid_index = index;
	if (ibv_query_gid(context, 1, (int)index, &gid) || !gid.global.interface_id)
		return;
	asks_file(e, ++tid);
	file_asks(e, ++tid);
}

int main(int argc, char **argv)
{
	struct end e;

	must(argc >= 2);
	device_open(argv[1]);
	e = end_open(QKEY, in[0]);
	if (argc == 4 && !strcmp(argv[2], "flood")) {
		flood(&e, (unsigned)atoi(argv[3]));
		return 0;
	}
	file_open(argv[1]);
	if (global) {
		for (unsigned i = 0; i < 6; i++)
			each_asks(&e, i);
		each_asks(&e, 0);
	} else {
		each_asks(&e, 0);
		global = true;
		each_asks(&e, 0);
		global = false;
	}
	leads_nowhere(&e);
	for (int i = 2; i < argc; i++)
		asks_port(&e, (uint16_t)atoi(argv[i]), (uint8_t)(200 + i));
	return 0;
}
