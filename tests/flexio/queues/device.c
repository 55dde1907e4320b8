// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/queues. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>
#include <stdint.h>

#include "queue.h"

/* ---- words of the heap, for the host ---- */

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t poke(uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return 0;
}

/* ---- bells ---- */

__dpa_rpc__ uint64_t arm(uint64_t ci, uint64_t cqn)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_cq_arm(ctx, (uint32_t)ci, (uint32_t)cqn);
}

/* Completions that say nothing. */
__dpa_rpc__ uint64_t complete(uint64_t cqn, uint64_t n)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	while (n--)
		flexio_dev_msix_send(ctx, (uint32_t)cqn);
	return 0;
}

/* One, through an outbox, which is told with or without checks; or by the number of a UAR. */
__dpa_rpc__ uint64_t complete_by(uint64_t cqn, uint64_t outbox, uint64_t fast)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_dev_status_t status = FLEXIO_DEV_STATUS_SUCCESS;

	flexio_dev_get_thread_ctx(&ctx);
	if (fast)
		flexio_dev_outbox_config_fast(ctx, (uint16_t)outbox);
	else
		status = flexio_dev_outbox_config(ctx, (uint16_t)outbox);
	flexio_dev_msix_send(ctx, (uint32_t)cqn);
	return status;
}

__dpa_rpc__ uint64_t complete_extended(uint64_t cqn, uint64_t id)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_dev_status_t status;

	flexio_dev_get_thread_ctx(&ctx);
	status = flexio_dev_outbox_config_uar_extension(ctx, (flexio_uar_device_id)id);
	flexio_dev_msix_send(ctx, (uint32_t)cqn);
	return status;
}

/* The record that flexio_dev_dbr_cq_set_ci makes of an index: as the bytes lie in memory. */
__dpa_rpc__ uint64_t record_of(uint64_t ci)
{
	uint32_t record[2] = {0, 0};

	flexio_dev_dbr_cq_set_ci(record, (uint32_t)ci);
	return (uint64_t)((uint8_t *)record)[0] << 24 | (uint64_t)((uint8_t *)record)[1] << 16 |
	       (uint64_t)((uint8_t *)record)[2] << 8 | ((uint8_t *)record)[3];
}

/* ---- queues ---- */

static struct flexio_dev_cqe64 *next_of(const struct queue *q)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)q->ring + (q->ci & (q->entries - 1));

	return flexio_dev_cqe_get_owner(cqe) == !!(q->ci & q->entries) ? cqe : NULL;
}

static void take_all(struct queue *q)
{
	struct flexio_dev_cqe64 *cqe;

	while ((cqe = next_of(q))) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		q->byte_cnt = flexio_dev_cqe_get_byte_cnt(cqe);
		q->wqe_counter = flexio_dev_cqe_get_wqe_counter(cqe);
		q->qpn = flexio_dev_cqe_get_qpn(cqe);
		q->opcode = flexio_dev_cqe_get_opcode(cqe);
		q->user_index = flexio_dev_cqe_get_user_index(cqe);
		q->ci++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)q->record, (uint32_t)q->ci);
		__atomic_fetch_add(&q->taken, 1, __ATOMIC_SEQ_CST);
	}
}

static void wait_for_go(struct queue *q)
{
	while (!__atomic_load_n(&q->go, __ATOMIC_SEQ_CST))
		;
}

static void serve(struct flexio_dev_thread_ctx *ctx, struct queue *q)
{
	if (!(q->how & QUEUE_TAKES_NONE))
		take_all(q);
	if (q->how & QUEUE_WAITS)
		wait_for_go(q);
	if (q->how & QUEUE_RINGS)
		flexio_dev_msix_send(ctx, (uint32_t)q->rings);
	if (q->how & QUEUE_ARMS)
		flexio_dev_cq_arm(ctx, (uint32_t)q->ci, (uint32_t)q->cqn);
	__atomic_fetch_add(&q->served, 1, __ATOMIC_SEQ_CST);
	if (q->how & QUEUE_WAITS_ARMED)
		wait_for_go(q);
}

/* Goes on where it was, with its variables, if it may; else at once. */
static void yield(struct flexio_dev_thread_ctx *ctx, struct queue *q)
{
	volatile uint64_t kept = q->taken + 1000;

	flexio_dev_yield(ctx);
	q->resumed = kept;
}

/* Of all handlers: variables of the program stay from one activation to the next. */
static uint64_t all_activations;

/* Each activation begins here, on a stack with nothing on it. */
__dpa_global__ void handle(uint64_t arg)
{
	struct queue *q = (struct queue *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx = NULL;
	uint64_t frame = (uintptr_t)&ctx;

	q->wrong += flexio_dev_get_thread_ctx(&ctx) || !ctx;
	q->wrong += q->frame && q->frame != frame;
	q->frame = frame;
	q->all_activations = __atomic_add_fetch(&all_activations, 1, __ATOMIC_SEQ_CST);
	q->thread_id = flexio_dev_get_thread_id(ctx);
	q->local_storage = flexio_dev_get_thread_local_storage(ctx);
	__atomic_fetch_add(&q->activations, 1, __ATOMIC_SEQ_CST);
	serve(ctx, q);
	if (q->other)
		serve(ctx, (struct queue *)(uintptr_t)q->other);
	if (q->how & QUEUE_YIELDS)
		yield(ctx, q);
	__atomic_fetch_add(&q->ends, 1, __ATOMIC_SEQ_CST);
	if (q->how & QUEUE_RETRIGGERS && q->activations < q->limit)
		flexio_dev_thread_retrigger();
	if (q->how & QUEUE_FINISHES)
		flexio_dev_thread_finish();
	flexio_dev_thread_reschedule();
}

/* A program that looks by itself; how many there were. */
__dpa_rpc__ uint64_t poll_queue(uint64_t addr)
{
	struct queue *q = (struct queue *)(uintptr_t)addr;

	take_all(q);
	return q->taken;
}

/* Takes so many messages, each as soon as its owner says so: how many had not all of theirs by then. */
__dpa_rpc__ uint64_t watch(uint64_t addr, uint64_t count)
{
	struct queue *q = (struct queue *)(uintptr_t)addr;
	uint64_t stale = 0;

	while (count--) {
		const struct flexio_dev_cqe64 *cqe;

		while (!(cqe = next_of(q)))
			;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		stale += flexio_dev_cqe_get_wqe_counter((struct flexio_dev_cqe64 *)cqe) !=
				 (q->ci & 0xffff) ||
			 flexio_dev_cqe_get_byte_cnt((struct flexio_dev_cqe64 *)cqe) !=
				 WATCHED_BYTES(q->ci);
		q->ci++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)q->record, (uint32_t)q->ci);
		__atomic_fetch_add(&q->taken, 1, __ATOMIC_SEQ_CST);
	}
	return stale;
}

/* The sum of so many bytes. */
__dpa_rpc__ uint64_t total(uint64_t addr, uint64_t bytes)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t n = 0;

	while (bytes--)
		n += *at++;
	return n;
}

/* Bells that nothing here has an ear for; the sum of what they say, and the table's address. */
__dpa_rpc__ uint64_t odd_bells(uint64_t number)
{
	struct flexio_dev_thread_ctx *ctx;
	uint32_t n = (uint32_t)number;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_eq_update_ci(ctx, n, n) + flexio_dev_db_ctx_arm(ctx, n, n) +
	       flexio_dev_db_ctx_force_trigger(ctx, n, n) +
	       flexio_dev_cc_ring_db(ctx, (uint16_t)n, n, 1, CC_DB_NEXT_ACT_FW) +
	       flexio_dev_qp_sq_ring_db(ctx, (uint16_t)n, n) + flexio_dev_get_pcc_table_base(0);
}

/* ---- windows ---- */

/* A copy through the window, in or out; 2: there is no such window or key. */
__dpa_rpc__ uint64_t window_copy(uint64_t window, uint64_t key, uint64_t host, uint64_t mine,
				 uint64_t bytes, uint64_t out)
{
	struct flexio_dev_thread_ctx *ctx;
	void *at = (void *)(uintptr_t)mine;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)window, (uint32_t)key))
		return 2;
	return out ? flexio_dev_window_copy_to_host(ctx, host, at, (uint32_t)bytes)
		   : flexio_dev_window_copy_from_host(ctx, at, host, (uint32_t)bytes);
}

/* 0 if there are addresses for the key. */
__dpa_rpc__ uint64_t window_address(uint64_t window, uint64_t key, uint64_t host)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_window_config(ctx, (uint16_t)window, (uint32_t)key) ||
	       flexio_dev_window_ptr_acquire(ctx, host, &at);
}

/* ---- event queues of the host ---- */

/*
 * Takes the entries of a ring behind the window from index ci on, tells the queue unless told is 0,
 * and returns how many there were, or UINT64_MAX if one is not a completion of that CQ.
 */
__dpa_rpc__ uint64_t eq_take(uint64_t window, uint64_t key, uint64_t ring, uint64_t entries,
			     uint64_t ci, uint64_t cqn, uint64_t told)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;
	uint64_t n = 0;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)window, (uint32_t)key) ||
	    flexio_dev_window_ptr_acquire(ctx, ring, &at))
		return UINT64_MAX;
	for (;; n++) {
		struct flexio_dev_eqe *eqe =
			(struct flexio_dev_eqe *)(uintptr_t)at + ((ci + n) & (entries - 1));

		if (n == entries || flexio_dev_eqe_get_owner(eqe) != !!((ci + n) & entries))
			break;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (eqe->type || flexio_dev_eqe_get_cqn(eqe) != cqn)
			return UINT64_MAX;
	}
	if (told)
		flexio_dev_eq_update_ci(ctx, (uint32_t)(ci + n), (uint32_t)told);
	return n;
}

/* ---- ends ---- */

/* By a pointer, so that the compiler does not know that nothing comes behind. */
typedef void end_t(void);

static end_t *volatile end_of[] = {
	[ENDING_RESCHEDULES] = flexio_dev_thread_reschedule,
	[ENDING_RETRIGGERS] = flexio_dev_thread_retrigger,
	[ENDING_FINISHES] = flexio_dev_thread_finish,
	[ENDING_FINISHES_ALL] = flexio_dev_process_finish,
};

/* Counts in memory of the host before its end, and behind it. */
__dpa_global__ void end_it(uint64_t arg)
{
	struct ending *e = (struct ending *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	volatile uint64_t *at;
	flexio_uintptr_t daddr;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)e->window, (uint32_t)e->key) ||
	    flexio_dev_window_ptr_acquire(ctx, e->host, &daddr))
		flexio_dev_error(200);
	at = (volatile uint64_t *)daddr;
	at[0] = at[0] + 1;
	__dpa_thread_window_writeback();
	end_of[e->how == ENDING_RETRIGGERS && at[0] == 5 ? ENDING_RESCHEDULES : e->how]();
	at[1] = at[1] + 1;
}

/* ---- work of other kinds ---- */

__dpa_rpc__ uint64_t say(uint64_t n)
{
	flexio_dev_print("turn %lu\n", n);
	return 0;
}

/* The first word of the host's memory, one more. */
__dpa_rpc__ uint64_t window_first(uint64_t window, uint64_t key, uint64_t haddr)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)window, (uint32_t)key) ||
	    flexio_dev_window_ptr_acquire(ctx, haddr, &at))
		return 0;
	++*(volatile uint64_t *)(uintptr_t)at;
	__dpa_thread_window_writeback();
	return *(volatile uint64_t *)(uintptr_t)at;
}

__dpa_global__ void count_task(uint64_t addr)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)addr, 1, __ATOMIC_SEQ_CST);
}
