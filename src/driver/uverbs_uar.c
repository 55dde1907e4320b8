// SPDX-License-Identifier: BSD-2-Clause
/*
 * User access regions: the pages with doorbell registers.  Each is a page of the file's memfd; the
 * program maps it natively at the offset that we tell.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "driver/uverbs_objects.h"

static uint64_t page_offset(uint32_t page)
{
	return (uint64_t)(UVERBS_UAR_FIRST + page) * UVERBS_PAGE;
}

static int take_page(struct ufile *f)
{
	for (uint32_t w = 0; w < array_size(f->uar_used); w++)
		if (~f->uar_used[w]) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~f->uar_used[w]);

			f->uar_used[w] |= 1ull << bit;
			return (int)(w * 64 + bit);
		}
	return -ENOSPC;
}

static void give_page(struct ufile *f, uint32_t page)
{
	f->uar_used[page / 64] &= ~(1ull << page % 64);
}

int method_uar_alloc(struct ureq *req)
{
	struct ufile *f = req->file;
	uint64_t type = ureq_u64(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
	struct uuar *uar;
	int page, ret;

	if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	uar = calloc(1, sizeof(*uar));
	if (!uar)
		return -ENOMEM;
	page = take_page(f);
	if (page < 0) {
		free(uar);
		return page;
	}
	uar->page = (uint32_t)page;
	/* No doorbells of an earlier owner. */
	memset(f->pages + page_offset(uar->page), 0, UVERBS_PAGE);
	ret = uobj_publish(f, &uar->uobj, UOBJ_UAR);
	if (ret < 0) {
		give_page(f, uar->page);
		free(uar);
		return ret;
	}
	ret = ureq_put_u64(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, page_offset(uar->page));
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

void uuar_free(struct uobj *obj)
{
	give_page(obj->file, container_of(obj, struct uuar, uobj)->page);
}

int method_uar_destroy(struct ureq *req)
{
	return uobj_destroy(ureq_obj(req, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), NULL);
}
