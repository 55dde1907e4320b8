// SPDX-License-Identifier: BSD-2-Clause
/* See icm_writer.h. */
#include "adapter/transport/icm_writer.h"

#include <sched.h>

#include "adapter/transport/requester.h"
#include "usermem/usermem.h"

/* How often we let other threads go first, because one of them is executing the queue. */
#define WRITER_ROUNDS 1000u

/* Announces a queue pair that writes steering entries.  If the list is full, its rules become
 * visible as late as those of a queue pair that nobody announces. */
void qp_writes_icm(struct qp *qp)
{
	struct icm_writers *w = &qp->adapter->icm_writers;
	uint32_t n, i = 0;

	spin_lock(&w->lock);
	n = atomic_load_explicit(&w->n, memory_order_relaxed);
	while (i < n && atomic_load_explicit(&w->row[i].qp, memory_order_relaxed))
		i++;
	if (i < ICM_WRITERS && !qp->icm_writer) {
		qp->icm_writer = true;
		atomic_store_explicit(&w->row[i].seen, 0, memory_order_relaxed);
		atomic_store_explicit(&w->row[i].qp, qp, memory_order_release);
		if (i == n)
			atomic_store_explicit(&w->n, n + 1, memory_order_release);
	}
	spin_unlock(&w->lock);
}

void icm_writer_forget(struct qp *qp)
{
	struct icm_writers *w = &qp->adapter->icm_writers;
	uint32_t n;

	if (!qp->icm_writer)
		return;
	spin_lock(&w->lock);
	n = atomic_load_explicit(&w->n, memory_order_relaxed);
	for (uint32_t i = 0; i < n; i++)
		if (atomic_load_explicit(&w->row[i].qp, memory_order_relaxed) == qp)
			atomic_store_explicit(&w->row[i].qp, NULL, memory_order_release);
	while (n && !atomic_load_explicit(&w->row[n - 1].qp, memory_order_relaxed))
		n--;
	atomic_store_explicit(&w->n, n, memory_order_release);
	spin_unlock(&w->lock);
}

static bool writer_idle(const struct qp *qp)
{
	return atomic_load_explicit(&qp->sq.word, memory_order_acquire) == BATON_IDLE;
}

static void writer_catch_up(struct qp *qp)
{
	qp_run(qp);
	for (unsigned round = 0; round < WRITER_ROUNDS && !writer_idle(qp); round++) {
		if (round % 16)
			cpu_relax();
		else
			sched_yield();
	}
}

void icm_writers_catch_up(struct adapter *a)
{
	struct icm_writers *w = &a->icm_writers;
	uint32_t n = atomic_load_explicit(&w->n, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct qp *qp = hazard_take(&w->row[i].qp);
		uint32_t posted;

		if (!qp || !usermem_load_be32(qp->producer, &posted) ||
		    posted == atomic_load_explicit(&w->row[i].seen, memory_order_relaxed))
			continue;
		writer_catch_up(qp);
		atomic_store_explicit(&w->row[i].seen, posted, memory_order_relaxed);
	}
}
