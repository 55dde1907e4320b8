/* SPDX-License-Identifier: BSD-2-Clause */
/* See channel.h. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/trace.h"
#include "reach/way.h"
#include "wire/channel.h"
#include "wire/link.h"
#include "usermem/usermem.h"
#include "wire/payload.h"
#include "wire/record.h"
#include "wire/short_send.h"

/* A packet whose payload goes along takes at most this part of the ring, so that several fit. */
#define INLINE_SHARE RING_LARGEST_SHARE
static_assert(RING_MIN_BYTES / INLINE_SHARE >= LINK_MIN_PAYLOAD, "any channel takes that");
/* A visit of the receiver takes at most so much, so that all peers and the sender's own queues get
 * turns. */
#define DRAIN_RECORDS 64u
#define DRAIN_PAYLOAD (512u * 1024u)
/* Room returns to the sender in steps of this part of the ring, not with every record. */
#define GIVE_BACK_SHARE 16u
/*
 * Nobody waits for ever to send a packet that may be lost.  When the ring has been full for this
 * long and the peer has taken nothing out of it, the peer is stopped, and packets are dropped until
 * it goes on.  This is longer than a running process waits for a processor on a busy machine.
 */
#define STUCK_NS 1000000000u
/* A peer that runs and takes packets out shows it within this time, because it copies a part of the
 * ring, and gives that back, in less. */
#define IDLE_NS 20000u

/* ---- set-up and teardown ---- */

static uint32_t ring_bytes_of(size_t bytes)
{
	size_t half;

	if (bytes < sizeof(struct channel_mem))
		return 0;
	half = (bytes - sizeof(struct channel_mem)) / 2;
	return half > INT32_MAX ? 0 : (uint32_t)(half & ~(size_t)(RING_ALIGN - 1));
}

static int map_channel(int fd, size_t bytes, struct channel_mem **mem)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size < 0 || bytes > (uint64_t)st.st_size)
		return -EINVAL;
	/* If a peer shrank the file, our next access would kill us, so we seal it.  Sealing fails
	 * on descriptors that do not take seals; those come from somebody whom we trust. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	p = sparse_map(bytes, PROT_READ | PROT_WRITE, fd, 0);
	if (!p)
		return -errno;
	*mem = p;
	return 0;
}

static void channel_introduce(struct channel *ch)
{
	struct channel_side *me = &ch->mem->side[ch->side];

	atomic_store_explicit(&me->abi, CHANNEL_ABI, memory_order_release);
}

int channel_attach(struct channel *ch, uint16_t peer, int fd, size_t bytes, int side)
{
	uint32_t size = ring_bytes_of(bytes);
	struct channel_mem *mem = NULL;
	int rc;

	if (size < RING_MIN_BYTES || (side != 0 && side != 1))
		return -EINVAL;
	rc = map_channel(fd, bytes, &mem);
	if (rc)
		return rc;

	/* A sender that found this channel for its former peer may want the lock just now. */
	spin_lock(&ch->tx_lock);
	rc = ring_open_producer(&ch->tx, &mem->ring[side], mem->data + side * (size_t)size, size);
	if (!rc)
		rc = ring_open_consumer(&ch->rx, &mem->ring[!side],
					mem->data + !side * (size_t)size, size);
	if (!rc) {
		ch->mem = mem;
		ch->bytes = bytes;
		ch->peer = peer;
		ch->side = (uint8_t)side;
		atomic_store(&ch->inline_max, size / INLINE_SHARE);
		ch->met = false;
		ch->frames = false;
		ch->by_reference_ok = false;
		ch->sender = (struct pkt_foreign){.readable = &mem->side[side].readable};
		ch->next = NULL;
		ch->refs_up_to = 0;
		ch->stuck_since = 0;
		atomic_store(&ch->idle_tail, UINT64_MAX);
		atomic_store(&ch->broken, false);
		atomic_store(&ch->by_reference, false);
		atomic_store(&ch->starved, false);
		channel_introduce(ch);
	}
	spin_unlock(&ch->tx_lock);
	if (rc)
		munmap(mem, bytes);
	return rc;
}

void channel_detach(struct channel *ch)
{
	struct channel_mem *mem;

	spin_lock(&ch->tx_lock);
	mem = ch->mem;
	ch->mem = NULL;
	spin_unlock(&ch->tx_lock);
	if (mem)
		munmap(mem, ch->bytes);
}

static void channel_break(struct channel *ch, const char *where)
{
	if (atomic_exchange(&ch->broken, true))
		return;
	trace(channel, broken, ch->peer, where);
	log_warn("channel to process slot %u: %s; nothing more is exchanged with it", ch->peer,
		 where);
}

/* ---- may one read the other's memory? ---- */

static bool says_readable(const struct channel *ch)
{
	return atomic_load_explicit(&ch->mem->side[ch->side].readable, memory_order_relaxed) ==
	       READABLE_YES;
}

/* Is the peer's side there, and of our version? */
static bool channel_meet(struct channel *ch)
{
	uint32_t abi = atomic_load_explicit(&ch->mem->side[!ch->side].abi, memory_order_acquire);

	if (!abi || ch->met)
		return ch->met;
	if (abi != CHANNEL_ABI) {
		channel_break(ch, "other version");
		return false;
	}
	return ch->met = true;
}

/* We have not said that we can read the peer's memory, or have found that we no longer can: finds
 * out whether we can now.  True: there is a new answer for the peer. */
static bool probe_peer(struct channel *ch)
{
	struct channel_side *me = &ch->mem->side[ch->side];
	uint32_t was = atomic_load_explicit(&me->readable, memory_order_relaxed);
	bool yes;

	if (!channel_meet(ch))
		return false;
	yes = ch->sender.process && way_kernel_tid(ch->sender.process);
	if (!yes && was == READABLE_NO)
		return false;
	ch->by_reference_ok |= yes;
	trace(peer, payload, ch->peer, "received", yes ? "process_vm_readv" : "ring");
	atomic_store_explicit(&me->readable, yes ? READABLE_YES : READABLE_NO,
			      memory_order_release);
	return true;
}

static void hear_answer(struct channel *ch)
{
	struct channel_side *peer = &ch->mem->side[!ch->side];

	bool yes = atomic_load_explicit(&peer->readable, memory_order_acquire) == READABLE_YES;

	/* The peer may also lose the right again. */
	if (yes != atomic_load_explicit(&ch->by_reference, memory_order_relaxed)) {
		trace(peer, payload, ch->peer, "sent", yes ? "process_vm_readv" : "ring");
		atomic_store_explicit(&ch->by_reference, yes, memory_order_relaxed);
	}
}

/* ---- sending ---- */

/* Does the request name the places of its answer? */
static bool offers_places(const struct pkt *p)
{
	return unlikely(pkt_props(p)->read) && pkt_props(p)->request && p->nruns &&
	       p->nruns <= RUNS_MAX && p->run_keys && !p->foreign;
}

/* Does the peer acknowledge it only after it has read the payload?  See wire_xmit. */
static bool reference_allowed(const struct pkt *p)
{
	return p->ack_req && pkt_props(p)->request && p->payload_len >= CHANNEL_REFERENCE_MIN &&
	       pkt_is_reliable(p) && p->nruns <= RUNS_MAX && p->run_keys && !p->foreign &&
	       !p->source;
}

/* Does what ring_reserve does.  After -ENOSPC the sender has to wait, and hears when there is
 * room. */
static int channel_reserve(struct channel *ch, const struct pkt *p, uint32_t bytes, void **record)
{
	int rc;

	/* It is dropped when there is no room. */
	ch->tx.patient = p->no_wait;
	rc = ring_reserve(&ch->tx, bytes, record);

	if (rc == -ENOSPC) {
		/* We set the wish for room after the mark, so that a thread that hears that the
		 * wish was granted finds the mark (see room_again). */
		atomic_store(&ch->starved, true);
		rc = ring_reserve(&ch->tx, bytes, record);
	}
	return rc;
}

/* There was no room: has the peer stopped taking packets?  Under tx_lock. */
static bool peer_stuck(struct channel *ch)
{
	uint64_t now = clock_ns();

	if (!ch->stuck_since || ch->stuck_tail != ch->tx.tail) {
		ch->stuck_tail = ch->tx.tail;
		ch->stuck_since = now;
	}
	return now - ch->stuck_since >= STUCK_NS;
}

/* There was no room for a packet: is it dropped, or does its sender wait? */
static bool may_drop(struct channel *ch, const struct pkt *p)
{
	return !pkt_is_reliable(p) && (p->no_wait || peer_stuck(ch));
}

/*
 * The receiver looks at the record's first line all the time.  It fetches the line back as soon as
 * something is stored there, and then the line must come over once more for what we store later, at
 * least the ring's word.  So we fill that line of a long frame last.  We fill a shorter one before
 * it has come over.
 */
static void record_fill_line_last(uint8_t *record, const struct pkt *p)
{
	uint32_t header = record_header_bytes(p);
	uint32_t first = header < RING_ALIGN ? RING_ALIGN - header : 0;
	uint8_t *payload = record + header, *from = p->runs[0].addr;

	memcpy(payload + first, from + first, p->payload_len - first);
	(void)record_pack(record, p, false);
	memcpy(payload, from, first);
}

/* Fills all of the record but the ring's word.  along: bytes of the payload that go in the
 * record. */
static bool record_fill(void *record, const struct pkt *p, bool by_reference, uint32_t along)
{
	struct run to;

	if (along && payload_is_long_frame(p)) {
		record_fill_line_last(record, p);
		return true;
	}
	to = (struct run){record_pack(record, p, by_reference), along};
	return !along || payload_pull(&to, 1, p);
}

static enum wire_verdict send_locked(struct channel *ch, const struct pkt *p)
{
	bool by_reference = (atomic_load_explicit(&ch->by_reference, memory_order_relaxed) &&
			     reference_allowed(p)) ||
			    offers_places(p);
	bool along = !by_reference && !p->placed;
	uint32_t bytes = record_bytes(p, by_reference);
	void *record;
	int rc;

	/* A larger payload than wire_max_payload promised would wait for room for ever. */
	if (!bytes || (along && p->payload_len > ch->tx.size / INLINE_SHARE))
		return WIRE_LOST;
	rc = channel_reserve(ch, p, bytes, &record);
	if (rc == -ENOSPC)
		return may_drop(ch, p) ? WIRE_LOST : WIRE_BUSY;
	if (rc) {
		channel_break(ch, "its receive cursor makes no sense");
		return WIRE_LOST;
	}
	if (!record_fill(record, p, by_reference, along ? p->payload_len : 0))
		return WIRE_FAULT;
	/* A thread that gives the request up sets the mark first, then comes here to take back what
	 * is in the ring.  Once the mark is set, nothing of the request may enter the ring. */
	if (unlikely(pkt_withdrawn(p)))
		return WIRE_LOST;
	ring_commit(&ch->tx, bytes);
	if (by_reference)
		ch->refs_up_to = ch->tx.head;
	return WIRE_SENT;
}

bool channel_send(struct channel *ch, uint16_t peer, const struct pkt *p,
		  enum wire_verdict *verdict)
{
	*verdict = WIRE_LOST;
	/* We wait for faults of our own memory here, because the peer would wait for them while it
	 * holds an access slot of ours (reach/access.h). */
	if (offers_places(p))
		usermem_bring_in(p->runs, p->nruns, true);
	else if (atomic_load_explicit(&ch->by_reference, memory_order_relaxed) &&
		 reference_allowed(p))
		usermem_bring_in(p->runs, p->nruns, false);
	spin_lock(&ch->tx_lock);
	if (ch->mem && ch->peer == peer && !atomic_load_explicit(&ch->broken, memory_order_relaxed))
		*verdict = send_locked(ch, p);
	spin_unlock(&ch->tx_lock);
	return *verdict == WIRE_SENT;
}

bool channel_hold(struct channel *ch, uint16_t peer)
{
	spin_lock(&ch->tx_lock);
	if (likely(ch->mem && ch->peer == peer &&
		   !atomic_load_explicit(&ch->broken, memory_order_relaxed)))
		return true;
	spin_unlock(&ch->tx_lock);
	return false;
}

struct withdrawal {
	const struct record_refs *refs;
	void (*lost)(void *user, uint32_t sqpn);
	void *user;
	bool any;
};

static void withdraw_record(void *arg, void *record, uint32_t bytes)
{
	struct withdrawal *w = arg;
	uint32_t sqpn = record_withdraw(record, bytes, w->refs);

	w->any |= sqpn;
	if (sqpn && w->lost)
		w->lost(w->user, sqpn);
}

bool channel_withdraw(struct channel *ch, uint16_t peer, const struct record_refs *refs,
		      void (*lost)(void *user, uint32_t sqpn), void *user)
{
	struct withdrawal w = {refs, lost, user, false};

	spin_lock(&ch->tx_lock);
	if (ch->mem && ch->peer == peer && ch->refs_up_to > ring_read_up_to(&ch->tx))
		ring_each_unread(&ch->tx, withdraw_record, &w);
	spin_unlock(&ch->tx_lock);
	/* The marks stand before the program learns that the memory is its own again, and so before
	 * what it writes there; partner: the fence in pkt_withdrawn. */
	atomic_thread_fence(memory_order_seq_cst);
	return w.any;
}

bool channel_has_room(struct channel *ch, uint16_t peer, const struct pkt *p)
{
	uint32_t bytes = record_bytes(p, false);
	bool room = true;
	void *record;

	spin_lock(&ch->tx_lock);
	/* channel_send reports what is wrong with channel or packet. */
	if (ch->mem && ch->peer == peer && bytes && p->payload_len <= ch->tx.size / INLINE_SHARE &&
	    !atomic_load_explicit(&ch->broken, memory_order_relaxed))
		room = channel_reserve(ch, p, bytes, &record) != -ENOSPC || may_drop(ch, p);
	spin_unlock(&ch->tx_lock);
	return room;
}

/* Returns the peer's cursor; UINT64_MAX: there is no such peer. */
static uint64_t peers_cursor(struct channel *ch, uint16_t peer)
{
	uint64_t at = UINT64_MAX;

	spin_lock(&ch->tx_lock);
	if (ch->mem && ch->peer == peer && !atomic_load_explicit(&ch->broken, memory_order_relaxed))
		at = ring_read_up_to(&ch->tx);
	spin_unlock(&ch->tx_lock);
	return at;
}

bool channel_room_soon(struct channel *ch, uint16_t peer)
{
	uint64_t at = peers_cursor(ch, peer), until = clock_ns() + IDLE_NS;

	if (at == UINT64_MAX || at == atomic_load_explicit(&ch->idle_tail, memory_order_relaxed))
		return false;
	while (clock_ns() < until) {
		if (peers_cursor(ch, peer) != at)
			return true;
		cpu_relax();
	}
	atomic_store_explicit(&ch->idle_tail, at, memory_order_relaxed);
	return false;
}

bool channel_unread(struct channel *ch, uint16_t peer, uint64_t *up_to)
{
	bool unread;

	spin_lock(&ch->tx_lock);
	unread = ch->mem && ch->peer == peer &&
		 !atomic_load_explicit(&ch->broken, memory_order_relaxed) &&
		 ring_is_behind(&ch->tx, up_to);
	spin_unlock(&ch->tx_lock);
	return unread;
}

uint32_t channel_max_payload(struct channel *ch, bool by_reference_ok)
{
	if (by_reference_ok && atomic_load_explicit(&ch->by_reference, memory_order_relaxed))
		return CHANNEL_REFERENCE_MAX;
	return atomic_load_explicit(&ch->inline_max, memory_order_relaxed);
}

/* ---- receiving ---- */

static bool room_again(struct channel *ch)
{
	return !ring_wants_room(&ch->tx) && atomic_exchange(&ch->starved, false);
}

/* Packets answer a READ of which only the places have gone, so that the sender finds the error at
 * once, and not when its timer has expired. */
static bool read_stands(const struct pkt *p)
{
	return pkt_props(p)->read && pkt_props(p)->request &&
	       atomic_load_explicit(p->withdrawn, memory_order_relaxed) == RECORD_MEMORY_GONE;
}

/* If the sender has taken the payload back, the packet counts as lost.  We do not read from a
 * sender that has gone either. */
static bool taken_back(struct pkt *p, bool sender_gone)
{
	if (likely(!p->foreign))
		return false;
	if (sender_gone)
		return true;
	if (likely(!pkt_withdrawn(p)))
		return false;
	if (!read_stands(p))
		return true;
	p->foreign = NULL;
	p->withdrawn = NULL;
	p->nruns = 0;
	return false;
}

static int deliver_part(struct channel *ch, const void *record, uint32_t bytes, uint32_t part,
			bool sender_gone, const struct channel_sink *to)
{
	int rc = record_unpack_part(record, bytes, part, ch->by_reference_ok ? &ch->sender : NULL,
				    &ch->in);

	if (rc)
		return rc;
	/* We hear this before an answer that makes us send again what the peer could not read. */
	hear_answer(ch);
	if (unlikely(ch->in.has_ack))
		to->packet(to->user, &ch->in.ack);
	if (likely(!taken_back(&ch->in.pkt, sender_gone)))
		to->packet(to->user, &ch->in.pkt);
	return 0;
}

/* What of the budget of channel_drain a record has used up. */
struct delivered {
	uint32_t packets;
	uint64_t payload;
};

/* Delivers the parts of a record from this one on; returns 0, or -EPROTO. */
static int deliver_record(struct channel *ch, const void *record, uint32_t bytes, uint32_t part,
			  bool sender_gone, const struct channel_sink *to)
{
	int rc;

	do {
		rc = deliver_part(ch, record, bytes, part, sender_gone, to);
	} while (!rc && ++part < ch->in.parts);
	return rc;
}

/* Delivers a record.  Returns 0, or -EPROTO; *in says what counts for the budget. */
static int channel_deliver(struct channel *ch, const void *record, uint32_t bytes, bool sender_gone,
			   const struct channel_sink *to, struct delivered *in)
{
	uint32_t taken = 0, port;
	struct short_send b;
	int rc;

	ch->frames = record_is_frame(record);
	/* We look whether another record follows before the program gets this one.  Where records
	 * do not come alone the next line is still the sender's, so we leave it there. */
	if (record_comes_alone(record))
		__builtin_prefetch((const uint8_t *)record + bytes);
	if (!ch->frames) {
		ring_fetch(record, bytes);
		if (short_send_read(record, bytes, &b, &port)) {
			*in = (struct delivered){b.n, (uint64_t)b.n * b.payload_len};
			taken = to->short_sends(to->user, port, &b);
			if (likely(taken == b.n))
				return 0;
		}
	}
	rc = deliver_record(ch, record, bytes, taken, sender_gone, to);
	/* If a READ offers places, its answer is made here, so the budget counts what it asks
	 * for. */
	if (!taken)
		*in = (struct delivered){1, ch->in.pkt.foreign && ch->in.pkt.dma_len
						    ? ch->in.pkt.dma_len
						    : ch->in.pkt.payload_len};
	return rc;
}

unsigned channel_drain(struct channel *ch, struct way_peer *peer, bool all,
		       const struct channel_sink *to)
{
	uint32_t give_back_at = ch->rx.size / GIVE_BACK_SHARE;
	uint32_t records = 0, consumed = 0, bytes = 0;
	uint64_t payload = 0, total = 0;
	const void *record;
	struct delivered in;
	unsigned news = 0;
	int rc = 0;

	if (atomic_load_explicit(&ch->broken, memory_order_relaxed))
		return 0;
	ring_fetch_news(&ch->rx);
	ch->sender.process = peer;
	if (unlikely(!says_readable(ch)) && probe_peer(ch))
		news |= CHANNEL_TELL_PEER;
	hear_answer(ch);
	if (unlikely(atomic_load_explicit(&ch->starved, memory_order_relaxed)) && room_again(ch))
		news |= CHANNEL_ROOM;

	/* "All" is at most what the ring can hold, because a peer that goes on sending must not
	 * keep us for ever. */
	while (all ? total < ch->rx.size : records < DRAIN_RECORDS && payload < DRAIN_PAYLOAD) {
		rc = ring_peek(&ch->rx, &record, &bytes);
		if (rc <= 0)
			break;
		rc = channel_deliver(ch, record, bytes, all, to, &in);
		if (rc)
			break;
		payload += in.payload;
		records += in.packets;
		ring_next(&ch->rx, bytes);
		total += bytes;
		consumed += bytes;
		if (consumed >= give_back_at) {
			consumed = 0;
			if (ring_give_back(&ch->rx))
				news |= CHANNEL_TELL_PEER;
		}
		rc = 1;
	}
	if (ring_settle(&ch->rx))
		news |= CHANNEL_TELL_PEER;
	if (rc < 0) {
		channel_break(ch, "malformed record");
		news |= CHANNEL_ROOM; /* whoever waits for room learns that the peer is gone */
	}
	if (rc > 0)
		news |= CHANNEL_MORE;
	return records ? news | CHANNEL_DELIVERED : news;
}

bool channel_has_news(const struct channel *ch)
{
	return ring_has_news(&ch->rx) || ring_wants_room(&ch->rx) ||
	       atomic_load_explicit(&ch->starved, memory_order_relaxed);
}

uint64_t channel_taken_up_to(const struct channel *ch)
{
	return ch->rx.tail;
}

uint64_t channel_come_up_to(const struct channel *ch)
{
	/* The peer's word for it may be false. */
	return ch->rx.tail + ch->rx.size;
}
