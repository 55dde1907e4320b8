// SPDX-License-Identifier: BSD-2-Clause
/* Memory regions and windows, and advice on regions with on-demand paging. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/explain.h"
#include "base/log.h"
#include "driver/runtime/process.h"
#include "driver/uverbs/objects/objects.h"
#include "usermem/usermem.h"

/* ---- regions ---- */

/*
 * Memory regions.  The memory lies in our own process, so we pin nothing.  But like the kernel's
 * ib_umem_get, registration fails for memory that is not there or not writable, and makes it
 * resident.
 */

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* enum ib_mr_rereg_flags; in no UAPI header. */
enum { REREG_TRANS = 1 << 0, REREG_PD = 1 << 1, REREG_ACCESS = 1 << 2, REREG_ALL = 7 };

#define ACCESS_WRITABLE                                                             \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC | \
	 IB_ACCESS_MW_BIND)
#define ACCESS_KNOWN                                                                            \
	(ACCESS_WRITABLE | IB_ACCESS_REMOTE_READ | IB_ACCESS_ZERO_BASED | IB_ACCESS_ON_DEMAND | \
	 IB_ACCESS_HUGETLB | IB_UVERBS_ACCESS_OPTIONAL_RANGE)
/* Hints that the kernel may ignore; we know one of them, and it asks for nothing here. */
#define ACCESS_KEPT (ACCESS_KNOWN & ~IB_UVERBS_ACCESS_OPTIONAL_RANGE)

int umr_check_access(uint32_t access)
{
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return explained(-EINVAL, "access has flags that the device does not know: 0x%x",
				 access & ~(uint32_t)ACCESS_KNOWN);
	/* IBTA 11.2.8.2: remote write and atomic need local write. */
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return explained(-EINVAL, "access has IBV_ACCESS_REMOTE_WRITE or _REMOTE_ATOMIC "
					  "without IBV_ACCESS_LOCAL_WRITE, which these need");
	return 0;
}

/* Touches page by page, where the kernel is older than MADV_POPULATE. */
static bool touch_pages(uint8_t *first, uint8_t *end, bool write)
{
	for (uint8_t *page = first; page < end; page += UVERBS_PAGE) {
		uint64_t old;
		uint32_t word;

		if (write ? !usermem_fetch_add(page, 0, &old) : !usermem_load_be32(page, &word))
			return false;
	}
	return true;
}

/*
 * ENOMEM also means that nothing is mapped there, which is the program's mistake.  msync(MS_ASYNC)
 * tells, because it looks at the mappings and does nothing else.
 */
static int populate_error(void *addr, size_t bytes, bool write)
{
	if ((errno != ENOMEM && errno != EAGAIN) || msync(addr, bytes, MS_ASYNC) < 0)
		return explained(-EFAULT,
				 "memory at %p, %zu bytes in whole pages, is not mapped, or cannot "
				 "be %s",
				 addr, bytes, write ? "written" : "read");
	return -ENOMEM;
}

/* As in ib_umem_get, a length of 0 inside a page means that page, and none where a page begins. */
int umem_populate(uint64_t start, uint64_t length, bool write)
{
	uint64_t first = start & ~(uint64_t)(UVERBS_PAGE - 1);
	uint64_t end = align_up(start + length, UVERBS_PAGE);
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	void *addr = (void *)(uintptr_t)first;

	if (length > UINT64_MAX - UVERBS_PAGE || start > UINT64_MAX - UVERBS_PAGE - length)
		return -EINVAL;
	if (first == end)
		return explained(
			-EINVAL,
			"the length of the memory is 0, and it begins where a page begins");
	while (madvise(addr, end - first, advice) < 0) {
		if (errno == EINTR)
			continue;
		/* EINVAL also means "no such advice"; an empty range tells the two apart. */
		if (errno == EINVAL && madvise(NULL, 0, advice) < 0)
			return touch_pages(addr, (uint8_t *)addr + (end - first), write) ? 0
											 : -EFAULT;
		return populate_error(addr, end - first, write);
	}
	return 0;
}

/*
 * The device looks at on-demand pages when somebody accesses them, so this checks only the numbers.
 * Address 0 and the greatest length stand for the whole address space (ibv_reg_mr(3), implicit).
 */
static int check_on_demand(uint64_t start, uint64_t length, uint64_t iova)
{
	if (!start && length == UINT64_MAX)
		return iova ? -EINVAL : 0;
	if (length > UINT64_MAX - UVERBS_PAGE || start > UINT64_MAX - UVERBS_PAGE - length)
		return -EOVERFLOW;
	return !length && start % UVERBS_PAGE == 0 ? -EINVAL : 0;
}

static int check_range(uint64_t start, uint64_t length, uint64_t iova, uint32_t access)
{
	if ((start ^ iova) & (UVERBS_PAGE - 1))
		return -EINVAL;
	if (length > UINT64_MAX - iova)
		return -EINVAL;
	if (access & IB_ACCESS_ON_DEMAND)
		return check_on_demand(start, length, iova);
	return umem_populate(start, length, access & ACCESS_WRITABLE);
}

static void umr_free(struct uobj *obj)
{
	struct umr *mr = container_of(obj, struct umr, uobj);

	ushare_end(mr);
	mkey_destroy(obj->file->hca->adapter, mr->mkey);
	ushare_release(mr);
	mr->pd->uobj.users--;
	if (mr->dm_handle)
		dm_release(&obj->file->dm, mr->dm_handle);
	if (mr->icm)
		mr->icm->users--;
}

static const struct uobj_class umr_class = {
	.type = UOBJ_MR,
	.free = umr_free,
};

int umr_create(struct ufile *f, struct upd *pd, const struct mkey_attr *attr, struct umr **out)
{
	struct umr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->attr = *attr;
	ret = mkey_create(f->hca->adapter, attr, &mr->mkey);
	if (ret < 0)
		goto free_mr;
	ret = uobj_publish(f, &mr->uobj, &umr_class);
	if (ret < 0)
		goto destroy_mkey;
	pd->uobj.users++;
	*out = mr;
	return 0;

destroy_mkey:
	mkey_destroy(f->hca->adapter, mr->mkey);
free_mr:
	free(mr);
	return ret;
}

static int cmd_reg_mr(struct ureq *req)
{
	struct ib_uverbs_reg_mr cmd;
	struct ib_uverbs_reg_mr_resp resp = {0};
	struct mkey_attr attr;
	struct uobj *obj;
	struct upd *pd;
	struct umr *mr;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = umr_check_access(cmd.access_flags);
	if (ret < 0)
		return ret;
	obj = uobj_find(req->file, UOBJ_PD, cmd.pd_handle, &ret);
	if (!obj)
		return ret;
	ret = check_range(cmd.start, cmd.length, cmd.hca_va, cmd.access_flags);
	if (ret < 0)
		return ret;
	pd = container_of(obj, struct upd, uobj);
	attr = (struct mkey_attr){
		.pdn = pd->pdn,
		.access = cmd.access_flags & ACCESS_KEPT,
		.iova = cmd.hca_va,
		.length = cmd.length,
		.addr = (void *)(uintptr_t)cmd.start,
	};
	ret = umr_create(req->file, pd, &attr, &mr);
	if (ret < 0)
		return ret;
	ushare_region(req->file, mr);
	resp.mr_handle = mr->uobj.handle;
	resp.lkey = resp.rkey = mkey_key(mr->mkey);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&mr->uobj, NULL);
	return ret;
}

/* Reads what the region becomes: attributes, and its domain. */
static int umr_rereg_attr(struct ureq *req, const struct ib_uverbs_rereg_mr *cmd,
			  struct mkey_attr *attr, struct upd **pd)
{
	struct uobj *obj;
	int ret;

	if (cmd->flags & REREG_ACCESS) {
		ret = umr_check_access(cmd->access_flags);
		if (ret < 0)
			return ret;
		attr->access = cmd->access_flags & ACCESS_KEPT;
	}
	if (cmd->flags & REREG_PD) {
		obj = uobj_find(req->file, UOBJ_PD, cmd->pd_handle, &ret);
		if (!obj)
			return ret;
		*pd = container_of(obj, struct upd, uobj);
		attr->pdn = (*pd)->pdn;
	}
	if (cmd->flags & REREG_TRANS) {
		attr->iova = cmd->hca_va;
		attr->length = cmd->length;
		attr->addr = (void *)(uintptr_t)cmd->start;
	}
	/* New rights may need pages that the old rights did not. */
	return cmd->flags & (REREG_TRANS | REREG_ACCESS)
		       ? check_range((uintptr_t)attr->addr, attr->length, attr->iova, attr->access)
		       : 0;
}

static int umr_rereg(struct ureq *req, struct umr *mr, const struct mkey_attr *attr, struct upd *pd)
{
	int ret;

	ushare_end(mr);
	mkey_conceal(req->file->hca->adapter, mr->mkey);
	ret = mkey_modify(req->file->hca->adapter, mr->mkey, attr);
	if (!ret)
		mr->attr = *attr;
	ushare_release(mr);
	ushare_region(req->file, mr);
	if (ret < 0)
		return ret;
	mr->pd->uobj.users--;
	pd->uobj.users++;
	mr->pd = pd;
	return 0;
}

static int cmd_rereg_mr(struct ureq *req)
{
	struct ib_uverbs_rereg_mr cmd;
	struct ib_uverbs_rereg_mr_resp resp = {0};
	struct mkey_attr attr;
	struct uobj *obj;
	struct upd *pd;
	struct umr *mr;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (!cmd.flags || cmd.flags & ~(uint32_t)REREG_ALL)
		return -EINVAL;
	obj = uobj_find(req->file, UOBJ_MR, cmd.mr_handle, &ret);
	if (!obj)
		return ret;
	mr = container_of(obj, struct umr, uobj);
	/* ib_core: a region on device memory stays as it is */
	if (mr->dm_handle || mr->icm)
		return -EINVAL;
	attr = mr->attr;
	pd = mr->pd;
	ret = umr_rereg_attr(req, &cmd, &attr, &pd);
	if (ret == 0)
		ret = umr_rereg(req, mr, &attr, pd);
	if (ret < 0)
		return ret;
	resp.lkey = resp.rkey = mkey_key(mr->mkey);
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

static int cmd_dereg_mr(struct ureq *req)
{
	struct ib_uverbs_dereg_mr cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_MR, cmd.mr_handle, NULL);
}

static int method_query_mr(struct ureq *req)
{
	struct umr *mr = container_of(ureq_obj(req, UVERBS_ATTR_QUERY_MR_HANDLE), struct umr, uobj);
	uint32_t key = mkey_key(mr->mkey);
	int ret = ureq_put_u32(req, UVERBS_ATTR_QUERY_MR_RESP_LKEY, key);

	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_QUERY_MR_RESP_RKEY, key);
	if (ret == 0)
		ret = ureq_put_u64(req, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->attr.length);
	if (ret == 0)
		ret = ureq_put_u64(req, UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->attr.iova);
	return ret;
}

/* ---- windows: the device gives a key, and the send queue takes what binds it ---- */

/* enum ib_mw_type; in no UAPI header. */
enum { MW_TYPE_1 = 1, MW_TYPE_2 = 2 };

struct umw {
	struct uobj uobj;
	struct upd *pd;
	struct window *window;
};

/* A window lies in one region, so it has one translation entry. */
static int mw_check_uhw(const struct mlx5_ib_alloc_mw *uhw)
{
	if (uhw->comp_mask || uhw->reserved1 || uhw->reserved2)
		return -EOPNOTSUPP;
	if (uhw->num_klms > 1) {
		log_info("uverbs: memory windows of several entries are not supported");
		return -EOPNOTSUPP;
	}
	return 0;
}

static void umw_free(struct uobj *obj)
{
	struct umw *mw = container_of(obj, struct umw, uobj);

	window_destroy(obj->file->hca->adapter, mw->window);
	mw->pd->uobj.users--;
}

static const struct uobj_class umw_class = {
	.type = UOBJ_MW,
	.free = umw_free,
};

static int cmd_alloc_mw(struct ureq *req)
{
	struct adapter *a = req->file->hca->adapter;
	struct ib_uverbs_alloc_mw cmd;
	struct ib_uverbs_alloc_mw_resp resp = {0};
	struct mlx5_ib_alloc_mw uhw;
	struct uobj *pd;
	struct umw *mw;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret == 0)
		ret = mw_check_uhw(&uhw);
	if (ret < 0)
		return ret;
	if (cmd.mw_type != MW_TYPE_1 && cmd.mw_type != MW_TYPE_2)
		return -EINVAL;
	pd = uobj_find(req->file, UOBJ_PD, cmd.pd_handle, &ret);
	if (!pd)
		return ret;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->pd = container_of(pd, struct upd, uobj);
	ret = window_create(a, mw->pd->pdn,
			    cmd.mw_type == MW_TYPE_1 ? WINDOW_TYPE_1 : WINDOW_TYPE_2, &mw->window);
	if (ret < 0)
		goto free_mw;
	ret = uobj_publish(req->file, &mw->uobj, &umw_class);
	if (ret < 0)
		goto destroy_window;
	pd->users++;
	resp.mw_handle = mw->uobj.handle;
	resp.rkey = window_key(mw->window);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&mw->uobj, NULL);
	return ret;

destroy_window:
	window_destroy(a, mw->window);
free_mw:
	free(mw);
	return ret;
}

static int cmd_dealloc_mw(struct ureq *req)
{
	struct ib_uverbs_dealloc_mw cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_MW, cmd.mw_handle, NULL);
}

/* ---- advice ---- */

/*
 * Advice on regions with on-demand paging (ibv_advise_mr(3)).  The device sees the pages that the
 * process has, so to prefetch a page is to make the process have it.
 */

struct advice {
	struct adapter *adapter;
	uint32_t pdn;
	bool fault; /* whether the advice brings pages in */
	bool write;
};

static int advice_check_key(const struct advice *a, uint32_t lkey, struct mkey_attr *mkey)
{
	int ret = mkey_query(a->adapter, lkey, mkey);

	if (ret < 0)
		return ret;
	/* The kernel looks only among regions with on-demand paging. */
	if (!(mkey->access & IB_ACCESS_ON_DEMAND))
		return -ENOENT;
	if (mkey->pdn != a->pdn)
		return -EPERM;
	return a->write && !(mkey->access & IB_ACCESS_LOCAL_WRITE) ? -EPERM : 0;
}

static int advice_prefetch(const struct advice *a, const struct ib_uverbs_sge *sge,
			   const struct mkey_attr *mkey)
{
	uint64_t off = sge->addr - mkey->iova;

	if (!range_inside(off, sge->length, mkey->length))
		return -EFAULT;
	if (!sge->length || !a->fault)
		return 0;
	return umem_populate((uintptr_t)mkey->addr + off, sge->length, a->write);
}

static int advice_read_sge(const struct ubuf *list, uint64_t index, struct ib_uverbs_sge *sge)
{
	const struct ib_uverbs_sge *from = list->ptr;

	return usermem_copy(sge, from + index, sizeof(*sge)) ? 0 : -EFAULT;
}

/*
 * Checks all keys before it touches the first page.  Without FLUSH the kernel only promises to
 * begin, so it does not report what then goes wrong with pages.
 */
static int advice_apply(const struct advice *a, const struct ubuf *list, bool flush)
{
	uint64_t n = list->len / sizeof(struct ib_uverbs_sge);
	struct ib_uverbs_sge sge;
	struct mkey_attr mkey;
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < n; i++) {
		ret = advice_read_sge(list, i, &sge);
		if (ret == 0)
			ret = advice_check_key(a, sge.lkey, &mkey);
	}
	for (uint64_t i = 0; ret == 0 && i < n; i++) {
		ret = advice_read_sge(list, i, &sge);
		/* checked again, because the program may have changed its list */
		if (ret == 0)
			ret = advice_check_key(a, sge.lkey, &mkey);
		if (ret == 0)
			ret = advice_prefetch(a, &sge, &mkey);
		if (!flush)
			ret = 0;
	}
	return ret;
}

static int method_advise_mr(struct ureq *req)
{
	struct upd *pd =
		container_of(ureq_obj(req, UVERBS_ATTR_ADVISE_MR_PD_HANDLE), struct upd, uobj);
	uint64_t advice = ureq_u64(req, UVERBS_ATTR_ADVISE_MR_ADVICE);
	struct ubuf list = ureq_buf(req, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	const struct advice a = {
		.adapter = req->file->hca->adapter,
		.pdn = pd->pdn,
		.fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
		.write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
	};
	uint32_t flags;
	int ret = ureq_flags(req, UVERBS_ATTR_ADVISE_MR_FLAGS, IB_UVERBS_ADVISE_MR_FLAG_FLUSH,
			     &flags);

	if (ret < 0)
		return ret;
	if (list.len % sizeof(struct ib_uverbs_sge))
		return -EINVAL;
	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	return advice_apply(&a, &list, flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec mr_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_MR_HANDLE, IDR(UOBJ_MR)},
};

static const struct attr_spec query_mr_attrs[] = {
	{UVERBS_ATTR_QUERY_MR_HANDLE, IDR(UOBJ_MR)},   {UVERBS_ATTR_QUERY_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_QUERY_MR_RESP_RKEY, OUT(4)},      {UVERBS_ATTR_QUERY_MR_RESP_LENGTH, OUT(8)},
	{UVERBS_ATTR_QUERY_MR_RESP_IOVA, OUT(8), OPT},
};

static const struct attr_spec reg_dmabuf_mr_attrs[] = {
	{UVERBS_ATTR_REG_DMABUF_MR_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_REG_DMABUF_MR_OFFSET, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_LENGTH, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_IOVA, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_FD, IN(4)},
	{UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, OUT(4)},
};

static const struct attr_spec mw_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_MW_HANDLE, IDR(UOBJ_MW)},
};

static const struct attr_spec advise_mr_attrs[] = {
	{UVERBS_ATTR_ADVISE_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_ADVISE_MR_ADVICE, CONST_IN},
	{UVERBS_ATTR_ADVISE_MR_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_ADVISE_MR_SGE_LIST, IN_MIN(sizeof(struct ib_uverbs_sge))},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, method_destroy, mr_destroy_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, method_query_mr, query_mr_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, method_refuse, reg_dmabuf_mr_attrs),
	METHOD(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, method_destroy, mw_destroy_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, method_advise_mr, advise_mr_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(REG_MR, cmd_reg_mr, ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp),
	CMD_RESP_UHW(REREG_MR, cmd_rereg_mr, ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp),
	CMD(DEREG_MR, cmd_dereg_mr, ib_uverbs_dereg_mr),
	CMD_RESP_UHW(ALLOC_MW, cmd_alloc_mw, ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp),
	CMD(DEALLOC_MW, cmd_dealloc_mw, ib_uverbs_dealloc_mw),
};

const struct uverbs_family umr_family = {METHODS(methods), COMMANDS(commands)};
