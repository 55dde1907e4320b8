// SPDX-License-Identifier: BSD-2-Clause
/* Sends: addresses, transaction numbers, duplicates, timers; see agent.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/rmpp_transfer.h"
#include "fabric/daemon/mad/send.h"
#include "fabric/umad.h"

#define POOL_MOST   4096u
#define FIRST_TABLE 256u

/* ---- all sends, by their TID ---- */

static uint32_t tid_hash(const struct mad_fabric *f, uint64_t tid)
{
	return (uint32_t)(tid * 0x9e3779b97f4a7c15ull >> 32) & f->sends_mask;
}

static void table_put(struct mad_fabric *f, struct mad_send *send)
{
	struct mad_send **head = &f->sends[tid_hash(f, send->tid)];

	send->hash_prev = head;
	send->hash_next = *head;
	if (*head)
		(*head)->hash_prev = &send->hash_next;
	*head = send;
}

static bool table_grow(struct mad_fabric *f)
{
	uint32_t size = f->sends ? (f->sends_mask + 1) * 2 : FIRST_TABLE;
	uint32_t old_size = f->sends ? f->sends_mask + 1 : 0;
	struct mad_send **old = f->sends, **table;

	if (f->nsends < old_size)
		return true;
	table = calloc(size, sizeof(struct mad_send *));
	if (!table)
		return old != NULL;
	f->sends = table;
	f->sends_mask = size - 1;
	for (uint32_t i = 0; i < old_size; i++)
		while (old[i]) {
			struct mad_send *send = old[i];

			old[i] = send->hash_next;
			table_put(f, send);
		}
	free(old);
	return true;
}

struct mad_send *send_first(const struct mad_fabric *f, uint64_t tid)
{
	struct mad_send *send = f->sends ? f->sends[tid_hash(f, tid)] : NULL;

	while (send && send->tid != tid)
		send = send->hash_next;
	return send;
}

struct mad_send *send_next(const struct mad_send *send)
{
	struct mad_send *next = send->hash_next;

	while (next && next->tid != send->tid)
		next = next->hash_next;
	return next;
}

/* ---- one ---- */

static struct mad_send *send_new(struct mad_fabric *f)
{
	struct mad_send *send = f->send_pool;

	if (!table_grow(f))
		return NULL;
	if (!send)
		return calloc(1, sizeof(*send));
	f->send_pool = send->next;
	f->send_pool_size--;
	memset(send, 0, sizeof(*send));
	return send;
}

static void send_free(struct mad_fabric *f, struct mad_send *send)
{
	if (f->send_pool_size == POOL_MOST) {
		free(send);
		return;
	}
	send->next = f->send_pool;
	f->send_pool = send;
	f->send_pool_size++;
}

void sends_close(struct mad_fabric *f)
{
	while (f->send_pool) {
		struct mad_send *send = f->send_pool;

		f->send_pool = send->next;
		free(send);
	}
	free(f->sends);
}

static void send_attach(struct mad_agent *a, struct mad_send *send)
{
	send->prev = &a->sends;
	send->next = a->sends;
	if (a->sends)
		a->sends->prev = &send->next;
	a->sends = send;
	a->nsends++;
	a->scope->count++;
	a->fabric->nsends++;
	table_put(a->fabric, send);
}

void send_detach(struct mad_send *send)
{
	struct mad_agent *a = send->agent;

	*send->prev = send->next;
	if (send->next)
		send->next->prev = send->prev;
	*send->hash_prev = send->hash_next;
	if (send->hash_next)
		send->hash_next->hash_prev = send->hash_prev;
	a->nsends--;
	a->scope->count--;
	a->fabric->nsends--;
	loop_timer_cancel(a->fabric->loop, &send->timer);
	if (send->packet)
		send->packet->send = NULL;
	send->packet = NULL;
}

void send_report(struct mad_send *send, int status)
{
	struct mad_agent *a = send->agent;
	struct mad_fabric *f = a->fabric;

	rmpp_transfer_free(send->rmpp);
	if (a->ops->sent)
		a->ops->sent(a, send->note, send->mad, status);
	send_free(f, send);
}

/* ---- the packet ---- */

static void packet_address(const struct mad_agent *a, const struct mad_address *to,
			   struct mad_packet *p)
{
	const struct subnet *s = a->fabric->net->subnet;
	const struct subnet_port *port = &s->ports[a->attr.row];
	uint32_t lid = atomic_load_explicit(&port->lid, memory_order_relaxed);
	uint32_t lmc = atomic_load_explicit(&port->lmc, memory_order_relaxed);
	struct subnet_gid_entry own;

	p->row = a->attr.row;
	p->sqpn = a->attr.qpn;
	p->dqpn = to->qpn;
	p->qkey = a->attr.qpn ? MAD_QKEY_WELL_KNOWN : 0;
	p->slid = (uint16_t)(lid | (to->path_bits & ((1u << lmc) - 1)));
	p->dlid = to->lid;
	p->pkey_index = to->pkey_index;
	/* An index past the end of the table gives a P_Key that no port lets in. */
	p->pkey = to->pkey_index < subnet_port_pkeys(port) ? subnet_pkey(port, to->pkey_index) : 0;
	p->sl = to->sl;
	p->grh = to->grh;
	if (!to->grh)
		return;
	p->hop_limit = to->hop_limit;
	p->traffic_class = to->traffic_class;
	p->flow_label = to->flow_label;
	p->dgid = to->gid;
	if (!subnet_gid(s, a->attr.row, to->gid_index, &own))
		return;
	p->sgid = own.gid;
	p->roce_v1 = port->ethernet && own.type == GID_IB_ROCE_V1;
}

struct mad_packet *send_packet(struct mad_send *send)
{
	struct mad_agent *a = send->agent;
	struct mad_packet *p = mad_packet_get(a->fabric);

	if (p)
		packet_address(a, &send->to, p);
	else
		a->fabric->dropped++;
	return p;
}

void send_emit(struct mad_send *send, struct mad_packet *p)
{
	p->send = send;
	send->packet = p;
	mad_emit(send->agent->fabric, p);
}

/* Emits its one MAD.  False: no memory. */
static bool send_emit_own(struct mad_send *send)
{
	struct mad_packet *p = send_packet(send);

	if (!p)
		return false;
	memcpy(p->mad, send->mad, MAD_BYTES);
	send_emit(send, p);
	return true;
}

static void send_timer_arm(struct mad_send *send)
{
	struct loop *l = send->agent->fabric->loop;

	loop_timer_arm(l, &send->timer, loop_now(l) + send->timeout_ms * 1000000ull);
}

static void send_timer_fires(struct loop *l, struct loop_timer *t)
{
	struct mad_send *send = container_of(t, struct mad_send, timer);

	(void)l;
	if (send->rmpp && rmpp_transfer_again(send))
		return;
	if (!send->rmpp && send->retries) {
		send->retries--;
		if (!send_emit_own(send))
			send_timer_arm(send);
		return;
	}
	send_detach(send);
	send_report(send, -ETIMEDOUT);
}

/* 'local': it has not left the port.  A receiver there that does not answer at once never does. */
static void send_left(struct mad_send *send, bool local)
{
	send->packet = NULL;
	if (send->rmpp) {
		rmpp_transfer_left(send);
		return;
	}
	if (send->timeout_ms && !local) {
		send->waiting = true;
		send_timer_arm(send);
		return;
	}
	send_detach(send);
	send_report(send, 0);
}

void send_packet_leaves(struct mad_packet *p)
{
	if (p->send)
		send_left(p->send, p->local);
	p->send = NULL;
}

/* ---- what a sender may ask ---- */

static struct mad_sender agent_sender(const struct mad_agent *a)
{
	return (struct mad_sender){
		.gids = subnet_port_gids(&a->fabric->net->subnet->ports[a->attr.row]),
		.rmpp = a->attr.rmpp_version,
		.user_rmpp = a->attr.user_rmpp,
	};
}

static bool same_destination(const struct mad_address *a, const struct mad_address *b)
{
	if (a->grh != b->grh)
		return false;
	return a->grh ? !memcmp(&a->gid, &b->gid, sizeof(a->gid)) : a->lid == b->lid;
}

bool mad_scope_has(const struct mad_scope *s, uint64_t tid, unsigned class, bool response,
		   const struct mad_address *to)
{
	struct mad_send *send = s->count ? send_first(s->fabric, tid) : NULL;

	for (; send; send = send_next(send))
		if (send->agent->scope == s && !send->no_duplicate &&
		    send->mad[MAD_AT_CLASS] == class && send->response == response &&
		    (!response || same_destination(&send->to, to)))
			return true;
	return false;
}

static void send_fill(struct mad_send *send, struct mad_agent *a, const struct mad_send_attr *s)
{
	send->agent = a;
	send->timer.fire = send_timer_fires;
	send->to = s->to;
	send->timeout_ms = s->timeout_ms;
	send->retries = s->retries;
	memcpy(send->note, s->note, sizeof(send->note));
	memcpy(send->mad, s->mad, s->length < MAD_BYTES ? s->length : MAD_BYTES);
	send->response = mad_is_response(send->mad);
	if (!send->response)
		mad_put32(send->mad, MAD_AT_TID, a->tid);
	send->tid = mad_get64(send->mad, MAD_AT_TID);
	send->no_duplicate = a->attr.user_rmpp && mad_rmpp_is_active(s->mad);
	/* What we do not do for the sender, the other end must not take for RMPP. */
	if (a->attr.rmpp_version && !a->attr.user_rmpp && !mad_rmpp_is_active(send->mad))
		memset(&send->mad[MAD_AT_RMPP_VERSION], 0, MAD_RMPP_BYTES - MAD_HEADER_BYTES);
}

int mad_agent_send(struct mad_agent *a, const struct mad_send_attr *s)
{
	const struct mad_sender sender = agent_sender(a);
	struct mad_send *send;
	int ret = mad_send_check(&sender, s->to.sl, s->to.grh ? s->to.gid_index : -1, s->mad,
				 s->length);

	if (ret)
		return ret;
	send = send_new(a->fabric);
	if (!send)
		return -ENOMEM;
	send_fill(send, a, s);
	if (!send->no_duplicate &&
	    mad_scope_has(a->scope, send->tid, send->mad[MAD_AT_CLASS], send->response, &send->to))
		ret = -EINVAL;
	else if (mad_sends_rmpp(&sender, s->mad))
		ret = rmpp_transfer_new(send, s);
	if (ret) {
		send_free(a->fabric, send);
		return ret;
	}
	send_attach(a, send);
	if (send->rmpp)
		rmpp_transfer_begin(send);
	else if (!send_emit_own(send))
		send_left(send, false); /* handled as if it were lost on its way */
	return 0;
}

int mad_agent_reply(struct mad_agent *a, const struct mad_message *request, const uint8_t *mad,
		    uint32_t length)
{
	const struct mad_send_attr s = {
		.to = request->from, .mad = mad, .length = length, .retries = RMPP_REPLY_RETRIES};

	return mad_agent_send(a, &s);
}

/* ---- the answer ---- */

static bool answer_is_to(const struct mad_send *send, const struct mad_packet *p)
{
	const struct mad_agent *a = send->agent;
	const struct subnet *s = a->fabric->net->subnet;
	uint32_t lmc = atomic_load_explicit(&s->ports[a->attr.row].lmc, memory_order_relaxed);
	struct subnet_gid_entry own;

	if (mad_is_directed(p->mad))
		return true;
	if (send->response || send->to.grh != p->grh)
		return false;
	if (!p->grh)
		return !((send->to.path_bits ^ p->dlid) & ((1u << lmc) - 1));
	return subnet_gid(s, a->attr.row, send->to.gid_index, &own) &&
	       !memcmp(&own.gid, &p->dgid, sizeof(own.gid));
}

struct mad_send *send_find(struct mad_agent *a, const struct mad_packet *p)
{
	struct mad_send *send = send_first(a->fabric, mad_get64(p->mad, MAD_AT_TID));

	for (; send; send = send_next(send))
		if (send->agent == a && send->waiting &&
		    send->mad[MAD_AT_CLASS] == p->mad[MAD_AT_CLASS] && answer_is_to(send, p))
			return send;
	return NULL;
}
