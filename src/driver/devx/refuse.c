// SPDX-License-Identifier: BSD-2-Clause
/* See refuse.h. */
#include "driver/devx/refuse.h"

#include <errno.h>

#include "prm/cmd_qp.h"

int devx_check_lacks(const uint8_t *context, const struct devx_lack *lacks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = prm_get(context, lacks[i].field);

		if (value)
			return devx_refuse(-EOPNOTSUPP, lacks[i].name, value,
					   "the device has 0 alone");
	}
	return 0;
}

struct devx_part devx_wq_ring(const uint8_t *wq)
{
	return (struct devx_part){
		.field = "wq_umem_offset",
		.umem_id = prm_get32(wq, WQ_UMEM),
		.offset = prm_get(wq, WQ_OFFSET),
		.length = 1ull << (prm_get32(wq, WQ_LOG_SIZE) + prm_get32(wq, WQ_LOG_STRIDE)),
	};
}

struct devx_part devx_wq_record(const uint8_t *wq, uint64_t bytes)
{
	return (struct devx_part){
		.field = "dbr_addr",
		.umem_id = prm_get32(wq, WQ_DBR_UMEM),
		.offset = prm_get(wq, WQ_DBR_ADDR),
		.length = bytes,
	};
}

static const struct devx_lack ring_lacks[] = {{WQ_SIGNATURE, "wq_signature"},
					      {WQ_PAGE_OFFSET, "page_offset"}};

int devx_wq_check_lacks(const uint8_t *wq)
{
	return devx_lacks(wq, ring_lacks);
}

int devx_raw_check_ring(const uint8_t *wq)
{
	if (prm_get(wq, WQ_TYPE) != WQ_CYCLIC)
		return devx_refuse(-EOPNOTSUPP, "wq_type", prm_get(wq, WQ_TYPE),
				   "the device has 1 (cyclic)");
	return devx_wq_check_lacks(wq);
}

int devx_raw_check_port(const struct ufile *f)
{
	return ufile_port(f)->ethernet
		       ? 0
		       : explained(-EOPNOTSUPP, "such queues are for frames, and the port is of "
						"InfiniBand");
}

int devx_at_most(const char *field, uint64_t value, uint64_t max)
{
	if (value <= max)
		return 0;
	return explained(-EINVAL, "%s is %llu: %llu is the largest", field,
			 (unsigned long long)value, (unsigned long long)max);
}

int devx_named(struct ufile *f, const struct devx_class *class, uint32_t number, const char *field,
	       struct uobj **obj)
{
	*obj = devx_find(f, class, number);
	return *obj ? 0
		    : devx_refuse(-EINVAL, field, number,
				  "no such object of this context has that number");
}
