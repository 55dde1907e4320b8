// SPDX-License-Identifier: BSD-2-Clause
/* One end goes in the middle of everything. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "host.h"

#define BYTES 3000u
#define TIMES 4u

struct death {
	struct end e;
	struct peer p;
	uint64_t result;
};

static void death_up(struct death *d, bool ethernet)
{
	struct flexio_qp_attr attr;

	end_open(&d->e, ethernet, FLEXIO_QPC_ST_RC);
	end_make(&d->e);
	peer_up(&d->p, ethernet, "rc", NULL);
	attr = end_attr(&d->e, &d->p);
	attr.retry_count = 1;
	end_move(&d->e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(&d->p, &d->e, &attr, 4);
	d->e.post.bytes = BYTES;
	d->e.post.remote = d->p.memory;
	d->e.post.rkey = d->p.rkey;
	OK(flexio_host2dev_memcpy(d->e.p, &d->e.post, sizeof(d->e.post), d->e.post_at));
}

static void *death_flood(void *arg)
{
	struct death *d = arg;

	d->result = end_call(&d->e, &flood, d->e.post_at, d->e.sent.reader, UINT64_MAX);
	return NULL;
}

/* Device code hears of it by a completion, and its process goes on with another peer. */
static void peer_killed(void)
{
	for (unsigned i = 0; i < TIMES; i++) {
		pthread_t thread;
		struct death d;

		death_up(&d, i & 1);
		CHECK(!pthread_create(&thread, NULL, death_flood, &d));
		usleep(1000 + 7000 * i);
		CHECK(!kill(d.p.pid, SIGKILL));
		peer_gone(&d.p);
		CHECK(!pthread_join(thread, NULL));
		CHECK_SAY(d.result == SYNDROME_RETRIES, "0x%llx", (unsigned long long)d.result);
		CHECK(flexio_qp_state_get(d.e.qp) == FLEXIO_QP_STATE_ERR);
		OK(flexio_qp_destroy(d.e.qp));
		end_make(&d.e);
		peer_up(&d.p, i & 1, "rc", NULL);
		end_meet(&d.e, &d.p);
		d.e.post.bytes = BYTES;
		d.e.post.remote = d.p.memory;
		d.e.post.rkey = d.p.rkey;
		end_done(&d.e, POST_WRITE);
		peer_down(&d.p);
		end_close(&d.e);
	}
}

/* For whoever kills this program.  The peer ends when it hears no more. */
static void flooding(void)
{
	static struct death d;
	pthread_t thread;

	death_up(&d, false);
	CHECK(!pthread_create(&thread, NULL, death_flood, &d));
	printf("%d\n", d.p.pid);
	fflush(stdout);
	CHECK(!pthread_join(thread, NULL));
	CHECK_SAY(false, "the flood ends: 0x%llx", (unsigned long long)d.result);
}

const struct host_case death_cases[] = {
	{"peer_killed", peer_killed},
	{"flooding", flooding},
	{NULL, NULL},
};
