// SPDX-License-Identifier: BSD-2-Clause
#include "mad_client.h"

#include <string.h>

#include "check.h"

#define TIMEOUT_MS 1000u

static void client_receive(struct mad_agent *a, struct mad_message *m)
{
	struct mad_client *c = (struct mad_client *)a;

	if (mad_is_response(m->data))
		c->answers++;
	else
		c->requests++;
	CHECK(m->length <= sizeof(c->answer));
	c->length = m->length;
	memcpy(c->answer, m->data, m->length);
}

static void client_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
			int status)
{
	(void)note, (void)header;
	if (status)
		((struct mad_client *)a)->timeouts++;
}

static const struct mad_agent_ops client_ops = {.receive = client_receive, .sent = client_sent};

void mad_client_open(struct mad_client *c, struct test_mad *m, uint32_t row, unsigned class,
		     unsigned class_version, uint64_t methods)
{
	const struct mad_agent_attr attr = {
		.row = row,
		.qpn = class == MAD_CLASS_SMP_LID || class == MAD_CLASS_SMP_DIRECTED ? 0 : 1,
		.class = (uint8_t) class,
		.class_version = (uint8_t)class_version,
		.rmpp_version = mad_class_has_rmpp(class),
		.methods = {methods},
	};

	memset(c, 0, sizeof(*c));
	CHECK(!mad_agent_register(&m->mad, &c->agent, &attr, &client_ops, &c->scope));
}

void mad_client_close(struct mad_client *c)
{
	mad_agent_unregister(&c->agent);
}

void mad_client_send(struct mad_client *c, uint32_t lid, unsigned method, const uint8_t *mad)
{
	uint8_t full[MAD_BYTES];
	const struct mad_send_attr send = {
		.to = {.qpn = c->agent.attr.qpn, .lid = (uint16_t)lid},
		.mad = full,
		.length = MAD_BYTES,
		.timeout_ms = TIMEOUT_MS,
	};

	memcpy(full, mad, MAD_BYTES);
	memset(full, 0, MAD_AT_ATTRIBUTE);
	full[MAD_AT_BASE_VERSION] = 1;
	full[MAD_AT_CLASS] = c->agent.attr.class;
	full[MAD_AT_CLASS_VERSION] = c->agent.attr.class_version;
	full[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(full, MAD_AT_TID, ++c->next_tid);
	CHECK(!mad_agent_send(&c->agent, &send));
}
