// SPDX-License-Identifier: BSD-2-Clause
/* See wqe_life.h. */
#include "wqe_life.h"

#include <errno.h>

void life_reregister(struct fuzz_device *d, struct input *in)
{
	struct fuzz_mr *m = &d->mr[in_u8(in) % FUZZ_MRS];
	size_t less = in_u16(in) % m->len;
	struct mkey_attr attr = {
		.pdn = d->pdn + (less & 1),
		.access = m->access,
		.iova = (uintptr_t)(m->area + m->off),
		.length = m->len - less,
		.addr = m->area + m->off,
	};

	int ret = mkey_modify(d->device.adapter[d->dev], m->mkey, &attr);

	/* A window may be bound to it. */
	MUST(!ret || (ret == -EBUSY && m->access & IB_ACCESS_MW_BIND));
}

union ib_gid life_group_gid(unsigned n)
{
	return (union ib_gid){.raw = {0xff, 0x12, [15] = (uint8_t)(n + 1)}};
}

void life_group(struct fuzz_qp *q, struct input *in)
{
	uint8_t how = in_u8(in);
	union ib_gid gid = life_group_gid(how & 3);
	uint16_t mlid = how & 8 ? 0xc001 : in_u16(in);

	if (how & 16)
		in_bytes(in, gid.raw, sizeof(gid.raw));
	if (q->type != IB_QPT_UD)
		return;
	(void)!(how & 4 ? qp_detach_mcast(q->qp, &gid, mlid) : qp_attach_mcast(q->qp, &gid, mlid));
}

void life_flow(struct fuzz_device *d, struct fuzz_qp *q, struct input *in)
{
	uint8_t how = in_u8(in);
	struct flow **flow = &d->flow[how % FUZZ_FLOWS];
	struct flow_attr attr = {
		.type = (enum flow_type)((how >> 2 & 3) % 3),
		.priority = how >> 4,
		.qp = q->type == IB_QPT_RAW_PACKET ? q->qp : NULL,
		.tag = how,
	};

	in_bytes(in, &attr.value, in_u8(in) % sizeof(attr.value));
	in_bytes(in, &attr.mask, in_u8(in) % sizeof(attr.mask));
	attr.go_on = in_u8(in) & 1;
	if (*flow)
		flow_destroy(*flow);
	if (flow_create(d->device.adapter[d->dev], &attr, flow))
		*flow = NULL;
}
