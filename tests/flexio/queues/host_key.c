// SPDX-License-Identifier: BSD-2-Clause
/* Keys of memory of the DPA, in the requests of queue pairs of verbs: what they allow, and to whom. */
#include <string.h>

#include "host.h"
#include "prm/cmd_mkey.h"
#include "verbs_device.h"

#define BYTES	1000u
#define VARIANT 0x11u
#define PIECES	100u /* more than are looked at in one go */
#define PIECE	8u

/* Two queue pairs of one process, one of each domain, connected to each other; memory of the DPA, and of the host. */
struct keys {
	struct bench b;
	struct ibv_context *ctx; /* of the queue pairs and domains; the process's, or another */
	struct device_port port;
	struct ibv_pd *near, *far;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *target;
	struct ibv_mr *mr; /* of near */
	uint8_t memory[BYTES];
	uint8_t large[PIECES * PIECE * 2]; /* behind it */
	flexio_uintptr_t daddr;
};

static struct ibv_qp *pair_half(struct keys *k, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = k->cq,
		.recv_cq = k->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	CHECK(qp);
	return qp;
}

/* A refused request ends a pair: each has one of its own. */
static void pair_up(struct keys *k)
{
	struct device_address near, far;

	k->qp = pair_half(k, k->near);
	k->target = pair_half(k, k->far);
	near = device_address(&k->port, k->qp, 1);
	far = device_address(&k->port, k->target, 2);
	device_qp_init(k->qp, &device_default_connection);
	device_qp_init(k->target, &device_default_connection);
	device_qp_connect(&k->port, k->qp, &device_default_connection, &far, 1);
	device_qp_connect(&k->port, k->target, &device_default_connection, &near, 2);
}

static void pair_down(struct keys *k)
{
	struct ibv_wc wc;

	CHECK(!ibv_destroy_qp(k->qp) && !ibv_destroy_qp(k->target));
	while (ibv_poll_cq(k->cq, 1, &wc) > 0)
		;
}

/* NULL: in the process's own context. */
static void keys_up(struct keys *k, struct ibv_context *other)
{
	memset(k, 0, sizeof(*k));
	bench_up(&k->b, 0);
	k->ctx = other ? other : k->b.ctx;
	k->port.ctx = k->ctx;
	CHECK(!ibv_query_port(k->ctx, DEVICE_PORT, &k->port.attr));
	CHECK(!ibv_query_gid(k->ctx, DEVICE_PORT, 0, &k->port.gid));
	k->port.ethernet = k->port.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	k->port.global = k->port.ethernet;
	k->near = ibv_alloc_pd(k->ctx);
	k->far = ibv_alloc_pd(k->ctx);
	k->cq = ibv_create_cq(k->ctx, 16, NULL, NULL, 0);
	CHECK(k->near && k->far && k->cq);
	memset(k->memory, 5, BYTES);
	k->mr = ibv_reg_mr(k->near, k->memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(k->mr);
	OK(flexio_buf_dev_alloc(k->b.p, BYTES, &k->daddr));
	OK(flexio_buf_dev_memset(k->b.p, 2, BYTES, k->daddr));
}

static void verbs_down(struct keys *k)
{
	CHECK(!ibv_dereg_mr(k->mr) && !ibv_destroy_cq(k->cq) && !ibv_dealloc_pd(k->near) &&
	      !ibv_dealloc_pd(k->far));
}

static void keys_down(struct keys *k)
{
	verbs_down(k);
	bench_down(&k->b);
}

static struct flexio_mkey *key_make(struct keys *k, struct ibv_pd *pd, int access)
{
	struct flexio_mkey_attr attr = {pd, k->daddr, BYTES, access};
	struct flexio_mkey *key;

	OK(flexio_device_mkey_create(k->b.p, &attr, &key));
	return key;
}

/* One end of a request: a key, and an address that is its. */
struct place {
	uint32_t key;
	uint64_t addr;
};

static enum ibv_wc_status request(struct keys *k, enum ibv_wr_opcode op, struct place local,
				  struct place remote)
{
	struct ibv_sge sge = {local.addr, BYTES, local.key};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = op};
	struct ibv_wc wc;
	int found;

	wr.wr.rdma.rkey = remote.key;
	wr.wr.rdma.remote_addr = remote.addr;
	pair_up(k);
	CHECK(!ibv_post_send(k->qp, &wr, &bad));
	while (!(found = ibv_poll_cq(k->cq, 1, &wc)))
		;
	CHECK(found == 1);
	pair_down(k);
	return wc.status;
}

/* What device code sees in the memory. */
static uint64_t seen(struct keys *k)
{
	return call2(k->b.p, &total, k->daddr, BYTES);
}

static void remote_rights(struct keys *k, struct place host)
{
	const int rights[] = {0, IBV_ACCESS_LOCAL_WRITE,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
			      IBV_ACCESS_REMOTE_READ};

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct flexio_mkey *key = key_make(k, k->far, rights[i]);
		struct place dpa = {flexio_mkey_get_id(key), k->daddr};
		bool writes = rights[i] & IBV_ACCESS_REMOTE_WRITE;
		bool reads = rights[i] & IBV_ACCESS_REMOTE_READ;

		OK(flexio_buf_dev_memset(k->b.p, 2, BYTES, k->daddr));
		memset(k->memory, 5, BYTES);
		CHECK(request(k, IBV_WR_RDMA_WRITE, host, dpa) ==
		      (writes ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
		CHECK(seen(k) == (writes ? 5 : 2) * BYTES);
		CHECK(request(k, IBV_WR_RDMA_READ, host, dpa) ==
		      (reads ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
		CHECK(k->memory[0] == (reads ? 2 : 5) && k->memory[BYTES - 1] == k->memory[0]);
		/* a byte more than the key has */
		dpa.addr++;
		CHECK(request(k, IBV_WR_RDMA_WRITE, host, dpa) == IBV_WC_REM_ACCESS_ERR);
		OK(flexio_device_mkey_destroy(key));
	}
}

/* As the key of the request's own memory; and of a domain that is not the queue pair's. */
static void local_rights(struct keys *k)
{
	struct flexio_mkey *to =
		key_make(k, k->far, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct flexio_mkey *from = key_make(k, k->near, 0);
	struct place mine = {flexio_mkey_get_id(from), k->daddr};
	struct place theirs = {flexio_mkey_get_id(to), k->daddr};
	struct ibv_mr *mr = ibv_reg_mr(k->far, k->memory, BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ);
	struct place host;

	CHECK(mr);
	host = (struct place){mr->rkey, (uintptr_t)k->memory};
	OK(flexio_buf_dev_memset(k->b.p, 7, BYTES, k->daddr));
	CHECK(request(k, IBV_WR_RDMA_WRITE, mine, host) == IBV_WC_SUCCESS);
	CHECK(k->memory[0] == 7 && k->memory[BYTES - 1] == 7);
	CHECK(request(k, IBV_WR_RDMA_WRITE, theirs, host) == IBV_WC_LOC_PROT_ERR);
	CHECK(request(k, IBV_WR_RDMA_WRITE, (struct place){k->mr->lkey, (uintptr_t)k->memory},
		      mine) == IBV_WC_REM_ACCESS_ERR);
	/* nor may it be written without the right */
	CHECK(request(k, IBV_WR_RDMA_READ, mine, host) == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_dereg_mr(mr));
	OK(flexio_device_mkey_destroy(from));
	OK(flexio_device_mkey_destroy(to));
}

/* A key that the program makes by itself: the memory of a process is an umem.  NULL: there is none of that number. */
static struct mlx5dv_devx_obj *umem_key(struct keys *k, uint32_t umem, uint32_t *number)
{
	uint8_t in[CREATE_MKEY_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	uint8_t *context = in + CREATE_MKEY_CONTEXT;
	struct mlx5dv_pd pd;
	struct mlx5dv_obj obj = {.pd = {.in = k->far, .out = &pd}};
	struct mlx5dv_devx_obj *key;

	CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
	prm_set(in, CREATE_MKEY_UMEM, umem);
	prm_set(in, CREATE_MKEY_OFFSET, k->daddr);
	prm_set(context, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(context, MKC_LOCAL_READ, 1);
	prm_set(context, MKC_LOCAL_WRITE, 1);
	prm_set(context, MKC_REMOTE_WRITE, 1);
	prm_set(context, MKC_QPN, 0xffffff);
	prm_set(context, MKC_VARIANT, VARIANT);
	prm_set(context, MKC_PD, pd.pdn);
	prm_set(context, MKC_START, k->daddr);
	prm_set(context, MKC_LENGTH, BYTES);
	prm_set(context, MKC_LOG_ENTRY_BYTES, 12);
	key = mlx5dv_devx_obj_create(k->ctx, in, sizeof(in), out, sizeof(out));
	if (key)
		*number = prm_get32(out, CMD_OUT_NUMBER) << 8 | VARIANT;
	return key;
}

static void by_umem(struct keys *k, struct place host)
{
	uint32_t umem = flexio_process_get_dumem_id(k->b.p);
	struct place dpa = {0, k->daddr};
	struct mlx5dv_devx_obj *key = umem_key(k, umem, &dpa.key);

	CHECK(key);
	memset(k->memory, 9, BYTES);
	CHECK(request(k, IBV_WR_RDMA_WRITE, host, dpa) == IBV_WC_SUCCESS);
	CHECK(seen(k) == 9 * BYTES);
	CHECK(!mlx5dv_devx_obj_destroy(key));
	/* of a process that there is not */
	CHECK(!umem_key(k, umem + 1000, &dpa.key));
}

/* ---- keys of several pieces, in windows ---- */

/* Every other piece of the memory, from the last to the first; from address 0. */
static struct mlx5dv_devx_obj *list_make(struct keys *k, uint32_t *number)
{
	uint8_t in[CREATE_MKEY_IN_BYTES + PIECES * 16] = {0}, out[CMD_OUT_BYTES] = {0};
	uint8_t *context = in + CREATE_MKEY_CONTEXT;
	struct mlx5_wqe_data_seg *list = (void *)(in + CREATE_MKEY_LIST);
	struct mlx5dv_pd pd;
	struct mlx5dv_obj obj = {.pd = {.in = k->near, .out = &pd}};
	struct mlx5dv_devx_obj *key;

	CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
	prm_set(in, CREATE_MKEY_LIST_ACTUAL, PIECES);
	prm_set(context, MKC_ACCESS_MODE_LOW, MKC_MODE_KLM);
	prm_set(context, MKC_LOCAL_READ, 1);
	prm_set(context, MKC_LOCAL_WRITE, 1);
	prm_set(context, MKC_UMR, 1);
	prm_set(context, MKC_QPN, 0xffffff);
	prm_set(context, MKC_VARIANT, VARIANT);
	prm_set(context, MKC_PD, pd.pdn);
	prm_set(context, MKC_LENGTH, PIECES * PIECE);
	prm_set(context, MKC_LIST_OCTOWORDS, PIECES);
	for (uint32_t i = 0; i < PIECES; i++)
		mlx5dv_set_data_seg(&list[i], PIECE, k->mr->lkey,
				    (uintptr_t)k->large + (PIECES - 1 - i) * 2 * PIECE);
	key = mlx5dv_devx_obj_create(k->b.ctx, in, sizeof(in), out, sizeof(out));
	CHECK(key);
	*number = prm_get32(out, CMD_OUT_NUMBER) << 8 | VARIANT;
	return key;
}

static uint64_t copied(struct keys *k, struct flexio_window *window, struct place host,
		       uint64_t bytes, uint64_t out)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(k->b.p, &window_copy, &value, (uint64_t)flexio_window_get_id(window),
			       (uint64_t)host.key, host.addr, k->daddr, bytes, out));
	return value;
}

/* Such a key has no addresses, but can be copied from and to. */
static void lists(struct keys *k)
{
	struct flexio_window *window;
	struct mlx5dv_devx_obj *key;
	struct place host = {0, 0};
	uint64_t sum = 0;

	OK(flexio_window_create(k->b.p, k->near, &window));
	key = list_make(k, &host.key);
	for (uint32_t i = 0; i < sizeof(k->large); i++)
		k->large[i] = (uint8_t)(i / PIECE % 2 ? 200 : i);
	CHECK(!copied(k, window, host, PIECES * PIECE, 0));
	for (uint32_t i = 0; i < PIECES * PIECE; i++)
		sum += k->large[(PIECES - 1 - i / PIECE) * 2 * PIECE + i % PIECE];
	CHECK(call2(k->b.p, &total, k->daddr, PIECES * PIECE) == sum);
	/* the first two bytes are of the last piece */
	CHECK(call2(k->b.p, &total, k->daddr, 2) == (uint64_t)k->large[(PIECES - 1) * 2 * PIECE] +
							    k->large[(PIECES - 1) * 2 * PIECE + 1]);
	OK(flexio_buf_dev_memset(k->b.p, 77, BYTES, k->daddr));
	CHECK(!copied(k, window, host, PIECES * PIECE, 1));
	for (uint32_t i = 0; i < sizeof(k->large); i++)
		CHECK(k->large[i] == (i / PIECE % 2 ? 200 : 77));
	/* a byte more than it has: nothing is copied */
	memset(k->large, 1, sizeof(k->large));
	CHECK(copied(k, window, host, PIECES * PIECE + 1, 1) == 1);
	for (uint32_t i = 0; i < sizeof(k->large); i++)
		CHECK(k->large[i] == 1);
	CHECK(call3(k->b.p, &window_address, flexio_window_get_id(window), host.key, 0) == 1);
	CHECK(call3(k->b.p, &window_address, flexio_window_get_id(window), k->mr->lkey,
		    (uintptr_t)k->memory) == 0);
	CHECK(!mlx5dv_devx_obj_destroy(key));
	CHECK(copied(k, window, host, 1, 0) == 2);
	OK(flexio_window_destroy(window));
}

static void window_lists(void)
{
	struct keys k;

	keys_up(&k, NULL);
	CHECK(!ibv_dereg_mr(k.mr));
	k.mr = ibv_reg_mr(k.near, &k.memory, sizeof(k.memory) + sizeof(k.large),
			  IBV_ACCESS_LOCAL_WRITE);
	CHECK(k.mr);
	lists(&k);
	keys_down(&k);
}

static void keys(void)
{
	struct place host;
	struct keys k;

	keys_up(&k, NULL);
	host = (struct place){k.mr->lkey, (uintptr_t)k.memory};
	remote_rights(&k, host);
	local_rights(&k);
	by_umem(&k, host);
	keys_down(&k);
}

/* ---- domains of another context than the process's, on the same device or on another ---- */

static void other_window(struct keys *k, struct place host)
{
	struct flexio_window *window, *second;
	uint64_t word = 41;

	OK(flexio_window_create(k->b.p, k->near, &window));
	OK(flexio_window_create(k->b.p, k->near, &second));
	memset(k->memory, 3, BYTES);
	CHECK(!copied(k, window, host, BYTES, 0) && seen(k) == 3 * BYTES);
	memcpy(k->memory, &word, sizeof(word));
	CHECK(call3(k->b.p, &window_first, flexio_window_get_id(window), host.key, host.addr) ==
	      42);
	/* what stands there for the process stays as long as one of them does */
	OK(flexio_window_destroy(window));
	CHECK(call3(k->b.p, &window_first, flexio_window_get_id(second), host.key, host.addr) ==
	      43);
	/* a key of another domain */
	CHECK(copied(k, second, (struct place){k->mr->lkey + 0x100000, host.addr}, 1, 0) == 2);
	if (!k->port.ethernet)
		OK(flexio_window_destroy(second)); /* else with the process */
}

/* Has the context something that stands for the process?  A key of its memory says it. */
static bool process_named(struct keys *k, uint32_t process)
{
	uint32_t number;
	struct mlx5dv_devx_obj *key = umem_key(k, process, &number);

	if (key)
		CHECK(!mlx5dv_devx_obj_destroy(key));
	return key;
}

static void other_keys(unsigned device)
{
	struct ibv_context *ctx = device_open(device);
	struct flexio_mkey *first, *second;
	struct flexio_uar *uar;
	struct flexio_cq *cq;
	struct place host;
	uint32_t process;
	struct keys k;

	keys_up(&k, ctx);
	process = flexio_process_get_dumem_id(k.b.p);
	host = (struct place){k.mr->lkey, (uintptr_t)k.memory};
	CHECK(!process_named(&k, process));
	remote_rights(&k, host);
	local_rights(&k);
	CHECK(!process_named(&k, process));
	/* several, of which the oldest goes first */
	first = key_make(&k, k.near, 0);
	second = key_make(&k, k.far, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	OK(flexio_uar_extend(flexio_process_get_uar(k.b.p), ctx, &uar));
	k.b.attr.uar_id = flexio_uar_get_id(uar);
	OK(flexio_cq_create(k.b.p, ctx, &k.b.attr, &cq));
	CHECK(process_named(&k, process));
	OK(flexio_device_mkey_destroy(first));
	memset(k.memory, 4, BYTES);
	CHECK(request(&k, IBV_WR_RDMA_WRITE, host,
		      (struct place){flexio_mkey_get_id(second), k.daddr}) == IBV_WC_SUCCESS);
	CHECK(seen(&k) == 4 * BYTES);
	OK(flexio_cq_destroy(cq));
	other_window(&k, host);
	OK(flexio_device_mkey_destroy(second));
	OK(flexio_process_destroy(k.b.p));
	CHECK(!process_named(&k, process));
	verbs_down(&k);
	CHECK(!ibv_close_device(k.b.ctx) && !ibv_close_device(ctx));
}

static void other_domains(void)
{
	other_keys(0);
	other_keys(1);
}

const struct host_case key_cases[] = {
	{"keys", keys},
	{"other_domains", other_domains},
	{"window_lists", window_lists},
	{NULL, NULL},
};
