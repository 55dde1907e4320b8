// SPDX-License-Identifier: BSD-2-Clause
/* Signals at any moment, and stacks that are not the kernel's. */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "host.h"

enum { OLD = 0x11, PEER = 0x33 };

#define TICKS 40u

static void interrupted_calls(struct host *h)
{
	static const size_t sizes[] = {8, 64, 4096, 65536, HOST_BYTES};
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	self_tick(300);
	peer_tick(&h->peer, 300);
	for (int i = 0; i < 50 || self_ticks() < TICKS; i++) {
		host_exchange(h, at, mr, sizes[i % 5], i & 0x7f);
		if (i % 10 == 0)
			host_messages(h, at, mr);
	}
	for (int i = 0; i < 10; i++) {
		host_dereg(mr);
		mr = host_reg(h, at, HOST_BYTES);
		host_exchange(h, at, mr, HOST_BYTES, i);
	}
	peer_tick(&h->peer, 0);
	self_tick(0);
	host_dereg(mr);
}

/* ---- a coroutine whose stack lies in registered memory ---- */

static struct coroutine {
	ucontext_t caller, self;
	struct host *host;
	uint8_t *mem;
	struct ibv_mr *mr;
	int turns;
} co;

static void on_own_stack(void)
{
	uint8_t guard[512];
	uint8_t *data = co.mem + HOST_BYTES / 2;

	memset(guard, OLD, sizeof(guard));
	for (int i = 0; i < 4; i++) {
		host_exchange(co.host, data, co.mr, HOST_BYTES / 2, PEER + i);
		host_messages_in(co.host, data, co.mr, HOST_BYTES / 2);
		host_want_all(guard, sizeof(guard), OLD, "the coroutine's own variables");
		/* With the memory that this stands in. */
		host_dereg(co.mr);
		co.mr = host_reg(co.host, co.mem, HOST_BYTES);
		host_want_all(guard, sizeof(guard), OLD, "the coroutine's own variables");
		co.turns++;
		swapcontext(&co.self, &co.caller);
	}
}

static void on_stacks(struct host *h)
{
	co.host = h;
	co.mem = host_map(HOST_BYTES, OLD);
	co.mr = host_reg(h, co.mem, HOST_BYTES);
	if (getcontext(&co.self))
		device_die("getcontext: %m");
	co.self.uc_stack.ss_sp = co.mem;
	co.self.uc_stack.ss_size = HOST_BYTES / 2;
	co.self.uc_link = &co.caller;
	makecontext(&co.self, on_own_stack, 0);
	for (int i = 0; i < 4; i++)
		swapcontext(&co.caller, &co.self);
	host_want(co.turns == 4, "the coroutine stopped after %d turns", co.turns);
	host_dereg(co.mr);
}

const struct host_case flow_cases[] = {
	{"signals", interrupted_calls, NULL},
	{"coroutines", on_stacks, NULL},
	{NULL, NULL, NULL},
};
