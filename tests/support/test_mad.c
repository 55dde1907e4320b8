// SPDX-License-Identifier: BSD-2-Clause
#include "test_mad.h"

#include "check.h"

#define NS_OF_MS 1000000ull

void test_mad_open(struct test_mad *m)
{
	test_net_open(&m->t);
	CHECK(!loop_open(&m->loop));
	m->loop.still_ns = (m->loop.wheel_ms + 1) * NS_OF_MS;
	CHECK(!mad_open(&m->mad, &m->t.net, &m->loop));
}

void test_mad_close(struct test_mad *m)
{
	mad_close(&m->mad);
	loop_close(&m->loop);
	test_net_close(&m->t);
}

void test_mad_run(struct test_mad *m, uint32_t ms)
{
	uint64_t end = m->loop.still_ns + ms * NS_OF_MS;

	do
		CHECK(loop_round(&m->loop, 0) >= 0);
	while (m->loop.work);
	while (m->loop.still_ns < end) {
		int wait = loop_timers_wait(&m->loop);
		uint64_t next = m->loop.still_ns + (uint64_t)wait * NS_OF_MS;

		m->loop.still_ns = wait < 0 || next > end ? end : next;
		do
			CHECK(loop_round(&m->loop, 0) >= 0);
		while (m->loop.work);
	}
}
