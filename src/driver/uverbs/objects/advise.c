// SPDX-License-Identifier: BSD-2-Clause
/*
 * Advice on regions with on-demand paging (ibv_advise_mr(3)).  The device sees the pages that the
 * process has, so to prefetch a page is to make the process have it.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/mr.h"
#include "usermem/usermem.h"

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

static const struct attr_spec advise_mr_attrs[] = {
	{UVERBS_ATTR_ADVISE_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_ADVISE_MR_ADVICE, CONST_IN},
	{UVERBS_ATTR_ADVISE_MR_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_ADVISE_MR_SGE_LIST, IN_MIN(sizeof(struct ib_uverbs_sge))},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, method_advise_mr, advise_mr_attrs),
};

const struct uverbs_family uadvise_family = {METHODS(methods)};
