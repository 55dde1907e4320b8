// SPDX-License-Identifier: BSD-2-Clause
/*
 * Objects of DEVX through stock libmlx5: a queue pair connected with itself whose queues, keys and
 * doorbells are this program's, events and asynchronous answers, and commands that must be
 * refused.  One row per case: outcome, name, reason.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "prm/cmd_cq_eq.h"
#include "prm/cmd_mkey.h"
#include "prm/cmd.h"
#include "prm/cmd_qp.h"
#include "prm/eqe.h"
#include "prm/hca_cap.h"

#define PAGE	  4096u
#define RING_SQ	  PAGE /* in the page of the rings of the queue pair: receives first */
#define LOG_CQ	  4u
#define UDP_SPORT 0xc345u
#define ALT_SPORT 0xc346u
#define ALT_SL	  1u
#define LOG_RQ	  4u
#define LOG_SQ	  4u
#define MSG_BYTES 256u
#define PATIENCE  5000 /* ms */

static int failed;

#define EXPECT(what)                                                              \
	do {                                                                      \
		if (!(what)) {                                                    \
			printf("FAIL\t%s\tline %d: %s\n", name, __LINE__, #what); \
			failed++;                                                 \
			return;                                                   \
		}                                                                 \
	} while (0)
#define NEED(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "line %d: %s: %m\n", __LINE__, #what); \
			exit(2);                                               \
		}                                                              \
	} while (0)

static struct {
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	uint64_t mac;
	struct ibv_pd *pd;
	uint32_t pdn, eqn;
	struct mlx5dv_devx_uar *uar;
	uint8_t *memory; /* CQ, rings, records, data: a page each */
	struct mlx5dv_devx_umem *cq_umem, *ring_umem, *record_umem, *data_umem;
	struct mlx5dv_devx_obj *cq, *qp, *mkey;
	uint32_t cqn, qpn, lkey;
	uint32_t ci, sq, rq, event_sn;
} t;

static uint8_t *page_at(unsigned n)
{
	return t.memory + (size_t)n * PAGE;
}

static uint32_t *record_at(unsigned word)
{
	return (uint32_t *)(void *)page_at(2) + word;
}

static void begin_command(uint8_t *in, size_t n, unsigned op, uint32_t number)
{
	memset(in, 0, n);
	prm_set(in, CMD_IN_OPCODE, op);
	prm_set(in, CMD_IN_NUMBER, number);
}

/* ---- objects ---- */

static void create_cq(void)
{
	uint8_t in[CREATE_CQ_IN_BYTES], out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_CQ_CONTEXT;

	begin_command(in, sizeof(in), PRM_OP_CREATE_CQ, 0);
	prm_set(in, CREATE_CQ_UMEM, t.cq_umem->umem_id);
	prm_set(c, CQC_DBR_UMEM, t.record_umem->umem_id);
	prm_set(c, CQC_LOG_SIZE, LOG_CQ);
	prm_set(c, CQC_UAR_PAGE, t.uar->page_id);
	prm_set(c, CQC_EQN, t.eqn);
	for (unsigned i = 0; i < 1u << LOG_CQ; i++)
		page_at(0)[i * 64 + 63] = 0xf0;
	t.cq = mlx5dv_devx_obj_create(t.ctx, in, sizeof(in), out, sizeof(out));
	NEED(t.cq);
	t.cqn = prm_get32(out, CMD_OUT_NUMBER);
}

/* What is offered of an enhanced connection, and what the device takes of that. */
#define QP_IN_ECE   PRM_FIELD(0x0a0, 32)
#define QP_OUT_ECE  PRM_FIELD(0x060, 32)
#define ALL_OPTIONS 0xffffffffu

static void fill_qp(uint8_t *in)
{
	uint8_t *c = in + CREATE_QP_CONTEXT;

	begin_command(in, CREATE_QP_IN_BYTES, PRM_OP_CREATE_QP, 0);
	prm_set(in, CREATE_QP_UMEM, t.ring_umem->umem_id);
	prm_set(c, QPC_PD, t.pdn);
	prm_set(c, QPC_LOG_RQ_SIZE, LOG_RQ);
	prm_set(c, QPC_LOG_SQ_SIZE, LOG_SQ);
	prm_set(c, QPC_UAR_PAGE, t.uar->page_id);
	prm_set(c, QPC_CQN_SEND, t.cqn);
	prm_set(c, QPC_CQN_RECV, t.cqn);
	prm_set(c, QPC_DBR_UMEM, t.record_umem->umem_id);
	prm_set(c, QPC_DBR_ADDR, 8);
}

static void create_qp(void)
{
	uint8_t in[CREATE_QP_IN_BYTES], out[CMD_OUT_BYTES] = {0};

	fill_qp(in);
	prm_set(in, QP_IN_ECE, ALL_OPTIONS);
	t.qp = mlx5dv_devx_obj_create(t.ctx, in, sizeof(in), out, sizeof(out));
	NEED(t.qp);
	NEED(!prm_get32(out, QP_OUT_ECE));
	t.qpn = prm_get32(out, CMD_OUT_NUMBER);
}

static void create_mkey(void)
{
	uint8_t in[CREATE_MKEY_IN_BYTES], out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_MKEY_CONTEXT;

	begin_command(in, sizeof(in), PRM_OP_CREATE_MKEY, 0);
	prm_set(in, CREATE_MKEY_UMEM, t.data_umem->umem_id);
	prm_set(c, MKC_PD, t.pdn);
	prm_set(c, MKC_QPN, 0xffffff);
	prm_set(c, MKC_VARIANT, 0x5a);
	prm_set(c, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(c, MKC_LOCAL_READ, 1);
	prm_set(c, MKC_LOCAL_WRITE, 1);
	prm_set(c, MKC_START, (uintptr_t)page_at(3));
	prm_set(c, MKC_LENGTH, PAGE);
	prm_set(c, MKC_LIST_OCTOWORDS, 1);
	t.mkey = mlx5dv_devx_obj_create(t.ctx, in, sizeof(in), out, sizeof(out));
	NEED(t.mkey);
	t.lkey = prm_get32(out, CMD_OUT_NUMBER) << 8 | 0x5a;
}

static int transition_qp(unsigned op, uint32_t qpn, uint8_t out[CMD_OUT_BYTES])
{
	uint8_t in[MODIFY_QP_IN_BYTES], *c = in + MODIFY_QP_CONTEXT, *path = c + QPC_PRIMARY_PATH;

	begin_command(in, sizeof(in), op, qpn);
	memset(out, 0, CMD_OUT_BYTES);
	if (op == PRM_OP_INIT2RTR_QP || op == PRM_OP_RTR2RTS_QP)
		prm_set(in, QP_IN_ECE, ALL_OPTIONS);
	prm_set(c, QPC_MTU, 3);
	prm_set(c, QPC_REMOTE_QPN, qpn);
	prm_set(c, QPC_RETRY_COUNT, 7);
	prm_set(c, QPC_RNR_RETRY, 7);
	prm_set(c, QPC_MIN_RNR_NAK, 12);
	prm_set(c, QPC_ISOLATE, 1);
	prm_set(path, ADS_UDP_SPORT, UDP_SPORT);
	prm_set(path, ADS_PORT, 1);
	prm_set(path, ADS_ACK_TIMEOUT, 14);
	prm_set(path, ADS_HOP_LIMIT, 1);
	prm_set(path, ADS_RLID, t.port.lid);
	prm_set(path, ADS_RMAC, t.mac);
	if (t.port.link_layer == IBV_LINK_LAYER_ETHERNET)
		memcpy(path + ADS_RGID, t.gid.raw, sizeof(t.gid.raw));
	return mlx5dv_devx_obj_modify(t.qp, in, sizeof(in), out, CMD_OUT_BYTES);
}

static struct mlx5dv_devx_umem *umem_of(unsigned n)
{
	struct mlx5dv_devx_umem *u =
		mlx5dv_devx_umem_reg(t.ctx, page_at(n), PAGE, IBV_ACCESS_LOCAL_WRITE);

	NEED(u);
	return u;
}

/* The MAC of a link-local GID. */
static uint64_t mac_of(const union ibv_gid *gid)
{
	static const int at[] = {8, 9, 10, 13, 14, 15};
	uint64_t mac = 0;

	for (unsigned i = 0; i < 6; i++)
		mac = mac << 8 | gid->raw[at[i]];
	return mac ^ 0x02ull << 40;
}

static void open_device(const char *device, int gid_index)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj = {.pd = {.out = &dvpd}};

	NEED(list);
	for (unsigned i = 0; list[i] && !t.ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			t.ctx = mlx5dv_open_device(list[i], &attr);
	NEED(t.ctx);
	ibv_free_device_list(list);
	NEED(!ibv_query_port(t.ctx, 1, &t.port));
	NEED(!ibv_query_gid(t.ctx, 1, gid_index, &t.gid));
	t.gid_index = gid_index;
	t.mac = mac_of(&t.gid);
	t.pd = ibv_alloc_pd(t.ctx);
	NEED(t.pd);
	obj.pd.in = t.pd;
	NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
	t.pdn = dvpd.pdn;
	NEED(!mlx5dv_devx_query_eqn(t.ctx, 0, &t.eqn));
	t.uar = mlx5dv_devx_alloc_uar(t.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	NEED(t.uar);
	t.memory = aligned_alloc(PAGE, 4 * PAGE);
	NEED(t.memory);
	memset(t.memory, 0, 4 * PAGE);
	t.cq_umem = umem_of(0);
	t.ring_umem = umem_of(1);
	t.record_umem = umem_of(2);
	t.data_umem = umem_of(3);
}

/* ---- traffic ---- */

static void put_data(uint8_t *wqe, uint32_t off)
{
	struct mlx5_wqe_data_seg *d = (void *)wqe;

	mlx5dv_set_data_seg(d, MSG_BYTES, t.lkey, (uintptr_t)page_at(3) + off);
}

static void post_recv(uint32_t off)
{
	put_data(page_at(1) + (t.rq++ % (1u << LOG_RQ)) * 16, off);
	__atomic_store_n(record_at(2), htonl(t.rq & 0xffff), __ATOMIC_RELEASE);
}

static void post_send(uint32_t off)
{
	uint8_t *wqe = page_at(1) + (16u << LOG_RQ) + (t.sq % (1u << LOG_SQ)) * 64;
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)wqe;

	mlx5dv_set_ctrl_seg(ctrl, (uint16_t)t.sq, MLX5_OPCODE_SEND, 0, t.qpn,
			    MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, 0);
	put_data(wqe + sizeof(*ctrl), off);
	t.sq++;
	__atomic_store_n(record_at(3), htonl(t.sq & 0xffff), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)t.uar->reg_addr, *(uint64_t *)(void *)wqe, __ATOMIC_RELEASE);
}

static void arm_cq(void)
{
	uint32_t word = (t.event_sn & 3) << 28 | (t.ci & 0xffffff);
	union {
		uint32_t word[2];
		uint64_t both;
	} bell = {{htonl(word), htonl(t.cqn)}};

	__atomic_store_n(record_at(1), htonl(word), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)(void *)((uint8_t *)t.uar->base_addr + 0x20), bell.both,
			 __ATOMIC_RELEASE);
	t.event_sn++;
}

/* Opcode of the next completion, or -1. */
static int poll_cq(void)
{
	uint8_t *last = page_at(0) + (t.ci % (1u << LOG_CQ)) * 64 + 63, op;
	time_t end = time(NULL) + PATIENCE / 1000;

	do {
		op = __atomic_load_n(last, __ATOMIC_ACQUIRE);
		if (op >> 4 != 0xf && (op & 1) == (t.ci >> LOG_CQ & 1)) {
			t.ci++;
			__atomic_store_n(record_at(0), htonl(t.ci & 0xffffff), __ATOMIC_RELEASE);
			return op >> 4;
		}
	} while (time(NULL) < end);
	return -1;
}

/* A message to ourselves: completions of both sides. */
static bool exchange_message(uint8_t fill)
{
	int first, second;

	memset(page_at(3), fill, MSG_BYTES);
	memset(page_at(3) + MSG_BYTES, 0, MSG_BYTES);
	post_recv(MSG_BYTES);
	post_send(0);
	first = poll_cq();
	second = poll_cq();
	return first + second == 2 && first != second &&
	       !memcmp(page_at(3), page_at(3) + MSG_BYTES, MSG_BYTES);
}

/* ---- cases ---- */

static void case_connect(const char *name)
{
	uint8_t in[SHORT_QP_IN_BYTES], out[CMD_OUT_BYTES], context[QUERY_QP_OUT_BYTES] = {0};

	/* not in that state */
	EXPECT(transition_qp(PRM_OP_RTR2RTS_QP, t.qpn, out));
	EXPECT(!transition_qp(PRM_OP_RST2INIT_QP, t.qpn, out));
	EXPECT(!transition_qp(PRM_OP_INIT2RTR_QP, t.qpn, out));
	EXPECT(!prm_get32(out, QP_OUT_ECE));
	EXPECT(!transition_qp(PRM_OP_RTR2RTS_QP, t.qpn, out));
	EXPECT(!prm_get32(out, QP_OUT_ECE));
	/* what nothing but the context shows */
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	EXPECT(!mlx5dv_devx_obj_query(t.qp, in, sizeof(in), context, sizeof(context)));
	EXPECT(prm_get(context + QUERY_QP_CONTEXT, QPC_ISOLATE) == 1);
	EXPECT(prm_get(context + QUERY_QP_CONTEXT + QPC_PRIMARY_PATH, ADS_UDP_SPORT) ==
	       (t.port.link_layer == IBV_LINK_LAYER_ETHERNET ? UDP_SPORT : 0));
	printf("PASS\t%s\t\n", name);
}

static void case_traffic(const char *name)
{
	for (unsigned i = 0; i < 100; i++)
		EXPECT(exchange_message((uint8_t)(i + 1)));
	printf("PASS\t%s\t\n", name);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void case_events(const char *name)
{
	struct {
		uint64_t cookie;
		uint8_t eqe[EQE_BYTES];
		uint8_t more[100];
	} event;
	struct mlx5dv_devx_event_channel *full, *brief;
	uint16_t comp = EQE_COMP, nonsense = 0x77;
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t count = 0;

	full = mlx5dv_devx_create_event_channel(t.ctx, 0);
	brief = mlx5dv_devx_create_event_channel(
		t.ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	EXPECT(full && brief && fd >= 0);
	EXPECT(mlx5dv_devx_subscribe_devx_event(full, t.cq, sizeof(nonsense), &nonsense, 1));
	EXPECT(mlx5dv_devx_subscribe_devx_event_fd(full, STDIN_FILENO, t.cq, comp));
	EXPECT(!mlx5dv_devx_subscribe_devx_event(full, t.cq, sizeof(comp), &comp, 0x1234));
	EXPECT(!mlx5dv_devx_subscribe_devx_event(brief, t.cq, sizeof(comp), &comp, 0x5678));
	EXPECT(!mlx5dv_devx_subscribe_devx_event_fd(brief, fd, t.cq, comp));
	/* not armed: no event */
	EXPECT(exchange_message(1));
	EXPECT(!is_readable(full->fd, 20));
	arm_cq();
	EXPECT(exchange_message(2));
	EXPECT(is_readable(full->fd, PATIENCE) && is_readable(brief->fd, PATIENCE) &&
	       is_readable(fd, PATIENCE));
	arm_cq();
	EXPECT(exchange_message(3));
	/* one at a time, though two are there and the room is for more */
	for (unsigned i = 0; i < 2; i++) {
		EXPECT(is_readable(full->fd, PATIENCE));
		EXPECT(mlx5dv_devx_get_event(full, (void *)&event, sizeof(event)) ==
		       sizeof(uint64_t) + EQE_BYTES);
		EXPECT(event.cookie == 0x1234);
		EXPECT(prm_get(event.eqe, EQE_TYPE) == EQE_COMP);
		EXPECT(prm_get(event.eqe, EQE_COMP_CQN) == t.cqn);
		EXPECT(is_readable(brief->fd, PATIENCE));
		EXPECT(mlx5dv_devx_get_event(brief, (void *)&event, sizeof(event)) ==
		       sizeof(uint64_t));
		EXPECT(event.cookie == 0x5678);
	}
	EXPECT(read(fd, &count, sizeof(count)) == sizeof(count) && count == 2);
	mlx5dv_devx_destroy_event_channel(full);
	mlx5dv_devx_destroy_event_channel(brief);
	close(fd);
	/* nobody listens any more */
	arm_cq();
	EXPECT(exchange_message(4));
	printf("PASS\t%s\t\n", name);
}

/* The alternate path differs by its UDP port on RoCE, by its service level on InfiniBand. */
static void fill_alternate(uint8_t *path)
{
	prm_set(path, ADS_PORT, 1);
	prm_set(path, ADS_ACK_TIMEOUT, 15);
	prm_set(path, ADS_HOP_LIMIT, 1);
	if (t.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		prm_set(path, ADS_UDP_SPORT, ALT_SPORT);
		prm_set(path, ADS_RMAC, t.mac);
		memcpy(path + ADS_RGID, t.gid.raw, sizeof(t.gid.raw));
	} else {
		prm_set(path, ADS_RLID, t.port.lid);
		prm_set(path, ADS_SL, ALT_SL);
	}
}

static bool is_alternate(const uint8_t *path)
{
	uint8_t alt[QPC_ALT_PATH - QPC_PRIMARY_PATH] = {0};

	fill_alternate(alt);
	return prm_get(path, ADS_UDP_SPORT) == prm_get(alt, ADS_UDP_SPORT) &&
	       prm_get(path, ADS_RLID) == prm_get(alt, ADS_RLID) &&
	       prm_get(path, ADS_ACK_TIMEOUT) == 15 && prm_get(path, ADS_PORT) == 1 &&
	       (t.port.link_layer == IBV_LINK_LAYER_ETHERNET || prm_get(path, ADS_SL) == ALT_SL) &&
	       !memcmp(path + ADS_RGID, alt + ADS_RGID, sizeof(t.gid.raw));
}

/* Sets the state of path migration; opt says what else. */
static int migrate_qp(enum qpc_pm_state state, uint32_t opt)
{
	uint8_t in[MODIFY_QP_IN_BYTES], out[CMD_OUT_BYTES] = {0};

	begin_command(in, sizeof(in), PRM_OP_RTS2RTS_QP, t.qpn);
	prm_set(in, MODIFY_QP_OPT, QP_OPT_PM_STATE | opt);
	prm_set(in + MODIFY_QP_CONTEXT, QPC_PM_STATE, state);
	fill_alternate(in + MODIFY_QP_CONTEXT + QPC_ALT_PATH);
	return mlx5dv_devx_obj_modify(t.qp, in, sizeof(in), out, sizeof(out));
}

static bool query_context(uint8_t qpc[QPC_BYTES])
{
	uint8_t in[SHORT_QP_IN_BYTES], out[QUERY_QP_OUT_BYTES] = {0};

	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	if (mlx5dv_devx_obj_query(t.qp, in, sizeof(in), out, sizeof(out)))
		return false;
	memcpy(qpc, out + QUERY_QP_CONTEXT, QPC_BYTES);
	return true;
}

/* The queue pair, which is its own peer, arms itself by its packets.  Then it migrates, and its
 * alternate path is the primary one. */
static void case_migration(const char *name)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(t.ctx, 0);
	uint16_t type = EQE_PATH_MIG;
	uint8_t qpc[QPC_BYTES];
	struct {
		uint64_t cookie;
		uint8_t eqe[EQE_BYTES];
	} event;

	EXPECT(channel && !mlx5dv_devx_subscribe_devx_event(channel, t.qp, sizeof(type), &type, 7));
	EXPECT(query_context(qpc) && prm_get(qpc, QPC_PM_STATE) == QPC_PM_MIGRATED);
	EXPECT(migrate_qp(QPC_PM_ARMED, 0));
	EXPECT(migrate_qp((enum qpc_pm_state)2, 0));
	EXPECT(!migrate_qp(QPC_PM_REARM, QP_OPT_ALT_PATH));
	EXPECT(query_context(qpc) && prm_get(qpc, QPC_PM_STATE) == QPC_PM_REARM);
	EXPECT(is_alternate(qpc + QPC_ALT_PATH) && !is_alternate(qpc + QPC_PRIMARY_PATH));
	EXPECT(exchange_message(6));
	EXPECT(query_context(qpc) && prm_get(qpc, QPC_PM_STATE) == QPC_PM_ARMED);
	EXPECT(!is_readable(channel->fd, 0));
	EXPECT(!migrate_qp(QPC_PM_MIGRATED, 0));
	EXPECT(is_readable(channel->fd, PATIENCE));
	EXPECT(mlx5dv_devx_get_event(channel, (void *)&event, sizeof(event)) == sizeof(event));
	EXPECT(prm_get(event.eqe, EQE_TYPE) == EQE_PATH_MIG &&
	       prm_get(event.eqe, EQE_QUEUE_NR) == t.qpn);
	EXPECT(query_context(qpc) && prm_get(qpc, QPC_PM_STATE) == QPC_PM_MIGRATED);
	EXPECT(is_alternate(qpc + QPC_PRIMARY_PATH));
	EXPECT(exchange_message(7));
	mlx5dv_devx_destroy_event_channel(channel);
	printf("PASS\t%s\t\n", name);
}

static void case_async(const char *name)
{
	struct mlx5dv_devx_cmd_comp *comp = mlx5dv_devx_create_cmd_comp(t.ctx);
	uint8_t in[CMD_IN_BYTES];
	struct {
		uint64_t wr_id;
		uint8_t out[2 * QUERY_QP_OUT_BYTES];
	} answer;

	EXPECT(comp);
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	for (uint64_t i = 0; i < 3; i++)
		EXPECT(!mlx5dv_devx_obj_query_async(t.qp, in, sizeof(in), QUERY_QP_OUT_BYTES, 7 + i,
						    comp));
	for (uint64_t i = 0; i < 3; i++) {
		EXPECT(!mlx5dv_devx_get_async_cmd_comp(comp, (void *)&answer, sizeof(answer)));
		EXPECT(answer.wr_id == 7 + i);
		EXPECT(prm_get(answer.out, CMD_OUT_STATUS) == CMD_STATUS_OK);
		EXPECT(prm_get(answer.out + QUERY_QP_CONTEXT, QPC_STATE) == QPC_STATE_RTS);
		EXPECT(prm_get(answer.out + QUERY_QP_CONTEXT, QPC_REMOTE_QPN) == t.qpn);
	}
	mlx5dv_devx_destroy_cmd_comp(comp);
	printf("PASS\t%s\t\n", name);
}

/* errno, or the status of the mailbox if the firmware refused. */
static int command_refused(const void *in, size_t n, size_t out_len)
{
	uint8_t out[QUERY_QP_OUT_BYTES] = {0};
	struct mlx5dv_devx_obj *obj = mlx5dv_devx_obj_create(t.ctx, in, n, out, out_len);
	int err = errno;

	if (obj) {
		mlx5dv_devx_obj_destroy(obj);
		return 0;
	}
	return err == EREMOTEIO ? 0x1000 + (int)prm_get(out, CMD_OUT_STATUS) : err;
}

#define STATUS(s) (0x1000 + CMD_STATUS_##s)

static void case_refusals(const char *name)
{
	uint8_t in[CREATE_QP_IN_BYTES], out[QUERY_QP_OUT_BYTES];

	fill_qp(in);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == 0);
	EXPECT(command_refused(in, CMD_IN_BYTES, CMD_OUT_BYTES) == STATUS(BAD_INPUT_LEN));
	EXPECT(command_refused(in, CMD_IN_BYTES - 1, CMD_OUT_BYTES) == EINVAL);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES - 1) == EINVAL);
	prm_set(in + CREATE_QP_CONTEXT, QPC_PD, t.pdn + 1000);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	fill_qp(in);
	prm_set(in + CREATE_QP_CONTEXT, QPC_CQN_SEND, t.cqn + 1000);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	fill_qp(in);
	prm_set(in, CREATE_QP_UMEM, t.ring_umem->umem_id + 1000);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	fill_qp(in);
	prm_set(in, CREATE_QP_OFFSET, UINT64_MAX - 8);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	fill_qp(in);
	prm_set(in + CREATE_QP_CONTEXT, QPC_LOG_SQ_SIZE, 15);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	fill_qp(in);
	prm_set(in + CREATE_QP_CONTEXT, QPC_DBR_ADDR, PAGE - 4);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == STATUS(BAD_PARAM));
	/* for another function; unknown; not of this method */
	fill_qp(in);
	prm_set(in, CMD_IN_VHCA_TUNNEL, 1);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == EINVAL);
	begin_command(in, sizeof(in), 0x777, 0);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == EINVAL);
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	EXPECT(command_refused(in, sizeof(in), CMD_OUT_BYTES) == EINVAL);
	/* of another object, of another kind, in the wrong method */
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn + 1);
	EXPECT(mlx5dv_devx_obj_query(t.qp, in, CMD_IN_BYTES, out, sizeof(out)) == EINVAL);
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	EXPECT(mlx5dv_devx_obj_query(t.cq, in, CMD_IN_BYTES, out, sizeof(out)) == EINVAL);
	EXPECT(mlx5dv_devx_obj_modify(t.qp, in, CMD_IN_BYTES, out, sizeof(out)) == EINVAL);
	EXPECT(mlx5dv_devx_general_cmd(t.ctx, in, CMD_IN_BYTES, out, sizeof(out)) == EINVAL);
	/* two values at once are for the kernel */
	begin_command(in, sizeof(in), PRM_OP_CREATE_PSV, t.pdn);
	prm_set(in, CREATE_PSV_COUNT, 2);
	EXPECT(command_refused(in, CMD_IN_BYTES, CREATE_PSV_OUT_BYTES) == EINVAL);
	prm_set(in, CREATE_PSV_COUNT, 1);
	EXPECT(command_refused(in, CMD_IN_BYTES, CMD_OUT_BYTES) == STATUS(BAD_OUTPUT_LEN));
	EXPECT(command_refused(in, CMD_IN_BYTES, CREATE_PSV_OUT_BYTES) == 0);
	printf("PASS\t%s\t\n", name);
}

static int ask(unsigned op, uint8_t *out, size_t n)
{
	uint8_t in[CMD_IN_BYTES];

	begin_command(in, sizeof(in), op, 0);
	memset(out, 0, n);
	return mlx5dv_devx_general_cmd(t.ctx, in, sizeof(in), out, n);
}

/* Fields of pages of capabilities by which programs choose how they work. */
static void case_capabilities(const char *name)
{
	/* UCX swaps the bytes of what a fetch of 8 bytes brings, unless the mode is the host's order. */
	struct prm_field endianness_mode = PRM_FIELD(0x40, 2), mode_1 = PRM_FIELD(0x46, 1);
	struct prm_field ece = PRM_FIELD(0xa3, 1);
	uint8_t in[CMD_IN_BYTES], out[HCA_CAP_OUT_BYTES], *page = out + HCA_CAP_HEADER;

	for (unsigned current = 0; current < 2; current++) {
		begin_command(in, sizeof(in), PRM_OP_QUERY_HCA_CAP, 0);
		prm_set(in, CMD_IN_OP_MOD, HCA_CAP_ATOMIC << 1 | current);
		EXPECT(!mlx5dv_devx_general_cmd(t.ctx, in, sizeof(in), out, sizeof(out)));
		EXPECT(prm_get(page, endianness_mode) == 1 && prm_get(page, mode_1) == 1);
		prm_set(in, CMD_IN_OP_MOD, HCA_CAP_GENERAL << 1 | current);
		EXPECT(!mlx5dv_devx_general_cmd(t.ctx, in, sizeof(in), out, sizeof(out)));
		EXPECT(prm_get(page, ece) == 1);
	}
	printf("PASS\t%s\t\n", name);
}

/* Options of an enhanced connection are heard, and none is agreed on. */
static void case_options(const char *name)
{
	struct ibv_cq *cq = ibv_create_cq(t.ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_ece ece = {.options = 1};
	struct ibv_qp *qp = ibv_create_qp(t.pd, &init);

	NEED(qp);
	EXPECT(!ibv_query_ece(qp, &ece) && ece.vendor_id == 0x15b3 && !ece.options);
	ece.options = ALL_OPTIONS;
	EXPECT(!ibv_set_ece(qp, &ece));
	EXPECT(ibv_set_ece(qp, &(struct ibv_ece){.vendor_id = 1}) == EINVAL);
	EXPECT(!ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.port_num = 1,
			    .dlid = t.port.lid,
			    .is_global = t.port.link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.dgid = t.gid,
				    .sgid_index = (uint8_t)t.gid_index,
				    .hop_limit = 1}},
	};
	EXPECT(!ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER));
	EXPECT(!ibv_query_ece(qp, &ece) && !ece.options);
	EXPECT(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	printf("PASS\t%s\t\n", name);
}

/* What programs ask when they begin; UCX 1.18 prints an error if QUERY_LAG fails. */
static void case_about(const char *name)
{
	uint8_t out[HCA_VPORT_OUT_BYTES], *port = out + HCA_VPORT_CONTEXT;
	struct ibv_device_attr attr;

	EXPECT(!ask(PRM_OP_NOP, out, CMD_OUT_BYTES));
	EXPECT(!ask(PRM_OP_QUERY_LAG, out, CMD_OUT_BYTES));
	EXPECT(!memcmp(out, (uint8_t[CMD_OUT_BYTES]){0}, CMD_OUT_BYTES));
	EXPECT(!ask(PRM_OP_QUERY_ISSI, out, ISSI_OUT_BYTES));
	EXPECT(prm_get(out, ISSI_CURRENT) == 1);
	EXPECT(!ibv_query_device(t.ctx, &attr));
	EXPECT(!ask(PRM_OP_QUERY_ADAPTER, out, ADAPTER_OUT_BYTES));
	EXPECT(prm_get32(out, ADAPTER_VENDOR) == attr.vendor_id);
	EXPECT(!strncmp((char *)out + ADAPTER_PSID, "MT_", 3));
	EXPECT(!ask(PRM_OP_QUERY_VPORT_STATE, out, CMD_OUT_BYTES));
	EXPECT(prm_get(out, VPORT_STATE) == VPORT_UP);
	if (t.port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		EXPECT(!ask(PRM_OP_QUERY_HCA_VPORT_CONTEXT, out, HCA_VPORT_OUT_BYTES));
		EXPECT(prm_get(port, HCA_VPORT_SYSTEM_GUID) == be64toh(attr.sys_image_guid));
		EXPECT(prm_get(port, HCA_VPORT_NODE_GUID) == be64toh(attr.node_guid));
		EXPECT(prm_get(port, HCA_VPORT_SM_SL) == t.port.sm_sl);
		EXPECT((prm_get(port, HCA_VPORT_CAP_MASK1) & ~(1ull << 26)) ==
		       t.port.port_cap_flags);
	}
	printf("PASS\t%s\t\n", name);
}

static void case_busy(const char *name)
{
	EXPECT(mlx5dv_devx_obj_destroy(t.cq));
	EXPECT(mlx5dv_devx_umem_dereg(t.ring_umem));
	EXPECT(exchange_message(5));
	printf("PASS\t%s\t\n", name);
}

static void case_error(const char *name)
{
	uint8_t in[CMD_IN_BYTES], out[QUERY_QP_OUT_BYTES];

	begin_command(in, sizeof(in), PRM_OP_2ERR_QP, t.qpn);
	post_recv(0);
	EXPECT(!mlx5dv_devx_obj_modify(t.qp, in, sizeof(in), out, CMD_OUT_BYTES));
	EXPECT(poll_cq() == 14); /* the receive is flushed */
	begin_command(in, sizeof(in), PRM_OP_QUERY_QP, t.qpn);
	EXPECT(!mlx5dv_devx_obj_query(t.qp, in, sizeof(in), out, sizeof(out)));
	EXPECT(prm_get(out + QUERY_QP_CONTEXT, QPC_STATE) == QPC_STATE_ERR);
	begin_command(in, sizeof(in), PRM_OP_2RST_QP, t.qpn);
	EXPECT(!mlx5dv_devx_obj_modify(t.qp, in, sizeof(in), out, CMD_OUT_BYTES));
	printf("PASS\t%s\t\n", name);
}

static void case_close(const char *name)
{
	EXPECT(!mlx5dv_devx_obj_destroy(t.qp));
	EXPECT(!mlx5dv_devx_obj_destroy(t.cq));
	EXPECT(!mlx5dv_devx_obj_destroy(t.mkey));
	EXPECT(!mlx5dv_devx_umem_dereg(t.cq_umem));
	EXPECT(!mlx5dv_devx_umem_dereg(t.ring_umem));
	EXPECT(!mlx5dv_devx_umem_dereg(t.record_umem));
	EXPECT(!mlx5dv_devx_umem_dereg(t.data_umem));
	mlx5dv_devx_free_uar(t.uar);
	EXPECT(!ibv_dealloc_pd(t.pd));
	EXPECT(!ibv_close_device(t.ctx));
	free(t.memory);
	printf("PASS\t%s\t\n", name);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *name);
	} cases[] = {
		{"refused commands", case_refusals},
		{"a queue pair connected by commands", case_connect},
		{"messages by bare stores, data in an umem", case_traffic},
		{"events of completions", case_events},
		{"the alternate path", case_migration},
		{"answers through a channel", case_async},
		{"the device and its port", case_about},
		{"capabilities by which programs choose", case_capabilities},
		{"options of an enhanced connection", case_options},
		{"what is used cannot be destroyed", case_busy},
		{"error and reset", case_error},
		{"end", case_close},
	};
	const char *device = "mlx5_0";
	int gid_index = 0, opt;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(device, gid_index);
	create_cq();
	create_qp();
	create_mkey();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i].run(cases[i].name);
	return failed ? 1 : 0;
}
