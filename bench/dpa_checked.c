// SPDX-License-Identifier: BSD-2-Clause
/*
 * What checks in device code cost: the same code twice in one program, checked and not.  They take
 * turns in short bursts, so that chance gives neither of them a better place or moment for long.
 */
#include <stdio.h>

#include "dpa_activation.h"
#include "dpa_turns.h"

#define BURSTS	   40u
#define BURST	   200u
#define UNTIMED	   20u	 /* at the beginning of a burst: the other has slept meanwhile */
#define THINK_NS   3000u /* in which a handler looks on */
#define TASKS	   20000u
#define WORDS	   1024u
#define ROUNDS	   2000u
#define LONG_TURNS 3u

extern struct flexio_app *dpa_call_code, *dpa_call_code_unchecked;
extern flexio_func_t nothing, loads_and_stores, event;
extern flexio_func_t nothing_unchecked, loads_and_stores_unchecked, event_unchecked;

static struct twin {
	const char *suffix; /* of the names of figures */
	struct flexio_app **app;
	flexio_func_t *nothing, *loop, *event;
	struct flexio_process *process;
	struct activation *activation;
	flexio_uintptr_t words;
	uint64_t times[BURSTS * BURST];
	unsigned n;
} twins[] = {
	{"", &dpa_call_code, &nothing, &loads_and_stores, &event},
	{"_unchecked", &dpa_call_code_unchecked, &nothing_unchecked, &loads_and_stores_unchecked,
	 &event_unchecked},
};
#define TWINS (sizeof(twins) / sizeof(*twins))

static void twin_up(struct twin *t, struct ibv_context *ctx)
{
	const size_t bytes = WORDS * sizeof(uint64_t);

	OK(flexio_process_create(ctx, *t->app, NULL, &t->process));
	OK(flexio_buf_dev_alloc(t->process, bytes, &t->words));
	OK(flexio_buf_dev_memset(t->process, 0, bytes, t->words));
	t->activation = activation_up(ctx, t->process, t->event);
}

static void twin_down(struct twin *t)
{
	activation_down(t->activation);
	OK(flexio_buf_dev_free(t->process, t->words));
	OK(flexio_process_destroy(t->process));
}

/* ---- one turn of each kind; it returns its nanoseconds ---- */

static void think(void)
{
	uint64_t end = turn_now_ns() + THINK_NS;

	while (turn_now_ns() < end)
		;
}

static uint64_t turn_call(struct twin *t)
{
	uint64_t result, begin = turn_now_ns();

	OK(flexio_process_call(t->process, t->nothing, &result, (uint64_t)41));
	begin = turn_now_ns() - begin;
	CHECK(result == 42);
	return begin;
}

/* From the completion of a message to the first instruction of its handler. */
static uint64_t turn_activation(struct twin *t)
{
	uint64_t ns = activation_once(t->activation);

	think();
	return ns;
}

/* From one message to what its handler wrote into memory of the host. */
static uint64_t turn_event(struct twin *t)
{
	uint64_t begin = turn_now_ns();

	(void)activation_once(t->activation);
	begin = turn_now_ns() - begin;
	think();
	return begin;
}

static uint64_t turn_tasks(struct twin *t)
{
	struct flexio_cmdq_attr attr = {
		.workers = 1, .batch_size = 16, .state = FLEXIO_CMDQ_STATE_RUNNING};
	struct flexio_cmdq *q;
	uint64_t begin = turn_now_ns();

	OK(flexio_cmdq_create(t->process, &attr, &q));
	for (unsigned i = 0; i < TASKS; i++)
		OK(flexio_cmdq_task_add(q, t->nothing, i));
	while (!flexio_cmdq_is_empty(q))
		;
	OK(flexio_cmdq_destroy(q));
	return turn_now_ns() - begin;
}

static uint64_t turn_loop(struct twin *t)
{
	uint64_t result, begin = turn_now_ns();

	OK(flexio_process_call(t->process, t->loop, &result, (uint64_t)t->words, (uint64_t)WORDS,
			       (uint64_t)ROUNDS));
	return turn_now_ns() - begin;
}

/* ---- in turns ---- */

static void twin_burst(struct twin *t, uint64_t (*turn)(struct twin *t), unsigned untimed,
		       unsigned n)
{
	for (unsigned i = 0; i < untimed + n; i++) {
		uint64_t ns = turn(t);

		if (i >= untimed)
			t->times[t->n++] = ns;
	}
}

/* 'of' units in a turn; the figure is in units a second, divided by 'per'. */
static void twins_measure(const char *name, const char *unit, uint64_t (*turn)(struct twin *t),
			  unsigned bursts, unsigned n, double of, double per)
{
	for (unsigned i = 0; i < TWINS; i++)
		twins[i].n = 0;
	for (unsigned b = 0; b < bursts; b++)
		for (unsigned i = 0; i < TWINS; i++)
			twin_burst(&twins[(b + i) % TWINS], turn, n > 1 ? UNTIMED : 0, n);
	for (unsigned i = 0; i < TWINS; i++)
		printf("%s%s %.1f %s\n", name, twins[i].suffix,
		       of * 1e9 / per / turns_median(twins[i].times, twins[i].n), unit);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	CHECK(argc == 2);
	ctx = device_open(device_number(argv[1]));
	for (unsigned i = 0; i < TWINS; i++)
		twin_up(&twins[i], ctx);
	twins_measure("call_rate", "k/s", turn_call, BURSTS, BURST, 1, 1e3);
	twins_measure("activation_rate", "k/s", turn_activation, BURSTS, BURST, 1, 1e3);
	twins_measure("event_rate", "k/s", turn_event, BURSTS, BURST, 1, 1e3);
	twins_measure("tasks", "k/s", turn_tasks, LONG_TURNS, 1, TASKS, 1e3);
	twins_measure("loop", "M/s", turn_loop, LONG_TURNS, 1, (double)WORDS * ROUNDS, 1e6);
	for (unsigned i = 0; i < TWINS; i++)
		twin_down(&twins[i]);
	CHECK(!ibv_close_device(ctx));
	return 0;
}
