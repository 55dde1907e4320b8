// SPDX-License-Identifier: BSD-2-Clause
/* The run queue: order, entries that list themselves again, and work noted from several threads. */
#include "adapter/core/runq.h"

#include <pthread.h>
#include <stdint.h>

#include "base/compiler.h"
#include "check.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct worker {
	struct run_entry entry;
	_Atomic(uint32_t) noted, done;
	unsigned order;
	unsigned again;
};

static struct runq queue;
static unsigned order, kicks;

static void worker_run(struct run_entry *e)
{
	struct worker *w = container_of(e, struct worker, entry);

	w->order = ++order;
	if (w->again) {
		w->again--;
		runq_add(&queue, e);
	}
	atomic_store(&w->done, atomic_load(&w->noted));
}

static void count_kick(void *user)
{
	(void)user;
	kicks++;
}

static void runq_reset(void)
{
	queue = (struct runq){.run = worker_run, .kick = count_kick};
	order = kicks = 0;
}

static void test_order(void)
{
	struct worker w[3] = {0};

	runq_reset();
	runq_add(&queue, &w[1].entry);
	runq_add(&queue, &w[0].entry);
	runq_add(&queue, &w[1].entry);
	w[0].again = 2;
	runq_run(&queue);
	CHECK(w[1].order == 1 && w[0].order == 4 && !w[2].order);
	CHECK(!runq_ready(&queue));
}

/* What waits for the next progress does not run before, and somebody hears of it. */
static void test_later(void)
{
	struct worker w[2] = {0};

	runq_reset();
	runq_add_later(&queue, &w[0].entry);
	CHECK(kicks == 1 && runq_waiting(&queue));
	runq_add(&queue, &w[1].entry);
	runq_run(&queue);
	CHECK(!w[0].order && w[1].order);
	CHECK(runq_wake_later(&queue) && !runq_waiting(&queue));
	runq_run(&queue);
	CHECK(w[0].order == 2 && !runq_wake_later(&queue));
}

static void test_remove(void)
{
	struct worker w[4] = {0};

	runq_reset();
	for (unsigned i = 0; i < 3; i++)
		runq_add(&queue, &w[i].entry);
	runq_add_later(&queue, &w[3].entry);
	runq_remove(&queue, &w[2].entry);
	runq_remove(&queue, &w[0].entry);
	runq_remove(&queue, &w[3].entry);
	runq_wake_later(&queue);
	runq_run(&queue);
	CHECK(w[1].order == 1 && !w[0].order && !w[2].order && !w[3].order);
	/* and never again, whoever notes work for it */
	atomic_store(&w[0].entry.queued, false);
	runq_add(&queue, &w[0].entry);
	runq_add_later(&queue, &w[2].entry);
	runq_wake_later(&queue);
	runq_run(&queue);
	CHECK(!w[0].order && !w[2].order);
}

static struct worker common[8];

static void *note_and_run(void *arg)
{
	for (unsigned n = 0; n < 20000; n++) {
		struct worker *w = &common[(n + (uintptr_t)arg) % COUNT(common)];

		atomic_fetch_add(&w->noted, 1);
		if (n % 5)
			runq_add(&queue, &w->entry);
		else
			runq_add_later(&queue, &w->entry);
		runq_wake_later(&queue);
		runq_run(&queue);
	}
	return NULL;
}

static void worker_run_shared(struct run_entry *e)
{
	struct worker *w = container_of(e, struct worker, entry);

	uint32_t noted = atomic_load(&w->noted), done = atomic_load(&w->done);

	/* two threads may run one entry at a time: the later one has seen more */
	while (done < noted && !atomic_compare_exchange_weak(&w->done, &done, noted))
		;
}

/* No note is lost: after all have stopped, everything that was noted has been done. */
static void test_threads(void)
{
	pthread_t thread[3];

	queue = (struct runq){.run = worker_run_shared};
	for (uintptr_t i = 0; i < COUNT(thread); i++)
		CHECK(!pthread_create(&thread[i], NULL, note_and_run, (void *)i));
	for (unsigned i = 0; i < COUNT(thread); i++)
		pthread_join(thread[i], NULL);
	runq_wake_later(&queue);
	runq_run(&queue);
	for (unsigned i = 0; i < COUNT(common); i++)
		CHECK(atomic_load(&common[i].noted) &&
		      atomic_load(&common[i].done) == atomic_load(&common[i].noted));
}

int main(void)
{
	test_order();
	test_later();
	test_remove();
	test_threads();
	return 0;
}
