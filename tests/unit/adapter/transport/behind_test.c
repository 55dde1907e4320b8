// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that takes no packets.  While its process could go on, it waits for a processor, and the
 * request waits with it; a process that is stopped does not answer.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "base/clock.h"
#include "signed_pair.h"

#define BYTES 512u
/* The requester's whole patience is 8 times 1.05 ms. */
#define LONG_NS 200000000u

static struct signed_pair pair;
static unsigned asked;

bool __real_task_goes_on(pid_t pid);
bool __wrap_task_goes_on(pid_t pid);

/* Opens files: nobody may have to spin for that. */
bool __wrap_task_goes_on(pid_t pid)
{
	struct spin *l = &pair.side[0].q.qp->comp.lock;

	CHECK(spin_try(l));
	spin_unlock(l);
	asked++;
	return __real_task_goes_on(pid);
}

static void post_write(void)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
	device_wqe_data(&w, pair.side[0].memory, BYTES, pair.side[0].lkey);
	device_wqe_end(&w);
}

static void pair_up(pid_t peer)
{
	signed_pair_up(&pair, true);
	pair.fabric->slots[0].pid = getpid();
	pair.fabric->slots[1].pid = peer;
	signed_pair_connect(&pair, IB_MTU_1024);
	memset(pair.side[0].memory, 5, BYTES);
	memset(pair.side[1].memory, 0, BYTES);
}

/* Side 0 goes on alone. */
static const struct cqe64 *completes_alone(uint64_t ns)
{
	const struct cqe64 *c = NULL;

	for (uint64_t end = clock_ns() + ns; !c && clock_ns() < end;) {
		(void)wire_process_progress(pair.process[0].host);
		(void)adapter_progress(pair.device.adapter[0], NULL);
		c = device_cq_poll(&pair.side[0].q.cq);
	}
	return c;
}

static void test_waits_for_a_processor(void)
{
	pair_up(getpid());
	post_write();
	CHECK(!completes_alone(LONG_NS));
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	CHECK(!memcmp(pair.side[0].memory, pair.side[1].memory, BYTES));
	signed_pair_down(&pair);
}

static void test_is_stopped(void)
{
	const struct cqe64_err *err;
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	pair_up(child);
	post_write();
	err = (const struct cqe64_err *)completes_alone(30000000000u);
	CHECK(err && err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == CQE_SYN_RETRY_EXC);
	CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_waits_for_a_processor();
	test_is_stopped();
	CHECK(asked);
	return 0;
}
