// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions of libibverbs and libmlx5 through which contexts, extended CQs and QPs appear.  The
 * preload library exports these under the same names; they pass on to the real ones and put hooks
 * into what those return.
 *
 * We do not link libibverbs, because the preload library is in every program.  We ask the loaded
 * library for the real functions by name and version, because RTLD_NEXT does not see a libibverbs
 * that a Python extension brought in with local scope.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "driver/file/cdev_file.h"
#include "driver/hooks/hooks.h"
#include "prm/cmd_cq_eq.h"
#include "prm/eqe.h"

enum real_function {
	REAL_OPEN_DEVICE,
	REAL_IMPORT_DEVICE,
	REAL_MODIFY_QP,
	REAL_QP_TO_QP_EX,
	REAL_DV_OPEN_DEVICE,
	REAL_DV_CREATE_CQ,
	REAL_DV_CREATE_WQ,
	REAL_DV_INIT_OBJ,
	REAL_DV_DEVX_QP_MODIFY,
	REAL_DV_DEVX_UMEM_REG,
	REAL_DV_DEVX_UMEM_DEREG,
	REAL_DV_DEVX_OBJ_CREATE,
	REAL_DV_DEVX_OBJ_DESTROY,
	REAL_DV_ALLOC_MSI,
	REAL_DV_FREE_MSI,
	REAL_DV_CREATE_EQ,
	REAL_DV_DESTROY_EQ,
	REAL_FUNCTIONS,
};

/* NULL with errno: the library is not loaded, or is older than the function. */
#define REAL(f, like) ((__typeof__(&(like)))real_function(f))

/* ---- contexts, extended CQs and QPs ---- */

/* ---- the libraries' own functions ---- */

static const struct {
	const char *library;
	const char *name;
	const char *version;
} real_names[REAL_FUNCTIONS] = {
	[REAL_OPEN_DEVICE] = {"libibverbs.so.1", "ibv_open_device", "IBVERBS_1.1"},
	[REAL_IMPORT_DEVICE] = {"libibverbs.so.1", "ibv_import_device", "IBVERBS_1.10"},
	[REAL_MODIFY_QP] = {"libibverbs.so.1", "ibv_modify_qp", "IBVERBS_1.1"},
	[REAL_QP_TO_QP_EX] = {"libibverbs.so.1", "ibv_qp_to_qp_ex", "IBVERBS_1.6"},
	[REAL_DV_OPEN_DEVICE] = {"libmlx5.so.1", "mlx5dv_open_device", "MLX5_1.7"},
	[REAL_DV_CREATE_CQ] = {"libmlx5.so.1", "mlx5dv_create_cq", "MLX5_1.1"},
	[REAL_DV_CREATE_WQ] = {"libmlx5.so.1", "mlx5dv_create_wq", "MLX5_1.3"},
	[REAL_DV_INIT_OBJ] = {"libmlx5.so.1", "mlx5dv_init_obj", "MLX5_1.2"},
	[REAL_DV_DEVX_QP_MODIFY] = {"libmlx5.so.1", "mlx5dv_devx_qp_modify", "MLX5_1.8"},
	[REAL_DV_DEVX_UMEM_REG] = {"libmlx5.so.1", "mlx5dv_devx_umem_reg", "MLX5_1.7"},
	[REAL_DV_DEVX_UMEM_DEREG] = {"libmlx5.so.1", "mlx5dv_devx_umem_dereg", "MLX5_1.7"},
	[REAL_DV_DEVX_OBJ_CREATE] = {"libmlx5.so.1", "mlx5dv_devx_obj_create", "MLX5_1.7"},
	[REAL_DV_DEVX_OBJ_DESTROY] = {"libmlx5.so.1", "mlx5dv_devx_obj_destroy", "MLX5_1.7"},
	[REAL_DV_ALLOC_MSI] = {"libmlx5.so.1", "mlx5dv_devx_alloc_msi_vector", "MLX5_1.23"},
	[REAL_DV_FREE_MSI] = {"libmlx5.so.1", "mlx5dv_devx_free_msi_vector", "MLX5_1.23"},
	[REAL_DV_CREATE_EQ] = {"libmlx5.so.1", "mlx5dv_devx_create_eq", "MLX5_1.23"},
	[REAL_DV_DESTROY_EQ] = {"libmlx5.so.1", "mlx5dv_devx_destroy_eq", "MLX5_1.23"},
};

static void *real_function(enum real_function f)
{
	static _Atomic(void *) addresses[REAL_FUNCTIONS];
	void *address = atomic_load_explicit(&addresses[f], memory_order_relaxed);

	if (!address) {
		/* We keep the handle: the library must not go while we know its addresses. */
		void *library = dlopen(real_names[f].library, RTLD_NOLOAD | RTLD_LAZY);

		/* Python wheels bring the library under another name. */
		address = dlvsym(library ? library : RTLD_NEXT, real_names[f].name,
				 real_names[f].version);
		if (!address)
			errno = ENOSYS;
		atomic_store_explicit(&addresses[f], address, memory_order_relaxed);
	}
	return address;
}

/* ---- where contexts, CQs and QPs appear ---- */

static struct ibv_context *context_hooked(struct ibv_context *context)
{
	if (context)
		hooks_context(context);
	return context;
}

exported struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	__typeof__(&ibv_open_device) real = REAL(REAL_OPEN_DEVICE, ibv_open_device);

	return real ? context_hooked(real(device)) : NULL;
}

exported struct ibv_context *ibv_import_device(int cmd_fd)
{
	__typeof__(&ibv_import_device) real = REAL(REAL_IMPORT_DEVICE, ibv_import_device);

	return real ? context_hooked(real(cmd_fd)) : NULL;
}

exported struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
						struct mlx5dv_context_attr *attr)
{
	__typeof__(&mlx5dv_open_device) real = REAL(REAL_DV_OPEN_DEVICE, mlx5dv_open_device);

	return real ? context_hooked(real(device, attr)) : NULL;
}

exported struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
					    struct ibv_cq_init_attr_ex *cq_attr,
					    struct mlx5dv_cq_init_attr *mlx5_cq_attr)
{
	__typeof__(&mlx5dv_create_cq) real = REAL(REAL_DV_CREATE_CQ, mlx5dv_create_cq);
	struct ibv_cq_ex *cq = real ? real(context, cq_attr, mlx5_cq_attr) : NULL;

	if (cq && cdev_table_load(context->cmd_fd))
		hooks_cq_ex(cq);
	return cq;
}

exported struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
					 struct mlx5dv_wq_init_attr *mlx5_wq_attr)
{
	__typeof__(&mlx5dv_create_wq) real = REAL(REAL_DV_CREATE_WQ, mlx5dv_create_wq);
	struct ibv_wq *wq = real ? real(context, attr, mlx5_wq_attr) : NULL;

	if (wq && cdev_table_load(context->cmd_fd))
		hooks_wq(wq);
	return wq;
}

/* The program takes rings and registers into its own hands: no hook will announce its doorbells. */
exported int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	__typeof__(&mlx5dv_init_obj) real = REAL(REAL_DV_INIT_OBJ, mlx5dv_init_obj);
	int ret = real ? real(obj, obj_type) : ENOSYS;

	if (ret)
		return ret;
	if (obj_type & MLX5DV_OBJ_QP)
		uverbs_qp_taken_over(obj->qp.in->context->cmd_fd, obj->qp.in->handle);
	if (obj_type & MLX5DV_OBJ_CQ)
		uverbs_cq_taken_over(obj->cq.in->context->cmd_fd, obj->cq.in->handle);
	return 0;
}

/* libmlx5 writes the pointers anew when the QP comes to RTS, even from RTS. */
static void hook_qp_again(struct ibv_qp *qp)
{
	__typeof__(&ibv_qp_to_qp_ex) to_qp_ex = REAL(REAL_QP_TO_QP_EX, ibv_qp_to_qp_ex);
	struct ibv_qp_ex *qp_ex = to_qp_ex ? to_qp_ex(qp) : NULL;

	if (qp_ex && cdev_table_load(qp->context->cmd_fd))
		hooks_qp_ex(qp_ex);
}

exported int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	__typeof__(&ibv_modify_qp) real = REAL(REAL_MODIFY_QP, ibv_modify_qp);
	int ret = real ? real(qp, attr, attr_mask) : ENOSYS;

	if (!ret && attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS)
		hook_qp_again(qp);
	return ret;
}

/* Many functions of libmlx5 modify queue pairs through this one, and call it as a program does. */
exported int mlx5dv_devx_qp_modify(struct ibv_qp *qp, const void *in, size_t inlen, void *out,
				   size_t outlen)
{
	__typeof__(&mlx5dv_devx_qp_modify) real =
		REAL(REAL_DV_DEVX_QP_MODIFY, mlx5dv_devx_qp_modify);
	int ret = real ? real(qp, in, inlen, out, outlen) : ENOSYS;

	if (!ret)
		hook_qp_again(qp);
	return ret;
}

/* ---- a program's own event queues and vectors ---- */

/*
 * A program's own event queues and vectors.  libmlx5 makes them for devices that it drives without
 * the kernel (VFIO) and refuses them otherwise, without telling the driver.  So for our devices
 * these functions do what libmlx5 does there: they make a ring of memory, registered and named in
 * the command, and an eventfd for each vector.  For all other devices they call the real functions.
 */

/* The device's own vectors come first; the field has 8 bits in older headers. */
#define VECTOR_FIRST 64
#define VECTOR_LAST  255

/* Each begins with the part that the program knows. */
struct vector {
	struct mlx5dv_devx_msi_vector known;
	struct vector *next;
};

struct queue {
	struct mlx5dv_devx_eq known;
	struct queue *next;
	size_t bytes;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *obj;
};

static struct {
	pthread_mutex_t lock;
	struct vector *vectors;
	struct queue *queues;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- vectors ---- */

/* Lock held. */
static struct vector **vector_at(int number)
{
	struct vector **at = &made.vectors;

	while (*at && (*at)->known.vector != number)
		at = &(*at)->next;
	return at;
}

static int vector_add(struct vector *v)
{
	int number = VECTOR_FIRST;

	pthread_mutex_lock(&made.lock);
	while (number <= VECTOR_LAST && *vector_at(number))
		number++;
	if (number <= VECTOR_LAST) {
		v->known.vector = number;
		v->next = made.vectors;
		made.vectors = v;
	}
	pthread_mutex_unlock(&made.lock);
	return number <= VECTOR_LAST ? 0 : ENOSPC;
}

exported struct mlx5dv_devx_msi_vector *mlx5dv_devx_alloc_msi_vector(struct ibv_context *ctx)
{
	__typeof__(&mlx5dv_devx_alloc_msi_vector) real =
		REAL(REAL_DV_ALLOC_MSI, mlx5dv_devx_alloc_msi_vector);
	struct vector *v;
	int err;

	if (!cdev_table_load(ctx->cmd_fd))
		return real ? real(ctx) : NULL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->known.fd = eventfd(0, EFD_CLOEXEC);
	err = v->known.fd < 0 ? errno : vector_add(v);
	if (!err)
		return &v->known;
	if (v->known.fd >= 0)
		(void)close(v->known.fd);
	free(v);
	errno = err;
	return NULL;
}

exported int mlx5dv_devx_free_msi_vector(struct mlx5dv_devx_msi_vector *msi)
{
	__typeof__(&mlx5dv_devx_free_msi_vector) real =
		REAL(REAL_DV_FREE_MSI, mlx5dv_devx_free_msi_vector);
	struct vector **at, *v;

	pthread_mutex_lock(&made.lock);
	for (at = &made.vectors; *at && &(*at)->known != msi; at = &(*at)->next)
		;
	v = *at;
	if (v)
		*at = v->next;
	pthread_mutex_unlock(&made.lock);
	if (!v)
		return real ? real(msi) : ENOSYS;
	(void)close(v->known.fd);
	free(v);
	return 0;
}

/* Returns the command's number of the vector, or -1.  A queue without a vector has 0. */
static int64_t vector_in_command(uint32_t number)
{
	int64_t fd = -1;

	if (!number)
		return 0;
	pthread_mutex_lock(&made.lock);
	if (*vector_at((int)number))
		fd = (*vector_at((int)number))->known.fd + 1;
	pthread_mutex_unlock(&made.lock);
	return fd;
}

/* ---- queues ---- */

static void ring_free(struct queue *q)
{
	__typeof__(&mlx5dv_devx_umem_dereg) dereg =
		REAL(REAL_DV_DEVX_UMEM_DEREG, mlx5dv_devx_umem_dereg);

	if (q->umem && dereg)
		(void)dereg(q->umem);
	if (q->known.vaddr)
		(void)munmap(q->known.vaddr, q->bytes);
}

static int ring_make(struct queue *q, struct ibv_context *ctx, uint32_t entries)
{
	__typeof__(&mlx5dv_devx_umem_reg) reg = REAL(REAL_DV_DEVX_UMEM_REG, mlx5dv_devx_umem_reg);
	uint8_t *ring;

	if (!reg)
		return ENOSYS;
	q->bytes = (size_t)entries * EQE_BYTES;
	ring = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring == MAP_FAILED)
		return errno;
	q->known.vaddr = ring;
	/* The state in which drivers leave them: the device owns each until an entry has come. */
	for (uint32_t i = 0; i < entries; i++)
		prm_set(ring + (size_t)i * EQE_BYTES, EQE_OWNER, 1);
	q->umem = reg(ctx, ring, q->bytes, IBV_ACCESS_LOCAL_WRITE);
	return q->umem ? 0 : errno;
}

static int queue_make(struct queue *q, struct ibv_context *ctx, const void *in, size_t inlen,
		      void *out, size_t outlen)
{
	__typeof__(&mlx5dv_devx_obj_create) create =
		REAL(REAL_DV_DEVX_OBJ_CREATE, mlx5dv_devx_obj_create);
	uint8_t command[CREATE_EQ_IN_BYTES] = {0}, *eqc = command + CREATE_EQ_CONTEXT;
	int64_t vector;
	int err;

	if (!create)
		return ENOSYS;
	memcpy(command, in, inlen < sizeof(command) ? inlen : sizeof(command));
	vector = vector_in_command(prm_get32(eqc, EQC_INTR));
	if (vector < 0 || prm_get(command, CMD_IN_OPCODE) != PRM_OP_CREATE_EQ ||
	    prm_get(eqc, EQC_LOG_SIZE) > 22)
		return EINVAL;
	err = ring_make(q, ctx, 1u << prm_get32(eqc, EQC_LOG_SIZE));
	if (err || !q->umem)
		return err ? err : ENOMEM;
	prm_set(command, CREATE_EQ_UMEM, q->umem->umem_id);
	prm_set(command, CREATE_EQ_OFFSET, 0);
	prm_set(command, CREATE_EQ_VECTOR, (uint32_t)vector);
	q->obj = create(ctx, command, sizeof(command), out, outlen);
	return q->obj ? 0 : errno;
}

exported struct mlx5dv_devx_eq *mlx5dv_devx_create_eq(struct ibv_context *ctx, const void *in,
						      size_t inlen, void *out, size_t outlen)
{
	__typeof__(&mlx5dv_devx_create_eq) real = REAL(REAL_DV_CREATE_EQ, mlx5dv_devx_create_eq);
	struct queue *q;
	int err;

	if (!cdev_table_load(ctx->cmd_fd))
		return real ? real(ctx, in, inlen, out, outlen) : NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	err = queue_make(q, ctx, in, inlen, out, outlen);
	if (err) {
		ring_free(q);
		free(q);
		errno = err;
		return NULL;
	}
	pthread_mutex_lock(&made.lock);
	q->next = made.queues;
	made.queues = q;
	pthread_mutex_unlock(&made.lock);
	return &q->known;
}

/* Takes the queue off the list, if it is one of ours. */
static struct queue *queue_take(const struct mlx5dv_devx_eq *eq)
{
	struct queue **at, *q;

	pthread_mutex_lock(&made.lock);
	for (at = &made.queues; *at && &(*at)->known != eq; at = &(*at)->next)
		;
	q = *at;
	if (q)
		*at = q->next;
	pthread_mutex_unlock(&made.lock);
	return q;
}

exported int mlx5dv_devx_destroy_eq(struct mlx5dv_devx_eq *eq)
{
	__typeof__(&mlx5dv_devx_destroy_eq) real = REAL(REAL_DV_DESTROY_EQ, mlx5dv_devx_destroy_eq);
	__typeof__(&mlx5dv_devx_obj_destroy) destroy =
		REAL(REAL_DV_DEVX_OBJ_DESTROY, mlx5dv_devx_obj_destroy);
	struct queue *q = queue_take(eq);
	int err;

	if (!q)
		return real ? real(eq) : ENOSYS;
	err = destroy ? destroy(q->obj) : ENOSYS;
	if (err) {
		/* A completion queue names it, so it stays. */
		pthread_mutex_lock(&made.lock);
		q->next = made.queues;
		made.queues = q;
		pthread_mutex_unlock(&made.lock);
		return err;
	}
	ring_free(q);
	free(q);
	return 0;
}
