// SPDX-License-Identifier: BSD-2-Clause
/*
 * reading DEVICE HOW SEED: long READs from a memory window, which the initiator does not execute by
 * itself, while both processes share one processor: so their target puts the answers into the
 * initiator's memory (transport/responder_rd.c).  The initiator's memory is its own again when a
 * request is complete, or the region gone: whatever it stores there then has to stay.  By HOW:
 *
 *   completed	  each READ brings what the target has
 *   deregistered the memory goes with READs under way
 *   failed	  the queue pair goes to the error state with READs under way
 *   killed-0, killed-1   the initiator or the target is killed; the other one ends well
 *
 * Those that are not killed are stopped at random moments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"
#include "sides.h"

#define BYTES	 (1u << 20) /* of each READ */
#define READS	 4u
#define ROUNDS	 24u
#define STOPS	 30u
#define SPINS	 400000u
#define LIMIT_MS 40000
#define PSNS	 4096u /* more than a connection uses at once */

enum { THERE = 0x5b, BEFORE = 0x11, REUSED = 0xee };

struct card {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
	uint32_t again; /* there is another round */
};

static const char *device, *how;
static bool victims;
static struct device_connection connection = {
	.access = IBV_ACCESS_REMOTE_READ,
	.rnr_retry = 7,
	.retry_cnt = 7,
	.timeout = 18,
	.min_rnr_timer = 1,
	.rd_atomic = READS,
	.mtu = IBV_MTU_4096,
};

/* ---- both sides ---- */

static bool all_have(const uint8_t *mem, size_t bytes, uint8_t value)
{
	return mem[0] == value && !memcmp(mem, mem + 1, bytes - 1);
}

static void to_state(struct pair *p, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE))
		device_die("the queue pair cannot be modified: %m");
}

static void register_memory(struct pair *p, int access)
{
	p->mr = ibv_reg_mr(p->pd, p->mem, p->bytes, access | IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		device_die("ibv_reg_mr: %m");
}

static void deregister_memory(struct pair *p)
{
	if (ibv_dereg_mr(p->mr))
		device_die("ibv_dereg_mr: %m");
}

/* What is still under way of a connection before has other packet numbers. */
static void meet(struct side *s, struct pair *p, struct card *theirs)
{
	static uint32_t psn;
	struct card mine;

	psn += PSNS;
	mine = (struct card){.address = device_address(&p->port, p->qp, psn)};
	sides_exchange(s, &mine, theirs, sizeof(mine));
	device_qp_connect(&p->port, p->qp, &connection, &theirs->address, psn);
}

/* ---- the target ---- */

static struct ibv_mw *bind_window(struct pair *p)
{
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = p->mr,
			      .addr = (uintptr_t)p->mem,
			      .length = p->bytes,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ},
	};

	if (!mw || ibv_bind_mw(p->qp, mw, &bind))
		device_die("no window: %m");
	pair_complete(p, "the bind");
	return mw;
}

/* False: the initiator is no more. */
static bool await_round(const struct side *s, struct card *word)
{
	return recv(s->peer, word, sizeof(*word), MSG_WAITALL) == sizeof(*word);
}

static void target(struct side *s, struct pair *p)
{
	struct card mine = {0}, theirs;
	struct ibv_mw *mw;

	deregister_memory(p);
	register_memory(p, IBV_ACCESS_MW_BIND);
	memset(p->mem, THERE, p->bytes);
	meet(s, p, &theirs);
	mw = bind_window(p);
	mine.addr = (uintptr_t)p->mem;
	mine.rkey = mw->rkey;
	sides_exchange(s, &mine, &theirs, sizeof(mine));
	sides_stand(s);
	while (await_round(s, &theirs) && theirs.again) {
		to_state(p, IBV_QPS_RESET);
		device_qp_init(p->qp, &connection);
		meet(s, p, &theirs);
		sides_exchange(s, &mine, &theirs, sizeof(mine));
	}
	if (!all_have(p->mem, p->bytes, THERE))
		device_die("the target's memory has changed");
	if (ibv_dealloc_mw(mw))
		device_die("ibv_dealloc_mw: %m");
}

/* ---- the initiator ---- */

static bool bears_status(enum ibv_wc_status status)
{
	if (status == IBV_WC_SUCCESS)
		return true;
	if (victims)
		return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR;
	if (!strcmp(how, "failed"))
		return status == IBV_WC_WR_FLUSH_ERR;
	return !strcmp(how, "deregistered") &&
	       (status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_WR_FLUSH_ERR);
}

/* The memory of each READ is used for something else as soon as it is complete.  False: some failed. */
static bool take_completions(struct pair *p, bool gone)
{
	uint64_t end = pair_now_ms() + LIMIT_MS;
	bool good = true;

	for (unsigned done = 0; done < READS;) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(p->cq, 1, &wc);
		uint8_t *mem;

		if (n < 0 || pair_now_ms() > end)
			device_die("%u of %u READs complete", done, READS);
		if (!n)
			continue;
		mem = p->mem + wc.wr_id * BYTES;
		if (!bears_status(wc.status))
			device_die("READ %lu: %s", wc.wr_id, ibv_wc_status_str(wc.status));
		good &= wc.status == IBV_WC_SUCCESS;
		if (!gone && wc.status == IBV_WC_SUCCESS && !all_have(mem, BYTES, THERE))
			device_die("READ %lu succeeds with other bytes", wc.wr_id);
		if (!gone)
			memset(mem, REUSED, BYTES);
		done++;
	}
	return good;
}

static void spin_somewhat(void)
{
	for (volatile uint32_t n = sides_draw(SPINS); n; n--)
		;
}

/* False: requests failed. */
static bool read_round(struct pair *p)
{
	bool good, dereg = !strcmp(how, "deregistered"), fail = !strcmp(how, "failed");

	memset(p->mem, BEFORE, p->bytes);
	for (unsigned i = 0; i < READS; i++)
		pair_read(p, i, (size_t)i * BYTES, (size_t)i * BYTES, BYTES);
	if (dereg || fail)
		spin_somewhat();
	if (dereg) {
		deregister_memory(p);
		memset(p->mem, REUSED, p->bytes);
	}
	if (fail)
		to_state(p, IBV_QPS_ERR);
	good = take_completions(p, dereg);
	spin_somewhat();
	if (!all_have(p->mem, p->bytes, REUSED))
		device_die("memory changed after the READs were complete");
	if (dereg)
		register_memory(p, 0);
	return good;
}

static void begin_again(struct side *s, struct pair *p)
{
	struct card mine = {.again = 1}, theirs;

	to_state(p, IBV_QPS_RESET);
	device_qp_init(p->qp, &connection);
	if (send(s->peer, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
		device_die("the target has gone: %m");
	meet(s, p, &theirs);
	sides_exchange(s, &mine, &theirs, sizeof(mine));
	/* What came late of what was given up before. */
	if (!all_have(p->mem, p->bytes, REUSED))
		device_die("memory changed when the READs had been given up");
}

static void initiator(struct side *s, struct pair *p)
{
	struct card mine = {0}, theirs;
	unsigned round = 0;

	meet(s, p, &theirs);
	sides_exchange(s, &mine, &theirs, sizeof(mine));
	p->peer_addr = theirs.addr;
	p->peer_rkey = theirs.rkey;
	sides_stand(s);
	while (round++ < ROUNDS || sides_heard(s) == SIDES_NOTHING) {
		if (read_round(p) && strcmp(how, "failed") != 0)
			continue;
		if (victims)
			return;
		begin_again(s, p);
	}
	(void)!send(s->peer, &mine, sizeof(mine), MSG_NOSIGNAL);
}

/* ---- */

static void side(struct side *s)
{
	struct pair p;

	pair_open(&p, device, &connection, (size_t)READS * BYTES);
	(s->number ? target : initiator)(s, &p);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		device_die("usage: reading DEVICE "
			   "completed|deregistered|failed|killed-0|killed-1 SEED");
	device = argv[1];
	how = argv[2];
	victims = !strncmp(how, "killed-", 7);
	if (victims)
		connection.timeout = 14;
	/* Whoever is told of an error by a timer alone, is told of it in two hours. */
	if (!strcmp(how, "deregistered"))
		connection.timeout = 31;
	sides_few_processors(1);
	sides_start(side, (uint32_t)strtoul(argv[3], NULL, 10));
	return victims ? sides_kill(how[7] == '1') : sides_stop(STOPS);
}
