// SPDX-License-Identifier: BSD-2-Clause
/* Memory of DEVX: umems, memory keys, protected signature values. */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_mkey.h"
#include "prm/wqe.h"

/* ---- umems ---- */

/*
 * Memory that queues and keys of DEVX lie in.  Commands name it by its handle plus one, because
 * zero stands for none.
 */

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

/*
 * The same for length bytes in whole pages.  They begin in the page of offset, as far into it as
 * iova is into its own page, and may have any alignment.
 */
static void *devx_umem_pages(struct ufile *f, const struct devx_pages *at, bool write,
			     struct uobj **umem)
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

/* ---- memory keys ---- */

/*
 * Memory keys made by DEVX: lists of pieces of other keys, which work requests may rewrite, and
 * regions that lie in an umem.
 */

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

/* ---- protected signature values: mlx5_ib lets a program make one at a time ---- */

struct devx_psv {
	struct devx_obj obj;
	struct psv *psv;
};

static bool devx_admits_psv(const uint8_t *in)
{
	return prm_get(in, CREATE_PSV_COUNT) == 1;
}

static void devx_psv_free(struct devx_obj *obj)
{
	psv_destroy(obj->uobj.file->hca->adapter, container_of(obj, struct devx_psv, obj)->psv);
}

static const struct devx_class devx_psv_class = {.free = devx_psv_free};

static int devx_create_psv(struct devx_call *c, struct devx_obj **out)
{
	uint32_t pdn = prm_get32(c->in, CREATE_PSV_PD);
	struct devx_psv *psv;
	struct uobj *pd;
	int ret = devx_pd(c->file, pdn, &pd);

	if (ret < 0)
		return ret;
	psv = calloc(1, sizeof(*psv));
	if (!psv)
		return -ENOMEM;
	ret = psv_create(c->file->hca->adapter, pdn, &psv->psv);
	if (ret < 0) {
		free(psv);
		return ret;
	}
	devx_obj_init(&psv->obj, &devx_psv_class, psv_number(psv->psv));
	devx_obj_uses(&psv->obj, pd);
	prm_set(c->out, CREATE_PSV_INDEX, psv->obj.number);
	*out = &psv->obj;
	return 0;
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

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_MKEY, CREATE_MKEY_IN_BYTES, CMD_OUT_BYTES, devx_create_mkey),
	DEVX_QUERY(QUERY_MKEY, &devx_mkey_class, CMD_IN_BYTES, QUERY_MKEY_OUT_BYTES,
		   devx_query_mkey),
	{DEVX_ROW(CREATE_PSV, DEVX_OBJ_CREATE, CMD_IN_BYTES, CREATE_PSV_OUT_BYTES),
	 .create = devx_create_psv, .admits = devx_admits_psv},
};

const struct devx_family devx_memory_family = DEVX_FAMILY(ops);
