// SPDX-License-Identifier: BSD-2-Clause
/* See reach.h. */
#include "tool/reach.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/client/link.h"

/* ---- gathering ---- */

static bool slots_map(struct view *v, struct reach *r)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	void *p;

	if (link_call(v->sock, &m, MSG_INFO, fds))
		return false;
	r->bytes = m.info_reply.slots_bytes;
	p = r->bytes < sizeof(struct slot) * REGISTRY_SLOTS
		    ? MAP_FAILED
		    : mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, fds[HELLO_FD_SLOTS], 0);
	msg_close_fds(fds);
	r->slots = p == MAP_FAILED ? NULL : p;
	return r->slots;
}

static struct reach_domain *domain_find(const struct reach_process *p, uint32_t pdn)
{
	for (uint32_t i = 0; i < p->ndomains; i++)
		if (p->domains[i].pdn == pdn)
			return &p->domains[i];
	return NULL;
}

static struct reach_domain *domain_add(struct reach_process *p, uint32_t pdn)
{
	struct reach_domain *d = realloc(p->domains, (p->ndomains + 1) * sizeof(*d));

	if (!d)
		return NULL;
	p->domains = d;
	d[p->ndomains] = (struct reach_domain){.pdn = pdn};
	return &d[p->ndomains++];
}

/* The key in a block; NULL: there is none, or it changes. */
static const struct key_block *key_at(const struct reach_process *p, uint32_t i)
{
	const struct key_block *k = &p->mem->keys[i];

	return k->key && !(k->seq & 1) && (unsigned)k->place.way <= KEY_MAPPED ? k : NULL;
}

/* A short list, so that many queue pairs need not look at all keys each. */
static bool domains_list(struct reach_process *p)
{
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = key_at(p, i);
		struct reach_domain *d = k ? domain_find(p, k->pdn) : NULL;

		if (!k)
			continue;
		if (!d)
			d = domain_add(p, k->pdn);
		if (!d)
			return false;
		d->ways[k->place.way] = true;
	}
	return true;
}

static bool process_look(struct reach *r, uint32_t slot)
{
	struct reach_process *p = &r->processes[r->n++];

	*p = (struct reach_process){.slot = slot, .mem = expose_snapshot(&r->slots[slot])};
	return !p->mem || domains_list(p);
}

bool reach_open(struct view *v, struct reach *r)
{
	*r = (struct reach){0};
	if (!slots_map(v, r))
		return false;
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (atomic_load(&r->slots[slot].alive) && !process_look(r, slot)) {
			reach_close(r);
			return false;
		}
	return true;
}

void reach_close(struct reach *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		free(r->processes[i].domains);
		free(r->processes[i].mem);
	}
	if (r->slots)
		munmap(r->slots, r->bytes);
}

const struct reach_process *reach_find(const struct reach *r, uint32_t slot)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->processes[i].slot == slot)
			return &r->processes[i];
	return NULL;
}

/* ---- queue pairs ---- */

static const struct qp_block *block_of(const struct reach_process *p, uint32_t qpn)
{
	const struct qp_block *b = &p->mem->qps[qpn % EXPOSE_BLOCKS];

	return b->qpn == qpn ? b : NULL;
}

/* Who has the queue pair that this one is connected to? */
static const struct reach_process *peer_of(const struct reach *r, const struct qp_block *b)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct reach_process *p = &r->processes[i];
		const struct qp_block *theirs = p->mem ? block_of(p, b->view.dest_qpn) : NULL;

		if (theirs && theirs->view.port == b->view.dest_port)
			return p;
	}
	return NULL;
}

/* Why none of the peer's keys can be reached by a process that has found that; NULL: some can. */
static const char *why_no_key(const struct reach_process *peer, uint32_t pdn, enum peer_found found)
{
	const struct reach_domain *d = domain_find(peer, pdn);

	if (!d || (!d->ways[KEY_KERNEL] && !d->ways[KEY_MAPPED]))
		return "none of the peer's keys is reached but by packets";
	return found == PEER_NO_KERNEL && !d->ways[KEY_MAPPED] ? peer_found_name(found) : NULL;
}

/* Why its requests go by packets; NULL: they need not. */
static const char *why_packets(const struct reach *r, const struct reach_process *p,
			       const struct reach_process *peer, const struct qp_block *b)
{
	const struct qp_block *theirs;
	enum peer_found found;

	if (!peer)
		return "no process lays such a queue pair open";
	found = (enum peer_found)p->mem->found[peer->slot];
	if (found != PEER_MAPPED && found != PEER_NO_KERNEL)
		return peer_found_name(found);
	if (atomic_load(&r->slots[peer->slot].observers))
		return "somebody watches the peer's packets";
	theirs = block_of(peer, b->view.dest_qpn);
	if (theirs->view.dest_qpn != b->qpn || !qp_word_is_open(qp_word_load(&theirs->word)))
		return "the peer's queue pair takes no requests, or is handling packets";
	return why_no_key(peer, theirs->view.pdn, found);
}

/* For requests that need no packets. */
static const char *why_one_sided(enum peer_found found)
{
	return found == PEER_NO_KERNEL ? "mapped memory alone: the system forbids process_vm_readv "
					 "and writev"
				       : peer_found_name(found);
}

bool reach_qp_at(const struct reach *r, const struct reach_process *p, uint32_t i,
		 struct reach_qp *out)
{
	const struct qp_block *b = &p->mem->qps[i];
	const struct reach_process *peer;
	const char *why;

	*out = (struct reach_qp){.qpn = b->qpn, .peer_qpn = b->view.dest_qpn};
	if (!b->qpn)
		return false;
	peer = b->view.dest_qpn ? peer_of(r, b) : NULL;
	if (peer == p) {
		out->one_sided = true;
		out->why = "in one process";
		return true;
	}
	why = b->view.dest_qpn ? why_packets(r, p, peer, b) : "not connected";
	out->one_sided = !why;
	out->why = why ? why : why_one_sided((enum peer_found)p->mem->found[peer->slot]);
	return true;
}

/* ---- showing ---- */

static void qps_json(struct json *j, const struct reach *r, const struct reach_process *p)
{
	struct reach_qp qp;

	json_open(j, "queue_pairs", '[');
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		if (!reach_qp_at(r, p, i, &qp))
			continue;
		json_open(j, NULL, '{');
		json_number(j, "qpn", qp.qpn);
		json_number(j, "peer_qpn", qp.peer_qpn);
		json_string(j, "way", qp.one_sided ? "one-sided" : "packets");
		json_string(j, "why", qp.why);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void keys_json(struct json *j, const struct reach_process *p)
{
	json_open(j, "keys", '[');
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = key_at(p, i);

		if (!k)
			continue;
		json_open(j, NULL, '{');
		json_number(j, "key", k->key);
		json_number(j, "iova", k->iova);
		json_number(j, "length", k->length);
		json_string(j, "way", key_way_name(k->place.way));
		json_string(j, "why", key_why_name(k->place.why));
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Without keys, peers read what it sends and no more. */
static bool reach_exposes(const struct reach_process *p)
{
	return p->mem && p->mem->keys_open;
}

void reach_json(struct json *j, const struct reach *r, const struct reach_process *p)
{
	json_bool(j, "exposes", reach_exposes(p));
	if (!reach_exposes(p))
		return;
	qps_json(j, r, p);
	keys_json(j, p);
}

void reach_print(const struct reach *r, const struct reach_process *p)
{
	unsigned keys[KEY_MAPPED + 1] = {0}, sided = 0, packets = 0;
	struct reach_qp qp;

	if (!reach_exposes(p)) {
		puts("  exposes nothing: all data goes by packets");
		return;
	}
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++) {
		const struct key_block *k = key_at(p, i);

		if (k)
			keys[k->place.way]++;
		if (reach_qp_at(r, p, i, &qp)) {
			sided += qp.one_sided;
			packets += !qp.one_sided;
		}
	}
	printf("  keys reached: %u by the kernel, %u mapped, %u by packets; queue pairs: %u "
	       "one-sided, %u by packets\n",
	       keys[KEY_KERNEL], keys[KEY_MAPPED], keys[KEY_PACKETS], sided, packets);
}
