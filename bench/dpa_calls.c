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

#include "dpa_activation.h"
#include "dpa_turns.h"

#define TURNS_ASLEEP 200u
#define TURNS_POLLED 10000u
#define TURNS_EVENTS 2000u
#define PAUSE_NS     200000 /* in which both fall asleep */
#define THINK_NS     3000u  /* in which who looks looks on */

extern struct flexio_app *dpa_call_code;
extern flexio_func_t nothing, event;

static struct flexio_process *process;
static struct activation *activation;
static struct ibv_context *ctx;

/* ---- time ---- */

static void pause_asleep(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static void think(void)
{
	uint64_t end = turn_now_ns() + THINK_NS;

	while (turn_now_ns() < end)
		;
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
		o->asked_ns = turn_now_ns();
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
	uint64_t begin = turn_now_ns(), end;

	atomic_store(&o->ask, i);
	if (way != BOTH_POLL)
		futex_wake(&o->ask);
	other_await(&o->answer, i, way != BOTH_SLEEP);
	end = turn_now_ns();
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

static uint64_t timed_call(void)
{
	uint64_t result, begin = turn_now_ns();

	OK(flexio_process_call(process, &nothing, &result, (uint64_t)41));
	begin = turn_now_ns() - begin;
	CHECK(result == 42);
	return begin;
}

static void calls_asleep(const char *where)
{
	static uint64_t ours[TURNS_ASLEEP], there[TURNS_ASLEEP], theirs[TURNS_ASLEEP];

	for (unsigned i = 0; i < TURNS_ASLEEP; i++) {
		pause_asleep();
		ours[i] = timed_call();
		pause_asleep();
		theirs[i] = other_ask(&other, BOTH_SLEEP, &there[i]);
	}
	printf("call_%s %.2f us\nfutex_%s %.2f us\n", where, turns_median(ours, TURNS_ASLEEP) / 1e3,
	       where, turns_median(theirs, TURNS_ASLEEP) / 1e3);
}

/* One upon the other. */
static void calls_polled(const char *who)
{
	static uint64_t times[TURNS_POLLED];

	for (unsigned i = 0; i < TURNS_POLLED; i++)
		times[i] = timed_call();
	printf("%s_polled %.0f ns\n", who, turns_median(times, TURNS_POLLED));
}

static void words_polled(void)
{
	static uint64_t times[TURNS_POLLED];
	uint64_t there;

	other_polls(true);
	for (unsigned i = 0; i < TURNS_POLLED; i++)
		times[i] = other_ask(&other, BOTH_POLL, &there);
	printf("words_polled %.0f ns\n", turns_median(times, TURNS_POLLED));
	other_polls(false);
}

/* ---- two at a time ---- */

static void *calls_of_one(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TURNS_POLLED; i++)
		(void)timed_call();
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
	uint64_t begin = turn_now_ns();
	pthread_t second;

	CHECK(!pthread_create(&second, NULL, one, NULL));
	(void)one(NULL);
	CHECK(!pthread_join(second, NULL));
	return 2 * TURNS_POLLED * 1e6 / (double)(turn_now_ns() - begin);
}

static void two_callers(void)
{
	printf("two_calls %.1f k/s\n", rate_of_two(calls_of_one));
	printf("two_futex %.1f k/s\n", rate_of_two(questions_of_one));
}

/* ---- activations ---- */

/* ---- activations ---- */

static void events_asleep(const char *where)
{
	static uint64_t ours[TURNS_ASLEEP], theirs[TURNS_ASLEEP];

	for (unsigned i = 0; i < TURNS_ASLEEP; i++) {
		pause_asleep();
		ours[i] = activation_once(activation);
		pause_asleep();
		(void)other_ask(&other, OTHER_SLEEPS, &theirs[i]);
	}
	printf("event_%s %.2f us\nthere_%s %.2f us\n", where,
	       turns_median(ours, TURNS_ASLEEP) / 1e3, where,
	       turns_median(theirs, TURNS_ASLEEP) / 1e3);
}

static void events_polled(void)
{
	static uint64_t times[TURNS_EVENTS];

	for (unsigned i = 0; i < TURNS_EVENTS; i++) {
		times[i] = activation_once(activation);
		think();
	}
	printf("event_polled %.0f ns\n", turns_median(times, TURNS_EVENTS));
	other_polls(true);
	for (unsigned i = 0; i < TURNS_EVENTS; i++)
		(void)other_ask(&other, BOTH_POLL, &times[i]);
	printf("words_there %.0f ns\n", turns_median(times, TURNS_EVENTS));
	other_polls(false);
}

/* ---- where ---- */

/*
 * Where threads are that sleep in between is a matter of chance, and makes a difference of many
 * times what is measured: so ours and theirs are both held on the caller's processor, or both on
 * another.
 */
static void asleep(const char *where, const cpu_set_t *caller, const cpu_set_t *others)
{
	run_on(others);
	OK(flexio_process_create(ctx, dpa_call_code, NULL, &process));
	(void)timed_call();
	other_start(&other);
	activation = activation_up(ctx, process, &event);
	run_on(caller);
	calls_asleep(where);
	events_asleep(where);
	activation_down(activation);
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
	activation = activation_up(ctx, process, &event);
	events_asleep("anywhere");
	events_polled();
	activation_down(activation);
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
