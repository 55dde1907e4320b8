// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/queues; the argument is the name of a case. */
#include "host.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_S 60
#define MOMENT_US 20000
#define CQE_BYTES 64u

uint64_t call1(struct flexio_process *p, flexio_func_t *f, uint64_t a)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a));
	return value;
}

uint64_t call2(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a, b));
	return value;
}

uint64_t call3(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a, b, c));
	return value;
}

void word_await(struct flexio_process *p, uint64_t addr, uint64_t value)
{
	time_t end = time(NULL) + PATIENT_S;

	while (call1(p, &peek, addr) < value && time(NULL) < end)
		usleep(200);
	CHECK(call1(p, &peek, addr) >= value);
}

void word_stays(struct flexio_process *p, uint64_t addr, uint64_t value)
{
	word_await(p, addr, value);
	usleep(MOMENT_US);
	CHECK_SAY(call1(p, &peek, addr) == value, "%llu, not %llu",
		  (unsigned long long)call1(p, &peek, addr), (unsigned long long)value);
}

uint64_t queue_make(struct flexio_process *p, unsigned log, uint64_t how,
		    struct flexio_cq_attr *attr)
{
	struct queue q = {.how = how, .entries = 1ull << log};
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(p, CQE_BYTES << log, &q.ring));
	OK(flexio_buf_dev_memset(p, 0xff, CQE_BYTES << log, q.ring));
	OK(flexio_buf_dev_alloc(p, 8, &q.record));
	OK(flexio_buf_dev_memset(p, 0, 8, q.record));
	OK(flexio_copy_from_host(p, &q, sizeof(q), &at));
	attr->log_cq_depth = (uint8_t)log;
	attr->cq_ring_qmem = (struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_DPA, .daddr = q.ring};
	attr->cq_dbr_daddr = q.record;
	return at;
}

void bench_up(struct bench *b, uint64_t how)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &handle};

	memset(b, 0, sizeof(*b));
	b->ctx = device_open(0);
	OK(flexio_process_create(b->ctx, queues_app, NULL, &b->p));
	OK(flexio_event_handler_create(b->p, &attr, &b->eh));
	b->attr.uar_id = flexio_uar_get_id(flexio_process_get_uar(b->p));
	b->attr.thread = flexio_event_handler_get_thread(b->eh);
	b->q = queue_make(b->p, 4, how, &b->attr);
	OK(flexio_event_handler_run(b->eh, b->q));
}

void bench_queue(struct bench *b, unsigned log)
{
	uint64_t q = queue_make(b->p, log, 0, &b->attr);

	OK(flexio_cq_create(b->p, NULL, &b->attr, &b->cq));
	b->cqn = flexio_cq_get_cq_num(b->cq);
	CHECK(b->cqn && b->cqn < 1u << 24);
	b->ring = b->attr.cq_ring_qmem.daddr;
	b->record = b->attr.cq_dbr_daddr;
	queue_set(b, cqn, b->cqn);
	queue_set(b, ring, b->ring);
	queue_set(b, record, b->record);
	queue_set(b, entries, 1ull << log);
	OK(flexio_buf_dev_free(b->p, q));
}

void bench_down(struct bench *b)
{
	CHECK(!queue_get(b, wrong));
	if (b->cq)
		OK(flexio_cq_destroy(b->cq));
	OK(flexio_event_handler_destroy(b->eh));
	OK(flexio_process_destroy(b->p));
	CHECK(!ibv_close_device(b->ctx));
}

int main(int argc, char **argv)
{
	const struct host_case *const all[] = {queue_cases, handler_cases, thread_cases, key_cases,
					       busy_cases,  eq_cases,	   place_cases};

	CHECK(argc > 1);
	if (!strcmp(argv[1], "as_peer"))
		return peer_main(argc - 1, argv + 1);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, argv[1])) {
				c->run();
				return 0;
			}
	CHECK_SAY(false, "no case %s", argv[1]);
}
