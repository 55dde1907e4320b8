// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls into a DPA and activations of its handlers, each in turn with what two threads of this
 * process need to tell each other the same: by a futex where both sleep in between, by words where
 * both look.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dpa_calls.h"
#include "host.h"

#define TURNS_ASLEEP 200u
#define TURNS_POLLED 10000u
#define TURNS_EVENTS 2000u
#define PAUSE_NS     200000 /* in which both fall asleep */
#define THINK_NS     3000u  /* in which who looks looks on */
#define TASKS	     20000u
#define WORDS	     1024u
#define ROUNDS	     2000u

extern struct flexio_app *dpa_call_code;
extern flexio_func_t nothing, loads_and_stores, event;

static struct flexio_process *process;
static struct ibv_context *ctx;

/* ---- time ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_asleep(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static void think(void)
{
	uint64_t end = now_ns() + THINK_NS;

	while (now_ns() < end)
		;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds. */
static double median(uint64_t *times, unsigned n)
{
	qsort(times, n, sizeof(*times), compare);
	times += n / 2;
	return (double)*times;
}

/* ---- the other thread ---- */

struct other {
	_Atomic(uint32_t) ask __attribute__((aligned(64)));
	_Atomic(uint32_t) answer __attribute__((aligned(64)));
	_Atomic(uint32_t) polls __attribute__((aligned(64)));
	_Atomic(bool) ends;
	uint64_t asked_ns; /* when it has seen the question */
	pthread_t thread;
};

static struct other other;

static void futex_wait(_Atomic(uint32_t) *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

static void futex_wake(_Atomic(uint32_t) *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* How the other thread is asked, and its answer is awaited. */
enum way {
	BOTH_SLEEP,
	OTHER_SLEEPS, /* and is awaited by looking, as a completion may be */
	BOTH_POLL,
};

static void other_await(_Atomic(uint32_t) *word, uint32_t value, bool polls)
{
	uint32_t found;

	while ((found = atomic_load(word)) != value)
		if (!polls)
			futex_wait(word, found);
}

static void *other_main(void *arg)
{
	struct other *o = arg;

	bool ends = false;

	for (uint32_t i = 1; !ends; i++) {
		bool polls = atomic_load(&o->polls);

		other_await(&o->ask, i, polls);
		ends = atomic_load(&o->ends);
		o->asked_ns = now_ns();
		atomic_store(&o->answer, i);
		if (!polls)
			futex_wake(&o->answer);
	}
	return NULL;
}

/* To the other thread and back; *there: the way there. */
static uint64_t other_ask(struct other *o, enum way way, uint64_t *there)
{
	uint32_t i = atomic_load(&o->ask) + 1;
	uint64_t begin = now_ns(), end;

	atomic_store(&o->ask, i);
	if (way != BOTH_POLL)
		futex_wake(&o->ask);
	other_await(&o->answer, i, way != BOTH_SLEEP);
	end = now_ns();
	*there = o->asked_ns - begin;
	return end - begin;
}

static void other_start(struct other *o)
{
	memset(o, 0, sizeof(*o));
	CHECK(!pthread_create(&o->thread, NULL, other_main, o));
}

static void other_end(struct other *o)
{
	uint64_t there;

	atomic_store(&o->ends, true);
	(void)other_ask(o, BOTH_SLEEP, &there);
	CHECK(!pthread_join(o->thread, NULL));
}

/* It looks at what is asked of it from its next wait on. */
static void other_polls(bool polls)
{
	uint32_t i = atomic_load(&other.ask) + 1;

	atomic_store(&other.polls, polls);
	atomic_store(&other.ask, i);
	futex_wake(&other.ask);
	other_await(&other.answer, i, true);
}

/* ---- calls ---- */

static uint64_t call_once(void)
{
	uint64_t result, begin = now_ns();

	OK(flexio_process_call(process, &nothing, &result, (uint64_t)41));
	begin = now_ns() - begin;
	CHECK(result == 42);
	return begin;
}

static void calls_asleep(const char *where)
{
	static uint64_t ours[TURNS_ASLEEP], there[TURNS_ASLEEP], theirs[TURNS_ASLEEP];

	for (unsigned i = 0; i < TURNS_ASLEEP; i++) {
		pause_asleep();
		ours[i] = call_once();
		pause_asleep();
		theirs[i] = other_ask(&other, BOTH_SLEEP, &there[i]);
	}
	printf("call_%s %.2f us\nfutex_%s %.2f us\n", where, median(ours, TURNS_ASLEEP) / 1e3,
	       where, median(theirs, TURNS_ASLEEP) / 1e3);
}

/* One upon the other. */
static void calls_polled(const char *who)
{
	static uint64_t times[TURNS_POLLED];
	double ns;

	for (unsigned i = 0; i < TURNS_POLLED; i++)
		times[i] = call_once();
	ns = median(times, TURNS_POLLED);
	printf("%s_rate %.1f k/s\n%s_polled %.0f ns\n", who, 1e6 / ns, who, ns);
}

static void words_polled(void)
{
	static uint64_t times[TURNS_POLLED];
	uint64_t there;

	other_polls(true);
	for (unsigned i = 0; i < TURNS_POLLED; i++)
		times[i] = other_ask(&other, BOTH_POLL, &there);
	printf("words_polled %.0f ns\n", median(times, TURNS_POLLED));
	other_polls(false);
}

/* ---- two at a time ---- */

static void *calls_of_one(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TURNS_POLLED; i++)
		(void)call_once();
	return NULL;
}

static void *questions_of_one(void *arg)
{
	struct other o;
	uint64_t there;

	(void)arg;
	other_start(&o);
	for (unsigned i = 0; i < TURNS_POLLED; i++)
		(void)other_ask(&o, BOTH_SLEEP, &there);
	other_end(&o);
	return NULL;
}

/* In thousands a second. */
static double rate_of_two(void *(*one)(void *arg))
{
	uint64_t begin = now_ns();
	pthread_t second;

	CHECK(!pthread_create(&second, NULL, one, NULL));
	(void)one(NULL);
	CHECK(!pthread_join(second, NULL));
	return 2 * TURNS_POLLED * 1e6 / (double)(now_ns() - begin);
}

static void two_callers(void)
{
	printf("two_calls %.1f k/s\n", rate_of_two(calls_of_one));
	printf("two_futex %.1f k/s\n", rate_of_two(questions_of_one));
}

/* ---- activations ---- */

static unsigned device_number(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned n = 0;

	CHECK(list);
	while (list[n] && strcmp(ibv_get_device_name(list[n]), name) != 0)
		n++;
	CHECK_SAY(list[n], "no device %s", name);
	ibv_free_device_list(list);
	return n;
}

/* A handler, its queue, a queue pair that completes there, and one that sends to it. */
static struct {
	struct flexio_event_handler *handler;
	struct flexio_cq *cq;
	struct flexio_window *window;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct receiver *receiver;
	struct peer *sender;
	struct event_times times; /* by the handler, through the window */
} events;

static uint64_t events_queue(uint32_t uar)
{
	struct event_queue q = {.window = flexio_window_get_id(events.window),
				.mkey = events.mr->lkey,
				.host = (uintptr_t)&events.times};
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_CQ,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(events.handler),
		.uar_id = uar,
	};
	flexio_uintptr_t at;

	attr.cq_ring_qmem.memtype = FLEXIO_MEMTYPE_DPA;
	OK(flexio_buf_dev_alloc(process, 64u << LOG_CQ, &attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_memset(process, 0xff, 64u << LOG_CQ, attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_alloc(process, 8, &attr.cq_dbr_daddr));
	OK(flexio_buf_dev_memset(process, 0, 8, attr.cq_dbr_daddr));
	OK(flexio_cq_create(process, NULL, &attr, &events.cq));
	q.ring = attr.cq_ring_qmem.daddr;
	q.cqn = flexio_cq_get_cq_num(events.cq);
	q.record = attr.cq_dbr_daddr;
	OK(flexio_copy_from_host(process, &q, sizeof(q), &at));
	return at;
}

static void events_up(void)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &event};

	events.pd = ibv_alloc_pd(ctx);
	CHECK(events.pd);
	events.mr = ibv_reg_mr(events.pd, &events, sizeof(events), IBV_ACCESS_LOCAL_WRITE);
	CHECK(events.mr);
	OK(flexio_window_create(process, events.pd, &events.window));
	OK(flexio_event_handler_create(process, &attr, &events.handler));
	OK(flexio_event_handler_run(
		events.handler, events_queue(flexio_uar_get_id(flexio_process_get_uar(process)))));
	events.receiver = receiver_make(ctx, flexio_cq_get_cq_num(events.cq), 0);
	events.sender = peer_make(ctx);
	receiver_connect(events.receiver, peer_number(events.sender), peer_lid(ctx));
	peer_connect(events.sender, receiver_number(events.receiver), peer_lid(ctx));
}

static void events_down(void)
{
	peer_free(events.sender);
	receiver_free(events.receiver);
	OK(flexio_cq_destroy(events.cq));
	OK(flexio_event_handler_destroy(events.handler));
	OK(flexio_window_destroy(events.window));
	CHECK(!ibv_dereg_mr(events.mr) && !ibv_dealloc_pd(events.pd));
}

/* From the completion of a message to the first instruction of the handler. */
static uint64_t event_once(void)
{
	receiver_post(events.receiver, 1);
	__atomic_store_n(&events.times.began_ns, 0, __ATOMIC_RELAXED);
	peer_send(events.sender, 1, 8);
	while (!__atomic_load_n(&events.times.began_ns, __ATOMIC_ACQUIRE))
		;
	CHECK(events.times.began_ns >= events.times.completed_ns);
	return events.times.began_ns - events.times.completed_ns;
}

static void events_asleep(const char *where)
{
	static uint64_t ours[TURNS_ASLEEP], theirs[TURNS_ASLEEP];

	for (unsigned i = 0; i < TURNS_ASLEEP; i++) {
		pause_asleep();
		ours[i] = event_once();
		pause_asleep();
		(void)other_ask(&other, OTHER_SLEEPS, &theirs[i]);
	}
	printf("event_%s %.2f us\nthere_%s %.2f us\n", where, median(ours, TURNS_ASLEEP) / 1e3,
	       where, median(theirs, TURNS_ASLEEP) / 1e3);
}

static void events_polled(void)
{
	static uint64_t times[TURNS_EVENTS], turns[TURNS_EVENTS];

	for (unsigned i = 0; i < TURNS_EVENTS; i++) {
		uint64_t begin = now_ns();

		times[i] = event_once();
		turns[i] = now_ns() - begin;
		think();
	}
	/* From one message to what its handler wrote. */
	printf("event_rate %.1f k/s\n", 1e6 / median(turns, TURNS_EVENTS));
	printf("event_polled %.0f ns\n", median(times, TURNS_EVENTS));
	other_polls(true);
	for (unsigned i = 0; i < TURNS_EVENTS; i++)
		(void)other_ask(&other, BOTH_POLL, &times[i]);
	printf("words_there %.0f ns\n", median(times, TURNS_EVENTS));
	other_polls(false);
}

/* ---- the rest ---- */

static void tasks(void)
{
	struct flexio_cmdq_attr attr = {
		.workers = 1, .batch_size = 16, .state = FLEXIO_CMDQ_STATE_RUNNING};
	struct flexio_cmdq *q;
	uint64_t begin;

	OK(flexio_cmdq_create(process, &attr, &q));
	begin = now_ns();
	for (unsigned i = 0; i < TASKS; i++)
		OK(flexio_cmdq_task_add(q, &nothing, i));
	while (!flexio_cmdq_is_empty(q))
		;
	begin = now_ns() - begin;
	OK(flexio_cmdq_destroy(q));
	printf("tasks %.1f k/s\n", TASKS * 1e6 / (double)begin);
}

static void loop(void)
{
	flexio_uintptr_t at;
	uint64_t result, begin;

	OK(flexio_buf_dev_alloc(process, WORDS * sizeof(uint64_t), &at));
	OK(flexio_buf_dev_memset(process, 0, WORDS * sizeof(uint64_t), at));
	begin = now_ns();
	OK(flexio_process_call(process, &loads_and_stores, &result, (uint64_t)at, (uint64_t)WORDS,
			       (uint64_t)ROUNDS));
	begin = now_ns() - begin;
	printf("loop %.1f M/s\n", 1.0 * WORDS * ROUNDS * 1e3 / (double)begin);
}

/* ---- where ---- */

/* The calling thread, and those that it makes from now on. */
static void run_on(const cpu_set_t *cpus)
{
	CHECK(!sched_setaffinity(0, sizeof(*cpus), cpus));
}

/* The n-th that the program may use. */
static cpu_set_t one_of(const cpu_set_t *all, int n)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && !n--)
			CPU_SET(i, &one);
	return one;
}

/*
 * Where threads are that sleep in between is a matter of chance, and makes a difference of many
 * times what is measured: so ours and theirs are both held on the caller's processor, or both on
 * another.
 */
static void asleep(const char *where, const cpu_set_t *caller, const cpu_set_t *others)
{
	run_on(others);
	OK(flexio_process_create(ctx, dpa_call_code, NULL, &process));
	(void)call_once();
	other_start(&other);
	events_up();
	run_on(caller);
	calls_asleep(where);
	events_asleep(where);
	events_down();
	other_end(&other);
	OK(flexio_process_destroy(process));
}

/* Each where the kernel wants it, as in most programs. */
static void free_to_move(void)
{
	OK(flexio_process_create(ctx, dpa_call_code, NULL, &process));
	calls_polled("alone");
	other_start(&other);
	calls_asleep("asleep");
	calls_polled("call");
	words_polled();
	two_callers();
	events_up();
	events_asleep("anywhere");
	events_polled();
	events_down();
	tasks();
	loop();
	other_end(&other);
	OK(flexio_process_destroy(process));
}

int main(int argc, char **argv)
{
	cpu_set_t all, first, second;

	CHECK(argc == 2);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	first = one_of(&all, 0);
	second = one_of(&all, 1);
	ctx = device_open(device_number(argv[1]));
	free_to_move();
	asleep("near", &first, &first);
	if (CPU_COUNT(&all) > 1)
		asleep("far", &first, &second);
	CHECK(!ibv_close_device(ctx));
	return 0;
}
