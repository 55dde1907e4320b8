// SPDX-License-Identifier: BSD-2-Clause
/* A process on the wire: its links, and where each of them leads. */
#include "wire/process.h"

#include "base/log.h"
#include "wire/capture.h"
#include "wire/flow_control.h"
#include "wire/inbox.h"
#include "wire/link.h"
#include "wire/tap.h"
#include "wire/wakeup_fifo.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- the link to owners that no other link leads to ---- */

static enum wire_verdict none_xmit(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return WIRE_LOST;
}

static uint32_t none_max_payload(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	(void)to;
	(void)by_reference_ok;
	return LINK_MIN_PAYLOAD;
}

static bool none_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

const struct link_ops link_none_ops = {
	.xmit = none_xmit,
	.max_payload = none_max_payload,
	.has_room = none_has_room,
};

/* ---- loopback within the process: the receiver runs inside of the sender's wire_xmit ---- */

static enum wire_verdict local_xmit(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)to;
	return wire_process_deliver(l->process, p) ? WIRE_SENT : WIRE_LOST;
}

static uint32_t local_max_payload(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	(void)to;
	(void)by_reference_ok;
	return (uint32_t)IB_MAX_MSG_BYTES;
}

static bool local_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

const struct link_ops link_local_ops = {
	.immediate = true,
	.xmit = local_xmit,
	.max_payload = local_max_payload,
	.has_room = local_has_room,
};

void wire_process_add_link(struct wire_process *h, struct link *l, uint32_t first, uint32_t end)
{
	assert(h->nlinks < WIRE_PROCESS_LINKS && end <= ROUTE_OWNERS);
	l->process = h;
	if (l->ops->drain)
		h->links[h->nlinks++] = l;
	for (uint32_t owner = first; owner < end; owner++)
		h->link_to[owner] = l;
}

static void process_open_links(struct wire_process *h)
{
	uint32_t self = h->attr.slot + 1u;

	h->none = (struct link){.ops = &link_none_ops, .fd = -1};
	h->local = (struct link){.ops = &link_local_ops, .fd = -1};
	link_shm_open(&h->shm, &h->attr);
	wire_process_add_link(h, &h->none, 0, ROUTE_OWNERS);
	wire_process_add_link(h, &h->shm.link, 1, REGISTRY_SLOTS + 1);
	wire_process_add_link(h, &h->local, self, self + 1);
}

int wire_process_create(const struct wire_process_attr *attr, struct wire_process **out)
{
	struct wire_process *h;

	if (attr->slot >= REGISTRY_SLOTS || !attr->registry || !attr->subnet || !attr->slots)
		return -EINVAL;
	h = aligned_alloc(64, align_up(sizeof(*h), 64));
	if (!h)
		return -ENOMEM;
	*h = (struct wire_process){.attr = *attr, .slot = &attr->slots[attr->slot]};
	pthread_mutex_init(&h->control, NULL);
	process_open_links(h);
	/* Under Yama's restricted mode (ptrace_scope 1) only ancestors could read our memory
	 * otherwise.  The call fails where there is no Yama, which does no harm. */
	if (attr->open_channel)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	/* The process that had the slot before may have been killed. */
	atomic_store(&h->slot->expose_fd_plus_1, 0);
	atomic_store(&h->slot->peers_fd_plus_1, 0);
	atomic_store(&h->slot->wakeup_fd_plus_1, 0);
	atomic_store(&h->slot->wakeups_failed, 0);
	if (expose_open(&h->expose, attr->slots, attr->slot, attr->expose) < 0)
		log_info("nothing is exposed to peers: %m");
	if (attr->carries)
		atomic_fetch_add(&h->slot->observers, 1);
	flow_control_join(h);
	sniffer_join(h);
	*out = h;
	return 0;
}

void wire_process_destroy(struct wire_process *h)
{
	wire_captures_end(h);
	if (h->attr.carries)
		atomic_fetch_sub(&h->slot->observers, 1);
	link_shm_close(&h->shm);
	gsi_close(&h->gsi);
	wakeup_fifos_close();
	expose_close(&h->expose);
	pthread_mutex_destroy(&h->control);
	free(h);
}

int wire_process_add_channel(struct wire_process *h, uint16_t peer, int fd, size_t bytes, int side)
{
	return link_shm_add(&h->shm, peer, fd, bytes, side);
}

void wire_process_drop_channel(struct wire_process *h, uint16_t peer)
{
	link_shm_drop(&h->shm, peer);
}

struct expose *wire_process_expose(struct wire_process *h)
{
	return &h->expose;
}

struct slot *wire_process_slots(struct wire_process *h)
{
	return h->attr.slots;
}

unsigned wire_process_fds(const struct wire_process *h, int fds[WIRE_PROCESS_LINKS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->nlinks; i++)
		if (h->links[i]->fd >= 0)
			fds[n++] = h->links[i]->fd;
	return n;
}

void wire_process_hear_emulated(struct wire_process *h, void (*emulated)(void))
{
	atomic_store(&h->emulated, emulated);
}

/* Looks at what the marks of the inbox stand for; true if datagrams were delivered. */
static bool marks_look(struct wire_process *h)
{
	void (*emulated)(void);

	if (inbox_marked(h->slot, INBOX_FLOWS))
		flow_control_look(h);
	if (inbox_marked(h->slot, INBOX_EMULATED)) {
		/* Clear the mark first, as in inbox_collect. */
		atomic_fetch_and(&h->slot->inbox_summary, ~INBOX_EMULATED);
		emulated = atomic_load(&h->emulated);
		if (emulated)
			emulated();
	}
	return inbox_marked(h->slot, INBOX_GSI) && gsi_deliver(h);
}

bool wire_process_progress(struct wire_process *h)
{
	struct link *const *l = h->links;
	bool did = inbox_marked(h->slot, INBOX_MARKS) && marks_look(h);

	/* A program that polls asks all the time, and mostly there is nothing. */
	if (likely(h->nlinks == 1))
		return (*l)->ops->drain(*l) | did;
	for (; l < h->links + h->nlinks; l++)
		did |= (*l)->ops->drain(*l);
	return did;
}
