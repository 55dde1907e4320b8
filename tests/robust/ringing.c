// SPDX-License-Identifier: BSD-2-Clause
/*
 * ringing DEVICE HOW SEED: two processes send a number to and fro, now and then by a WRITE.  Both ring by bare stores and look
 * for it in memory, so each is in the handler of such a store for most of its time: there it drives
 * its device (drive_after_fault).  Meanwhile, by HOW:
 *
 *   interrupted  a signal of the program arrives in each round, soon after its beginning
 *   jumped	  its handler leaves by a jump; what it has interrupted is rung for again
 *   forking	  another thread forks
 *   polled	  other threads drive the device, by ibv_poll_cq
 *   stopped	  either process is stopped for a while
 *   killed-0, killed-1   that one is killed; the other one's requests fail, and it ends well
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../traffic/direct.h"
#include "sides.h"

#define ROUNDS	      4000u
#define STOPS	      40u
#define FORKS	      12u
#define POLLERS	      2u
#define SIGNAL_MAX_US 60u
#define LIMIT_NS      40000000000ull
#define LAST	      (1ull << 63)
#define LOOK_EACH     64u /* rounds in vain */
#define WRITE_EACH    8u
#define RECEIVES      8u

/* Where processors are few, rings linger; a machine with more is made one. */
#define CPUS 2

struct card {
	struct device_address address;
	struct direct_slice target;
};

static const struct device_connection resolute = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.rnr_retry = 7,
	.retry_cnt = 7,
	.timeout = 18,
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

static const char *device;
static struct direct_field field;
static struct card theirs;
static bool victims; /* one of the two is going to be killed */
static bool bereft;  /* it has been */

static struct {
	sigjmp_buf back;
	volatile sig_atomic_t may_jump;
	volatile sig_atomic_t count;
	bool arms, jumps;
} signals;

static _Atomic(bool) ended;
static _Atomic(unsigned) acts; /* of the other threads */

/* ---- signals ---- */

static void on_alarm(int signum)
{
	(void)signum;
	signals.count++;
	if (!signals.may_jump)
		return;
	signals.may_jump = 0;
	siglongjmp(signals.back, 1);
}

/* One for each round, so the rounds go on however slow they are. */
static void signal_soon(void)
{
	const struct itimerval once = {.it_value = {0, 1 + (long)sides_draw(SIGNAL_MAX_US)}};

	if (setitimer(ITIMER_REAL, &once, NULL))
		device_die("setitimer: %m");
}

static void ring(struct direct_sq *sq)
{
	if (signals.arms)
		signal_soon();
	if (signals.jumps && sigsetjmp(signals.back, 1) == 0)
		signals.may_jump = 1;
	/* Twice says nothing else than once. */
	direct_ring(sq);
	signals.may_jump = 0;
}

/* ---- the number ---- */

/* The other was killed: whatever we ask of it fails. */
static void see_failure(const struct side *s)
{
	uint64_t limit = device_now_ns() + LIMIT_NS;
	uint8_t syndrome = 0;

	if (!bereft)
		sides_await(s, SIDES_DEAD);
	while (!syndrome) {
		if (direct_poll_any(&field.sends, &syndrome))
			continue;
		if (device_qp_state(field.pairs[0].from) == IBV_QPS_ERR)
			return;
		direct_write(&field.pairs[0].sq, direct_source(&field, 0), theirs.target);
		ring(&field.pairs[0].sq);
		for (unsigned naps = 0; naps < 100; naps++)
			direct_nap();
		if (device_now_ns() > limit)
			device_die("no error after the other's death");
	}
}

static bool is_written(uint64_t number)
{
	return (number & ~LAST) % WRITE_EACH == 0;
}

static void post_receive(void)
{
	struct direct_slice into = direct_target(&field, 0);

	into.key = field.mr->lkey;
	direct_post_recv(&field.pairs[0].rq, into);
}

/* False: the other is no more. */
static bool tell_number(const struct side *s, uint64_t number)
{
	uint64_t limit = device_now_ns() + LIMIT_NS;
	uint8_t syndrome;

	field.memory[0] = number;
	if (is_written(number))
		direct_write(&field.pairs[0].sq, direct_source(&field, 0), theirs.target);
	else
		direct_send(&field.pairs[0].sq, direct_source(&field, 0));
	ring(&field.pairs[0].sq);
	for (unsigned round = 1; !direct_poll_any(&field.sends, &syndrome); round++) {
		if (round % LOOK_EACH)
			continue;
		sched_yield();
		if (device_now_ns() > limit)
			device_die("side %u: number %lu is not sent", s->number, number);
	}
	if (syndrome && !victims)
		device_die("side %u: syndrome 0x%x", s->number, syndrome);
	return !syndrome;
}

static bool see_number(const struct side *s, uint64_t number, uint64_t *seen)
{
	const volatile uint64_t *word = &field.memory[1];
	uint64_t limit = device_now_ns() + LIMIT_NS;

	for (unsigned round = 1; ((*seen = *word) & ~LAST) != number; round++) {
		if ((*seen & ~LAST) != number - 1)
			device_die("side %u: %lu instead of %lu", s->number, *seen, number);
		if (round % LOOK_EACH)
			continue;
		sched_yield();
		bereft = victims && sides_heard(s) == SIDES_DEAD;
		if (bereft)
			return false;
		if (device_now_ns() > limit)
			device_die("side %u: number %lu does not arrive", s->number, number);
	}
	if (is_written(number))
		return true;
	if (!direct_wait(&field.receives, LIMIT_NS))
		device_die("side %u: number %lu has no completion", s->number, number);
	post_receive();
	return true;
}

static bool is_last(const struct side *s, const char *how, uint64_t number)
{
	if (number < ROUNDS)
		return false;
	if (!strcmp(how, "forking"))
		return atomic_load(&acts) >= FORKS;
	if (!strcmp(how, "polled"))
		return atomic_load(&acts) >= POLLERS;
	if (!strcmp(how, "stopped"))
		return sides_heard(s) == SIDES_QUIT;
	return !victims;
}

/* False: the other is no more. */
static bool to_and_fro(const struct side *s, const char *how)
{
	uint64_t seen = 0;

	for (uint64_t number = 1; !(seen & LAST); number++) {
		uint64_t last = s->number == 0 && is_last(s, how, number) ? LAST : 0;

		if (s->number == 0 && !tell_number(s, number | last))
			return false;
		if (!see_number(s, number, &seen))
			return false;
		if (s->number == 1 && !tell_number(s, seen))
			return false;
	}
	return true;
}

/* ---- other threads ---- */

static void *fork_on_and_on(void *unused)
{
	int status;

	(void)unused;
	while (!atomic_load(&ended)) {
		pid_t child = fork();

		if (child < 0)
			device_die("fork: %m");
		if (!child)
			_exit(0);
		if (waitpid(child, &status, 0) != child || status)
			device_die("a child ended with 0x%x", status);
		atomic_fetch_add(&acts, 1);
		direct_nap(); /* the device stands still while a process forks */
	}
	return NULL;
}

static void *poll_on_and_on(void *arg)
{
	struct ibv_wc wc;
	unsigned rounds;

	for (rounds = 0; !atomic_load(&ended); rounds++) {
		if (ibv_poll_cq(arg, 1, &wc))
			device_die("a completion that belongs to nobody");
		if (rounds == ROUNDS)
			atomic_fetch_add(&acts, 1);
		if (rounds % 16 == 0)
			sched_yield();
	}
	return NULL;
}

static unsigned start_threads(const char *how, struct ibv_cq *cq, pthread_t *threads)
{
	unsigned n = !strcmp(how, "forking") ? 1 : !strcmp(how, "polled") ? POLLERS : 0;

	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, cq ? poll_on_and_on : fork_on_and_on, cq))
			device_die("no thread");
	return n;
}

/* ---- a side ---- */

static const char *how;

static void side(struct side *s)
{
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct device_connection connection = resolute;
	pthread_t threads[POLLERS];
	struct ibv_cq *cq = NULL;
	unsigned nthreads;
	struct card mine;

	if (victims)
		connection.timeout = 14;
	direct_open(&field, device, -1, 0);
	direct_add_single(&field);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive();
	mine.address = device_address(&field.port, field.pairs[0].from, 0);
	mine.target = direct_target(&field, 0);
	sides_exchange(s, &mine, &theirs, sizeof(mine));
	device_qp_init(field.pairs[0].from, &connection);
	device_qp_connect(&field.port, field.pairs[0].from, &connection, &theirs.address, 0);
	sides_exchange(s, &mine, &theirs, sizeof(mine));
	if (!strcmp(how, "polled"))
		cq = ibv_create_cq(field.port.ctx, 1, NULL, NULL, 0);
	nthreads = start_threads(how, cq, threads);
	signals.jumps = !strcmp(how, "jumped");
	signals.arms = signals.jumps || !strcmp(how, "interrupted");
	if (signals.arms) {
		alarm(0);
		if (sigaction(SIGALRM, &action, NULL))
			device_die("sigaction: %m");
	}
	sides_stand(s);
	if (!to_and_fro(s, how))
		see_failure(s);
	else
		sides_exchange(s, &mine, &theirs, sizeof(mine));
	atomic_store(&ended, true);
	for (unsigned i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
	if (signals.arms && !signals.count)
		device_die("no signal came");
	if (cq && ibv_destroy_cq(cq))
		device_die("ibv_destroy_cq: %m");
	direct_close(&field);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		device_die("usage: ringing DEVICE "
			   "interrupted|jumped|forking|polled|stopped|killed-0|killed-1 SEED");
	device = argv[1];
	how = argv[2];
	victims = !strncmp(how, "killed-", 7);
	sides_few_processors(CPUS);
	sides_start(side, (uint32_t)strtoul(argv[3], NULL, 10));
	if (victims)
		return sides_kill(how[7] == '1');
	return strcmp(how, "stopped") ? sides_leave() : sides_stop(STOPS);
}
