// SPDX-License-Identifier: BSD-2-Clause
/*
 * The thread of a handler makes the device work while it looks for events, says when it does not any more, and
 * leaves it alone where somebody else polls.  The argument is the image.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "dpa/handler.h"
#include "base/adaptive_spin.h"
#include "dpa/thread.h"
#include "dpa_control.h"
#include "dpa_fixture.h"

#define PATIENT_NS 60000000000ull
#define MOMENT_US  20000

/* A device that has something for the handler, once for each that is owed. */
static struct {
	_Atomic(bool) others; /* somebody else polls it */
	_Atomic(struct dpa_handler *) handler;
	_Atomic(unsigned) owed, taken, asked, polls, leaves;
	_Atomic(bool) relied;
} device;

static bool device_wanted(uint32_t *polls)
{
	(void)polls;
	atomic_fetch_add(&device.asked, 1);
	return !atomic_load(&device.others);
}

static bool device_poll(uint32_t *polls)
{
	unsigned owed = atomic_load(&device.owed);

	++*polls;
	atomic_fetch_add(&device.polls, 1);
	atomic_store(&device.relied, true);
	if (!owed || !atomic_compare_exchange_strong(&device.owed, &owed, owed - 1))
		return false;
	atomic_fetch_add(&device.taken, 1);
	dpa_handler_activate(atomic_load(&device.handler));
	return true;
}

static void device_leave(void)
{
	/* Once for each time that it was relied on. */
	CHECK(atomic_exchange(&device.relied, false));
	atomic_fetch_add(&device.leaves, 1);
}

static const struct dpa_stand_in stand_in = {device_wanted, device_poll, device_leave};

static void on_failed(void *user)
{
	(void)user;
	CHECK(!"the process has failed");
}

struct fixture {
	struct dpa_process *p;
	struct dpa_handler *h;
	struct control *c;
};

static void fixture_up(struct fixture *f, const char *path, const struct dpa_stand_in *with)
{
	struct dpa_process_attr attr = {.failed = on_failed, .stand_in = with};
	struct dpa_handler_attr h = {.id = 1, .eu = DPA_EU_ANY};
	uint64_t arg;

	attr.elf = fixture_read(path, &attr.elf_bytes);
	CHECK(dpa_process_create(&attr, &f->p) == 0);
	arg = dpa_memory_alloc(f->p, sizeof(*f->c), 0);
	f->c = dpa_memory_part(f->p, arg, sizeof(*f->c));
	CHECK(f->c);
	memset((void *)f->c, 0, sizeof(*f->c));
	f->c->mode = CONTROL_RESCHEDULE;
	h.function = dpa_process_function(f->p, "handle");
	CHECK(dpa_handler_create(f->p, &h, &f->h) == 0);
	memset(&device, 0, sizeof(device));
	atomic_store(&device.handler, f->h);
	CHECK(dpa_handler_run(f->h, arg) == 0);
}

static void fixture_down(struct fixture *f)
{
	dpa_handler_destroy(f->h);
	dpa_process_end(f->p);
	dpa_process_put(f->p);
}

/* An event, and the end of the run that it starts: close on each other they make the thread look for the next. */
static void event_give(struct fixture *f)
{
	uint64_t before = __atomic_load_n(&f->c->ends, __ATOMIC_SEQ_CST),
		 end = clock_ns() + PATIENT_NS;

	dpa_handler_activate(f->h);
	while (__atomic_load_n(&f->c->ends, __ATOMIC_SEQ_CST) == before) {
		CHECK(clock_ns() < end);
		sched_yield();
	}
}

/* What is owed comes to the handler by its own thread, sooner or later: others may want the processors. */
static void test_takes(const char *path)
{
	uint64_t end = clock_ns() + PATIENT_NS;
	struct fixture f;

	fixture_up(&f, path, &stand_in);
	while (atomic_load(&device.taken) < 100) {
		CHECK(clock_ns() < end);
		if (!atomic_load(&device.owed))
			atomic_store(&device.owed, 1);
		event_give(&f);
	}
	/* It sleeps at some time, has said so, and then does nothing of its own accord. */
	atomic_store(&device.owed, 0);
	while (atomic_load(&device.relied)) {
		CHECK(clock_ns() < end);
		usleep(MOMENT_US);
	}
	CHECK(atomic_load(&device.leaves));
	end = atomic_load(&device.polls);
	atomic_store(&device.owed, 1);
	usleep(MOMENT_US);
	CHECK(atomic_load(&device.polls) == end && atomic_load(&device.owed) == 1);
	fixture_down(&f);
}

static void test_others_poll(const char *path)
{
	uint64_t end = clock_ns() + PATIENT_NS;
	struct fixture f;

	fixture_up(&f, path, &stand_in);
	atomic_store(&device.others, true);
	atomic_store(&device.owed, 1);
	while (atomic_load(&device.asked) < 100) {
		CHECK(clock_ns() < end);
		event_give(&f);
	}
	CHECK(!atomic_load(&device.polls) && !atomic_load(&device.leaves));
	fixture_down(&f);
}

static void test_none(const char *path)
{
	struct fixture f;

	fixture_up(&f, path, NULL);
	for (unsigned i = 0; i < 1000; i++)
		event_give(&f);
	CHECK(!atomic_load(&device.asked));
	fixture_down(&f);
}

/* Bells of a thread that has found nothing while it waited are bells and no more; after others it looks for so long as
 * that finds something. */
static void test_bells(void)
{
	struct dpa_thread t = {.stand_in = &stand_in};

	memset(&device, 0, sizeof(device));
	dpa_thread_rang(&t);
	CHECK(!atomic_load(&device.polls));
	t.polls_at_bells = 1;
	dpa_thread_rang(&t);
	dpa_thread_rang(&t);
	CHECK(atomic_load(&device.polls) == 1 && t.relied_on);
}

/* A thread that is stopped may get its signal just after its function has ended. */
static void on_signal(int signum, siginfo_t *info, void *ucontext)
{
	if (!dpa_signal(signum, info, ucontext))
		_exit(3);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	cpu_set_t set;

	CHECK(argc == 2 && sigaction(SIGBUS, &act, NULL) == 0);
	adaptive_spin_init();
	test_none(argv[1]);
	test_bells();
	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2) {
		printf("one processor: nobody looks\n");
		return 0;
	}
	test_takes(argv[1]);
	test_others_poll(argv[1]);
	return 0;
}
