// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory keys made by DEVX: lists of pieces of other keys, which work requests may rewrite, and
 * regions that lie in an umem.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/devx/refuse.h"
#include "prm/cmd_mkey.h"
#include "prm/wqe.h"

#define LOG_PAGE_MIN 12u

struct devx_mkey {
	struct devx_obj obj;
	struct mkey *mkey;
	uint8_t context[MKC_BYTES]; /* the context that it was made with */
};

static uint32_t mkc_access(const uint8_t *mkc)
{
	return (prm_get(mkc, MKC_LOCAL_WRITE) ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (prm_get(mkc, MKC_REMOTE_WRITE) ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (prm_get(mkc, MKC_REMOTE_READ) ? IB_ACCESS_REMOTE_READ : 0) |
	       (prm_get(mkc, MKC_ATOMIC) ? IB_ACCESS_REMOTE_ATOMIC : 0);
}

static uint64_t mkc_length(const uint8_t *mkc)
{
	return prm_get(mkc, MKC_LENGTH64) ? UINT64_MAX : prm_get(mkc, MKC_LENGTH);
}

static uint32_t mkc_mode(const uint8_t *mkc)
{
	return prm_get32(mkc, MKC_ACCESS_MODE_HIGH) << 2 | prm_get32(mkc, MKC_ACCESS_MODE_LOW);
}

static int devx_mkey_check_list(const struct mkey_indirect_attr *attr)
{
	int ret = devx_at_most("translations_octword_size", attr->max_entries, ADAPTER_MAX_KLM);

	if (ret == 0)
		ret = devx_at_most("translations_octword_actual_size", attr->entries,
				   attr->max_entries);
	if (ret == 0 && attr->signature && !attr->bsf_octowords)
		ret = devx_refuse(-EINVAL, "bsf_octword_size", 0, "bsf_en needs room for them");
	return ret;
}

/* Reads the list, which follows the fixed part of the command. */
static int devx_mkey_make_list(struct devx_call *c, const uint8_t *mkc, struct devx_mkey *key)
{
	uint32_t entries = prm_get32(c->in, CREATE_MKEY_LIST_ACTUAL);
	struct mkey_indirect_attr attr = {
		.pdn = prm_get32(mkc, MKC_PD),
		.access = mkc_access(mkc),
		.local_read = prm_get(mkc, MKC_LOCAL_READ),
		.variant = (uint8_t)prm_get(mkc, MKC_VARIANT),
		.qpn = prm_get32(mkc, MKC_QPN),
		.free = prm_get(mkc, MKC_FREE),
		.remote_invalidate = prm_get(mkc, MKC_REMOTE_INVALIDATE),
		.umr = prm_get(mkc, MKC_UMR),
		.signature = prm_get(mkc, MKC_BSF),
		.list = mkc_mode(mkc) == MKC_MODE_KLM ? MKEY_LIST_KLM : MKEY_LIST_KSM,
		.log_entry_bytes = (uint8_t)prm_get(mkc, MKC_LOG_ENTRY_BYTES),
		.start = prm_get(mkc, MKC_START),
		.length = mkc_length(mkc),
		.bsf_octowords = prm_get32(mkc, MKC_BSF_OCTOWORDS),
		.max_entries = prm_get32(mkc, MKC_LIST_OCTOWORDS),
		.entries = entries,
		.entry = (const void *)(c->in + CREATE_MKEY_LIST),
	};
	int ret;

	if (prm_get(c->in, CREATE_MKEY_BSF_ACTUAL))
		return devx_refuse(-EOPNOTSUPP, "bsf_octword_actual_size",
				   prm_get(c->in, CREATE_MKEY_BSF_ACTUAL),
				   "signatures are configured by work requests, not at creation");
	if (!range_inside(CREATE_MKEY_LIST, (uint64_t)entries * sizeof(struct umr_klm), c->in_len))
		return devx_refuse(-EINVAL, "translations_octword_actual_size", entries,
				   "the command is too short for so many");
	ret = devx_mkey_check_list(&attr);
	if (ret < 0)
		return ret;
	return mkey_create_indirect(c->file->hca->adapter, &attr, &key->mkey);
}

static const struct devx_lack region_lacks[] = {
	{MKC_FREE, "free"}, {MKC_UMR, "umr_en"}, {MKC_BSF, "bsf_en"}};

/*
 * Takes pages of an umem, from the page of offset on.  The first byte of the region lies as far
 * into its page as its address says.
 */
static int devx_mkey_make_region(struct devx_call *c, const uint8_t *mkc, struct devx_mkey *key)
{
	uint32_t log_page = prm_get32(mkc, MKC_LOG_ENTRY_BYTES);
	struct mkey_attr attr = {
		.pdn = prm_get32(mkc, MKC_PD),
		.access = mkc_access(mkc),
		.iova = prm_get(mkc, MKC_START),
		.length = mkc_length(mkc),
		.given_variant = true,
		.variant = (uint8_t)prm_get(mkc, MKC_VARIANT),
	};
	const uint32_t writes =
		IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	const struct devx_pages at = {
		.umem_id = prm_get32(c->in, CREATE_MKEY_UMEM),
		.offset = prm_get(c->in, CREATE_MKEY_OFFSET),
		.iova = attr.iova,
		.length = attr.length,
		.page = 1ull << (log_page < LOG_PAGE_MIN ? LOG_PAGE_MIN : log_page),
	};
	struct uobj *umem;
	int ret;

	ret = devx_lacks(mkc, region_lacks);
	if (ret < 0)
		return ret;
	if (prm_get32(mkc, MKC_QPN) != IB_QPN_MASK)
		return devx_refuse(-EOPNOTSUPP, "qpn", prm_get32(mkc, MKC_QPN),
				   "a region is of all queue pairs (0xffffff)");
	attr.addr = devx_umem_pages(c->file, &at, attr.access & writes, &umem);
	if (!attr.addr)
		return explained(-EINVAL,
				 "mkey_umem_offset: 0x%llx bytes at 0x%llx of umem 0x%x: the umem "
				 "does not have all of them, or not for writing",
				 (unsigned long long)at.length, (unsigned long long)at.offset,
				 at.umem_id);
	devx_obj_uses(&key->obj, umem);
	ret = mkey_create(c->file->hca->adapter, &attr, &key->mkey);
	if (ret == 0)
		mkey_note(c->file->hca->adapter, key->mkey, KEY_WHY_DEVX);
	return ret;
}

static int devx_mkey_make(struct devx_call *c, struct devx_mkey *key)
{
	struct uobj *pd;
	int ret = devx_pd(c->file, prm_get32(key->context, MKC_PD), &pd);

	if (ret < 0)
		return ret;
	devx_obj_uses(&key->obj, pd);
	switch (mkc_mode(key->context)) {
	case MKC_MODE_KLM:
	case MKC_MODE_KSM:
		return devx_mkey_make_list(c, key->context, key);
	case MKC_MODE_MTT:
		return devx_mkey_make_region(c, key->context, key);
	default:
		return devx_refuse(-EOPNOTSUPP, "access_mode", mkc_mode(key->context),
				   "the device has 1 (MTT), 2 (KLM) and 3 (KSM)");
	}
}

static void devx_mkey_free(struct devx_obj *obj)
{
	mkey_destroy(obj->uobj.file->hca->adapter, container_of(obj, struct devx_mkey, obj)->mkey);
}

static const struct devx_class devx_mkey_class = {.free = devx_mkey_free};

static const struct devx_lack crypto_lacks[] = {{MKC_CRYPTO, "crypto_en"}};

static int devx_create_mkey(struct devx_call *c, struct devx_obj **out)
{
	struct devx_mkey *key = calloc(1, sizeof(*key));
	int ret;

	if (!key)
		return -ENOMEM;
	memcpy(key->context, c->in + CREATE_MKEY_CONTEXT, sizeof(key->context));
	ret = devx_lacks(key->context, crypto_lacks);
	if (ret == 0)
		ret = devx_mkey_make(c, key);
	if (ret < 0) {
		devx_obj_release(&key->obj);
		free(key);
		return ret;
	}
	devx_obj_init(&key->obj, &devx_mkey_class, mkey_key(key->mkey) >> 8);
	prm_set(c->out, CMD_OUT_NUMBER, key->obj.number);
	*out = &key->obj;
	return 0;
}

static int devx_query_mkey(struct devx_call *c)
{
	const struct devx_mkey *key = container_of(c->target, struct devx_mkey, obj.uobj);

	if (prm_get(key->context, MKC_UMR)) {
		log_info("devx: memory keys that work requests change cannot be queried");
		return -EOPNOTSUPP;
	}
	memcpy(c->out + QUERY_MKEY_CONTEXT, key->context, MKC_BYTES);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_MKEY, CREATE_MKEY_IN_BYTES, CMD_OUT_BYTES, devx_create_mkey),
	DEVX_QUERY(QUERY_MKEY, &devx_mkey_class, CMD_IN_BYTES, QUERY_MKEY_OUT_BYTES,
		   devx_query_mkey),
};

const struct devx_family devx_mkey_family = DEVX_FAMILY(ops);
