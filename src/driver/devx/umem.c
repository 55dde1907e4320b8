// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that queues and keys of DEVX lie in.  Commands name it by its handle plus one, because
 * zero stands for none.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>

#include "driver/devx/devx.h"
#include "driver/uverbs/objects/mr.h"

#define UMEM_ACCESS   (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define UMEM_WRITABLE (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

/* Checks the page sizes that the program offers: one must be at least ours, up to the length. */
static int check_page_sizes(struct ureq *req, uint64_t length)
{
	uint64_t offered = UINT64_MAX, pages = ~(uint64_t)(UVERBS_PAGE - 1);

	if (ureq_attr(req, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP))
		offered = ureq_u64(req, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP);
	while (pages & (pages - 1) && 1ull << (63 - __builtin_clzll(pages)) >= 2 * length)
		pages &= ~(1ull << (63 - __builtin_clzll(pages)));
	return offered & pages ? 0 : -EINVAL;
}

static void uumem_free(struct uobj *obj)
{
	(void)obj; /* nothing in the device; queues inside the memory are counted as its users */
}

static const struct uobj_class uumem_class = {
	.type = UOBJ_UMEM,
	.free = uumem_free,
};

static int method_devx_umem_reg(struct ureq *req)
{
	uint64_t addr = ureq_u64(req, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	uint64_t length = ureq_u64(req, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	struct devx_umem *umem;
	uint32_t access;
	int ret = ureq_flags(req, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, UMEM_ACCESS, &access);

	if (ret == 0)
		ret = req->file->devx ? umr_check_access(access) : -EINVAL;
	if (ret == 0)
		ret = umem_populate(addr, length, access & UMEM_WRITABLE);
	if (ret == 0)
		ret = check_page_sizes(req, length);
	if (ret < 0)
		return ret;
	umem = calloc(1, sizeof(*umem));
	if (!umem)
		return -ENOMEM;
	umem->addr = addr;
	umem->length = length;
	umem->writable = access & UMEM_WRITABLE;
	ret = uobj_publish(req->file, &umem->uobj, &uumem_class);
	if (ret < 0) {
		free(umem);
		return ret;
	}
	ret = ureq_put_u32(req, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->uobj.handle + 1);
	if (ret == 0)
		ret = ureq_put_handle(req, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, umem->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&umem->uobj, NULL);
	return ret;
}

static struct devx_umem *devx_umem_find(struct ufile *f, uint32_t umem_id)
{
	int err;
	struct uobj *obj = umem_id ? uobj_find(f, UOBJ_UMEM, umem_id - 1, &err) : NULL;

	return obj ? container_of(obj, struct devx_umem, uobj) : NULL;
}

static bool has_memory(const struct devx_class *class)
{
	return class->part;
}

static void *devx_umem_of_process(struct ufile *f, uint32_t umem_id, uint64_t daddr,
				  uint64_t length, struct uobj **umem)
{
	struct devx_obj *process = NULL;

	if (umem_id >= DEVX_UMEM_DPA)
		process = devx_find_fitting(f, has_memory, umem_id - DEVX_UMEM_DPA);
	if (!process)
		return NULL;
	*umem = &process->uobj;
	return process->class->part(process, daddr, length);
}

void *devx_umem_part(struct ufile *f, uint32_t umem_id, uint64_t offset, uint64_t length,
		     bool write, struct uobj **umem)
{
	struct devx_umem *u = devx_umem_find(f, umem_id);

	if (!u)
		return offset % sizeof(uint32_t)
			       ? NULL
			       : devx_umem_of_process(f, umem_id, offset, length, umem);
	if ((write && !u->writable) || !range_inside(offset, length, u->length) ||
	    (u->addr + offset) % sizeof(uint32_t))
		return NULL;
	*umem = &u->uobj;
	return (void *)(uintptr_t)(u->addr + offset);
}

void *devx_umem_pages(struct ufile *f, const struct devx_pages *at, bool write, struct uobj **umem)
{
	struct devx_umem *u = devx_umem_find(f, at->umem_id);
	uint64_t into = at->iova & (at->page - 1), start;

	if (!u)
		return devx_umem_of_process(f, at->umem_id, (at->offset & ~(at->page - 1)) + into,
					    at->length, umem);
	if ((write && !u->writable) || at->offset >= u->length)
		return NULL;
	start = ((u->addr + at->offset) & ~(at->page - 1)) + into;
	/* a start in front of the umem wraps to something huge */
	if (!range_inside(start - u->addr, at->length, u->length))
		return NULL;
	*umem = &u->uobj;
	return (void *)(uintptr_t)start;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec umem_reg_attrs[] = {
	{MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, IN(8)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, IN(8)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, FLAGS_IN, OPT},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, OUT(4)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, CONST_IN, OPT},
};

static const struct attr_spec umem_dereg_attrs[] = {
	{MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, IDR(UOBJ_UMEM)},
};

static const struct method_spec methods[] = {
	METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, method_devx_umem_reg,
	       umem_reg_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, method_destroy,
	       umem_dereg_attrs),
};

const struct uverbs_family uumem_family = {METHODS(methods)};
