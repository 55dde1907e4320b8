// SPDX-License-Identifier: BSD-2-Clause
/* Taps and sniffers; see tap.h. */
#include "wire/tap.h"

#include "base/hazard.h"
#include "base/trace.h"
#include "wire/process.h"
#include "wire/roce.h"

#include <string.h>

void tap_insert(struct wire_process *h, struct tap *t)
{
	pthread_mutex_lock(&h->control);
	atomic_store_explicit(&t->next, atomic_load_explicit(&h->taps, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&h->taps, t, memory_order_release);
	atomic_fetch_add(&h->slot->observers, 1);
	pthread_mutex_unlock(&h->control);
}

void wire_tap_attach(struct wire_process *h, struct tap *t)
{
	tap_insert(h, t);
	/* Requests are executed in readers' sections. */
	hazard_wait_all();
}

void tap_remove(struct wire_process *h, struct tap *t)
{
	_Atomic(struct tap *) *at = &h->taps;
	struct tap *i;

	pthread_mutex_lock(&h->control);
	while ((i = atomic_load_explicit(at, memory_order_relaxed)) && i != t)
		at = &i->next;
	if (i) {
		atomic_store_explicit(at, atomic_load_explicit(&t->next, memory_order_relaxed),
				      memory_order_release);
		atomic_fetch_sub(&h->slot->observers, 1);
	}
	pthread_mutex_unlock(&h->control);
}

void wire_tap_detach(struct wire_process *h, struct tap *t)
{
	tap_remove(h, t);
	hazard_wait_all();
}

/* ---- who sniffs ---- */

/* The next slot, from 'slot' on, that is in use; REGISTRY_SLOTS: there is none. */
static uint32_t next_used(const struct wire_process *h, uint32_t slot)
{
	for (; slot < REGISTRY_SLOTS; slot = (slot | 63) + 1) {
		uint64_t used = atomic_load(&h->attr.registry->slots_used[slot / 64]) >> slot % 64;

		if (used)
			return slot + (uint32_t)__builtin_ctzll(used);
	}
	return REGISTRY_SLOTS;
}

/* Makes the process of slot s show what it sends to sniffer 'by'. */
static void slot_show(struct slot *s, uint32_t by)
{
	uint64_t bit = UINT64_C(1) << by % 64;

	if (!(atomic_fetch_or(&s->sniffers[by / 64], bit) & bit))
		atomic_fetch_add(&s->observers, 1);
}

static void slot_hide(struct slot *s, uint32_t by)
{
	uint64_t bit = UINT64_C(1) << by % 64;

	if (atomic_fetch_and(&s->sniffers[by / 64], ~bit) & bit)
		atomic_fetch_sub(&s->observers, 1);
}

/* Opens the channel ahead of the first copy: while one thread opens it, another cannot send. */
static void copies_connect(struct wire_process *h, uint32_t slot)
{
	struct link *l = h->link_to[slot + 1u];

	if (l->ops->connect)
		l->ops->connect(l, slot + 1u);
}

void sniffer_join(struct wire_process *h)
{
	for (uint32_t s = next_used(h, 0); s < REGISTRY_SLOTS; s = next_used(h, s + 1))
		if (atomic_load(&h->attr.slots[s].sniffs)) {
			copies_connect(h, s);
			slot_show(h->slot, s);
		}
}

static unsigned wire_port_index(const struct wire *w)
{
	return w->process->attr.subnet->ports[w->port_row].host_index;
}

void wire_sniff_begin(struct wire *w)
{
	struct wire_process *h = w->process;

	for (uint32_t s = next_used(h, 0); s < REGISTRY_SLOTS; s = next_used(h, s + 1))
		copies_connect(h, s);
	pthread_mutex_lock(&h->control);
	if (!w->sniffers++) {
		/* Say so first, then look for the others: a process that starts in between sees our
		 * word, or we see the process. */
		atomic_fetch_or(&h->slot->sniffs, 1u << wire_port_index(w));
		for (uint32_t s = next_used(h, 0); s < REGISTRY_SLOTS; s = next_used(h, s + 1))
			slot_show(&h->attr.slots[s], h->attr.slot);
	}
	pthread_mutex_unlock(&h->control);
	/* Requests are executed in readers' sections. */
	hazard_wait_all();
}

void wire_sniff_end(struct wire *w)
{
	struct wire_process *h = w->process;
	uint32_t bit = 1u << wire_port_index(w);

	pthread_mutex_lock(&h->control);
	if (!--w->sniffers && atomic_fetch_and(&h->slot->sniffs, ~bit) == bit)
		for (uint32_t s = next_used(h, 0); s < REGISTRY_SLOTS; s = next_used(h, s + 1))
			slot_hide(&h->attr.slots[s], h->attr.slot);
	pthread_mutex_unlock(&h->control);
}

/* ---- what they see ---- */

/* A copy for a sniffer. */
struct copy {
	uint8_t frame[ROCE_FRAME_MAX];
	uint32_t bytes; /* 0: not made yet */
	struct run run;
	struct path path;
	struct pkt pkt;
};

static void copy_make(struct copy *c, const struct wire *w, const uint8_t *frame, uint32_t bytes)
{
	c->bytes = bytes;
	c->run = (struct run){(void *)(uintptr_t)frame, bytes};
	c->path = (struct path){.src_port = w->port_row};
	memcpy(c->path.dgid.raw, frame, 6);
	c->pkt = (struct pkt){
		.opcode = BTH_RAW | BTH_SEND_ONLY,
		.sqpn = FRAME_OF_PACKET,
		.dqpn = IB_MULTICAST_QPN,
		.npkts = 1,
		.path = &c->path,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &c->run,
	};
}

/* row: the port at which the sniffer sees the copy. */
static void copy_send(struct wire_process *h, struct copy *c, uint32_t to, uint32_t row)
{
	struct link *l = h->link_to[to + 1u];

	c->path.dst_port = row;
	if (to == h->attr.slot)
		sniffer_deliver(h, &c->pkt);
	else if (l->ops->xmit(l, to + 1u, &c->pkt) != WIRE_SENT)
		trace(packet, lost, c->pkt.sqpn, c->pkt.dqpn, bth_op_name(c->pkt.opcode), 0,
		      "no-room");
}

/* True if the process of that slot sniffs at the port. */
static bool slot_sees(const struct wire_process *h, uint32_t slot, uint32_t row)
{
	const struct subnet *s = h->attr.subnet;

	return row < s->nports &&
	       atomic_load(&h->attr.registry->slot_host_plus_1[slot]) ==
		       subnet_node_of(s, row)->host + 1 &&
	       atomic_load(&h->attr.slots[slot].sniffs) >> s->ports[row].host_index & 1;
}

/* True if the packet comes to the port, or leaves it. */
static bool packet_passes(const struct wire *w, const struct pkt *p, uint32_t row)
{
	const struct subnet *s = w->process->attr.subnet;

	if (row == w->port_row || p->dqpn != IB_MULTICAST_QPN)
		return row == w->port_row || row == p->path->dst_port;
	return s->ports[row].ethernet && subnet_ethernet_reaches(s, w->port_row, row);
}

static bool packet_to_frame(const struct wire *w, const struct pkt *p, struct copy *c)
{
	static const uint8_t unknown[6];
	const struct subnet *s = w->process->attr.subnet;
	const uint8_t *to = p->path->dmac;

	if (!memcmp(to, unknown, sizeof(unknown)) && p->path->dst_port < s->nports)
		to = s->ports[p->path->dst_port].mac;
	copy_make(c, w, c->frame,
		  roce_encode(p, s->ports[w->port_row].mac, to, c->frame, sizeof(c->frame)));
	return c->bytes;
}

static void packet_show(struct wire *w, const struct pkt *p, uint32_t slot, struct copy *c)
{
	struct wire_process *h = w->process;

	for (uint32_t row = 0; row < h->attr.subnet->nports; row++)
		if (slot_sees(h, slot, row) && packet_passes(w, p, row) &&
		    (c->bytes || packet_to_frame(w, p, c)))
			copy_send(h, c, slot, row);
}

typedef void show_fn(struct wire *w, const struct pkt *p, uint32_t slot, struct copy *c);

/* Calls fn for each sniffer in our slot that lives. */
static void sniffers_each(struct wire *w, show_fn *fn, const struct pkt *p, struct copy *c)
{
	struct wire_process *h = w->process;

	for (uint32_t word = 0; word < REGISTRY_SLOTS / 64; word++) {
		uint64_t slots =
			atomic_load_explicit(&h->slot->sniffers[word], memory_order_relaxed);

		for (; slots; slots &= slots - 1) {
			uint32_t by = word * 64 + (uint32_t)__builtin_ctzll(slots);
			const struct slot *s = &h->attr.slots[by];

			if (atomic_load(&s->alive) && atomic_load(&s->sniffs))
				fn(w, p, by, c);
			else
				slot_hide(h->slot, by);
		}
	}
}

/* Gives what the port has sent to processes that sniff there. */
static __attribute__((cold)) void sniffer_packet(struct wire *w, const struct pkt *p)
{
	struct copy c;

	if (!w->ethernet || pkt_is_frame(p))
		return;
	c.bytes = 0;
	sniffers_each(w, packet_show, p, &c);
}

static void arrival_show(struct wire *w, const struct pkt *p, uint32_t slot, struct copy *c)
{
	(void)p;
	if (slot_sees(w->process, slot, w->port_row))
		copy_send(w->process, c, slot, w->port_row);
}

void wire_sniff_arrival(struct wire *w, const uint8_t *frame, uint32_t bytes)
{
	struct copy c;

	copy_make(&c, w, frame, bytes);
	hazard_enter();
	sniffers_each(w, arrival_show, NULL, &c);
	hazard_leave();
}

void sniffer_deliver(struct wire_process *h, const struct pkt *p)
{
	struct wire *w = wire_process_wire(h, p->path->dst_port);
	const struct wire_client *client =
		w ? atomic_load_explicit(&w->client, memory_order_acquire) : NULL;

	if (client && client->sniff)
		client->sniff(client->user, p);
}

void tap_packet(struct wire *w, enum tap_point at, uint64_t ns, const struct pkt *p)
{
	struct tap *t;

	hazard_enter();
	for (t = atomic_load_explicit(&w->process->taps, memory_order_acquire); t;
	     t = atomic_load_explicit(&t->next, memory_order_acquire))
		t->packet(t, at, ns, w->port_row, p);
	/* Only the sender knows the whole path of a packet of a connection. */
	if (at == TAP_SENT)
		sniffer_packet(w, p);
	hazard_leave();
}
