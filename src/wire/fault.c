// SPDX-License-Identifier: BSD-2-Clause
/* Faults on demand at a port; see fault.h. */
#include "wire/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/counter_shard.h"
#include "wire/payload.h"
#include "wire/process.h"

/* Two flows that meet in a row of the table take it from each other, and begin anew. */
#define FLOWS 1024u

/* What a port holds at most, as a buffer of a switch; then packets are lost. */
#define HELD_BYTES_MAX (16u << 20)

/* A packet that another one is to overtake goes on after this time in any case. */
#define REORDER_NS 1000000u

/* PSNs further apart do not belong to the same connection any more. */
#define PSN_NEAR 0x100000u

/* Packets of one queue pair to another one, requests or responses. */
struct fault_flow {
	uint32_t sqpn, dqpn, src_port, response;
	bool used;
	uint32_t first, last;	   /* PSNs */
	uint32_t again;		   /* how many PSNs have come that were not new */
	struct fault_held *behind; /* goes on after the next packet of the flow */
	struct fault_held *latest; /* the last one that waits; those that come later go on later */
};

struct fault_held {
	struct fault_held *next, *prev;
	uint64_t due_ns;
	struct fault_flow *flow; /* in whose 'behind' or 'latest' it may be */
	bool twice;
	struct pkt pkt;
	struct path path;
	struct pkt_dc dc;
	struct run run;
	_Alignas(8) uint8_t payload[];
};

/* What the rules say together. */
struct verdict {
	const char *lost; /* by what; NULL: it is not */
	bool corrupt;
	bool twice;
	bool overtaken;
	uint64_t due_ns; /* 0: now */
};

/* ---- rules ---- */

/* Takes the daemon's rules over if they have changed. */
static void rules_refresh(struct wire *w)
{
	struct fault_port *f = &w->faults;
	uint32_t changed = fault_view_refresh(&f->view, &w->process->attr.registry->faults);

	for (; changed; changed &= changed - 1)
		f->free_ns[__builtin_ctz(changed)] = 0;
}

/* True if a link with that end is on the packet's way. */
static bool way_has(const struct wire *w, const struct pkt *p, uint32_t link)
{
	const struct subnet *s = w->process->attr.subnet;
	uint32_t row = p->path->src_port;

	if (link == w->port_row || link == row)
		return true;
	for (uint32_t hops = 0; row < s->nports && hops < SUBNET_HOPS; hops++) {
		uint32_t peer = subnet_link_peer(s, row);

		if (row == link || peer == link)
			return true;
		if (peer >= s->nports || peer == w->port_row)
			return false;
		row = subnet_forward(s, peer, p->path->dlid);
	}
	return false;
}

static bool is_host(const struct wire *w, uint32_t row, uint32_t host_plus_1)
{
	const struct subnet *s = w->process->attr.subnet;

	return row < s->nports && subnet_node_of(s, row)->host + 1 == host_plus_1;
}

static bool rule_concerns(const struct wire *w, const struct fault_rule *r, enum fault_kind kind,
			  const struct pkt *p)
{
	uint32_t from = p->path->src_port;
	bool frame = pkt_is_frame(p);

	return r->set && r->kind == kind && (!r->ops || (!frame && r->ops >> pkt_op(p) & 1)) &&
	       (!r->qpn || (!frame && (r->qpn == p->sqpn || r->qpn == p->dqpn))) &&
	       (!r->from_row_plus_1 || r->from_row_plus_1 == from + 1) &&
	       (!r->from_host_plus_1 || is_host(w, from, r->from_host_plus_1)) &&
	       (!r->to_row_plus_1 || r->to_row_plus_1 == w->port_row + 1) &&
	       (!r->to_host_plus_1 || is_host(w, w->port_row, r->to_host_plus_1)) &&
	       (!r->link_row_plus_1 || way_has(w, p, r->link_row_plus_1 - 1));
}

/* ---- what happens to a packet ---- */

/* The identity of a packet among those of its flow. */
static uint64_t packet_word(struct fault_flow *flow, const struct pkt *p)
{
	uint32_t chunk = (1u << REGISTRY_CHUNK_SHIFT) - 1;
	uint32_t psn = pkt_is_frame(p) ? flow->last + 1 : p->psn;
	uint64_t again = 0;

	if (!flow->used || ((psn - flow->last + PSN_NEAR) & IB_PSN_MASK) > 2 * PSN_NEAR) {
		flow->used = true;
		flow->first = psn;
		flow->again = 0;
	} else if (!((psn - flow->last - 1) & (IB_PSN_MASK + 1) >> 1)) {
		flow->again = 0;
	} else {
		again = ++flow->again;
	}
	if (!again)
		flow->last = psn;
	return fault_mix((uint64_t)(p->sqpn & chunk) << 32 | (p->dqpn & chunk) << 1 |
			 flow->response) +
	       fault_mix(again << 32 | ((psn - flow->first) & IB_PSN_MASK));
}

static struct fault_flow *flow_of(struct fault_port *f, const struct pkt *p)
{
	uint32_t response = !pkt_is_frame(p) && pkt_props(p)->response;
	uint64_t key = (uint64_t)p->sqpn << 32 | p->dqpn << 1 | response;
	struct fault_flow *flow = &f->flows[fault_mix(key + p->path->src_port) % FLOWS];

	if (flow->sqpn != p->sqpn || flow->dqpn != p->dqpn || flow->response != response ||
	    flow->src_port != p->path->src_port) {
		/* What waits there goes on in time. */
		*flow = (struct fault_flow){
			.sqpn = p->sqpn,
			.dqpn = p->dqpn,
			.response = response,
			.src_port = p->path->src_port,
		};
	}
	return flow;
}

static bool rule_draws(const struct fault_rule *r, enum fault_draw what, uint64_t packet,
		       uint32_t ppm)
{
	return ppm && fault_draw(r, what, packet, FAULT_ALL) < ppm;
}

static bool port_has_room(const struct fault_port *f, const struct pkt *p)
{
	return f->held_bytes + sizeof(struct fault_held) + p->payload_len <= HELD_BYTES_MAX;
}

static uint64_t link_octets(const struct pkt *p, bool ethernet)
{
	return pkt_is_frame(p) ? p->payload_len + ETHERNET_FCS : pkt_wire_octets(p, ethernet);
}

/* Adds what one rule says.  True: the rule does something. */
static bool rule_apply(struct fault_port *f, uint32_t row, const struct pkt *p, uint64_t packet,
		       bool ethernet, struct verdict *v)
{
	const struct fault_rule *r = &f->view.rule[row];
	uint64_t wait = r->delay_us * 1000ull, now = clock_ns();

	if (rule_draws(r, FAULT_DRAW_LOSS, packet, r->loss_ppm)) {
		v->lost = "loss";
		return true;
	}
	if (rule_draws(r, FAULT_DRAW_CORRUPT, packet, r->corrupt_ppm)) {
		v->lost = "corrupt";
		v->corrupt = true;
		return true;
	}
	/* A switch's buffer that is full takes nothing in, and sends nothing of it later. */
	if ((wait || r->jitter_us || r->rate_mbps) && !port_has_room(f, p)) {
		v->lost = "no-room";
		return true;
	}
	if (r->jitter_us)
		wait += fault_draw(r, FAULT_DRAW_JITTER, packet, r->jitter_us) * 1000ull;
	if (r->rate_mbps) {
		f->free_ns[row] = max_u64(f->free_ns[row], now) +
				  link_octets(p, ethernet) * 8000 / r->rate_mbps;
		wait += f->free_ns[row] - now;
	}
	if (wait)
		v->due_ns = max_u64(v->due_ns, now) + wait;
	if (rule_draws(r, FAULT_DRAW_DUPLICATE, packet, r->duplicate_ppm))
		v->twice = true;
	if (rule_draws(r, FAULT_DRAW_REORDER, packet, r->reorder_ppm))
		v->overtaken = true;
	return wait || v->twice || v->overtaken;
}

static struct verdict packet_judge(struct wire *w, const struct pkt *p, struct fault_flow *flow)
{
	struct fault_port *f = &w->faults;
	struct slot *s = w->process->slot;
	uint64_t packet = packet_word(flow, p);
	struct verdict v = {0};

	for (uint32_t row = 0; row < f->view.n && !v.lost; row++) {
		const struct fault_rule *r = &f->view.rule[row];

		if (!rule_concerns(w, r, FAULT_PACKETS, p))
			continue;
		if (!fault_view_meets(&f->view, row, &s->faults[row]))
			continue;
		if (rule_apply(f, row, p, packet, w->ethernet, &v))
			atomic_fetch_add_explicit(&s->faults[row].done, 1, memory_order_relaxed);
	}
	return v;
}

/* ---- packets that wait ---- */

/* Copies the packet; NULL: there is no memory, or the sender has taken the payload back. */
static struct fault_held *held_make(const struct pkt *p)
{
	struct fault_held *h = malloc(sizeof(*h) + p->payload_len);

	if (!h)
		return NULL;
	h->next = h->prev = NULL;
	h->path = *p->path;
	h->path.route = NULL;
	h->run = (struct run){h->payload, p->payload_len};
	if (p->payload_len && !payload_pull(&h->run, 1, p)) {
		free(h);
		return NULL;
	}
	h->pkt = *p;
	h->pkt.path = &h->path;
	if (p->dc) {
		h->dc = *p->dc;
		h->pkt.dc = &h->dc;
	}
	h->pkt.runs = &h->run;
	h->pkt.nruns = p->payload_len ? 1 : 0; /* a READ names no places for its answer any more */
	h->pkt.run_keys = NULL;
	h->pkt.payload_gone = NULL;
	h->pkt.batched = false;
	h->pkt.foreign = NULL;
	h->pkt.withdrawn = NULL;
	h->pkt.source = NULL;
	return h;
}

static uint64_t held_bytes(const struct fault_held *h)
{
	return sizeof(*h) + h->pkt.payload_len;
}

/* Asks the client to come when the first one is due.  Under the lock, so that the last who asks is
 * right. */
static void held_expect(struct wire *w)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);

	if (w->faults.first && client && client->wake_at)
		client->wake_at(client->user, w->faults.first->due_ns);
}

/* Whether packets wait.  Under the lock. */
static void port_holds(struct wire *w, bool any)
{
	struct slot *s = w->process->slot;

	if (atomic_exchange(&w->faults.holds, any) == any)
		return;
	if (any)
		atomic_fetch_add(&s->observers, 1);
	else
		atomic_fetch_sub(&s->observers, 1);
}

/* Puts it behind those that go on at the same time or before.  Under the lock. */
static void held_insert(struct wire *w, struct fault_held *h)
{
	struct fault_port *f = &w->faults;
	struct fault_held *before = f->last;

	while (before && before->due_ns > h->due_ns)
		before = before->prev;
	h->prev = before;
	h->next = before ? before->next : f->first;
	*(before ? &before->next : &f->first) = h;
	*(h->next ? &h->next->prev : &f->last) = h;
	f->held_bytes += held_bytes(h);
	port_holds(w, true);
	if (f->first == h)
		held_expect(w);
}

static void held_remove(struct fault_port *f, struct fault_held *h)
{
	*(h->prev ? &h->prev->next : &f->first) = h->next;
	*(h->next ? &h->next->prev : &f->last) = h->prev;
	f->held_bytes -= held_bytes(h);
}

/* The first packet that is due; NULL: none. */
static struct fault_held *held_take(struct wire *w, uint64_t now)
{
	struct fault_port *f = &w->faults;
	struct fault_held *h;

	spin_lock(&f->lock);
	h = f->first;
	if (h && h->due_ns <= now) {
		held_remove(f, h);
		if (h->flow->behind == h)
			h->flow->behind = NULL;
	} else {
		h = NULL;
		f->delivering = false;
		port_holds(w, f->first);
		held_expect(w);
	}
	spin_unlock(&f->lock);
	return h;
}

/* Lets it go on.  Those of its flow that come meanwhile have to wait.  Call it in a reader's section. */
static void held_pass(struct wire *w, struct fault_held *h)
{
	(void)wire_pass(w, &h->pkt);
	if (h->twice)
		(void)wire_pass(w, &h->pkt);
	spin_lock(&w->faults.lock);
	if (h->flow->latest == h)
		h->flow->latest = NULL;
	spin_unlock(&w->faults.lock);
	free(h);
}

/* One thread at a time delivers, so that packets keep their order. */
static bool delivery_begin(struct fault_port *f)
{
	bool begins;

	spin_lock(&f->lock);
	begins = !f->delivering;
	f->delivering = true;
	spin_unlock(&f->lock);
	return begins;
}

void wire_deliver_late(struct wire *w)
{
	uint64_t now = clock_ns();
	struct fault_held *h;

	if (!delivery_begin(&w->faults))
		return;
	hazard_enter();
	while ((h = held_take(w, now))) {
		held_pass(w, h);
	}
	hazard_leave();
}

void fault_port_release(struct fault_port *f)
{
	struct fault_held *h, *next;

	for (h = f->first; h; h = next) {
		next = h->next;
		free(h);
	}
	free(f->flows);
}

/* ---- at the port ---- */

/* A few requests that were under way when the first rule was set are no packets of a real wire. */
static bool is_single(const struct pkt *p)
{
	return !p->executed && !p->placed && pkt_wire_packets(p) == 1;
}

/* Gives the port its table, with the first packet that meets a rule. */
static void port_equip(struct fault_port *f)
{
	struct fault_flow *fresh = calloc(FLOWS, sizeof(*fresh));

	spin_lock(&f->lock);
	if (!f->equipped && fresh) {
		f->flows = fresh;
		atomic_store_explicit(&f->equipped, true, memory_order_release);
		fresh = NULL;
	}
	spin_unlock(&f->lock);
	free(fresh);
}

/* False: there is no memory for it. */
static bool port_is_equipped(struct fault_port *f)
{
	if (unlikely(!atomic_load_explicit(&f->equipped, memory_order_acquire)))
		port_equip(f);
	return atomic_load_explicit(&f->equipped, memory_order_acquire);
}

/* Keeps the copy, or frees it.  False: there is no room. */
static bool port_keep(struct wire *w, struct fault_held *h, const struct verdict *v)
{
	struct fault_port *f = &w->faults;
	bool room;

	spin_lock(&f->lock);
	room = port_has_room(f, &h->pkt);
	if (room) {
		h->twice = v->twice;
		h->due_ns = v->overtaken ? max_u64(v->due_ns, clock_ns()) + REORDER_NS : v->due_ns;
		h->flow = flow_of(f, &h->pkt);
		/* One at a time is overtaken. */
		if (v->overtaken && !h->flow->behind) {
			h->flow->behind = h;
		} else {
			if (h->flow->latest)
				h->due_ns = max_u64(h->due_ns, h->flow->latest->due_ns);
			h->flow->latest = h;
		}
		held_insert(w, h);
	}
	spin_unlock(&f->lock);
	if (!room)
		free(h);
	return room;
}

/* True if the packet is lost, or waits now.  The copy may wait for memory of the sender, so it is made
 * without the lock. */
static bool port_takes(struct wire *w, const struct pkt *p, struct verdict *v)
{
	struct fault_held *h;

	if (v->lost)
		return true;
	if (!v->due_ns && !v->overtaken)
		return false;
	/* A hostile sender may say any length, and the copy comes before the look under the lock. */
	if (p->payload_len > HELD_BYTES_MAX) {
		v->lost = "no-room";
		return true;
	}
	h = held_make(p);
	/* The receiver finds out why not. */
	if (!h)
		return false;
	if (!port_keep(w, h, v))
		v->lost = "no-room";
	return true;
}

/* This packet overtakes the one that waits for it: that one goes on behind it, now (*behind) or when
 * this one is due. */
static void flow_overtake(struct wire *w, struct fault_flow *flow, struct verdict *v,
			  struct fault_held **behind)
{
	struct fault_held *h = flow->behind;

	flow->behind = NULL;
	v->overtaken = false;
	held_remove(&w->faults, h);
	if (v->due_ns) {
		h->due_ns = max_u64(h->due_ns, v->due_ns + 1);
		held_insert(w, h);
	} else {
		*behind = h;
	}
}

/* Asks the rules, and takes out what goes on behind this packet.  False: there are
 * neither rules nor packets that wait. */
static bool port_asks(struct wire *w, const struct pkt *p, struct verdict *v,
		      struct fault_held **behind)
{
	struct fault_port *f = &w->faults;
	struct fault_flow *flow;
	bool ready;

	spin_lock(&f->lock);
	rules_refresh(w);
	ready = f->view.n || atomic_load_explicit(&f->holds, memory_order_relaxed);
	if (ready) {
		flow = flow_of(f, p);
		*v = packet_judge(w, p, flow);
		/* A delay that ends or becomes shorter lets nobody overtake. */
		if (!v->lost && flow->latest)
			v->due_ns = max_u64(v->due_ns, flow->latest->due_ns);
		if (!v->lost && flow->behind)
			flow_overtake(w, flow, v, behind);
	}
	spin_unlock(&f->lock);
	return ready;
}

bool fault_takes(struct wire *w, const struct pkt *p)
{
	struct fault_held *behind = NULL;
	struct verdict v = {0};
	bool taken;

	if (!is_single(p) || !port_is_equipped(&w->faults) || !port_asks(w, p, &v, &behind))
		return false;
	taken = port_takes(w, p, &v);
	if (v.lost)
		trace(packet, fault, p->dqpn, bth_op_name(p->opcode), p->psn, p->sqpn, v.lost);
	if (v.corrupt)
		shard_count(w->counters, w->ethernet ? HW_RX_ICRC_ENCAPSULATED : PORT_RCV_ERRORS,
			    1);
	if (taken || !(v.twice || behind))
		return taken;
	if (v.twice)
		(void)wire_pass(w, p);
	if (!behind)
		return false;
	(void)wire_pass(w, p);
	held_pass(w, behind);
	return true;
}

/* ---- requests ---- */

static bool rule_concerns_request(const struct wire *w, const struct fault_rule *r,
				  const void *request)
{
	const struct fault_request *q = request;

	return r->set && r->kind == FAULT_REQUESTS &&
	       (!r->ops || (!q->frame && r->ops >> q->op & 1)) && (!r->qpn || r->qpn == q->qpn) &&
	       (!r->from_row_plus_1 || r->from_row_plus_1 == w->port_row + 1) &&
	       (!r->from_host_plus_1 || is_host(w, w->port_row, r->from_host_plus_1)) &&
	       (!r->to_row_plus_1 || r->to_row_plus_1 == q->dst_port + 1) &&
	       (!r->to_host_plus_1 || is_host(w, q->dst_port, r->to_host_plus_1)) &&
	       (q->reliable || !(r->reliable_only));
}

/* The rule that makes this one fail, counted; false: there is none.  It concerns what 'concerns' says of
 * the rule and 'what'. */
static bool rule_fails(struct wire *w,
		       bool (*concerns)(const struct wire *w, const struct fault_rule *r,
					const void *what),
		       const void *what, struct fault_rule *out)
{
	struct fault_port *f = &w->faults;
	bool fails = false;

	spin_lock(&f->lock);
	rules_refresh(w);
	for (uint32_t row = 0; row < f->view.n && !fails; row++) {
		fails = concerns(w, &f->view.rule[row], what) &&
			fault_view_fails(&f->view, row, &w->process->slot->faults[row]);
		if (fails)
			*out = f->view.rule[row];
	}
	spin_unlock(&f->lock);
	return fails;
}

bool fault_request_fails(struct wire *w, const struct fault_request *q, uint8_t *syndrome,
			 uint8_t *vendor_err)
{
	struct fault_rule rule;

	if (!rule_fails(w, rule_concerns_request, q, &rule))
		return false;
	*syndrome = (uint8_t)rule.syndrome;
	*vendor_err = (uint8_t)rule.vendor_err;
	return true;
}

/* ---- receives ---- */

static bool rule_concerns_receive(const struct wire *w, const struct fault_rule *r,
				  const void *packet)
{
	return rule_concerns(w, r, FAULT_RECEIVES, packet);
}

bool fault_receive_fails(struct wire *w, const struct pkt *p, uint8_t *syndrome)
{
	struct fault_rule rule;

	if (!rule_fails(w, rule_concerns_receive, p, &rule))
		return false;
	*syndrome = (uint8_t)rule.syndrome;
	return true;
}

bool fault_of_links(const struct wire *w)
{
	return fault_rules_have(&w->process->attr.registry->faults, FAULT_PACKETS);
}
