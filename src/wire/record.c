/* SPDX-License-Identifier: BSD-2-Clause */
/* See record.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire/record.h"
#include "wire/ring.h"

/* Bytes of a frame's address. */
#define ETHERNET_ADDRESS 6u

struct record_address {
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
};

struct record_atomic {
	uint64_t swap_add;
	uint64_t compare;
};

struct record_masks {
	uint64_t swap;
	uint64_t compare;
};

struct record_orig {
	uint64_t orig;
};

static_assert(sizeof(struct record_base) + sizeof(struct record_orig) <= RING_ALIGN,
	      "the answer to an atomic takes one cache line");

struct record_global {
	union ib_gid sgid;
	union ib_gid dgid;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint16_t udp_sport;
	uint8_t dmac[6];
	uint16_t reserved;
};

struct record_run {
	uint64_t addr;
	uint32_t len;
	uint32_t key; /* only the sender uses it */
};

static_assert(RUNS_MAX <= UINT8_MAX, "parts is one byte");

static bool is_frame(uint8_t opcode)
{
	return (opcode & BTH_TRANSPORT_MASK) == BTH_RAW;
}

static bool is_read_request(uint8_t opcode)
{
	return bth_props_of(opcode)->read && bth_props_of(opcode)->request;
}

/* What a packet is decides which optional parts its record has; what the packet holds does not. */

static bool has_address(uint8_t opcode)
{
	const struct bth_props *p = bth_props_of(opcode);

	return p->reth || p->atomic_eth;
}

static bool has_atomic(uint8_t opcode)
{
	return bth_props_of(opcode)->atomic_eth;
}

static bool has_masks(uint8_t opcode)
{
	return bth_props_of(opcode)->masked;
}

/* What the memory held.  The answer to an atomic carries it, and so does a request that its sender
 * has executed. */
static bool has_orig(uint8_t opcode, uint8_t flags)
{
	return bth_props_of(opcode)->atomic_ack || (has_atomic(opcode) && flags & RECORD_EXECUTED);
}

/* Datagrams to many have a GRH (IBTA 9.6.1.2).  A frame has its address in front instead. */
static bool has_global(uint8_t opcode, bool grh, uint32_t dqpn)
{
	return grh || (dqpn == IB_MULTICAST_QPN && !is_frame(opcode));
}

static bool has_dc(uint8_t opcode)
{
	return bth_transport_props_of(opcode)->dc && bth_props_of(opcode)->request;
}

/* A frame without flags has no optional part, so nobody needs to ask for each. */
static inline bool is_bare(uint8_t opcode, uint8_t flags)
{
	return opcode == (BTH_RAW | BTH_SEND_ONLY) && !flags;
}

/* The size of the record without payload and without runs. */
static uint32_t header_bytes(uint8_t opcode, uint8_t flags, uint32_t dqpn)
{
	if (is_bare(opcode, flags))
		return sizeof(struct record_base);
	return (uint32_t)(sizeof(struct record_base) +
			  (record_has_rare(opcode, flags) ? sizeof(struct record_rare) : 0) +
			  (flags & RECORD_ACK ? sizeof(struct record_ack) : 0) +
			  (has_address(opcode) ? sizeof(struct record_address) : 0) +
			  (has_atomic(opcode) ? sizeof(struct record_atomic) : 0) +
			  (has_masks(opcode) ? sizeof(struct record_masks) : 0) +
			  (has_orig(opcode, flags) ? sizeof(struct record_orig) : 0) +
			  (has_global(opcode, flags & RECORD_GRH, dqpn)
				   ? sizeof(struct record_global)
				   : 0) +
			  (has_dc(opcode) ? sizeof(struct pkt_dc) : 0));
}

static uint8_t record_flags(const struct pkt *p, bool by_reference)
{
	return (uint8_t)((p->solicited ? RECORD_SOLICITED : 0) | (p->ack_req ? RECORD_ACK_REQ : 0) |
			 (p->path->grh ? RECORD_GRH : 0) | (p->path->roce_v1 ? RECORD_ROCE_V1 : 0) |
			 (by_reference ? RECORD_BY_REFERENCE : 0) |
			 (p->executed ? RECORD_EXECUTED : 0) | (p->placed ? RECORD_PLACED : 0));
}

uint32_t record_header_bytes(const struct pkt *p)
{
	return header_bytes(p->opcode, record_flags(p, false), p->dqpn);
}

uint32_t record_bytes(const struct pkt *p, bool by_reference)
{
	uint64_t n = header_bytes(p->opcode, record_flags(p, by_reference), p->dqpn);

	if (!by_reference)
		n += p->placed ? 0 : p->payload_len;
	else if (p->nruns <= RUNS_MAX)
		n += p->nruns * sizeof(struct record_run);
	else
		return 0;
	n = align_up(n, RING_ALIGN);
	return n <= INT32_MAX ? (uint32_t)n : 0;
}

static void *record_put(void *at, const void *part, size_t n)
{
	memcpy(at, part, n);
	return (char *)at + n;
}

/* Stores field by field: a copy of a base made elsewhere would load it before its narrow stores are
 * done. */
static void *record_put_base(void *record, const struct pkt *p, bool by_reference)
{
	const struct path *path = p->path;
	struct record_base *base = record;

	base->opcode = p->opcode;
	base->flags = record_flags(p, by_reference);
	base->aeth = p->aeth;
	base->sl = path->sl;
	base->pkey = p->pkey;
	base->slid = path->slid;
	base->dlid = path->dlid;
	base->path_bits = (uint8_t)(path->path_bits | (p->migreq_clear ? RECORD_MIGREQ_CLEAR : 0));
	base->parts = by_reference ? (uint8_t)p->nruns : 0;
	base->dqpn = p->dqpn;
	base->sqpn = p->sqpn;
	base->psn = p->psn;
	base->npkts = p->npkts ? p->npkts : 1;
	base->src_port = path->src_port;
	base->dst_port = path->dst_port;
	base->payload_len = p->payload_len;
	base->arg = pkt_props(p)->aeth ? p->msn : p->imm;
	return base + 1;
}

void *record_pack(void *record, const struct pkt *p, bool by_reference)
{
	const struct path *path = p->path;
	uint8_t flags = record_flags(p, by_reference), nruns = by_reference ? (uint8_t)p->nruns : 0;
	void *at = record_put_base(record, p, by_reference);

	if (is_bare(p->opcode, flags))
		return at;
	if (record_has_rare(p->opcode, flags)) {
		struct record_rare part = {
			bth_transport_props_of(p->opcode)->deth ? p->qkey : p->srqn, 0};

		at = record_put(at, &part, sizeof(part));
	}
	if (has_address(p->opcode)) {
		struct record_address part = {p->va, p->rkey, p->dma_len};

		at = record_put(at, &part, sizeof(part));
	}
	if (has_atomic(p->opcode)) {
		struct record_atomic part = {p->swap_add, p->compare};

		at = record_put(at, &part, sizeof(part));
	}
	if (has_masks(p->opcode)) {
		struct record_masks part = {p->swap_mask, p->compare_mask};

		at = record_put(at, &part, sizeof(part));
	}
	if (has_orig(p->opcode, flags)) {
		struct record_orig part = {p->atomic_orig};

		at = record_put(at, &part, sizeof(part));
	}
	if (has_global(p->opcode, path->grh, p->dqpn)) {
		struct record_global part = {
			.sgid = path->sgid,
			.dgid = path->dgid,
			.flow_label = path->flow_label,
			.hop_limit = path->hop_limit,
			.traffic_class = path->traffic_class,
			.udp_sport = atomic_load_explicit(&path->udp_sport, memory_order_relaxed),
		};

		memcpy(part.dmac, path->dmac, sizeof(part.dmac));
		at = record_put(at, &part, sizeof(part));
	}
	if (has_dc(p->opcode)) {
		const struct pkt_dc none = {0};

		at = record_put(at, p->dc ? p->dc : &none, sizeof(none));
	}
	for (uint32_t i = 0; i < nruns; i++) {
		struct record_run part = {(uintptr_t)p->runs[i].addr, (uint32_t)p->runs[i].len,
					  p->run_keys ? p->run_keys[i] : 0};

		at = record_put(at, &part, sizeof(part));
	}
	return at;
}

/* Reads a record once, front to back, never past its end. */
struct reader {
	const unsigned char *at;
	size_t left;
};

static bool record_take(struct reader *r, void *part, size_t n)
{
	if (n > r->left)
		return false;
	memcpy(part, r->at, n);
	/* The peer may go on writing; from here on the compiler has to use the copy. */
	__asm__ volatile("" : : : "memory");
	r->at += n;
	r->left -= n;
	return true;
}

static bool record_overlap(const struct record_run *part, const struct run *memory)
{
	uint64_t begin = (uintptr_t)memory->addr;

	/* true if either begins within the other */
	return part->addr - begin < memory->len || begin - part->addr < part->len;
}

static bool lies_in(const struct reader *record, const struct record_base *base,
		    const struct record_refs *refs)
{
	size_t off = header_bytes(base->opcode, base->flags, base->dqpn);
	struct record_run part;
	struct reader r;

	if (off > record->left)
		return false;
	r = (struct reader){record->at + off, record->left - off};
	for (uint32_t i = 0; i < base->parts && record_take(&r, &part, sizeof(part)); i++)
		if (part.key == refs->key && record_overlap(&part, &refs->memory))
			return true;
	return false;
}

uint32_t record_withdraw(void *record, uint32_t bytes, const struct record_refs *refs)
{
	const struct reader whole = {record, bytes};
	struct reader r = whole;
	struct record_rare *live = (void *)((struct record_base *)record + 1);
	struct record_base base;

	/* The words are our own, but they lie where the peer may write. */
	if (!record_take(&r, &base, sizeof(base)) || !(base.flags & RECORD_BY_REFERENCE))
		return 0;
	if (refs->sqpn ? base.sqpn != refs->sqpn
		       : base.src_port != refs->src_port || !lies_in(&whole, &base, refs))
		return 0;
	if (refs->sqpn)
		atomic_store_explicit(&live->withdrawn, RECORD_GIVEN_UP, memory_order_relaxed);
	else if (!atomic_load_explicit(&live->withdrawn, memory_order_relaxed))
		atomic_store_explicit(&live->withdrawn, RECORD_MEMORY_GONE, memory_order_relaxed);
	return base.sqpn;
}

/* Takes what only some transports and payloads need. */
static bool take_rare(struct reader *r, const struct record_base *base, struct pkt *p)
{
	const struct bth_transport_props *t = bth_transport_props_of(base->opcode);
	const struct record_rare *live = (const void *)r->at;
	struct record_rare rare;

	if (!record_has_rare(base->opcode, base->flags))
		return true;
	if (!record_take(r, &rare, sizeof(rare)))
		return false;
	if (t->deth)
		p->qkey = rare.number;
	else if (t->xrceth)
		p->srqn = rare.number;
	if (base->flags & RECORD_BY_REFERENCE)
		p->withdrawn = &live->withdrawn;
	return true;
}

/* Takes the acknowledgement in front of the packet. */
static bool take_ack(struct reader *r, const struct record_base *base, struct record_pkt *out)
{
	struct record_ack ack;

	out->has_ack = base->flags & RECORD_ACK;
	if (likely(!out->has_ack))
		return true;
	if ((base->opcode & BTH_TRANSPORT_MASK) != BTH_RC || !record_take(r, &ack, sizeof(ack)))
		return false;
	out->ack = (struct pkt){
		.batched = true,
		.opcode = BTH_RC | BTH_ACK,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.pkey = base->pkey,
		.dqpn = base->dqpn,
		.sqpn = base->sqpn,
		.psn = ack.psn,
		.npkts = 1,
		.msn = ack.msn,
		.path = &out->path,
	};
	return true;
}

static bool take_optional(struct reader *r, const struct record_base *base, struct pkt *p,
			  struct path *path)
{
	struct record_address address = {0};
	struct record_atomic atomic = {0};
	struct record_orig orig = {0};
	struct record_masks masks = {0};
	struct record_global global = {0};

	if (has_address(base->opcode) && !record_take(r, &address, sizeof(address)))
		return false;
	if (has_atomic(base->opcode) && !record_take(r, &atomic, sizeof(atomic)))
		return false;
	if (has_masks(base->opcode) && !record_take(r, &masks, sizeof(masks)))
		return false;
	if (has_orig(base->opcode, base->flags) && !record_take(r, &orig, sizeof(orig)))
		return false;
	if (has_global(base->opcode, base->flags & RECORD_GRH, base->dqpn) &&
	    !record_take(r, &global, sizeof(global)))
		return false;
	p->va = address.va;
	p->rkey = address.rkey;
	p->dma_len = address.dma_len;
	p->swap_add = atomic.swap_add;
	p->compare = atomic.compare;
	p->swap_mask = masks.swap;
	p->compare_mask = masks.compare;
	p->atomic_orig = orig.orig;
	path->sgid = global.sgid;
	path->dgid = global.dgid;
	path->flow_label = global.flow_label;
	path->hop_limit = global.hop_limit;
	path->traffic_class = global.traffic_class;
	atomic_store_explicit(&path->udp_sport, global.udp_sport, memory_order_relaxed);
	memcpy(path->dmac, global.dmac, sizeof(path->dmac));
	return true;
}

/* Takes all optional parts between the base and the payload. */
static bool take_parts(struct reader *r, const struct record_base *base, struct record_pkt *out)
{
	if (!take_rare(r, base, &out->pkt) || !take_ack(r, base, out) ||
	    !take_optional(r, base, &out->pkt, &out->path))
		return false;
	if (!has_dc(base->opcode))
		return true;
	out->pkt.dc = &out->dc;
	return record_take(r, &out->dc, sizeof(out->dc));
}

static bool take_runs(struct reader *r, const struct record_base *base, struct record_pkt *out)
{
	uint32_t total = is_read_request(base->opcode) ? out->pkt.dma_len : base->payload_len;
	uint64_t sum = 0;

	if (base->parts > RUNS_MAX)
		return false;
	for (uint32_t i = 0; i < base->parts; i++) {
		struct record_run part;

		if (!record_take(r, &part, sizeof(part)) || part.len > total - sum)
			return false;
		sum += part.len;
		out->runs[i].addr = (void *)(uintptr_t)part.addr;
		out->runs[i].len = part.len;
	}
	return sum == total;
}

/* Makes 'out' the packet of one of several SENDs that share the record, and leaves in r what begins
 * with its payload. */
static bool take_shared(struct reader *r, const struct record_base *base, uint32_t part,
			struct record_pkt *out)
{
	uint64_t off = (uint64_t)part * record_part_bytes(base->payload_len);

	if (!base->parts)
		return !part;
	if (part >= base->parts || !record_may_share(base->opcode) || base->npkts != 1 ||
	    base->payload_len > r->left || off > r->left)
		return false;
	out->has_ack &= !part;
	out->parts = base->parts;
	out->pkt.psn = psn_add(base->psn, part);
	r->at += off;
	r->left -= (size_t)off;
	return true;
}

int record_unpack_part(const void *record, uint32_t bytes, uint32_t part,
		       struct pkt_foreign *sender, struct record_pkt *out)
{
	struct reader r = {record, bytes};
	struct record_base base;
	bool by_reference;

	if (!record_take(&r, &base, sizeof(base)))
		return -EPROTO;
	by_reference = base.flags & RECORD_BY_REFERENCE;
	out->parts = 1;
	out->pkt = (struct pkt){
		.batched = true,
		.opcode = base.opcode,
		.solicited = base.flags & RECORD_SOLICITED,
		.ack_req = base.flags & RECORD_ACK_REQ,
		.migreq_clear = base.path_bits & RECORD_MIGREQ_CLEAR,
		.executed = base.flags & RECORD_EXECUTED,
		.aeth = base.aeth,
		.pkey = base.pkey,
		.dqpn = base.dqpn,
		.sqpn = base.sqpn,
		.psn = base.psn,
		.npkts = base.npkts,
		.path = &out->path,
		.payload_len = base.payload_len,
		.runs = out->runs,
	};
	out->path = (struct path){
		.src_port = base.src_port,
		.dst_port = base.dst_port,
		.slid = base.slid,
		.dlid = base.dlid,
		.sl = base.sl,
		.path_bits = (uint8_t)(base.path_bits & ~RECORD_MIGREQ_CLEAR),
		.grh = base.flags & RECORD_GRH,
		.roce_v1 = base.flags & RECORD_ROCE_V1,
	};
	if (pkt_props(&out->pkt)->aeth)
		out->pkt.msn = base.arg;
	else
		out->pkt.imm = base.arg;
	out->has_ack = false;
	if (!base.npkts || (!is_bare(base.opcode, base.flags) && !take_parts(&r, &base, out)))
		return -EPROTO;
	if (by_reference) {
		/* A READ may offer places although nobody has agreed on references: its sender does
		 * not ask first whether we can write there. */
		if (part || (!sender && !is_read_request(base.opcode)) ||
		    !take_runs(&r, &base, out))
			return -EPROTO;
		out->pkt.nruns = sender ? base.parts : 0;
		out->pkt.foreign = sender;
		return 0;
	}
	if (!take_shared(&r, &base, part, out))
		return -EPROTO;
	if (base.flags & RECORD_PLACED) {
		out->pkt.placed = true;
		return pkt_props(&out->pkt)->read && pkt_props(&out->pkt)->response ? 0 : -EPROTO;
	}
	if (base.payload_len > r.left)
		return -EPROTO;
	if (is_frame(base.opcode))
		memcpy(out->path.dgid.raw, r.at, min_u32(base.payload_len, ETHERNET_ADDRESS));
	if (base.payload_len) {
		/* The receiver only reads the payload, although a run has no const. */
		out->runs[0] = (struct run){(void *)(uintptr_t)r.at, base.payload_len};
		out->pkt.nruns = 1;
	}
	return 0;
}
