// SPDX-License-Identifier: BSD-2-Clause
/*
 * quiet DEVICE KIND ROUNDS SEED: what was given back is left alone.
 *
 *     peer   WRITE READ FETCH_ADD SEND WRITE ...                        | hears of an error, ends
 *     host   ...wait...  [peer stopped]  revoke  fill with poison  [peer goes on]    look
 *
 * A KIND is a way in which memory, or a queue pair, is taken back.  From then on no byte of the
 * memory may change, and no byte of the poison may come out at the peer.  In every second round the
 * peer is stopped, wherever it may be, from before the memory is taken back until after that.
 *
 * In the kinds own-... the host gives up requests of its own, and their memory gets the poison.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11 };

#define RECEIVES 64u
#define LIMIT_S	 200
#define REQUESTS 12u   /* of the host's own */
#define MAX_WAIT 8000u /* microseconds until the memory is taken back, at most */

struct round {
	struct host *host;
	struct memory_side *side; /* the host's */
	uint8_t *mem, *other;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey; /* what the peer uses */
};

struct kind {
	const char *name;
	unsigned hits;			  /* 0: the host's own requests */
	void (*prepare)(struct round *r); /* or NULL */
	void (*revoke)(struct round *r);
};

/* ---- keys ---- */

static void by_dereg(struct round *r)
{
	host_dereg(r->mr);
	r->mr = NULL;
}

static void rereg_region(const struct round *r, int flags, uint8_t *to, int access)
{
	int err = ibv_rereg_mr(r->mr, flags, NULL, to, HOST_BYTES, access);

	host_want(!err, "ibv_rereg_mr: %d, %m", err);
}

static void by_moving(struct round *r)
{
	rereg_region(r, IBV_REREG_MR_CHANGE_TRANSLATION, r->other, 0);
}

static void by_access(struct round *r)
{
	rereg_region(r, IBV_REREG_MR_CHANGE_ACCESS, r->mem, IBV_ACCESS_LOCAL_WRITE);
}

/* ---- windows ---- */

static struct ibv_mw_bind_info whole_region(const struct round *r, size_t bytes)
{
	return (struct ibv_mw_bind_info){.mr = r->mr,
					 .addr = (uintptr_t)r->mem,
					 .length = bytes,
					 .mw_access_flags = bytes ? SIDE_REMOTE : 0};
}

static void finish_round(struct round *r, const char *what)
{
	struct ibv_wc wc = side_next_wc(r->side);

	host_want(wc.status == IBV_WC_SUCCESS, "%s: %s", what, ibv_wc_status_str(wc.status));
}

static void bind_first(struct round *r, size_t bytes)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = whole_region(r, bytes)};

	host_want(!ibv_bind_mw(r->side->qp, r->mw, &bind), "ibv_bind_mw: %m");
	finish_round(r, "the bind");
}

static void make_first(struct round *r)
{
	r->mw = ibv_alloc_mw(r->side->pd, IBV_MW_TYPE_1);
	host_want(r->mw, "ibv_alloc_mw: %m");
	bind_first(r, HOST_BYTES);
	r->rkey = r->mw->rkey;
}

static void by_unbinding(struct round *r)
{
	bind_first(r, 0);
}

static void by_rebinding(struct round *r)
{
	bind_first(r, HOST_BYTES);
}

static void make_second(struct round *r)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	r->mw = ibv_alloc_mw(r->side->pd, IBV_MW_TYPE_2);
	host_want(r->mw, "ibv_alloc_mw: %m");
	wr.bind_mw.mw = r->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(r->mw->rkey);
	wr.bind_mw.bind_info = whole_region(r, HOST_BYTES);
	side_post(r->side, &wr);
	finish_round(r, "the bind");
	r->rkey = wr.bind_mw.rkey;
}

static void by_invalidating(struct round *r)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = r->rkey};

	side_post(r->side, &wr);
	finish_round(r, "the invalidation");
}

static void by_freeing(struct round *r)
{
	host_want(!ibv_dealloc_mw(r->mw), "ibv_dealloc_mw: %m");
	r->mw = NULL;
}

/* ---- queue pairs ---- */

static void host_to_state(const struct round *r, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int err = ibv_modify_qp(r->side->qp, &attr, IBV_QP_STATE);

	host_want(!err, "ibv_modify_qp: %s", strerror(err));
}

static void post_receives(struct round *r)
{
	for (unsigned i = 0; i < RECEIVES; i++)
		side_post_recv(r->side, r->mem + i * PEER_MESSAGE, PEER_MESSAGE, r->mr->lkey);
}

static void by_error(struct round *r)
{
	host_to_state(r, IBV_QPS_ERR);
}

static void by_reset(struct round *r)
{
	host_to_state(r, IBV_QPS_RESET);
}

static void by_destroying(struct round *r)
{
	host_want(!ibv_destroy_qp(r->side->qp), "ibv_destroy_qp: %m");
	r->side->qp = NULL;
}

/* A request of the host's own fails: with its completion the queue pair is in error. */
static void by_failing(struct round *r)
{
	struct ibv_sge sge = {(uintptr_t)r->other, 8, 0};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {r->host->peer.addr, r->host->peer.rkey}};
	struct ibv_wc wc;

	side_post(r->side, &wr);
	do
		wc = side_next_wc(r->side);
	while (!wc.wr_id);
	host_want(wc.status != IBV_WC_SUCCESS, "a request with a wrong key succeeds");
}

#define ONE_SIDED  (PEER_HITS_WRITE | PEER_HITS_READ | PEER_HITS_ADD)
#define EVERYTHING (ONE_SIDED | PEER_HITS_SEND)

static const struct kind kinds[] = {
	{"dereg", ONE_SIDED, NULL, by_dereg},
	{"rereg-memory", ONE_SIDED, NULL, by_moving},
	{"rereg-access", ONE_SIDED, NULL, by_access},
	{"window-unbind", ONE_SIDED, make_first, by_unbinding},
	{"window-rebind", ONE_SIDED, make_first, by_rebinding},
	{"window-invalidate", ONE_SIDED, make_second, by_invalidating},
	{"window-free", ONE_SIDED, make_second, by_freeing},
	{"qp-error", EVERYTHING, post_receives, by_error},
	{"qp-reset", EVERYTHING, post_receives, by_reset},
	{"qp-destroy", EVERYTHING, post_receives, by_destroying},
	{"error-completion", EVERYTHING, post_receives, by_failing},
	{"own-dereg", 0, NULL, by_dereg},
	{"own-error", 0, NULL, by_error},
	{"own-reset", 0, NULL, by_reset},
	{"own-destroy", 0, NULL, by_destroying},
};

/* ---- a round ---- */

static void begin_round(struct round *r, struct host *h, const struct kind *k)
{
	peer_connect(&h->peer);
	*r = (struct round){.host = h, .side = &h->side};
	r->mem = device_memory(HOST_BYTES);
	r->other = device_memory(HOST_BYTES);
	memset(r->mem, OLD, HOST_BYTES);
	memset(r->other, OLD, HOST_BYTES);
	r->mr = host_reg(h, r->mem, HOST_BYTES);
	r->rkey = r->mr->rkey;
	if (k->prepare)
		k->prepare(r);
}

static void end_round(struct round *r)
{
	if (r->mw && ibv_dealloc_mw(r->mw))
		device_die("ibv_dealloc_mw: %m");
	if (r->mr)
		host_dereg(r->mr);
	munmap(r->mem, HOST_BYTES);
	munmap(r->other, HOST_BYTES);
}

/* Returns what the peer got done before. */
static uint64_t play_round(struct host *h, const struct kind *k, bool stops)
{
	struct peer_answer a;
	struct round r;

	begin_round(&r, h, k);
	peer_hammer(&h->peer, r.mem, r.rkey, HOST_BYTES, k->hits);
	usleep((useconds_t)(random() % MAX_WAIT));
	if (stops)
		peer_stop(&h->peer);
	k->revoke(&r);
	memset(r.mem, PEER_POISON, HOST_BYTES);
	if (stops)
		peer_go_on(&h->peer);
	a = peer_wait(&h->peer);
	host_want(a.status, "the peer's last request ends well");
	host_want_all(r.mem, HOST_BYTES, PEER_POISON, "memory that was taken back");
	host_want(!a.wrong, "the peer has got %lu bytes of memory that was taken back",
		  (unsigned long)a.wrong);
	end_round(&r);
	return a.done;
}

static void post_own(struct round *r)
{
	static const uint32_t sizes[] = {65536, HOST_BYTES, 64, 16384};

	for (unsigned i = 0; i < REQUESTS; i++) {
		struct ibv_sge sge = {(uintptr_t)r->mem, sizes[i % 4], r->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {r->host->peer.addr, r->host->peer.rkey}};

		side_post(r->side, &wr);
	}
}

/* A request on a new connection arrives after everything that was sent before. */
static void want_nothing_to_come(struct round *r)
{
	struct ibv_mr *mr = host_reg(r->host, r->other, HOST_BYTES);
	struct ibv_sge sge = {(uintptr_t)r->other, 64, mr->lkey};
	struct peer *p = &r->host->peer;
	enum ibv_wc_status status;
	uint64_t wrong;

	p->patient = true;
	peer_connect(p);
	p->patient = false;
	peer_receive(p, 1, 64);
	status = side_do(r->side, IBV_WR_SEND, sge, 0, 0);
	host_want(status == IBV_WC_SUCCESS, "the last SEND: %s", ibv_wc_status_str(status));
	peer_collect(p);
	wrong = peer_look(p, PEER_POISON);
	host_want(!wrong, "%lu bytes arrived after their request was given up",
		  (unsigned long)wrong);
	host_dereg(mr);
}

static uint64_t play_own(struct host *h, const struct kind *k, bool stops)
{
	struct ibv_wc wc;
	struct round r;
	uint64_t done = 0;

	begin_round(&r, h, k);
	peer_receive(&h->peer, REQUESTS, PEER_BYTES);
	/* What was sent to a peer that is stopped lies there until it goes on. */
	if (stops)
		peer_stop(&h->peer);
	post_own(&r);
	usleep((useconds_t)(random() % (MAX_WAIT / 8)));
	while (ibv_poll_cq(r.side->cq, 1, &wc) > 0)
		done += wc.status == IBV_WC_SUCCESS;
	k->revoke(&r);
	memset(r.mem, PEER_POISON, HOST_BYTES);
	if (stops)
		peer_go_on(&h->peer);
	want_nothing_to_come(&r);
	end_round(&r);
	return done;
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	device_die("'%s' is no kind", name);
}

static int list_kinds(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		puts(kinds[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	struct host h = {0};
	const struct kind *k;
	uint64_t done = 0;
	time_t until;
	int rounds;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list_kinds();
	if (argc != 5)
		device_die("usage: quiet DEVICE KIND ROUNDS SEED | --list");
	k = find_kind(argv[2]);
	rounds = atoi(argv[3]);
	srandom((unsigned)atoi(argv[4]));
	alarm(LIMIT_S);
	until = time(NULL) + LIMIT_S / 2;
	h.device = argv[1];
	peer_start(&h.peer, &h.side, h.device);
	h.peer.patient = false;
	side_open(&h.side, h.device);
	/* Where there is much else to do, the peer may get no processor in a round's milliseconds. */
	for (int i = 0; i < rounds || (k->hits && !done && time(NULL) < until); i++)
		done += k->hits ? play_round(&h, k, i & 1) : play_own(&h, k, i & 1);
	printf("%d rounds, %lu requests before\n", rounds, (unsigned long)done);
	host_want(done || !k->hits, "the peer never got anything done");
	peer_end(&h.peer);
	side_close(&h.side);
	return 0;
}
