// SPDX-License-Identifier: BSD-2-Clause
/* See peers.h. */
#include "tie/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory_file.h"

/* Requests come at most so far behind the last one; one that is further away begins anew. */
#define FLOW_BACK 8192
#define RTT_MOST \
	1000000000u  /* above, the answer was for another request, or a process was stopped */
#define RTT_SHARE 8u /* what the last one adds to the average */

/* ---- rows ---- */

static int file_make(struct peers *p)
{
	int fd = memfd_create("softhca-peers", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (fd < 0)
		return -errno;
	ret = memory_file_resize(fd, sizeof(*p->mem));
	if (!ret && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		ret = -errno;
	if (ret) {
		close(fd);
		return ret;
	}
	p->file = hidden_keep(fd);
	return p->file.fd < 0 ? -EMFILE : 0;
}

int peers_open(struct peers *p, struct slot *slot)
{
	int ret;

	*p = (struct peers){.file = HIDDEN_NONE};
	pthread_mutex_init(&p->lock, NULL);
	if (getrandom(p->key, sizeof(p->key), 0) != sizeof(p->key))
		return -EAGAIN;
	p->key[0] |= 1;
	p->key[1] |= 1;
	ret = file_make(p);
	if (ret)
		return ret;
	p->index = calloc(PEERS_INDEX, sizeof(*p->index));
	p->mem = mmap(NULL, sizeof(*p->mem), PROT_READ | PROT_WRITE, MAP_SHARED, p->file.fd, 0);
	if (p->mem == MAP_FAILED)
		p->mem = NULL;
	if (!p->index || !p->mem) {
		peers_close(p, slot);
		return -ENOMEM;
	}
	atomic_store(&slot->peers_id, p->file.id);
	atomic_store(&slot->peers_fd_plus_1, p->file.fd + 1);
	return 0;
}

void peers_close(struct peers *p, struct slot *slot)
{
	atomic_store(&slot->peers_fd_plus_1, 0);
	hidden_close(&p->file);
	if (p->mem)
		munmap(p->mem, sizeof(*p->mem));
	p->mem = NULL;
	free(p->index);
	p->index = NULL;
	pthread_mutex_destroy(&p->lock);
}

/* Of the products the upper bits, which depend on all of the address. */
static uint32_t gid_hash(const struct peers *p, const union ib_gid *gid)
{
	uint64_t low = gid->half[1] * p->key[1];

	return (uint32_t)(((gid->half[0] ^ low >> 32) * p->key[0] + low) >> 32);
}

/* Where the address is in the index, or would be. */
static uint32_t index_of(const struct peers *p, const union ib_gid *gid, uint32_t *row_plus_1)
{
	uint32_t at = gid_hash(p, gid) % PEERS_INDEX;

	for (;; at = (at + 1) % PEERS_INDEX) {
		*row_plus_1 = atomic_load_explicit(&p->index[at], memory_order_acquire);
		if (!*row_plus_1 || !memcmp(&p->mem->peer[*row_plus_1 - 1].gid, gid, sizeof(*gid)))
			return at;
	}
}

static __attribute__((noinline, cold)) struct tied_peer *row_make(struct peers *p,
								  const union ib_gid *gid)
{
	struct tied_peer *t = NULL;
	uint32_t at, row, n;

	pthread_mutex_lock(&p->lock);
	at = index_of(p, gid, &row);
	n = atomic_load(&p->mem->n);
	if (row) {
		t = &p->mem->peer[row - 1];
	} else if (n < TIED_PEERS) {
		t = &p->mem->peer[n];
		t->gid = *gid;
		atomic_store_explicit(&p->index[at], (uint16_t)(n + 1), memory_order_release);
		atomic_store_explicit(&p->mem->n, n + 1, memory_order_release);
	}
	pthread_mutex_unlock(&p->lock);
	return t;
}

struct tied_peer *peers_find(struct peers *p, const union ib_gid *gid)
{
	struct tied_peer *t;
	uint32_t row;

	(void)index_of(p, gid, &row);
	if (likely(row))
		return &p->mem->peer[row - 1];
	t = row_make(p, gid);
	if (!t)
		atomic_fetch_add_explicit(&p->mem->unlisted, 1, memory_order_relaxed);
	return t;
}

/* ---- what is sent again, and how long answers take ---- */

/* Of a connection, requests with numbers; the others are datagrams. */
static bool pkt_is_numbered(const struct pkt *pkt)
{
	uint8_t transport = pkt_transport(pkt);

	return transport == BTH_RC || transport == BTH_UC || transport == BTH_XRC;
}

static bool pkt_is_sequence_nak(const struct pkt *pkt)
{
	return pkt_props(pkt)->aeth && pkt->aeth == (AETH_NAK | NAK_PSN_SEQUENCE);
}

static struct peer_flow *flow_of(struct peer_flow *flows, uint32_t qpn)
{
	return &flows[(qpn ^ qpn >> 12) % PEER_FLOWS];
}

/* True if a request with this number or a later one has gone before. */
static bool flow_repeats(struct peer_flow *f, uint32_t qpn, const struct pkt *pkt)
{
	int32_t ahead = psn_diff(pkt->psn, f->next);

	if (unlikely(atomic_load_explicit(&f->qpn, memory_order_relaxed) != qpn ||
		     ahead < -FLOW_BACK)) {
		atomic_store_explicit(&f->asked_plus_1, 0, memory_order_relaxed);
		atomic_store_explicit(&f->qpn, qpn, memory_order_release);
		ahead = 0;
	}
	if (ahead < 0)
		return true;
	f->next = psn_add(pkt->psn, pkt->npkts);
	return false;
}

void peers_send(struct peers *p, struct tied_peer *t, const struct pkt *pkt)
{
	const struct bth_props *props = pkt_props(pkt);
	struct peer_flow *f = flow_of(p->out, pkt->sqpn);
	uint32_t asked;

	if (!pkt_is_numbered(pkt))
		return;
	if (props->response) {
		if (unlikely(pkt_is_sequence_nak(pkt)))
			peer_add(t, PEER_IN_MISSED, 1);
		return;
	}
	if (unlikely(flow_repeats(f, pkt->sqpn, pkt))) {
		peer_add(t, PEER_OUT_REPEATED, 1);
		/* The answer may be to either. */
		atomic_store_explicit(&f->asked_plus_1, 0, memory_order_relaxed);
		return;
	}
	asked = atomic_load_explicit(&f->asked_plus_1, memory_order_relaxed);
	if (asked || !(pkt->ack_req || props->read || props->atomic))
		return;
	atomic_store_explicit(&f->asked_ns, clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&f->asked_plus_1, pkt->psn + 1, memory_order_release);
}

static void rtt_note(struct tied_peer *t, uint64_t ns)
{
	uint64_t least = atomic_load_explicit(&t->rtt_least_ns, memory_order_relaxed);
	uint64_t old = atomic_load_explicit(&t->rtt_ns, memory_order_relaxed);

	if (ns > RTT_MOST)
		return;
	ns = ns ? ns : 1;
	if (!least || ns < least)
		atomic_store_explicit(&t->rtt_least_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&t->rtt_ns, old ? old - old / RTT_SHARE + ns / RTT_SHARE : ns,
			      memory_order_relaxed);
}

/* An answer to our queue pair: to the request that the time is measured of, or a later one. */
static void answer_take(struct peers *p, struct tied_peer *t, const struct pkt *pkt,
			uint64_t now_ns)
{
	struct peer_flow *f = flow_of(p->out, pkt->dqpn);
	uint32_t asked;
	uint64_t since;

	if (unlikely(pkt_is_sequence_nak(pkt)))
		peer_add(t, PEER_OUT_MISSED, 1);
	asked = atomic_load_explicit(&f->asked_plus_1, memory_order_acquire);
	if (!asked || atomic_load_explicit(&f->qpn, memory_order_acquire) != pkt->dqpn ||
	    psn_diff(pkt->psn, asked - 1) < 0)
		return;
	since = atomic_load_explicit(&f->asked_ns, memory_order_relaxed);
	atomic_store_explicit(&f->asked_plus_1, 0, memory_order_relaxed);
	if (now_ns > since)
		rtt_note(t, now_ns - since);
}

void peers_take(struct peers *p, struct tied_peer *t, const struct pkt *pkt, uint64_t now_ns)
{
	if (!pkt_is_numbered(pkt))
		return;
	if (pkt_props(pkt)->response)
		answer_take(p, t, pkt, now_ns);
	else if (unlikely(flow_repeats(flow_of(p->in, pkt->dqpn), pkt->dqpn, pkt)))
		peer_add(t, PEER_IN_REPEATED, 1);
}
