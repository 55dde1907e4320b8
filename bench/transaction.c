/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32C by transaction signatures, as SPDK's accel_mlx5 has the device compute it, beside what a program
 * could do itself with ISA-L: megabytes of data per second for each size of an operation.
 *
 *	crc	a UMR and a READ of the key into the data's own place, with the CRC behind it
 *	copy	the same into another place
 *	hand	ISA-L's CRC over the data
 *	two	copies the data, then runs ISA-L's CRC over the copy
 *
 * transaction [DEVICE].  Stock libibverbs and libmlx5, a queue pair that is connected to itself.  Prints
 * "name value unit" lines.  All columns of a row take turns in short slices.
 */
#include <infiniband/mlx5dv.h>
#include <endian.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_device.h"
#include "verbs_devx.h"

enum { DEPTH = 8, LARGEST = 1 << 20, SLICES = 10, UMR_BYTES = 256, BSF_AT = 192, CRC_BYTES = 4 };
enum column { CRC, COPY, HAND, TWO, COLUMNS };

static const char *const column_names[COLUMNS] = {"crc", "copy", "hand", "two"};

#define SLICE_NS    10000000u
#define ACCESS	    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define KEY_VARIANT 0x42u

struct bench {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
	struct ibv_mr *mr;
	uint32_t pdn;
	uint32_t key[DEPTH], psv[DEPTH]; /* of each operation that is under way */
	uint8_t *from, *to;		 /* DEPTH * LARGEST bytes each */
	uint32_t *crc;			 /* DEPTH */
	unsigned next;
	uint32_t sink;
};

static void put_be32(void *to, size_t at, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy((uint8_t *)to + at, &be, sizeof(be));
}

static void put_be64(void *to, size_t at, uint64_t value)
{
	uint64_t be = htobe64(value);

	memcpy((uint8_t *)to + at, &be, sizeof(be));
}

static uint32_t create_object(struct bench *b, const void *in, size_t bytes, size_t number_at)
{
	uint8_t out[32] = {0};
	uint32_t number;

	if (!mlx5dv_devx_obj_create(b->port.ctx, in, bytes, out, sizeof(out)))
		device_die("mlx5dv_devx_obj_create: %m");
	memcpy(&number, out + number_at, sizeof(number));
	return be32toh(number) & 0xffffff;
}

static uint32_t create_psv(struct bench *b)
{
	uint8_t in[16] = {0};

	put_be32(in, 0, 0x600u << 16);
	put_be32(in, 8, 1u << 28 | b->pdn);
	return create_object(b, in, sizeof(in), 16);
}

/* A free list of KLMs, to which work requests give a meaning. */
static uint32_t create_key(struct bench *b)
{
	uint8_t in[272] = {0}, *context = in + 16;

	put_be32(in, 0, 0x200u << 16);
	put_be32(context, 0, 1u << 30 | 1 << 15 | 0xf << 10 | 2 << 8);
	put_be32(context, 4, 0xffffff00 | KEY_VARIANT);
	put_be32(context, 12, 1u << 30 | b->pdn);
	put_be32(context, 0x20, 4);
	put_be32(context, 0x34, 16);
	return create_object(b, in, sizeof(in), 8) << 8 | KEY_VARIANT;
}

static void connect_to_itself(struct bench *b)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.pd = b->pd,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 1,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 512},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};
	struct device_address me;

	b->qp = mlx5dv_create_qp(b->port.ctx, &attr, &dv);
	if (!b->qp)
		device_die("mlx5dv_create_qp: %m");
	b->qpx = ibv_qp_to_qp_ex(b->qp);
	b->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(b->qpx);
	device_qp_init(b->qp, &device_default_connection);
	me = device_address(&b->port, b->qp, 0);
	device_qp_connect(&b->port, b->qp, &device_default_connection, &me, 0);
}

static void bench_open(struct bench *b, const char *device)
{
	size_t bytes = (2 * (size_t)DEPTH * LARGEST) + 4096;
	struct mlx5dv_pd dv;
	struct mlx5dv_obj obj = {.pd = {.out = &dv}};

	device_port_open_by(&b->port, device, -1, open_devx);
	b->pd = ibv_alloc_pd(b->port.ctx);
	b->cq = ibv_create_cq(b->port.ctx, 128, NULL, NULL, 0);
	b->from = aligned_alloc(4096, bytes);
	if (!b->pd || !b->cq || !b->from)
		device_die("set-up: %m");
	obj.pd.in = b->pd;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD))
		device_die("mlx5dv_init_obj: %m");
	b->pdn = dv.pdn;
	for (size_t i = 0; i < bytes; i++)
		b->from[i] = (uint8_t)(i * 2654435761u >> 13);
	b->to = b->from + (size_t)DEPTH * LARGEST;
	b->crc = (uint32_t *)(void *)(b->to + (size_t)DEPTH * LARGEST);
	b->mr = ibv_reg_mr(b->pd, b->from, bytes, ACCESS);
	if (!b->mr)
		device_die("ibv_reg_mr: %m");
	for (int i = 0; i < DEPTH; i++) {
		b->key[i] = create_key(b);
		b->psv[i] = create_psv(b);
	}
	connect_to_itself(b);
}

/* The key is these bytes, behind which a reader finds their CRC. */
static void post_umr(struct bench *b, unsigned i, uint32_t bytes)
{
	uint8_t wqe[UMR_BYTES] = {0}, *bsf = wqe + BSF_AT;

	put_be32(wqe, 0, MLX5_OPCODE_UMR);
	put_be32(wqe, 4, b->qp->qp_num << 8 | UMR_BYTES / 16);
	put_be32(wqe, 12, b->key[i]);
	wqe[16] = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	wqe[21] = 4; /* list and BSF, in 16 bytes */
	wqe[23] = 4;
	put_be64(wqe, 24,
		 MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
			 MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR);
	put_be32(wqe, 64 + 12, 1 << 26);
	put_be64(wqe, 64 + 24, bytes);
	put_be32(wqe, 128, bytes);
	put_be32(wqe, 132, b->mr->lkey);
	put_be64(wqe, 136, (uintptr_t)(b->from + (size_t)i * LARGEST));
	bsf[0] = 1 << 6;
	bsf[1] = 0xff;
	put_be32(bsf, 4, bytes);
	put_be32(bsf, 16, 3u << 28);
	put_be32(bsf, 24, 0x40u << 24 | b->psv[i]);
	b->qpx->wr_flags = 0;
	mlx5dv_wr_raw_wqe(b->mqpx, wqe);
}

static void post(struct bench *b, enum column column, uint32_t bytes)
{
	unsigned i = b->next++ % DEPTH;
	uint8_t *base = column == CRC ? b->from : b->to;
	struct ibv_sge sge[2] = {
		{(uintptr_t)(base + (size_t)i * LARGEST), bytes, b->mr->lkey},
		{(uintptr_t)&b->crc[i], CRC_BYTES, b->mr->lkey},
	};

	ibv_wr_start(b->qpx);
	post_umr(b, i, bytes);
	b->qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	ibv_wr_rdma_read(b->qpx, b->key[i], 0);
	ibv_wr_set_sge_list(b->qpx, 2, sge);
	if (ibv_wr_complete(b->qpx))
		device_die("post");
}

static unsigned reap(const struct bench *b)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(b->cq, DEPTH, wc);

	if (n < 0)
		device_die("ibv_poll_cq");
	for (int i = 0; i < n; i++)
		if (wc[i].status)
			device_die("%s", ibv_wc_status_str(wc[i].status));
	return (unsigned)n;
}

static uint64_t by_device(struct bench *b, enum column column, uint32_t bytes, uint64_t *ns)
{
	uint64_t start = device_now_ns(), done = 0;
	unsigned in_flight = 0;

	do {
		for (; in_flight < DEPTH; in_flight++)
			post(b, column, bytes);
		for (unsigned n = reap(b); n; n--, in_flight--)
			done++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	while (in_flight) {
		unsigned n = reap(b);

		in_flight -= n;
		done += n;
	}
	*ns = device_now_ns() - start;
	return done;
}

static uint64_t by_hand(struct bench *b, enum column column, uint32_t bytes, uint64_t *ns)
{
	uint64_t start = device_now_ns(), done = 0;

	do {
		size_t at = (size_t)(b->next++ % DEPTH) * LARGEST;
		uint8_t *data = b->from + at;

		if (column == TWO)
			data = memcpy(b->to + at, data, bytes);
		b->sink += crc32_iscsi(data, (int)bytes, UINT32_MAX);
		done++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	return done;
}

static void row(struct bench *b, uint32_t bytes)
{
	uint64_t done[COLUMNS] = {0}, ns[COLUMNS] = {0};

	for (unsigned i = 0; i <= SLICES; i++)
		for (enum column c = 0; c < COLUMNS; c++) {
			uint64_t took;
			uint64_t n = (c <= COPY ? by_device : by_hand)(b, c, bytes, &took);

			if (i) { /* the first ones warm caches up */
				done[c] += n;
				ns[c] += took;
			}
		}
	for (enum column c = 0; c < COLUMNS; c++)
		printf("%s_%u %.0f MB/s\n", column_names[c], bytes,
		       (double)done[c] * bytes * 1e3 / (double)ns[c]);
	/* what was measured was right */
	for (unsigned i = 0; i < DEPTH; i++)
		if (le32toh(b->crc[i]) !=
		    ~crc32_iscsi(b->from + (size_t)i * LARGEST, (int)bytes, UINT32_MAX))
			device_die("a wrong CRC");
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {4096, 65536, LARGEST};
	static struct bench b;

	bench_open(&b, argc > 1 ? argv[1] : NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		row(&b, sizes[i]);
	__asm__ volatile("" : : "r"(b.sink));
	return 0;
}
