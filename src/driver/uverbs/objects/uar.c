// SPDX-License-Identifier: BSD-2-Clause
/*
 * User access regions: the pages with doorbell registers.  Each is a page of the file's memfd,
 * which the program itself maps at the offset that we tell it.
 */
#include <assert.h>
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/uar.h"

static_assert(UAR_BYTES == UVERBS_PAGE, "one region to a page");

struct uuar {
	struct uobj uobj;
	uint32_t page;
	struct doorbell_page *bell;
};

static uint64_t uuar_page_offset(uint32_t page)
{
	return (uint64_t)(UVERBS_UAR_FIRST + page) * UVERBS_PAGE;
}

/* Never gives out page 0, because programs take that number for "none". */
static int uuar_page_take(struct ufile *f)
{
	f->uar_used[0] |= 1;
	for (uint32_t w = 0; w < array_size(f->uar_used); w++)
		if (~f->uar_used[w]) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~f->uar_used[w]);

			f->uar_used[w] |= 1ull << bit;
			return (int)(w * 64 + bit);
		}
	return -ENOSPC;
}

static void uuar_rung(void *file, uint32_t qpn, uint16_t pi)
{
	adapter_doorbell(((struct ufile *)file)->hca->adapter, qpn, pi);
}

static int uuar_page_watch(struct ufile *f, struct uuar *uar)
{
	const struct doorbell_page_attr attr = {
		.regs = f->pages + uuar_page_offset(uar->page),
		.hooks = &f->hooked,
		.ring = uuar_rung,
		.user = f,
	};

	return doorbell_page_create(&attr, &uar->bell);
}

static void uuar_page_give(struct ufile *f, uint32_t page)
{
	f->uar_used[page / 64] &= ~(1ull << page % 64);
}

static void uuar_free(struct uobj *obj)
{
	struct uuar *uar = container_of(obj, struct uuar, uobj);

	doorbell_page_destroy(uar->bell);
	uuar_page_give(obj->file, uar->page);
}

static const struct uobj_class uuar_class = {
	.type = UOBJ_UAR,
	.free = uuar_free,
};

/* Makes a region that is complete but for its handle. */
static int uar_create(struct ufile *f, struct uuar **out)
{
	struct uuar *uar = calloc(1, sizeof(*uar));
	int page, ret;

	if (!uar)
		return -ENOMEM;
	page = uuar_page_take(f);
	if (page < 0) {
		free(uar);
		return page;
	}
	uar->page = (uint32_t)page;
	ret = uuar_page_watch(f, uar);
	if (ret < 0) {
		uuar_page_give(f, uar->page);
		free(uar);
		return ret;
	}
	*out = uar;
	return 0;
}

static void uar_destroy(struct ufile *f, struct uuar *uar)
{
	doorbell_page_destroy(uar->bell);
	uuar_page_give(f, uar->page);
	free(uar);
}

int uuar_reserve(struct ufile *f)
{
	int ret = uobj_reserve(f);

	return ret < 0 || f->uar_spare ? ret : uar_create(f, &f->uar_spare);
}

void uuar_release(struct ufile *f)
{
	if (f->uar_spare)
		uar_destroy(f, f->uar_spare);
	f->uar_spare = NULL;
}

static int uar_publish(struct ufile *f, struct uuar **out)
{
	struct uuar *uar = f->uar_spare;
	int ret = uar ? 0 : uar_create(f, &uar);

	if (ret < 0)
		return ret;
	f->uar_spare = NULL;
	/* Clears doorbells of an earlier owner. */
	memset(f->pages + uuar_page_offset(uar->page), 0, UVERBS_PAGE);
	ret = uobj_publish(f, &uar->uobj, &uuar_class);
	if (ret < 0)
		uar_destroy(f, uar);
	*out = uar;
	return ret;
}

static int method_uar_alloc(struct ureq *req)
{
	struct ufile *f = req->file;
	uint64_t type = ureq_u64(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
	struct uuar *uar;
	int ret;

	if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	ret = uar_publish(f, &uar);
	if (ret < 0)
		return ret;
	ret = ureq_put_u64(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET,
			   uuar_page_offset(uar->page));
	if (ret == 0)
		ret = ureq_put_u32(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, UVERBS_PAGE);
	if (ret == 0)
		ret = ureq_put_u32(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->page);
	if (ret == 0)
		ret = ureq_put_handle(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&uar->uobj, NULL);
	return ret;
}

/* The registers of a page, or NULL; the number comes from the program. */
uint8_t *uuar_regs(struct ufile *f, uint32_t page)
{
	return page < UVERBS_UARS ? f->pages + uuar_page_offset(page) : NULL;
}

/* The program has mapped a part of the file. */
void uuar_mapped(struct ufile *f, uintptr_t addr, size_t len, off_t offset)
{
	uint64_t page = (uint64_t)offset / UVERBS_PAGE;

	for (uint64_t n = 0; n < len; n += UVERBS_PAGE, page++)
		if (page >= UVERBS_UAR_FIRST && page - UVERBS_UAR_FIRST < UVERBS_UARS)
			doorbell_mapped(f->pages + page * UVERBS_PAGE, addr + n);
}

void uuar_forget(struct ufile *f)
{
	doorbell_forget(f->pages + uuar_page_offset(0), (size_t)UVERBS_UARS * UVERBS_PAGE);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec uar_alloc_attrs[] = {
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, CONST_IN},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, OUT(4)},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, OUT(4)},
};

static const struct attr_spec uar_destroy_attrs[] = {
	{MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, IDR(UOBJ_UAR)},
};

static const struct method_spec methods[] = {
	METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, method_uar_alloc, uar_alloc_attrs),
	METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, method_destroy,
	       uar_destroy_attrs),
};

const struct uverbs_family uuar_family = {METHODS(methods)};
