// SPDX-License-Identifier: BSD-2-Clause
/* Device memory: that of data, and that of steering. */
#include "driver/uverbs/objects/objects.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>

#include "adapter/adapter.h"
#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/uverbs/core/file.h"

/* ---- the record of steering memory ---- */

/* An object of its file.  Only one process steers by it, so unlike other device memory it is not
 * shared with children. */
struct uicm {
	struct uobj uobj;
	struct icm_part *part;
};

static struct icm *uicm_icm(const struct uicm *icm)
{
	return adapter_icm(icm->uobj.file->hca->adapter);
}

static void uicm_free(struct uobj *obj)
{
	struct uicm *icm = container_of(obj, struct uicm, uobj);

	icm_free(uicm_icm(icm), icm->part);
}

static const struct uobj_class uicm_class = {
	.type = UOBJ_ICM,
	.free = uicm_free,
};

static int uicm_kind(uint64_t type, enum icm_kind *kind)
{
	switch (type) {
	case MLX5_IB_UAPI_DM_TYPE_STEERING_SW_ICM:
		*kind = ICM_STEERING;
		return 0;
	case MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_SW_ICM:
		*kind = ICM_MODIFY;
		return 0;
	case MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM:
		*kind = ICM_PATTERN;
		return 0;
	default:
		log_info("uverbs: device memory of type %llu is not supported",
			 (unsigned long long)type);
		return -EOPNOTSUPP;
	}
}

/* type: MLX5_IB_UAPI_DM_TYPE_*.  -EOPNOTSUPP: the type is none of steering. */
static must_check int uicm_create(struct ureq *req, uint64_t type, uint64_t bytes,
				  struct uicm **out)
{
	struct ufile *f = req->file;
	struct uicm *icm;
	enum icm_kind kind;
	int ret = uicm_kind(type, &kind);

	if (ret < 0)
		return ret;
	if (!ufile_port(f)->ethernet)
		return -EOPNOTSUPP;
	if (!uverbs_may_raw())
		return -EPERM;
	icm = calloc(1, sizeof(*icm));
	if (!icm)
		return -ENOMEM;
	ret = icm_alloc(adapter_icm(f->hca->adapter), kind, bytes, &icm->part);
	if (ret < 0)
		goto free_record;
	ret = uobj_publish(f, &icm->uobj, &uicm_class);
	if (ret < 0)
		goto free_part;
	*out = icm;
	return 0;

free_part:
	icm_free(adapter_icm(f->hca->adapter), icm->part);
free_record:
	free(icm);
	return ret;
}

static uint64_t uicm_address(const struct uicm *icm)
{
	return icm_part_address(icm->part);
}

/* The memory at a range of it; NULL: the range does not lie inside. */
static uint8_t *uicm_memory(const struct uicm *icm, uint64_t offset, uint64_t bytes)
{
	return range_inside(offset, bytes, icm->part->bytes)
		       ? icm_part_memory(uicm_icm(icm), icm->part) + offset
		       : NULL;
}

/* ---- memory of data ---- */

/*
 * Device memory: allocation, what libmlx5 needs to map it, and regions on it.  The program itself
 * maps the pages of the command descriptor.
 *
 * All methods but registration run in a forked child too (method_spec.inherited), without the
 * file's lock, because they touch only the pool.
 */

static_assert(DM_PAGE_BYTES == UVERBS_PAGE, "one page size");
/* A page index has the low byte of an mmap offset's page number; a larger one would leave gaps. */
static_assert(DM_PAGES <= 256, "page indices are contiguous offsets");

#define DM_ACCESS_KNOWN                                                           \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_ZERO_BASED | IB_UVERBS_ACCESS_OPTIONAL_RANGE)

/* Like uobj_find, for a handle that the pool does not know, which may belong to another object. */
static int dm_not_found(struct ufile *f, uint64_t handle, int ret)
{
	if (ret == -ENOENT)
		(void)uobj_find(f, UOBJ_NONE, handle, &ret);
	return ret;
}

/* Gives the program the place; allocations begin at page boundaries. */
static int dm_put_place(struct ureq *req, uint16_t offset_attr, uint16_t index_attr,
			const struct dm_info *dm)
{
	uint16_t page = (uint16_t)dm->first_page;
	int ret = ureq_put_u64(req, offset_attr, 0);

	return ret < 0 ? ret : ureq_put(req, index_attr, &page, sizeof(page));
}

/* ---- memory of steering ---- */

static int dm_alloc_icm(struct ureq *req, uint64_t type)
{
	struct uicm *icm;
	int ret;

	if (req->inherited)
		return -EIO;
	ret = uicm_create(req, type, ureq_u64(req, UVERBS_ATTR_ALLOC_DM_LENGTH), &icm);
	if (ret < 0)
		return ret;
	ret = ureq_put_u64(req, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, uicm_address(icm));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_ALLOC_DM_HANDLE, icm->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&icm->uobj, NULL);
	return ret;
}

/* Returns the steering memory that the handle names, or NULL. */
static struct uicm *dm_find_icm(struct ureq *req, uint64_t handle)
{
	int err;
	struct uobj *obj = req->inherited ? NULL : uobj_find(req->file, UOBJ_ICM, handle, &err);

	return obj ? container_of(obj, struct uicm, uobj) : NULL;
}

static int dm_mr_put(struct ureq *req, struct umr *mr)
{
	int ret = ureq_put_u32(req, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, mkey_key(mr->mkey));

	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, mkey_key(mr->mkey));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_REG_DM_MR_HANDLE, mr->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&mr->uobj, NULL);
	return ret;
}

/* Peers have no business with steering memory, so the region is not shared. */
static int dm_mr_reg_icm(struct ureq *req, struct upd *pd, struct mkey_attr *attr, struct uicm *icm)
{
	struct umr *mr;
	int ret;

	attr->addr = uicm_memory(icm, ureq_u64(req, UVERBS_ATTR_REG_DM_MR_OFFSET), attr->length);
	if (!attr->addr)
		return -EINVAL;
	ret = umr_create(req->file, pd, attr, &mr);
	if (ret < 0)
		return ret;
	mr->icm = &icm->uobj;
	icm->uobj.users++;
	return dm_mr_put(req, mr);
}

/* ---- all device memory ---- */

static int method_dm_alloc(struct ureq *req)
{
	struct dm_pool *pool = &req->file->dm;
	uint64_t type = ureq_u64(req, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE);
	struct dm_info dm;
	int ret;

	if (type != MLX5_IB_UAPI_DM_TYPE_MEMIC)
		return dm_alloc_icm(req, type);
	ret = dm_alloc(pool, ureq_u64(req, UVERBS_ATTR_ALLOC_DM_LENGTH),
		       ureq_u32(req, UVERBS_ATTR_ALLOC_DM_ALIGNMENT), &dm);
	if (ret < 0)
		return ret;
	ret = dm_put_place(req, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET,
			   MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &dm);
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_ALLOC_DM_HANDLE, dm.handle);
	if (ret < 0 && dm_free(pool, dm.handle) < 0)
		log_error("uverbs: device memory that nobody knows of is in use");
	return ret;
}

static int method_dm_free(struct ureq *req)
{
	uint64_t handle = ureq_handle(req, UVERBS_ATTR_FREE_DM_HANDLE);
	struct uicm *icm = dm_find_icm(req, handle);

	if (icm)
		return uobj_destroy(&icm->uobj, NULL);
	return dm_not_found(req->file, handle, dm_free(&req->file->dm, handle));
}

static int method_dm_query(struct ureq *req)
{
	uint64_t handle = ureq_handle(req, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE);
	struct dm_info dm;
	int ret = dm_find(&req->file->dm, handle, &dm);

	if (ret < 0)
		return dm_not_found(req->file, handle, ret);
	ret = dm_put_place(req, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET,
			   MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, &dm);
	return ret < 0 ? ret : ureq_put_u64(req, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, dm.length);
}

/*
 * Refuses views of the memory on which a plain load or store is an atomic operation.  Memory of a
 * process cannot do that, and the device reports no such operation.
 */
static int method_dm_map_op(struct ureq *req)
{
	uint64_t handle = ureq_handle(req, MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE);
	struct dm_info dm;
	int ret = dm_find(&req->file->dm, handle, &dm);

	return ret < 0 ? dm_not_found(req->file, handle, ret) : -EOPNOTSUPP;
}

static int method_dm_mr_reg(struct ureq *req)
{
	struct ufile *f = req->file;
	struct upd *pd =
		container_of(ureq_obj(req, UVERBS_ATTR_REG_DM_MR_PD_HANDLE), struct upd, uobj);
	uint64_t handle = ureq_handle(req, UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
	uint64_t offset = ureq_u64(req, UVERBS_ATTR_REG_DM_MR_OFFSET);
	uint64_t length = ureq_u64(req, UVERBS_ATTR_REG_DM_MR_LENGTH);
	struct mkey_attr attr = {.pdn = pd->pdn, .length = length};
	struct uicm *icm = dm_find_icm(req, handle);
	struct dm_info dm;
	struct umr *mr;
	uint32_t access;
	int ret = ureq_flags(req, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, DM_ACCESS_KNOWN, &access);

	if (ret == 0)
		ret = umr_check_access(access);
	if (ret < 0)
		return ret;
	if (!(access & IB_ACCESS_ZERO_BASED))
		return -EINVAL;
	attr.access = access & ~(uint32_t)IB_UVERBS_ACCESS_OPTIONAL_RANGE;
	if (icm)
		return dm_mr_reg_icm(req, pd, &attr, icm);
	ret = dm_hold(&f->dm, handle, &dm);
	if (ret < 0)
		return dm_not_found(f, handle, ret);
	ret = -EINVAL;
	if (!range_inside(offset, length, dm.length))
		goto release;
	attr.addr = f->dm.memory + (size_t)dm.first_page * DM_PAGE_BYTES + offset;
	ret = umr_create(f, pd, &attr, &mr);
	if (ret < 0)
		goto release;
	/* from here on the region owns the hold */
	mr->dm_handle = dm.handle;
	ushare_region(f, mr);
	return dm_mr_put(req, mr);

release:
	dm_release(&f->dm, handle);
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec dm_mr_reg_attrs[] = {
	{UVERBS_ATTR_REG_DM_MR_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_REG_DM_MR_OFFSET, IN(8)},
	{UVERBS_ATTR_REG_DM_MR_LENGTH, IN(8)},
	{UVERBS_ATTR_REG_DM_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_REG_DM_MR_DM_HANDLE, ATTR_HANDLE},
	{UVERBS_ATTR_REG_DM_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_REG_DM_MR_RESP_RKEY, OUT(4)},
};

/* The provider's attributes have numbers that UHW has elsewhere. */
static const struct attr_spec dm_alloc_attrs[] = {
	{UVERBS_ATTR_ALLOC_DM_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_ALLOC_DM_LENGTH, IN(8)},
	{UVERBS_ATTR_ALLOC_DM_ALIGNMENT, IN(4)},
	{MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, OUT(2), OPT},
	{MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, CONST_IN, OPT},
};

static const struct attr_spec dm_free_attrs[] = {
	{UVERBS_ATTR_FREE_DM_HANDLE, ATTR_HANDLE},
};

static const struct attr_spec dm_query_attrs[] = {
	{MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, OUT(2)},
	{MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, OUT(8)},
};

static const struct attr_spec dm_map_op_attrs[] = {
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP, IN(1)},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX, OUT(2), OPT},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, method_dm_mr_reg, dm_mr_reg_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, method_dm_alloc, dm_alloc_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, method_dm_free, dm_free_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, method_dm_query,
			 dm_query_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR, method_dm_map_op,
			 dm_map_op_attrs),
};

const struct uverbs_family udm_family = {METHODS(methods)};
