// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event handlers and bells of a DPA: what starts a handler, what its end means, and how it is ended.  The argument
 * is the image.  Flex IO statements: 95-98, 100-107, 108, 110-112, 114, 118, 119, 233-235 (in names where a case
 * is about one).
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "dpa/handler.h"
#include "dpa/outbox.h"
#include "dpa_control.h"
#include "dpa_fixture.h"

#define PATIENT_NS 60000000000ull
#define LOCAL	   0x5550u
/* In which nothing must happen. */
#define MOMENT_US 20000

static const char *image_path;
static _Atomic(unsigned) failures;

static void on_failed(void *user)
{
	(void)user;
	atomic_fetch_add(&failures, 1);
}

static struct dpa_process *process_make(void)
{
	struct dpa_process_attr attr = {.failed = on_failed};
	struct dpa_process *p;

	attr.elf = fixture_read(image_path, &attr.elf_bytes);
	CHECK(dpa_process_create(&attr, &p) == 0);
	atomic_store(&failures, 0);
	return p;
}

static void process_drop(struct dpa_process *p)
{
	dpa_process_end(p);
	dpa_process_put(p);
}

/* A handler and what it says of itself. */
struct handler_case {
	struct dpa_handler *h;
	struct control *c;
	uint64_t arg; /* where the device has it */
};

static void case_make(struct dpa_process *p, struct handler_case *t, enum control_mode mode,
		      uint32_t eu, bool continuable)
{
	static uint32_t id;
	struct dpa_handler_attr attr = {
		.function = dpa_process_function(p, "handle"),
		.local_storage = LOCAL + id,
		.id = ++id,
		.eu = eu,
		.continuable = continuable,
	};

	t->arg = dpa_memory_alloc(p, sizeof(*t->c), 0);
	t->c = dpa_memory_part(p, t->arg, sizeof(*t->c));
	CHECK(t->c);
	memset((void *)t->c, 0, sizeof(*t->c));
	t->c->mode = mode;
	CHECK(dpa_handler_create(p, &attr, &t->h) == 0);
}

static void case_up(struct dpa_process *p, struct handler_case *t, enum control_mode mode)
{
	case_make(p, t, mode, DPA_EU_ANY, false);
	CHECK(dpa_handler_run(t->h, t->arg) == 0);
}

static void await_value(const volatile uint64_t *word, uint64_t value)
{
	uint64_t end = clock_ns() + PATIENT_NS;

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value && clock_ns() < end)
		usleep(200);
	CHECK(__atomic_load_n(word, __ATOMIC_SEQ_CST) >= value);
}

/* Not more of them, as far as a moment can tell. */
static void stays_at(const volatile uint64_t *word, uint64_t value)
{
	await_value(word, value);
	usleep(MOMENT_US);
	CHECK(__atomic_load_n(word, __ATOMIC_SEQ_CST) == value);
}

static void test_095_097_events(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t;

	case_up(p, &t, CONTROL_RESCHEDULE);
	/* by itself it does not start */
	stays_at(&t.c->runs, 0);
	for (uint64_t i = 1; i <= 50; i++) {
		dpa_handler_activate(t.h);
		await_value(&t.c->ends, i);
	}
	stays_at(&t.c->runs, 50);
	CHECK(t.c->most_inside == 1 && !failures);
	/* 94, 111 */
	CHECK(t.c->id && t.c->local_storage == LOCAL + t.c->id - 1);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_096_118_before_run(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t;

	case_make(p, &t, CONTROL_RESCHEDULE, DPA_EU_ANY, false);
	dpa_handler_activate(t.h);
	stays_at(&t.c->runs, 0);
	CHECK(dpa_handler_run(t.h, t.arg) == 0);
	stays_at(&t.c->runs, 1);
	/* once */
	CHECK(dpa_handler_run(t.h, 0) == -EALREADY);
	dpa_handler_activate(t.h);
	await_value(&t.c->runs, 2);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_100_event_while_it_runs(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t;

	case_up(p, &t, CONTROL_HOLD);
	dpa_handler_activate(t.h);
	await_value(&t.c->runs, 1);
	for (unsigned i = 0; i < 5; i++)
		dpa_handler_activate(t.h);
	t.c->go = 1;
	/* kept, and as one */
	stays_at(&t.c->ends, 2);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

struct flood {
	pthread_t thread;
	struct dpa_handler *h;
	_Atomic(bool) *stop;
};

static void *flood_main(void *arg)
{
	struct flood *f = arg;

	while (!atomic_load(f->stop))
		dpa_handler_activate(f->h);
	return NULL;
}

static void test_102_never_twice_at_once(void)
{
	struct dpa_process *p = process_make();
	_Atomic(bool) stop = false;
	struct flood floods[3];
	struct handler_case t;
	uint64_t runs;

	case_up(p, &t, CONTROL_RESCHEDULE);
	for (size_t i = 0; i < array_size(floods); i++) {
		floods[i] = (struct flood){.h = t.h, .stop = &stop};
		CHECK(!pthread_create(&floods[i].thread, NULL, flood_main, &floods[i]));
	}
	await_value(&t.c->ends, 2000);
	atomic_store(&stop, true);
	for (size_t i = 0; i < array_size(floods); i++)
		CHECK(!pthread_join(floods[i].thread, NULL));
	/* and the last one is not lost */
	usleep(MOMENT_US);
	runs = t.c->runs;
	dpa_handler_activate(t.h);
	await_value(&t.c->runs, runs + 1);
	CHECK(t.c->most_inside == 1);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_103_104_ends(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t;

	case_up(p, &t, CONTROL_FINISH);
	dpa_handler_activate(t.h);
	await_value(&t.c->ends, 1);
	dpa_handler_activate(t.h);
	stays_at(&t.c->ends, 1);
	dpa_handler_destroy(t.h);

	case_make(p, &t, CONTROL_RETRIGGER, DPA_EU_ANY, false);
	t.c->limit = 100;
	CHECK(dpa_handler_run(t.h, t.arg) == 0);
	dpa_handler_activate(t.h);
	stays_at(&t.c->ends, 100);
	dpa_handler_destroy(t.h);

	case_up(p, &t, CONTROL_RETURN);
	for (uint64_t i = 1; i <= 3; i++) {
		dpa_handler_activate(t.h);
		await_value(&t.c->ends, i);
	}
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_106_process_finish(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t, other, endless;
	uint64_t end = clock_ns() + PATIENT_NS;

	case_up(p, &other, CONTROL_RESCHEDULE);
	case_up(p, &endless, CONTROL_SPIN);
	case_up(p, &t, CONTROL_PROCESS_FINISH);
	dpa_handler_activate(endless.h);
	await_value(&endless.c->runs, 1);
	dpa_handler_activate(t.h);
	while (dpa_process_state(p) == DPA_RUNNING && clock_ns() < end)
		usleep(200);
	CHECK(dpa_process_state(p) == DPA_FINISHED && dpa_process_code(p) == DPA_CODE_FINISHED);
	dpa_handler_activate(other.h);
	stays_at(&other.c->runs, 0);
	CHECK(!failures);
	dpa_handler_destroy(t.h);
	dpa_handler_destroy(other.h);
	dpa_handler_destroy(endless.h);
	process_drop(p);
}

static void test_faults(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t, endless;
	uint64_t end = clock_ns() + PATIENT_NS;

	case_up(p, &endless, CONTROL_SPIN);
	dpa_handler_activate(endless.h);
	case_up(p, &t, CONTROL_FAULT);
	dpa_handler_activate(t.h);
	while (!atomic_load(&failures) && clock_ns() < end)
		usleep(200);
	CHECK(atomic_load(&failures) == 1 && dpa_process_state(p) == DPA_FATAL);
	dpa_handler_activate(t.h);
	stays_at(&t.c->runs, 1);
	dpa_handler_destroy(endless.h);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_107_108_yield(void)
{
	struct dpa_process *p = process_make();
	struct handler_case t;

	case_make(p, &t, CONTROL_YIELD, DPA_EU_ANY, true);
	CHECK(dpa_handler_run(t.h, t.arg) == 0);
	dpa_handler_activate(t.h);
	stays_at(&t.c->runs, 1);
	CHECK(!t.c->ends);
	/* goes on behind the call, with its variables */
	dpa_handler_activate(t.h);
	stays_at(&t.c->ends, 1);
	CHECK(t.c->runs == 1 && t.c->after_yield == 1001);
	/* ended in the middle of it */
	dpa_handler_activate(t.h);
	stays_at(&t.c->runs, 2);
	dpa_handler_destroy(t.h);
	CHECK(t.c->ends == 1);

	/* of no effect where it was not asked for */
	case_up(p, &t, CONTROL_YIELD);
	dpa_handler_activate(t.h);
	await_value(&t.c->ends, 1);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

/* 105 and 110: handlers that never end, or come again at once for ever, and others beside them. */
static void test_110_many_endless(void)
{
	struct dpa_process *p = process_make();
	struct handler_case endless[48], t;

	for (size_t i = 0; i < array_size(endless); i++) {
		case_make(p, &endless[i], i % 2 ? CONTROL_SPIN : CONTROL_RETRIGGER, DPA_EU_ANY,
			  false);
		endless[i].c->limit = UINT64_MAX;
		CHECK(dpa_handler_run(endless[i].h, endless[i].arg) == 0);
		dpa_handler_activate(endless[i].h);
	}
	case_up(p, &t, CONTROL_RESCHEDULE);
	for (uint64_t i = 1; i <= 3; i++) {
		dpa_handler_activate(t.h);
		await_value(&t.c->ends, i);
	}
	for (size_t i = 0; i < array_size(endless); i++)
		dpa_handler_destroy(endless[i].h);
	dpa_handler_destroy(t.h);
	process_drop(p);
}

static void test_119_shared_unit(void)
{
	struct dpa_process *p = process_make();
	struct handler_case a, b, waits;
	struct dpa_handler_attr wrong = {
		.function = dpa_process_function(p, "handle"),
		.eu = DPA_EUS + 1,
	};
	struct dpa_handler *h;

	/* 120 */
	CHECK(dpa_handler_create(p, &wrong, &h) == -EINVAL);
	/* Nor are functions anywhere but in the image. */
	wrong.eu = DPA_EU_ANY;
	wrong.function = (uintptr_t)&test_119_shared_unit;
	CHECK(dpa_handler_create(p, &wrong, &h) == -EINVAL);
	wrong.function = dpa_memory_alloc(p, 64, 0);
	CHECK(dpa_handler_create(p, &wrong, &h) == -EINVAL);
	wrong.function = 0;
	CHECK(dpa_handler_create(p, &wrong, &h) == -EINVAL);
	case_make(p, &a, CONTROL_RETRIGGER, 3, false);
	case_make(p, &b, CONTROL_RETRIGGER, 3, false);
	case_make(p, &waits, CONTROL_YIELD, 3, true);
	a.c->limit = b.c->limit = UINT64_MAX;
	a.c->beside = b.c;
	b.c->beside = a.c;
	waits.c->beside = a.c;
	CHECK(dpa_handler_run(a.h, a.arg) == 0 && dpa_handler_run(b.h, b.arg) == 0);
	CHECK(dpa_handler_run(waits.h, waits.arg) == 0);
	dpa_handler_activate(a.h);
	dpa_handler_activate(b.h);
	dpa_handler_activate(waits.h);
	/* They take turns, also with one that has yielded. */
	await_value(&waits.c->runs, 1);
	await_value(&a.c->runs, 500);
	await_value(&b.c->runs, 500);
	dpa_handler_activate(waits.h);
	await_value(&waits.c->ends, 1);
	/* One that has the unit, or waits for it, or has yielded, goes. */
	dpa_handler_activate(waits.h);
	await_value(&waits.c->runs, 2);
	dpa_handler_destroy(waits.h);
	dpa_handler_destroy(a.h);
	CHECK(!a.c->overlaps && !b.c->overlaps && !waits.c->overlaps);
	a.c->runs = b.c->runs = 0;
	await_value(&b.c->runs, 100);
	dpa_handler_destroy(b.h);
	process_drop(p);
}

/* 121 */
static void test_121_groups(void)
{
	static const struct {
		const char *text;
		uint32_t group, unit;
	} cases[] = {
		{NULL, 1, DPA_EUS},
		{"", 1, DPA_EUS},
		{"1=4", 1, 4},
		{"1=4", 2, DPA_EUS},
		{"1=4;2=7-9,250", 2, 7},
		{"2=9,7;1=4", 2, 9},
		{"1=254", 1, DPA_EUS},
		{"1=9-7", 1, DPA_EUS},
		{"1=", 1, DPA_EUS},
		{"1", 1, DPA_EUS},
		{"1=1;x", 1, DPA_EUS},
		{"1=1 ", 1, DPA_EUS},
		{"=1", 0, DPA_EUS},
		{"1=-1", 1, DPA_EUS},
		{"1=1-", 1, DPA_EUS},
		{"1=0-253", 1, 0},
		{"1=1,", 1, DPA_EUS},
		{"0=3", 0, 3},
		{"1=4294967297", 1, DPA_EUS},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		if (cases[i].text)
			CHECK(!setenv("SOFTHCA_DPA_GROUPS", cases[i].text, 1));
		CHECK_SAY(dpa_eu_of_group(cases[i].group) == cases[i].unit, "%s", cases[i].text);
	}
	/* They are given out in turn. */
	CHECK(!setenv("SOFTHCA_DPA_GROUPS", "5=100,101,103", 1));
	for (unsigned i = 0; i < 6; i++) {
		static const uint32_t units[] = {100, 101, 103};

		CHECK(dpa_eu_of_group(5) == units[i % 3]);
		dpa_eu_join(units[i % 3]);
	}
	dpa_eu_leave(103);
	CHECK(dpa_eu_of_group(5) == 103);
	CHECK(!unsetenv("SOFTHCA_DPA_GROUPS"));
}

/* A process goes with all that it has; what is left of its handlers goes before it, whatever they do. */
static void test_114_ended_anywhere(void)
{
	struct rng rng = {.state = 7};

	for (unsigned i = 0; i < 30; i++) {
		static const enum control_mode modes[] = {CONTROL_SPIN, CONTROL_RETRIGGER,
							  CONTROL_YIELD, CONTROL_RESCHEDULE,
							  CONTROL_HOLD};
		struct dpa_process *p = process_make();
		struct handler_case t[4];

		for (size_t n = 0; n < array_size(t); n++) {
			case_make(p, &t[n], modes[rng_below(&rng, array_size(modes))],
				  n % 2 ? 5 : DPA_EU_ANY, rng_below(&rng, 2));
			t[n].c->limit = UINT64_MAX;
			CHECK(dpa_handler_run(t[n].h, t[n].arg) == 0);
			dpa_handler_activate(t[n].h);
		}
		usleep((useconds_t)rng_below(&rng, 2000));
		for (size_t n = 0; n < array_size(t); n++)
			dpa_handler_destroy(t[n].h);
		process_drop(p);
	}
}

/* ---- bells ---- */

struct bell_log {
	unsigned arms, empties, sends;
	uint32_t region, cqn, ci, qpn;
	uint16_t pi;
};

static void log_arm(void *device, uint32_t region, uint32_t cqn, uint32_t ci)
{
	struct bell_log *l = device;

	l->arms++;
	l->region = region;
	l->cqn = cqn;
	l->ci = ci;
}

static void log_empty(void *device, uint32_t region, uint32_t cqn)
{
	struct bell_log *l = device;

	l->empties++;
	CHECK(l->region == region && cqn == 13);
}

static void log_send(void *device, uint32_t region, uint32_t qpn, uint16_t pi)
{
	struct bell_log *l = device;

	l->sends++;
	CHECK(l->region == region);
	l->qpn = qpn;
	l->pi = pi;
}

static uint64_t call_one(struct dpa_process *p, const char *name, uint64_t arg)
{
	const struct dpa_call call = {
		.function = dpa_process_function(p, name),
		.args = &arg,
		.bytes = sizeof(arg),
	};
	uint64_t value;

	CHECK(call.function && dpa_call(p, &call, &value) == DPA_CALL_DONE);
	return value;
}

static void test_151_233_bells(void)
{
	static const struct dpa_bells bells = {
		.arm = log_arm, .empty = log_empty, .send = log_send};
	struct bell_log one = {0}, two = {0};
	struct dpa_uar first = {.bells = &bells, .device = &one, .number = 100};
	struct dpa_uar second = {.bells = &bells, .device = &two, .number = 200};
	struct dpa_process *p = process_make();
	int box, initial;

	/* no outbox, no bells */
	CHECK(call_one(p, "ring_outbox", 0) == 0 && !one.arms);
	CHECK(dpa_uar_add(&first) == 0 && dpa_uar_add(&second) == 0);
	CHECK(dpa_outbox_add(p, 300, false) == -EINVAL);
	initial = dpa_outbox_add(p, 100, true);
	box = dpa_outbox_add(p, 200, false);
	CHECK(initial > 0 && box > 0 && box != initial);

	CHECK(call_one(p, "ring_outbox", 0) == 0);
	CHECK(one.arms == 1 && one.empties == 1 && one.region == 100);
	/* index and number, not the other way round */
	CHECK(one.ci == 11 && one.cqn == 12);
	CHECK(one.sends == 1 && one.pi == 0xfffe && one.qpn == 14);
	CHECK(call_one(p, "ring_outbox", (uint64_t)box) == 0);
	CHECK(two.arms == 1 && two.empties == 1 && two.region == 200 && one.arms == 1);
	/* one that is not there changes nothing */
	CHECK(call_one(p, "ring_outbox", 77) == 1 && one.arms == 2);
	CHECK(call_one(p, "ring_outbox", 0xffff) == 1 && one.arms == 3);
	/* 235: by the region of another device */
	CHECK(call_one(p, "ring_region", 200) == 0 && two.arms == 2);
	CHECK(call_one(p, "ring_region", 300) == 1 && two.arms == 2 && one.arms == 4);

	dpa_outbox_remove(p, (uint32_t)box);
	CHECK(call_one(p, "ring_outbox", (uint64_t)box) == 1 && two.arms == 2);
	CHECK(dpa_outbox_add(p, 200, false) == box);
	for (unsigned i = 2; i < DPA_OUTBOXES - 1; i++)
		CHECK(dpa_outbox_add(p, 200, false) > 0);
	CHECK(dpa_outbox_add(p, 200, false) == -ENOSPC);
	dpa_uar_remove(100);
	dpa_uar_remove(200);
	dpa_uar_remove(200);
	CHECK(call_one(p, "ring_region", 200) == 1);
	process_drop(p);
}

static void on_signal(int signum, siginfo_t *info, void *ucontext)
{
	if (!dpa_signal(signum, info, ucontext))
		_exit(3);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

	CHECK(argc == 2);
	image_path = argv[1];
	for (size_t i = 0; i < array_size(signals); i++)
		CHECK(sigaction(signals[i], &act, NULL) == 0);
	test_095_097_events();
	test_096_118_before_run();
	test_100_event_while_it_runs();
	test_102_never_twice_at_once();
	test_103_104_ends();
	test_106_process_finish();
	test_faults();
	test_107_108_yield();
	test_110_many_endless();
	test_119_shared_unit();
	test_121_groups();
	test_114_ended_anywhere();
	test_151_233_bells();
	return 0;
}
