// SPDX-License-Identifier: BSD-2-Clause
/* See reach.h. */
#include "tool/reach.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/route.h"

/* ---- the ways between processes ---- */

/* ---- gathering ---- */

static int domain_compare(const void *a, const void *b)
{
	uint32_t x = ((const struct reach_domain *)a)->pdn,
		 y = ((const struct reach_domain *)b)->pdn;

	return (x > y) - (x < y);
}

/* Domains are sorted, because a process may have as many as it has keys. */
static struct reach_domain *domain_find(const struct reach_process *p, uint32_t pdn)
{
	const struct reach_domain wanted = {.pdn = pdn};

	return p->domains
		       ? bsearch(&wanted, p->domains, p->ndomains, sizeof(wanted), domain_compare)
		       : NULL;
}

/* Makes a list, so that not every one of many queue pairs need look at all keys. */
static bool domains_list(struct reach_process *p)
{
	uint32_t n = 0;

	p->domains = calloc(EXPOSE_BLOCKS, sizeof(*p->domains));
	if (!p->domains)
		return false;
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = look_key_block(p->mem, i);

		if (!k)
			continue;
		p->domains[n] = (struct reach_domain){.pdn = k->pdn};
		p->domains[n++].ways[k->place.way] = true;
	}
	qsort(p->domains, n, sizeof(*p->domains), domain_compare);
	for (uint32_t i = 0; i < n; i++) {
		const struct reach_domain *next = &p->domains[i];
		struct reach_domain *last = p->ndomains ? &p->domains[p->ndomains - 1] : NULL;

		if (last && last->pdn == next->pdn)
			for (unsigned w = 0; w <= KEY_MAPPED; w++)
				last->ways[w] |= next->ways[w];
		else
			p->domains[p->ndomains++] = *next;
	}
	return true;
}

/* A program that holds us up does so once, and several together take not much longer. */
#define LOOK_MS	     5000
#define LOOK_LATE_MS 1000
#define LOOK_ALL_NS  20000000000u

static bool process_look(struct reach *r, uint32_t slot, uint64_t since)
{
	struct reach_process *p = &r->processes[r->n++];

	*p = (struct reach_process){
		.slot = slot,
		.exposes = atomic_load(&r->segments.slots[slot].expose_fd_plus_1),
		.look = look_at(&r->segments.slots[slot],
				clock_ns() - since < LOOK_ALL_NS ? LOOK_MS : LOOK_LATE_MS),
	};
	if (!p->look)
		return false;
	p->mem = p->look->copied ? &p->look->mem : NULL;
	if (p->mem)
		p->exposes = p->mem->keys_open;
	return !p->mem || domains_list(p);
}

bool reach_open(struct view *v, struct reach *r)
{
	uint64_t since = clock_ns();

	*r = (struct reach){0};
	if (!view_segments_map(v, &r->segments)) {
		reach_close(r);
		return false;
	}
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (atomic_load(&r->segments.slots[slot].alive) && !process_look(r, slot, since)) {
			reach_close(r);
			return false;
		}
	return true;
}

void reach_close(struct reach *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		free(r->processes[i].domains);
		look_free(r->processes[i].look);
	}
	view_segments_unmap(&r->segments);
}

const struct reach_process *reach_find(const struct reach *r, uint32_t slot)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->processes[i].slot == slot)
			return &r->processes[i];
	return NULL;
}

/* ---- queue pairs ---- */

const struct reach_process *reach_owner(const struct reach *r, uint32_t qpn)
{
	uint32_t owner = qpn && qpn <= IB_QPN_MASK
				 ? route_number_owner_plus_1(r->segments.registry, qpn)
				 : 0;

	return owner ? reach_find(r, owner - 1) : NULL;
}

/* A queue pair, and the place that its requests go to. */
struct requester_at {
	uint32_t transport; /* enum bth_transport */
	uint32_t qpn, dest_qpn;
	uint32_t dest_port; /* SUBNET_NONE: nobody has told it */
};

/*
 * Returns why one that has found that can reach none of the peer's keys; NULL: it can reach some.
 */
static const char *why_no_key(const struct reach_process *peer, uint32_t pdn, enum peer_found found)
{
	const struct reach_domain *d = domain_find(peer, pdn);

	if (!d || (!d->ways[KEY_KERNEL] && !d->ways[KEY_MAPPED]))
		return "none of the peer's keys is reached but by packets";
	return found == PEER_NO_KERNEL && !d->ways[KEY_MAPPED] ? peer_found_name(found) : NULL;
}

/* The same for an XRC target, whose shared receive queues give the protection domains. */
static const char *why_no_xrc_key(const struct reach_process *peer, uint32_t xrcdn,
				  enum peer_found found)
{
	const char *why = "none of the peer's shared receive queues is open to other processes";

	for (uint32_t i = 0; i < EXPOSE_BLOCKS && why; i++) {
		uint64_t word = atomic_load(&peer->mem->xrc_srqs[i]);

		if (word && srq_word_domain(word) == xrcdn)
			why = why_no_key(peer, srq_word_pdn(word), found);
	}
	return why;
}

/* Returns the responder for a queue pair of that type and number; NULL: there is none. */
static const struct qp_block *responder_of(const struct reach_process *peer, uint32_t transport,
					   uint32_t dest_qpn, uint32_t qpn)
{
	const struct qp_block *b = transport == BTH_DC
					   ? &peer->mem->dcs[expose_dc_place(dest_qpn, qpn)]
					   : &peer->mem->qps[dest_qpn % EXPOSE_BLOCKS];

	return b->qpn == dest_qpn && b->view.dest_qpn == qpn ? b : NULL;
}

/* Returns why its requests go by packets; NULL: they need not. */
static const char *why_packets(const struct reach *r, const struct reach_process *p,
			       const struct reach_process *peer, const struct requester_at *at)
{
	const struct qp_block *theirs;
	enum peer_found found;

	if (!peer)
		return "no process has the peer's queue pair";
	found = (enum peer_found)p->mem->found[peer->slot];
	if (!peer->mem)
		return peer_found_name(PEER_NOT_MAPPED);
	if (found != PEER_MAPPED && found != PEER_NO_KERNEL)
		return peer_found_name(found);
	if (atomic_load(&r->segments.slots[peer->slot].observers))
		return "somebody watches the peer's packets";
	theirs = responder_of(peer, at->transport, at->dest_qpn, at->qpn);
	if (!theirs || (at->dest_port != SUBNET_NONE && theirs->view.port != at->dest_port) ||
	    !qp_word_is_open(qp_word_load(&theirs->word)))
		return "the peer's queue pair takes no requests, or is handling packets";
	return at->transport == BTH_XRC ? why_no_xrc_key(peer, theirs->view.xrcdn, found)
					: why_no_key(peer, theirs->view.pdn, found);
}

/* Returns the reason for requests that need no packets. */
static const char *why_one_sided(enum peer_found found)
{
	return found == PEER_NO_KERNEL ? "mapped memory alone: the system forbids process_vm_readv "
					 "and writev"
				       : peer_found_name(found);
}

static void connected_way(const struct reach *r, const struct reach_process *p,
			  const struct requester_at *at, struct reach_qp *out)
{
	const struct reach_process *peer = reach_owner(r, at->dest_qpn);
	const char *why = why_packets(r, p, peer, at);
	/* a DC target keeps numbers for each initiator, also within one process */
	bool here = peer == p && at->transport != BTH_DC;

	out->one_sided = here || !why;
	if (here)
		out->why = "in one process";
	else
		out->why = why ? why : why_one_sided((enum peer_found)p->mem->found[peer->slot]);
}

/* Returns why keys and responders are not open, or not known. */
static const char *why_not_open(const struct reach_process *p)
{
	if (p->look->end == LOOK_HELD_UP)
		return "what the process lays open did not let itself be read";
	return p->exposes ? "what the process lays open may not be read from here"
			  : "the process lays nothing open: all data goes by packets";
}

static const char target_alone[] = "a target, which sends nothing itself";

static const char *why_no_block(const struct reach_process *p, enum ib_qp_type type)
{
	if (!p->exposes)
		return why_not_open(p);
	switch (type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_XRC_INI:
		return "too many queue pairs";
	case IB_QPT_XRC_TGT:
	case IB_QPT_DCT:
		return target_alone;
	case IB_QPT_DCI:
		return "not connected";
	default:
		return "datagrams and frames have no other way than packets";
	}
}

static bool other_qp(const struct reach *r, const struct reach_process *p,
		     const struct expose_note *n, struct reach_qp *out)
{
	enum ib_qp_type type = (enum ib_qp_type)n->kind;
	const struct requester_at at = {.transport = BTH_DC,
					.qpn = n->number,
					.dest_qpn = n->peer,
					.dest_port = SUBNET_NONE};

	*out = (struct reach_qp){
		.qpn = n->number,
		.peer_qpn = n->peer,
		.transport = transport_name(type),
		.why = why_no_block(p, type),
	};
	if (p->exposes && type == IB_QPT_DCI && at.dest_qpn)
		connected_way(r, p, &at, out);
	return n->number;
}

/* Gives queue pair i of a process, below REACH_QPS; false: there is none. */
static bool reach_qp_at(const struct reach *r, const struct reach_process *p, uint32_t i,
			struct reach_qp *out)
{
	const struct qp_block *b = &p->mem->qps[i % EXPOSE_BLOCKS];

	if (i >= EXPOSE_BLOCKS)
		return other_qp(r, p, &p->mem->other_qps[i - EXPOSE_BLOCKS], out);
	*out = (struct reach_qp){.qpn = b->qpn,
				 .peer_qpn = b->view.dest_qpn,
				 .transport = transport_name((enum ib_qp_type)b->type),
				 .why = "not connected"};
	if (b->type == IB_QPT_XRC_TGT)
		out->why = target_alone;
	else if (b->qpn && b->view.dest_qpn)
		connected_way(r, p,
			      &(struct requester_at){b->view.transport, b->qpn, b->view.dest_qpn,
						     b->view.dest_port},
			      out);
	return b->qpn;
}

bool reach_qp_find(const struct reach *r, const struct reach_process *p, uint32_t qpn,
		   struct reach_qp *out)
{
	uint32_t i = qpn % EXPOSE_BLOCKS;

	return (reach_qp_at(r, p, i, out) && out->qpn == qpn) ||
	       (reach_qp_at(r, p, i + EXPOSE_BLOCKS, out) && out->qpn == qpn);
}

bool reach_peer_port(const struct reach_process *p, uint32_t qpn, uint32_t *row)
{
	const struct qp_block *b = p->mem ? look_qp_block(p->mem, qpn) : NULL;

	if (!b || !b->view.dest_qpn)
		return false;
	*row = b->view.dest_port;
	return true;
}

/* ---- showing ---- */

static void qps_json(struct json *j, const struct reach *r, const struct reach_process *p)
{
	struct reach_qp qp;

	json_open(j, "queue_pairs", '[');
	for (uint32_t i = 0; i < REACH_QPS; i++) {
		if (!reach_qp_at(r, p, i, &qp))
			continue;
		json_open(j, NULL, '{');
		json_number(j, "qpn", qp.qpn);
		json_number(j, "peer_qpn", qp.peer_qpn);
		json_string(j, "transport", qp.transport);
		json_string(j, "way", qp.one_sided ? "one-sided" : "packets");
		json_string(j, "why", qp.why);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void key_json(struct json *j, uint32_t key, const struct key_block *k, enum key_way way,
		     enum key_why why)
{
	json_open(j, NULL, '{');
	json_number(j, "key", key);
	if (k) {
		json_number(j, "iova", k->iova);
		json_number(j, "length", k->length);
	}
	json_string(j, "way", key_way_name(way));
	json_string(j, "why", key_why_name(why));
	json_close(j, '}');
}

static void keys_json(struct json *j, const struct reach_process *p)
{
	json_open(j, "keys", '[');
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = look_key_block(p->mem, i);
		const struct expose_note *n = &p->mem->other_keys[i];

		if (k)
			key_json(j, k->key, k, k->place.way, k->place.why);
		if (n->number)
			key_json(j, n->number, NULL, KEY_PACKETS, (enum key_why)n->kind);
	}
	json_close(j, ']');
}

void reach_json(struct json *j, const struct reach *r, const struct reach_process *p)
{
	json_bool(j, "exposes", p->exposes);
	if (!p->mem || !p->exposes)
		json_string(j, "why", why_not_open(p));
	if (!p->mem)
		return;
	qps_json(j, r, p);
	keys_json(j, p);
}

void reach_print(const struct reach *r, const struct reach_process *p)
{
	unsigned keys[KEY_MAPPED + 1] = {0}, sided = 0, packets = 0;
	struct reach_qp qp;

	if (!p->mem || !p->exposes) {
		printf("  %s\n", why_not_open(p));
		return;
	}
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = look_key_block(p->mem, i);

		if (k)
			keys[k->place.way]++;
		keys[KEY_PACKETS] += p->mem->other_keys[i].number != 0;
	}
	for (uint32_t i = 0; i < REACH_QPS; i++)
		if (reach_qp_at(r, p, i, &qp)) {
			sided += qp.one_sided;
			packets += !qp.one_sided;
		}
	printf("  keys reached: %u by the kernel, %u mapped, %u by packets; queue pairs: %u "
	       "one-sided, %u by packets\n",
	       keys[KEY_KERNEL], keys[KEY_MAPPED], keys[KEY_PACKETS], sided, packets);
}
