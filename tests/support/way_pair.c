// SPDX-License-Identifier: BSD-2-Clause
#include "way_pair.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static _Atomic(uint32_t) hold_state; /* 1: held, 2: let it go, 3: done */

struct way_pair *way_pair_new(void)
{
	struct way_pair *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	p->memory = mmap(NULL, WAY_PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	CHECK(p->memory != MAP_FAILED);
	/* The child may look into its parent, also where only parents may look. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	return p;
}

static void *hold_alive(void *arg)
{
	struct way_pair *p = arg;

	CHECK(!alive_begin(&p->alive));
	atomic_store(&hold_state, 1);
	while (atomic_load(&hold_state) == 1)
		usleep(1000);
	alive_end(&p->alive);
	atomic_store(&hold_state, 3);
	for (;;)
		pause();
}

void way_pair_hold(struct way_pair *p)
{
	pthread_t holder;

	p->pid = getpid();
	atomic_store(&hold_state, 0);
	CHECK(!pthread_create(&holder, NULL, hold_alive, p));
	way_pair_await(&hold_state, 1);
}

void way_pair_let_go(struct way_pair *p)
{
	CHECK(atomic_load(alive_word(&p->alive)));
	atomic_store(&hold_state, 2);
	way_pair_await(&hold_state, 3);
}

pid_t way_pair_fork(struct way_pair *p, int (*fn)(struct way_pair *p))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	access_fork_child();
	_exit(fn(p));
}

bool way_pair_join(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	return status == 0;
}

void way_pair_await(_Atomic(uint32_t) *word, uint32_t value)
{
	for (int ms = 0; atomic_load(word) != value; ms++) {
		CHECK(ms < 60000);
		usleep(1000);
	}
}

void way_pair_await_more(_Atomic(uint64_t) *count, uint64_t than)
{
	for (int ms = 0; atomic_load(count) < than; ms++) {
		CHECK(ms < 600000);
		usleep(100);
	}
}

void way_pair_stop(pid_t child)
{
	siginfo_t info;

	CHECK(!kill(child, SIGSTOP));
	CHECK(!waitid(P_PID, (id_t)child, &info, WSTOPPED | WEXITED));
	CHECK(info.si_code == CLD_STOPPED);
}

enum way_verdict way_pair_move(struct way_pair *p, way_fn *way, uint32_t tid, bool read,
			       const struct run *local, uint32_t nlocal, const struct run *remote,
			       uint32_t requests, uint32_t *done)
{
	struct way_access a = {
		.alive = &p->alive,
		.tid = tid,
		.read = read,
		.local = local,
		.nlocal = nlocal,
		.remote = remote,
		.requests = requests,
	};
	enum way_verdict v;

	CHECK(access_claim(&p->table, &a.hold));
	v = way(&a);
	access_release(&a.hold);
	if (done)
		*done = a.done;
	return v;
}

void way_pair_interrupt(struct way_pair *p, pid_t child, struct rng *rng, bool stop)
{
	way_pair_await_more(&p->done, atomic_load(&p->done) + 1);
	for (volatile uint64_t spin = rng_below(rng, 20000); spin; spin--)
		;
	if (stop)
		way_pair_stop(child);
}
