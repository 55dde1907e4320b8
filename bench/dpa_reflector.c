// SPDX-License-Identifier: BSD-2-Clause
/* The host's part of a reflector on the DPA; see dpa_reflect.h. */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>

#include "check.h"
#include "dpa_reflect.h"

#define OK(call) CHECK((call) == FLEXIO_STATUS_SUCCESS)

static flexio_uintptr_t heap_of(struct flexio_process *p, size_t bytes, int value)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(p, bytes, &at));
	OK(flexio_buf_dev_memset(p, value, bytes, at));
	return at;
}

static struct flexio_cq *cq_up(struct flexio_process *p, struct flexio_cq_attr *attr)
{
	struct flexio_cq *cq;

	attr->log_cq_depth = LOG_SLOTS;
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(p));
	attr->cq_ring_qmem.daddr = heap_of(p, 64u * SLOTS, 0xff);
	attr->cq_dbr_daddr = heap_of(p, 8, 0);
	OK(flexio_cq_create(p, NULL, attr, &cq));
	return cq;
}

static struct flexio_rq *rq_up(struct flexio_process *p, struct reflector *r)
{
	struct flexio_wq_attr wq = {.log_wq_depth = LOG_SLOTS};
	struct mlx5_wqe_data_seg receives[SLOTS];
	uint32_t record[2] = {htobe32(SLOTS), 0};
	struct flexio_rq *rq;

	for (unsigned i = 0; i < SLOTS; i++)
		mlx5dv_set_data_seg(&receives[i], FRAME_BYTES, (uint32_t)r->key,
				    r->data + (uint64_t)i * FRAME_BYTES);
	wq.wq_ring_qmem.daddr = heap_of(p, sizeof(receives), 0);
	wq.wq_dbr_qmem.daddr = r->receive_record = heap_of(p, sizeof(record), 0);
	OK(flexio_host2dev_memcpy(p, receives, sizeof(receives), wq.wq_ring_qmem.daddr));
	OK(flexio_rq_create(p, NULL, (uint32_t)r->cqn, &wq, &rq));
	OK(flexio_host2dev_memcpy(p, record, sizeof(record), r->receive_record));
	return rq;
}

static void sq_up(struct flexio_process *p, struct reflector *r)
{
	struct flexio_cq_attr attr = {.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
				      .overrun_ignore = 1};
	struct flexio_wq_attr wq = {
		.log_wq_depth = LOG_SLOTS,
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(p)),
	};
	struct flexio_cq *cq = cq_up(p, &attr);
	struct flexio_sq *sq;

	r->send_ring = wq.wq_ring_qmem.daddr = heap_of(p, 64u * SLOTS, 0);
	OK(flexio_sq_create(p, NULL, flexio_cq_get_cq_num(cq), &wq, &sq));
	r->sqn = flexio_sq_get_wq_num(sq);
}

struct mlx5dv_devx_obj *dpa_reflector_up(struct ibv_context *ctx, struct flexio_app *app,
					 void (*handler)(void))
{
	struct flexio_event_handler_attr attr = {.host_stub_func = (flexio_func_t *)handler};
	struct flexio_cq_attr cq_attr = {.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD};
	struct flexio_mkey_attr key = {.len = (size_t)SLOTS * FRAME_BYTES,
				       .access = IBV_ACCESS_LOCAL_WRITE};
	struct flexio_event_handler *eh;
	struct flexio_process *p;
	struct flexio_mkey *mkey;
	struct reflector r = {0};
	flexio_uintptr_t arg;
	struct flexio_rq *rq;

	OK(flexio_process_create(ctx, app, NULL, &p));
	OK(flexio_event_handler_create(p, &attr, &eh));
	cq_attr.thread = flexio_event_handler_get_thread(eh);
	r.cqn = flexio_cq_get_cq_num(cq_up(p, &cq_attr));
	r.cq_ring = cq_attr.cq_ring_qmem.daddr;
	r.cq_record = cq_attr.cq_dbr_daddr;
	key.pd = flexio_process_get_pd(p);
	key.daddr = r.data = heap_of(p, (size_t)SLOTS * FRAME_BYTES, 0);
	OK(flexio_device_mkey_create(p, &key, &mkey));
	r.key = flexio_mkey_get_id(mkey);
	rq = rq_up(p, &r);
	sq_up(p, &r);
	OK(flexio_copy_from_host(p, &r, sizeof(r), &arg));
	OK(flexio_event_handler_run(eh, arg));
	return flexio_rq_get_tir(rq);
}
