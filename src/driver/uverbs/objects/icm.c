// SPDX-License-Identifier: BSD-2-Clause
/* See icm.h. */
#include "driver/uverbs/objects/icm.h"

#include <errno.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>

#include "adapter/adapter.h"
#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/uverbs/core/port.h"
#include "driver/uverbs/objects/rss.h"

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

int uicm_create(struct ureq *req, uint64_t type, uint64_t bytes, struct uicm **out)
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

uint64_t uicm_address(const struct uicm *icm)
{
	return icm_part_address(icm->part);
}

uint8_t *uicm_memory(const struct uicm *icm, uint64_t offset, uint64_t bytes)
{
	return range_inside(offset, bytes, icm->part->bytes)
		       ? icm_part_memory(uicm_icm(icm), icm->part) + offset
		       : NULL;
}
