// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many reads and atomics may be under way, each way.  The first of them is a read whose answer is more than
 * the way back has room for, and who asked is stopped meanwhile: so the first has no whole answer yet when the
 * last is looked at, however busy the machine is.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

/* Behind what is read lies the word of the atomic. */
#define READ_BYTES (5u << 20)
#define ALL_BYTES  (READ_BYTES + 8)
#define LOG_MOST   2u
/* Who is to ask may not have got as far when it is stopped, or gives up if that takes long: then again. */
#define TIMES	  30u
#define AWHILE_US 50000

struct depth {
	struct end e;
	struct peer p;
	uint64_t data;
	struct flexio_mkey *mkey;
	uint32_t key;
};

/* reads: the peer's limits, both of them. */
static void depth_up(struct depth *d, bool ethernet, uint8_t log_rra, uint8_t log_sra,
		     unsigned reads)
{
	struct flexio_mkey_attr key = {.len = ALL_BYTES, .access = RIGHTS};
	struct flexio_qp_attr attr;

	end_open(&d->e, ethernet, FLEXIO_QPC_ST_RC);
	end_make(&d->e);
	d->data = end_heap(&d->e, ALL_BYTES, 0);
	key.pd = d->e.pd;
	key.daddr = d->data;
	OK(flexio_device_mkey_create(d->e.p, &key, &d->mkey));
	d->key = flexio_mkey_get_id(d->mkey);
	peer_up(&d->p, ethernet, "rc", NULL);
	attr = end_attr(&d->e, &d->p);
	attr.log_rra_max = log_rra;
	attr.log_sra_max = log_sra;
	end_move(&d->e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(&d->p, &d->e, &attr, reads);
}

static void depth_down(struct depth *d)
{
	peer_down(&d->p);
	OK(flexio_qp_destroy(d->e.qp));
	d->e.qp = NULL;
	OK(flexio_device_mkey_destroy(d->mkey));
	end_close(&d->e);
}

/* This program stops while a shell lets the peer go on for a while, and then leaves it in that state. */
static void depth_turn(const struct depth *d, const char *state)
{
	char line[160];

	snprintf(line, sizeof(line),
		 "kill -STOP $PPID; kill -CONT %d; sleep 0.05; kill -%s %d; kill -CONT $PPID",
		 d->p.pid, state, d->p.pid);
	CHECK(!system(line));
}

/* ---- the peer asks ---- */

/* So many, of which the last is an atomic; what the peer hears: the first status but success. */
static int answered_once(uint8_t log, unsigned count, bool ethernet)
{
	struct depth d;
	int status = 0;

	depth_up(&d, ethernet, log, 0, 16);
	CHECK(!kill(d.p.pid, SIGSTOP));
	for (unsigned i = 1; i < count; i++)
		peer_say(&d.p, "post %d 0 %u %llu %u", IBV_WR_RDMA_READ, READ_BYTES,
			 (unsigned long long)d.data, d.key);
	peer_say(&d.p, "post %d %u 8 %llu %u 0 1", IBV_WR_ATOMIC_FETCH_AND_ADD, READ_BYTES,
		 (unsigned long long)d.data + READ_BYTES, d.key);
	depth_turn(&d, "STOP");
	usleep(AWHILE_US);
	CHECK(!kill(d.p.pid, SIGCONT));
	for (unsigned i = 0; i < count; i++)
		peer_obeyed(&d.p);
	for (unsigned i = 0; i < count; i++) {
		struct heard h = peer_wait(&d.p);

		status = status ? status : h.status;
	}
	if (status != IBV_WC_RETRY_EXC_ERR) {
		CHECK((flexio_qp_state_get(d.e.qp) == FLEXIO_QP_STATE_ERR) == !!status);
		/* one too many changes nothing */
		CHECK(end_call(&d.e, &peek, d.data + READ_BYTES, 0, 0) == !status);
	}
	depth_down(&d);
	return status;
}

static void answered(uint8_t log, unsigned count, int expected)
{
	unsigned round = 0;
	int status;

	while ((status = answered_once(log, count, round & 1)) != expected) {
		CHECK_SAY(status == IBV_WC_RETRY_EXC_ERR || (!status && expected), "%u with %u: %d",
			  count, 1u << log, status);
		CHECK(++round < TIMES);
	}
}

/* As many as log_rra_max says are answered, and one more is not. */
static void reads_answered(void)
{
	for (uint8_t log = 0; log <= LOG_MOST; log++) {
		answered(log, 1u << log, 0);
		answered(log, (1u << log) + 1, IBV_WC_REM_INV_REQ_ERR);
	}
}

/* ---- we ask ---- */

/* So many, of which the last is an atomic, of a peer that takes so many reads; the first syndrome. */
static unsigned asked_once(uint8_t log, unsigned count, unsigned reads, bool ethernet)
{
	unsigned syndrome = 0;
	struct depth d;

	depth_up(&d, ethernet, 0, log, reads);
	d.e.post.data = d.data;
	d.e.post.key = d.key;
	d.e.post.remote = d.p.memory;
	d.e.post.rkey = d.p.rkey;
	d.e.post.bytes = READ_BYTES;
	d.e.post.silent = 1;
	/* the peer goes on when all that may be under way waits for it, and is heard later */
	CHECK(!kill(d.p.pid, SIGSTOP));
	for (unsigned i = 1; i < count; i++)
		end_post(&d.e, POST_READ);
	d.e.post.silent = 0;
	d.e.post.bytes = 8;
	d.e.post.swap_add = 1;
	d.e.post.data += READ_BYTES;
	d.e.post.remote += READ_BYTES;
	end_post(&d.e, POST_ADD);
	usleep(AWHILE_US);
	depth_turn(&d, "CONT");
	for (unsigned i = 0; i < count; i++) {
		end_take(&d.e, &d.e.sent);
		syndrome = syndrome ? syndrome : (unsigned)d.e.last.syndrome;
	}
	if (syndrome != SYNDROME_RETRIES)
		CHECK(peer_ask(&d.p, "get %u", READ_BYTES) == !syndrome);
	CHECK((flexio_qp_state_get(d.e.qp) == FLEXIO_QP_STATE_ERR) == !!syndrome);
	depth_down(&d);
	return syndrome;
}

static void asked(uint8_t log, unsigned count, unsigned reads, unsigned expected)
{
	unsigned round = 0, syndrome;

	while ((syndrome = asked_once(log, count, reads, round & 1)) != expected) {
		CHECK_SAY(syndrome == SYNDROME_RETRIES || (!syndrome && expected),
			  "%u with %u of %u: 0x%x", count, 1u << log, reads, syndrome);
		CHECK(++round < TIMES);
	}
}

/* However many are posted, a peer that takes as many as log_sra_max says never has one more; one that takes
 * fewer has. */
static void reads_asked(void)
{
	for (uint8_t log = 0; log <= LOG_MOST; log++) {
		asked(log, (1u << log) + 2, 1u << log, 0);
		if (log)
			asked(log, 1u << log, 1u << (log - 1), SYNDROME_REMOTE_INVALID);
	}
}

const struct host_case depth_cases[] = {
	{"reads_answered", reads_answered},
	{"reads_asked", reads_asked},
	{NULL, NULL},
};
