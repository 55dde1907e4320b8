// SPDX-License-Identifier: BSD-2-Clause
/*
 * What ids ask of the subnet administration: MADs from their port to wherever the port's SM is, which may
 * be a program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"
#include "fabric/daemon/mad/agent.h"

struct cm_sa_port {
	struct cm_sa_port *next;
	struct cm *cm;
	struct mad_agent agent;
	struct mad_scope scope;
};

/* The request of that number is answered, or never will be. */
static void request_done(struct cm *c, uint32_t number, int status, const uint8_t *record)
{
	for (struct cm_sa_request **at = &c->sa_requests; *at; at = &(*at)->next) {
		struct cm_sa_request *r = *at;

		if (r->number != number)
			continue;
		*at = r->next;
		r->number = 0;
		r->done(r, status, record);
		return;
	}
}

static void answer_receive(struct mad_agent *a, struct mad_message *m)
{
	const struct cm_sa_port *port = container_of(a, struct cm_sa_port, agent);
	const bool good = m->length >= MAD_BYTES && !mad_get16(m->data, MAD_AT_STATUS);

	request_done(port->cm, mad_get32(m->data, MAD_AT_TID + 4), good ? 0 : -EINVAL,
		     m->data + SA_AT_DATA);
}

static void request_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
			 int status)
{
	const struct cm_sa_port *port = container_of(a, struct cm_sa_port, agent);

	(void)note;
	/* One that was answered is done already. */
	if (status)
		request_done(port->cm, mad_get32(header, MAD_AT_TID + 4), status, NULL);
}

static const struct mad_agent_ops agent_ops = {.receive = answer_receive, .sent = request_sent};

/* The agent of that port; NULL: no memory. */
static struct cm_sa_port *port_get(struct cm *c, uint32_t row)
{
	const struct mad_agent_attr attr = {
		.row = row,
		.qpn = 1,
		.class = MAD_CLASS_SA,
		.class_version = SA_CLASS_VERSION,
	};
	struct cm_sa_port *port = c->sa_ports;

	while (port && port->agent.attr.row != row)
		port = port->next;
	if (port)
		return port;
	port = calloc(1, sizeof(*port));
	if (!port || mad_agent_register(c->mad, &port->agent, &attr, &agent_ops, &port->scope)) {
		free(port);
		return NULL;
	}
	port->cm = c;
	port->next = c->sa_ports;
	c->sa_ports = port;
	return port;
}

int cm_sa_send(struct cm *c, struct cm_sa_request *r, uint32_t row, const struct cm_sa_ask *ask)
{
	const struct subnet_port *at = &cm_subnet(c)->ports[row];
	const uint32_t lid = atomic_load_explicit(&at->sm_lid, memory_order_relaxed);
	struct cm_sa_port *port = lid ? port_get(c, row) : NULL;
	uint8_t mad[MAD_BYTES] = {
		[MAD_AT_BASE_VERSION] = 1,
		[MAD_AT_CLASS] = MAD_CLASS_SA,
		[MAD_AT_CLASS_VERSION] = SA_CLASS_VERSION,
		[MAD_AT_METHOD] = ask->method,
	};
	struct mad_send_attr send = {
		.to = {.qpn = IB_GSI_QPN,
		       .lid = (uint16_t)lid,
		       .pkey_index = cm_pkey_index(at, SUBNET_PKEY_DEFAULT),
		       .sl = (uint8_t)atomic_load_explicit(&at->sm_sl, memory_order_relaxed)},
		.mad = mad,
		.length = MAD_BYTES,
		.timeout_ms = ask->timeout_ms ? ask->timeout_ms : 1,
		.retries = ask->retries,
	};
	int ret;

	if (!port)
		return lid ? -ENOMEM : -EAGAIN;
	if (!++c->next_sa_number)
		c->next_sa_number = 1;
	mad_put32(mad, MAD_AT_TID + 4, c->next_sa_number);
	mad_put16(mad, MAD_AT_ATTRIBUTE, ask->attribute);
	mad_put64(mad, SA_AT_MASK, ask->mask);
	memcpy(mad + SA_AT_DATA, ask->record, ask->bytes);
	ret = mad_agent_send(&port->agent, &send);
	if (ret || !r)
		return ret;
	r->number = c->next_sa_number;
	r->next = c->sa_requests;
	c->sa_requests = r;
	return 0;
}

bool cm_sa_waits(const struct cm_sa_request *r)
{
	return r->number != 0;
}

void cm_sa_forget(struct cm *c, struct cm_sa_request *r)
{
	struct cm_sa_request **at = &c->sa_requests;

	if (!cm_sa_waits(r))
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->number = 0;
}

void cm_sa_close(struct cm *c)
{
	while (c->sa_ports) {
		struct cm_sa_port *port = c->sa_ports;

		c->sa_ports = port->next;
		mad_agent_unregister(&port->agent);
		free(port);
	}
}
