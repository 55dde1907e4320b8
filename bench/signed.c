/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures through the device, beside what a program could do itself with ISA-L: megabytes
 * of data per second for each type and block size, 1 MiB of data per request.
 *
 *	strip	RDMA WRITE, signatures in memory, checked; none on the wire
 *	add	RDMA WRITE, none in memory; signatures are made on the wire
 *	fetch	RDMA READ of a key with signatures in memory, checked; none on the wire
 *	two	copies all of the data, then runs the CRC over each block (two passes)
 *	fused	ISA-L's stitched copy, of which there is one for T10-DIF alone
 *	call	runs the CRC over each block, then has the kernel copy all of the data into the other process
 *		(process_vm_writev): what two processes can do that share no memory; far alone
 *	crc, memcpy	one of the two passes alone
 *
 * signed [DEVICE [near|far|shared]]: near (the default) both sides are in this process, far in two,
 * on processors of their own where there are so many; shared is far, with the data in memory of files,
 * which the two map.  Stock libibverbs and libmlx5.  Prints "name value
 * unit" lines.  All columns of a row take turns in short slices, so that whatever else the machine
 * does meets all of them alike.
 */
#include <infiniband/mlx5dv.h>
#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "talk.h"
#include "verbs_device.h"
#include "verbs_devx.h"

enum { DATA = 1 << 20, ROOM = DATA + DATA / 16, DEPTH = 8, SLICES = 10 };
/* In large pages, as far as the kernel has any. */
enum { LARGE = 2 << 20, MEMORY = (2 * ROOM + DEPTH * DATA + LARGE - 1) / LARGE * LARGE };

#define SLICE_NS 10000000u
#define ACCESS	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

enum kind { T10DIF, CRC32C, CRC32, CRC64, KINDS };

static const char *const kind_names[KINDS] = {"t10dif", "crc32c", "crc32", "crc64"};

/* What one side must know of the other. */
struct hello {
	struct device_address address;
	uint64_t plain;
	uint32_t plain_key;
	uint32_t signed_key;
};

struct side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
	struct ibv_mr *mr;
	struct mlx5dv_mkey *key[2]; /* signatures in memory, on the wire */
	uint8_t *data;		    /* ROOM bytes of blocks, with signatures */
	uint8_t *plain;		    /* the same without; also where writes go */
	uint8_t *fetched;	    /* what is read: of each request that is under way by itself */
	unsigned fetches;
};

static uint32_t signature_bytes(enum kind kind)
{
	return kind == T10DIF || kind == CRC64 ? 8 : 4;
}

/* ---- one side ---- */

static struct ibv_qp *qp_create(struct side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.pd = s->pd,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 512},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};

	return mlx5dv_create_qp(s->port.ctx, &attr, &dv);
}

static uint8_t *memory_new(bool shared)
{
	int fd = shared ? memfd_create("data", MFD_CLOEXEC) : -1;
	uint8_t *p;

	if (!shared)
		return aligned_alloc(LARGE, MEMORY);
	if (fd < 0 || ftruncate(fd, MEMORY))
		return NULL;
	p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void side_open(struct side *s, const char *device, bool shared)
{
	struct mlx5dv_mkey_init_attr attr = {
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 4,
	};

	device_port_open_by(&s->port, device, -1, open_devx);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->cq = ibv_create_cq(s->port.ctx, 128, NULL, NULL, 0);
	s->data = memory_new(shared);
	if (!s->pd || !s->cq || !s->data)
		device_die("set-up: %m");
	(void)madvise(s->data, MEMORY, MADV_HUGEPAGE);
	memset(s->data, 0, MEMORY);
	s->mr = ibv_reg_mr(s->pd, s->data, MEMORY, ACCESS);
	s->plain = s->data + ROOM;
	s->fetched = s->plain + ROOM;
	s->qp = s->mr ? qp_create(s) : NULL;
	if (!s->qp)
		device_die("set-up: %m");
	s->qpx = ibv_qp_to_qp_ex(s->qp);
	s->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(s->qpx);
	attr.pd = s->pd;
	for (int i = 0; i < 2; i++) {
		s->key[i] = mlx5dv_create_mkey(&attr);
		if (!s->key[i])
			device_die("mlx5dv_create_mkey: %m");
	}
	device_qp_init(s->qp, &device_default_connection);
}

static struct hello side_hello(const struct side *s)
{
	return (struct hello){
		.address = device_address(&s->port, s->qp, 0),
		.plain = (uintptr_t)s->plain,
		.plain_key = s->mr->rkey,
		.signed_key = s->key[0]->rkey,
	};
}

static void side_connect(struct side *s, const struct hello *peer)
{
	device_qp_connect(&s->port, s->qp, &device_default_connection, &peer->address, 0);
}

static unsigned reap(const struct side *s)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(s->cq, DEPTH, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status)
			device_die("%s", ibv_wc_status_str(wc[i].status));
	if (n < 0)
		device_die("ibv_poll_cq");
	return (unsigned)n;
}

static void put_be32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* CRC64-XP10, a bit at a time: ISA-L has it only in later versions. */
static uint64_t crc64_xp10(const uint8_t *data, uint32_t n)
{
	uint64_t crc = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x9a6c9329ac4bc9b5 : 0);
	}
	return ~crc;
}

/* Blocks with good signatures. */
static void fill(struct side *s, enum kind kind, uint32_t block)
{
	uint8_t *to = s->data;

	for (uint32_t i = 0; i < DATA; i++)
		s->plain[i] = (uint8_t)(i * 2654435761u >> 13);
	for (uint32_t k = 0; k < DATA / block; k++) {
		uint32_t crc;

		memcpy(to, s->plain + (size_t)k * block, block);
		to += block;
		switch (kind) {
		case T10DIF:
			crc = crc16_t10dif(0xffff, to - block, block);
			put_be32(to, crc << 16 | 0x1234);
			put_be32(to + 4, k);
			break;
		case CRC32C: /* little-endian */
			put_be32(to, __builtin_bswap32(
					     ~crc32_iscsi(to - block, (int)block, UINT32_MAX)));
			break;
		case CRC64: { /* little-endian */
			uint64_t crc64 = crc64_xp10(to - block, block);

			memcpy(to, &crc64, sizeof(crc64));
			break;
		}
		default:
			put_be32(to, crc32_ieee(0, to - block, block));
			break;
		}
		to += signature_bytes(kind);
	}
}

/* A key over all blocks, with signatures in memory (which 0) or on the wire (1). */
static void key_configure(struct side *s, int which, enum kind kind, uint32_t block)
{
	struct mlx5dv_sig_t10dif dif = {.bg_type = MLX5DV_SIG_T10DIF_CRC,
					.bg = UINT16_MAX,
					.app_tag = 0x1234,
					.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
	static const enum mlx5dv_sig_crc_type types[KINDS] = {
		[CRC32C] = MLX5DV_SIG_CRC_TYPE_CRC32C,
		[CRC32] = MLX5DV_SIG_CRC_TYPE_CRC32,
		[CRC64] = MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
	};
	struct mlx5dv_sig_crc crc = {.type = types[kind],
				     .seed = kind == CRC64 ? UINT64_MAX : UINT32_MAX};
	struct mlx5dv_sig_block_domain domain = {
		.sig_type = kind == T10DIF ? MLX5DV_SIG_TYPE_T10DIF : MLX5DV_SIG_TYPE_CRC,
		.block_size = block == 512 ? MLX5DV_BLOCK_SIZE_512 : MLX5DV_BLOCK_SIZE_4096,
	};
	struct mlx5dv_sig_block_attr sig = {.check_mask = 0xff};
	struct mlx5dv_mkey_conf_attr conf = {0};
	uint32_t blocks = DATA / block;
	struct ibv_sge sge = {
		.addr = (uintptr_t)(which ? s->plain : s->data),
		.length = DATA + (which ? 0 : blocks * signature_bytes(kind)),
		.lkey = s->mr->lkey,
	};

	if (kind == T10DIF)
		domain.sig.dif = &dif;
	else
		domain.sig.crc = &crc;
	if (which)
		sig.wire = &domain;
	else
		sig.mem = &domain;
	ibv_wr_start(s->qpx);
	s->qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(s->mqpx, s->key[which], 3, &conf);
	mlx5dv_wr_set_mkey_access_flags(s->mqpx, ACCESS);
	mlx5dv_wr_set_mkey_layout_list(s->mqpx, 1, &sge);
	mlx5dv_wr_set_mkey_sig_block(s->mqpx, &sig);
	if (ibv_wr_complete(s->qpx))
		device_die("mlx5dv_wr_mkey_configure");
	while (!reap(s))
		;
}

/* ---- what is measured ---- */

enum column { STRIP, ADD, FETCH, TWO, FUSED, CALL, CRC, MEMCPY, COLUMNS };

static const char *const column_names[COLUMNS] = {
	[STRIP] = "strip", [ADD] = "add",   [FETCH] = "fetch", [TWO] = "two",
	[FUSED] = "fused", [CALL] = "call", [CRC] = "crc",     [MEMCPY] = "memcpy",
};

struct bench {
	struct side me;
	struct hello peer;
	pid_t other;   /* the peer's process, or 0 */
	uint8_t *copy; /* for what is done without the device */
	enum kind kind;
	uint32_t block;
	uint64_t sink;
};

static void post(struct bench *b, enum column column)
{
	struct side *s = &b->me;
	uint32_t add = DATA / b->block * signature_bytes(b->kind);

	ibv_wr_start(s->qpx);
	s->qpx->wr_flags = IBV_SEND_SIGNALED;
	if (column == FETCH) {
		ibv_wr_rdma_read(s->qpx, b->peer.signed_key, 0);
		ibv_wr_set_sge(s->qpx, s->mr->lkey,
			       (uintptr_t)(s->fetched + (size_t)(s->fetches++ % DEPTH) * DATA),
			       DATA);
	} else {
		ibv_wr_rdma_write(s->qpx, b->peer.plain_key, b->peer.plain);
		ibv_wr_set_sge(s->qpx, s->key[column == ADD]->lkey, 0,
			       column == ADD ? DATA + add : DATA);
	}
	if (ibv_wr_complete(s->qpx))
		device_die("post");
}

static uint64_t by_device(struct bench *b, enum column column, uint64_t start, uint64_t *ns)
{
	uint64_t done = 0;
	unsigned in_flight = 0;

	do {
		for (; in_flight < DEPTH; in_flight++)
			post(b, column);
		for (unsigned n = reap(&b->me); n; n--, in_flight--)
			done++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	while (in_flight) {
		unsigned n = reap(&b->me);

		in_flight -= n;
		done += n;
	}
	*ns = device_now_ns() - start;
	return done;
}

static uint64_t crc_of(enum kind kind, const uint8_t *data, uint32_t n)
{
	switch (kind) {
	case T10DIF:
		return crc16_t10dif(0xffff, data, n);
	case CRC32C:
		return crc32_iscsi((unsigned char *)(uintptr_t)data, (int)n, UINT32_MAX);
	case CRC64: /* another polynomial, the same work */
		return crc64_ecma_refl(UINT64_MAX, data, n);
	default:
		return crc32_ieee(UINT32_MAX, data, n);
	}
}

static void by_call(const struct bench *b)
{
	struct iovec from = {b->me.plain, DATA}, to = {(void *)(uintptr_t)b->peer.plain, DATA};

	if (process_vm_writev(b->other, &from, 1, &to, 1, 0) != DATA)
		device_die("process_vm_writev: %m");
}

static void by_hand(struct bench *b, enum column column)
{
	const uint8_t *from = b->me.plain;

	if (column == TWO || column == MEMCPY)
		memcpy(b->copy, from, DATA);
	if (column == FUSED)
		for (uint32_t at = 0; at < DATA; at += b->block)
			b->sink += crc16_t10dif_copy(0xffff, b->copy + at,
						     (uint8_t *)(uintptr_t)(from + at), b->block);
	if (column == TWO || column == CALL || column == CRC)
		for (uint32_t at = 0; at < DATA; at += b->block)
			b->sink += crc_of(b->kind, (column == TWO ? b->copy : from) + at, b->block);
	if (column == CALL)
		by_call(b);
	/* The compiler must not find out that one copy would do. */
	__asm__ volatile("" : : "r"(b->copy), "r"(from) : "memory");
}

static uint64_t slice(struct bench *b, enum column column, uint64_t *ns)
{
	uint64_t start = device_now_ns();
	uint64_t done = 0;

	if (column <= FETCH)
		return by_device(b, column, start, ns);
	do {
		by_hand(b, column);
		done++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	return done;
}

static void row(struct bench *b)
{
	uint64_t done[COLUMNS] = {0};
	uint64_t ns[COLUMNS] = {0};

	for (unsigned i = 0; i <= SLICES; i++)
		for (enum column c = 0; c < COLUMNS; c++) {
			uint64_t took, n;

			if ((c == FUSED && b->kind != T10DIF) || (c == CALL && !b->other))
				continue;
			n = slice(b, c, &took);
			if (i) { /* the first ones warm caches up */
				done[c] += n;
				ns[c] += took;
			}
		}
	for (enum column c = 0; c < COLUMNS; c++)
		if (ns[c])
			printf("%s_%u_%s %.0f MB/s\n", kind_names[b->kind], b->block,
			       column_names[c], (double)done[c] * DATA * 1e3 / (double)ns[c]);
}

static void key_good(const struct side *s, int which)
{
	struct mlx5dv_mkey_err err;

	if (mlx5dv_mkey_check(s->key[which], &err) || err.err_type != MLX5DV_MKEY_NO_ERR)
		device_die("signature error %d", (int)err.err_type);
}

/* ---- the other side ---- */

struct order {
	enum kind kind;
	uint32_t block;
};

static void prepare(struct side *s, const struct order *o)
{
	fill(s, o->kind, o->block);
	key_configure(s, 0, o->kind, o->block);
	key_configure(s, 1, o->kind, o->block);
}

static struct hello meet(struct side *s, const char *device, bool shared, int fd)
{
	struct hello mine, theirs;

	side_open(s, device, shared);
	mine = side_hello(s);
	talk_put(fd, &mine, sizeof(mine));
	talk_get(fd, &theirs, sizeof(theirs));
	side_connect(s, &theirs);
	talk_put(fd, &(char){0}, 1);
	talk_get(fd, &(char){0}, 1);
	return theirs;
}

static void serve(const char *device, bool shared, int fd)
{
	static struct side s;
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)meet(&s, device, shared, fd);
	for (;;) {
		talk_get(fd, &o, sizeof(o));
		prepare(&s, &o);
		talk_put(fd, &o, sizeof(o));
	}
}

static int fork_server(const char *device, bool shared, pid_t *pid)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		device_die("socketpair: %m");
	*pid = fork();
	if (*pid < 0)
		device_die("fork: %m");
	if (!*pid) {
		close(fd[0]);
		talk_pin(1);
		serve(device, shared, fd[1]);
	}
	close(fd[1]);
	talk_pin(0);
	return fd[0];
}

int main(int argc, char **argv)
{
	static const uint32_t blocks[] = {512, 4096};
	const char *device = argc > 1 ? argv[1] : NULL;
	bool shared = argc > 2 && !strcmp(argv[2], "shared");
	bool far = shared || (argc > 2 && !strcmp(argv[2], "far"));
	static struct bench b;
	int fd = far ? fork_server(device, shared, &b.other) : -1;
	static struct side other;

	if (far) {
		b.peer = meet(&b.me, device, shared, fd);
	} else {
		struct hello mine;

		side_open(&b.me, device, false);
		side_open(&other, device, false);
		mine = side_hello(&b.me);
		b.peer = side_hello(&other);
		side_connect(&b.me, &b.peer);
		side_connect(&other, &mine);
	}
	b.copy = aligned_alloc(4096, DATA);
	if (!b.copy)
		device_die("out of memory");
	memset(b.copy, 0, DATA);
	for (b.kind = 0; b.kind < KINDS; b.kind++)
		for (unsigned i = 0; i < 2; i++) {
			struct order o = {b.kind, b.block = blocks[i]};

			prepare(&b.me, &o);
			if (far) {
				talk_put(fd, &o, sizeof(o));
				talk_get(fd, &o, sizeof(o));
			} else {
				prepare(&other, &o);
			}
			row(&b);
			key_good(&b.me, 0);
			key_good(&b.me, 1);
			if (!far)
				key_good(&other, 0);
		}
	return 0;
}
