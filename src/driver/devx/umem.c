// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that queues and keys of DEVX lie in.  Commands name it by its handle plus one, because
 * zero stands for none.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>

#include "base/explain.h"
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

static struct devx_obj *devx_umem_process(struct ufile *f, uint32_t umem_id)
{
	return umem_id < DEVX_UMEM_DPA ? NULL
				       : devx_find_fitting(f, has_memory, umem_id - DEVX_UMEM_DPA);
}

static void *devx_umem_of_process(struct ufile *f, uint32_t umem_id, uint64_t daddr,
				  uint64_t length, struct uobj **umem)
{
	struct devx_obj *process = devx_umem_process(f, umem_id);

	if (!process)
		return NULL;
	*umem = &process->uobj;
	return process->class->part(process, daddr, length);
}

/* Returns what is wrong with a part, or NULL. */
static const char *umem_part_wrong(struct ufile *f, const struct devx_umem *u,
				   const struct devx_part *part, bool write)
{
	if (!u && !devx_umem_process(f, part->umem_id))
		return "this context has none of that number";
	if (((u ? u->addr : 0) + part->offset) % sizeof(uint32_t))
		return "it has to begin at a multiple of 4";
	if (u && write && !u->writable)
		return "the device writes there, and the umem is registered without a right to "
		       "write";
	if (u && !range_inside(part->offset, part->length, u->length))
		return "the umem does not have all of it";
	return NULL;
}

static void *umem_part_refused(const struct devx_part *part, const char *why)
{
	bool dpa = part->umem_id >= DEVX_UMEM_DPA;

	if (explaining())
		explain_because("%s: 0x%llx bytes at 0x%llx of %s 0x%x: %s", part->field,
				(unsigned long long)part->length, (unsigned long long)part->offset,
				dpa ? "DPA process" : "umem",
				dpa ? part->umem_id - DEVX_UMEM_DPA : part->umem_id, why);
	return NULL;
}

void *devx_umem_part(struct ufile *f, const struct devx_part *part, bool write, struct uobj **umem)
{
	struct devx_umem *u = devx_umem_find(f, part->umem_id);
	const char *why = umem_part_wrong(f, u, part, write);
	void *memory;

	if (why)
		return umem_part_refused(part, why);
	if (u) {
		*umem = &u->uobj;
		return (void *)(uintptr_t)(u->addr + part->offset);
	}
	memory = devx_umem_of_process(f, part->umem_id, part->offset, part->length, umem);
	return memory ? memory : umem_part_refused(part, "the heap does not have all of it");
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
