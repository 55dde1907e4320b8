/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process lays open to its peers on the same machine, so that an RDMA WRITE or READ costs
 * them a copy and nothing else: no packet, no system call, and no processor time of the target, as
 * on hardware.
 *
 * The exposure is shared memory of each process, with a block per responder (whom it listens to,
 * which PSN comes next) and per memory key (what it covers, and in which file or at which address
 * the memory lies).  A peer maps it through /proc.  Where it may not, or something is not exposed,
 * packets through the channel do the same more slowly.
 *
 * The owner does not trust what lies here.  It reads back only counters (PSN, MSN), and masks them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/descriptor.h"
#include "base/spin.h"
#include "exposure/object.h"
#include "exposure/qp_word.h"
#include "exposure/segment.h"
#include "reach/access.h"
#include "reach/way.h"
#include "registry/registry.h"

/*
 * A shared receive queue of an XRC domain, as initiators in other processes see it.  Their requests
 * name it, and the word says under which protection domain they are executed.  It is one word, so
 * that readers see all of it at once:
 *
 *     there:1 | 0:7 | number, its upper bits:8 | XRC domain:24 | protection domain:24
 */

#define SRQ_WORD_NUMBER	      0xffffffu
#define SRQ_WORD_DOMAIN_SHIFT 24u
#define SRQ_WORD_UPPER_SHIFT  48u
#define SRQ_WORD_THERE	      (1ull << 63)

/* The word without the protection domain.  The lower bits of the queue's number are the word's
 * place. */
static inline uint64_t srq_word_of(uint32_t srqn, uint32_t xrcdn)
{
	return SRQ_WORD_THERE | (uint64_t)(srqn >> 16 & 0xff) << SRQ_WORD_UPPER_SHIFT |
	       (uint64_t)xrcdn << SRQ_WORD_DOMAIN_SHIFT;
}

/* The whole word; 0: the numbers are too large for it. */
static inline uint64_t srq_word_make(uint32_t srqn, uint32_t xrcdn, uint32_t pdn)
{
	return xrcdn <= SRQ_WORD_NUMBER && pdn <= SRQ_WORD_NUMBER ? srq_word_of(srqn, xrcdn) | pdn
								  : 0;
}

/* True if the word is that of this queue, of this domain. */
static inline bool srq_word_is(uint64_t word, uint32_t srqn, uint32_t xrcdn)
{
	return (word & ~(uint64_t)SRQ_WORD_NUMBER) == srq_word_of(srqn, xrcdn);
}

static inline uint32_t srq_word_domain(uint64_t word)
{
	return (uint32_t)(word >> SRQ_WORD_DOMAIN_SHIFT) & SRQ_WORD_NUMBER;
}

static inline uint32_t srq_word_pdn(uint64_t word)
{
	return (uint32_t)word & SRQ_WORD_NUMBER;
}

#define EXPOSE_BLOCKS 65536u /* of each kind; numbers that collide are not exposed */

/* What a request must match before the peer may execute it at a responder. */
struct qp_view {
	uint32_t transport; /* enum bth_transport, which its peer's must be */
	uint32_t dest_qpn;
	uint32_t port;	    /* row of the responder's own port */
	uint32_t dest_port; /* row of the port where the peer lives */
	uint32_t pdn;	    /* XRC: the domain of the queue that the request names */
	uint32_t access;    /* enum ib_access: what the QP allows and takes */
	uint32_t pkey;
	uint32_t xrcdn;	     /* XRC: the XRC domain of such queues */
	uint64_t connection; /* DC: the initiator's connection */
};

/* A responder as its peer in another process sees it; its type is for people. */
struct qp_block {
	cacheline_aligned _Atomic(uint64_t) word; /* exposure/qp_word.h */
	_Atomic(uint32_t) qpn;			  /* 0: none */
	_Atomic(uint32_t) type;			  /* enum ib_qp_type */
	struct qp_view view;			  /* changes with a new epoch of the word */
};

/* How peers come to the memory of a key. */
enum key_way {
	KEY_PACKETS, /* only packets reach it */
	KEY_KERNEL,  /* through the kernel, by its address in the owner */
	KEY_MAPPED   /* in a file that both map */
};

/* Why a key has its way; for people who ask. */
enum key_why {
	KEY_WHY_UNSAID,
	KEY_WHY_ASKED,	   /* kernel, packets: --memory says so */
	KEY_WHY_PRIVATE,   /* kernel: memory of the program alone */
	KEY_WHY_CLOSED,	   /* kernel: shared, but peers cannot map it: System V, other files */
	KEY_WHY_SHARED,	   /* mapped: a file, or device memory, that others may map */
	KEY_WHY_ON_DEMAND, /* packets: the memory's pages need not be present */
	KEY_WHY_MAY_WAIT,  /* packets: a fault may wait for another program */
	/* Packets: the program has unmapped the memory, which peers had mapped, too. */
	KEY_WHY_UNMAPPED,
	KEY_WHY_LOCAL,	/* packets: no right for peers to read or write */
	KEY_WHY_WINDOW, /* packets: work requests say what it covers, and for whom */
	KEY_WHY_LIST,	/* packets: pieces of other keys, strides, signatures */
	KEY_WHY_DEVX,	/* packets: made by a command of DEVX */
	KEY_WHYS
};

struct key_place {
	enum key_way way;
	enum key_why why;
	uint64_t addr;		    /* KEY_KERNEL */
	struct segment_ref segment; /* KEY_MAPPED: the file that holds the memory */
	uint64_t offset;	    /* KEY_MAPPED: where the memory begins in the file */
};

/* A memory key; seq is odd while the block changes. */
struct key_block {
	cacheline_aligned _Atomic(uint32_t) seq;
	_Atomic(uint32_t) key; /* 0: none */
	uint32_t pdn;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	struct key_place place;
};

/* What a process has found at a peer; for people who ask. */
enum peer_found {
	PEER_NOT_TRIED,
	PEER_NOT_MAPPED, /* it exposes nothing, may not be mapped, or lives in other namespaces */
	PEER_MAPPED,
	PEER_NO_KERNEL, /* mapped, but the kernel does not let us copy; asked again at times */
	PEER_NO_RSEQ,	/* mapped, but our threads have no restartable sequences (base/rseq.h) */
	PEER_FOUNDS
};

/*
 * A key or queue pair that peers reach by packets alone.  Only people read it; its fields may be of
 * different moments.
 */
struct expose_note {
	_Atomic(uint32_t) number; /* a key as it was allocated, or a QP number; 0: none */
	_Atomic(uint32_t) kind;	  /* enum key_why, or enum ib_qp_type */
	_Atomic(uint32_t) peer;	  /* a QP's peer; 0: none */
	/* of a key */
	_Atomic(uint32_t) pdn, access;
	_Atomic(uint64_t) iova, length;
};

struct expose_mem {
	struct qp_block qps[EXPOSE_BLOCKS];
	struct qp_block dcs[EXPOSE_BLOCKS]; /* responders of DC targets, one per initiator */
	struct key_block keys[EXPOSE_BLOCKS];
	_Atomic(uint64_t) xrc_srqs[EXPOSE_BLOCKS]; /* exposure/expose.h */
	struct segment_row segments[SEGMENTS];
	struct access_table access;
	struct alive alive;
	_Atomic(uint8_t) found[REGISTRY_SLOTS]; /* enum peer_found, by the peer's slot */
	/* Not 0: the process lays keys and responders open.  0: peers only read payloads that it
	 * sends. */
	uint32_t keys_open;
	struct expose_note other_qps[EXPOSE_BLOCKS];
	struct expose_note other_keys[EXPOSE_BLOCKS];
	struct object_form forms[OBJECT_KINDS];
	struct object_row objects[OBJECT_ROWS];
};

/* What this process lays open. */
struct expose {
	struct slot *slots;
	uint16_t slot;
	struct hidden file;
	struct expose_mem *mem;
	bool keys; /* it lays keys and responders open */
	struct spin key_lock;
	struct segment_table segments; /* the caller of segment_table_* serializes them */
	_Atomic(uint64_t) objects_made;
	/* Rows for objects: those that none has had yet, and a stack of those given back.  A peer
	 * could change what lies in the shared memory, so the stack does not lie there. */
	struct spin row_lock;
	uint32_t rows_begun;
	uint32_t rows_back;
	uint32_t *row_stack;
	struct access_revoker revoker;
};

/*
 * What a requester remembers of a peer's key whose memory is mapped.  It holds as long as the peer
 * has revoked nothing: a process that takes a key back makes it invalid before it counts the
 * revocation.
 */
struct key_memo {
	uint64_t remote; /* the remote's number; 0: the memo is empty */
	uint64_t revocations;
	uint64_t let_go; /* the segment view's count */
	uint32_t key, pdn, access;
	/* The part that is mapped in one piece, in addresses that requests use. */
	uint64_t va, length;
	uint8_t *at;
};

/* A peer's exposed memory, as this process maps it. */
struct remote {
	uint64_t number; /* no other remote has it */
	struct expose_mem *mem;
	struct segment_view segments; /* the files of its keys, as far as we map them */
	struct way_peer reach;
	int32_t pid;
	bool keys;	/* the peer lays keys and responders open */
	uint32_t alive; /* generation of the peer's slot */
	struct slot *slots;
	struct slot *slot; /* the peer's */
	uint32_t holder;   /* the word by which its remote shards name us */
	/* Indexed by the counting thread's own shard: one plus the shard among the peer's counters
	 * that the thread has alone; 1: it has none; 0: it has not asked yet. */
	_Atomic(uint8_t) shards[SLOT_THREAD_SHARDS];
	struct remote *next;
};

/* keys: also lays keys and responders open.  Returns 0 or negative errno; after an error nothing is
 * exposed and everything else works. */
int expose_open(struct expose *e, struct slot *slots, uint16_t slot, bool keys) must_check;
void expose_close(struct expose *e);
/* Takes the block of a QP number; NULL if another QP has it. */
struct qp_block *expose_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type);
/* The place of the block of a DC target's responder for an initiator. */
static inline uint32_t expose_dc_place(uint32_t dctn, uint32_t dcin)
{
	return (dctn + dcin * 40503u) % EXPOSE_BLOCKS;
}
/* Takes the block at that place, and puts the target's number in; NULL if another responder has
 * it. */
struct qp_block *expose_dc(struct expose *e, uint32_t dctn, uint32_t dcin);
/* Frees the block.  The owner has closed the word before. */
void expose_qp_end(struct qp_block *b);
/* Exposes a shared receive queue of an XRC domain; false if another one has its place. */
bool expose_srq(struct expose *e, uint32_t srqn, uint32_t xrcdn, uint32_t pdn);
/* Takes a queue back for which expose_srq was true.  The caller then calls expose_revoke. */
void expose_srq_end(struct expose *e, uint32_t srqn);
/* Exposes a key; false if another key has the block. */
bool expose_key(struct expose *e, const struct key_block *k);
void expose_key_end(struct expose *e, uint32_t key);
/* As expose_revoke, for callers that may not wait: returns a ticket.  expose_revoke_over says
 * whether the ticket's revocation is over; the caller asks it again if not. */
uint64_t expose_revoke_ask(struct expose *e);
bool expose_revoke_over(struct expose *e, uint64_t ticket);
/* Called when keys or responders have ended: when it returns, no peer is in an access that they
 * allowed.  Waits for peers in such an access; the caller holds no lock of the data path. */
void expose_revoke(struct expose *e);
/* The calling thread lives while peers may reach this process by the kernel.  It calls
 * expose_alive_end before it ends. */
void expose_alive_begin(struct expose *e);
void expose_alive_end(struct expose *e);

/* Lists a key or queue pair that has no block of its own, or updates its entry; does not list it if
 * another one has its place. */
/* Takes the number, domain, rights, range and reason from k. */
void expose_note_key(struct expose *e, const struct key_block *k);
void expose_note_key_end(struct expose *e, uint32_t key);
void expose_note_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type, uint32_t peer);
void expose_note_qp_end(struct expose *e, uint32_t qpn);

/* Names for people: "kernel", "private memory", "mapped".  They accept any value. */
const char *key_way_name(enum key_way way);
const char *key_why_name(enum key_why why);
const char *transport_name(enum ib_qp_type type);
const char *peer_found_name(enum peer_found found);
/* Opens what the process in that slot exposes, to copy it; negative: it exposes nothing, or we may
 * not read it. */
int expose_snapshot_open(const struct slot *s);
/* Copies the exposure into memory of zeros, but not at one moment.  Reading leaves no pages
 * behind. */
bool expose_snapshot(int fd, struct expose_mem *to) must_check;
/* True if the row still holds the object with that serial number. */
bool expose_object_stands(int fd, uint32_t row, uint64_t serial) must_check;

/* Maps what a peer exposes; NULL if it exposes nothing, or we may not map it. */
struct remote *remote_open(struct slot *slots, uint16_t slot, uint16_t me);
void remote_close(struct remote *f);

/* Copies the block of a key consistently; false if the key is not exposed.  It is inline, so that
 * callers pay only for the fields that they use. */
static inline must_check bool remote_key(const struct remote *f, uint32_t key,
					 struct key_block *out)
{
	const struct key_block *b = &f->mem->keys[(key >> 8) % EXPOSE_BLOCKS];
	uint32_t seq = atomic_load_explicit(&b->seq, memory_order_acquire);

	if (seq & 1 || atomic_load_explicit(&b->key, memory_order_relaxed) != key)
		return false;
	out->pdn = b->pdn;
	out->access = b->access;
	out->iova = b->iova;
	out->length = b->length;
	out->place = b->place;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&b->seq, memory_order_relaxed) == seq &&
	       (out->place.way == KEY_KERNEL ||
		range_inside(out->place.offset, out->length, SEGMENT_MAX_BYTES));
}

/* The remote of a peer if the peer's process lives; else NULL.  The caller is a reader. */
static inline struct remote *remote_living(const _Atomic(struct remote *) *at)
{
	struct remote *f = atomic_load_explicit(at, memory_order_acquire);

	if (unlikely(!f) ||
	    unlikely(atomic_load_explicit(&f->slot->alive, memory_order_relaxed) != f->alive))
		return NULL;
	return f;
}

/* Takes a shard of the peer's counters for a thread of ours: see remote_shard. */
unsigned remote_shard_take(struct remote *f, unsigned own);

/* The shard of the peer's counters that the thread with our shard 'own' has alone; 0: it counts
 * where others do. */
static inline unsigned remote_shard(struct remote *f, unsigned own)
{
	unsigned known = atomic_load_explicit(&f->shards[own], memory_order_relaxed);

	return likely(known) ? known - 1 : remote_shard_take(f, own);
}

static inline struct qp_block *remote_qp(const struct remote *f, uint32_t qpn)
{
	return &f->mem->qps[qpn % EXPOSE_BLOCKS];
}

/* The block of a DC target's responder for an initiator. */
static inline struct qp_block *remote_dc(const struct remote *f, uint32_t dctn, uint32_t dcin)
{
	return &f->mem->dcs[expose_dc_place(dctn, dcin)];
}

static inline const _Atomic(uint64_t) *remote_srq(const struct remote *f, uint32_t srqn)
{
	return &f->mem->xrc_srqs[srqn % EXPOSE_BLOCKS];
}
