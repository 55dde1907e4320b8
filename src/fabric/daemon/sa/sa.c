// SPDX-License-Identifier: BSD-2-Clause
/* The agent of subnet administration: takes requests, finds their record, sends answers. */
#include "fabric/daemon/sa/sa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SA_METHODS_LOW                                                                       \
	(1ull << MAD_GET | 1ull << MAD_SET | 1ull << MAD_GET_TABLE | 1ull << MAD_GET_MULTI | \
	 1ull << MAD_DELETE)

static const struct sa_record *const sa_records[] = {
	&sa_class_port_info,  &sa_node_record,	      &sa_port_info_record, &sa_switch_info_record,
	&sa_linear_record,    &sa_multicast_record,   &sa_sm_info_record,   &sa_link_record,
	&sa_guid_info_record, &sa_pkey_record,	      &sa_sl_to_vl_record,  &sa_vlarb_record,
	&sa_path_record,      &sa_multi_path_record,  &sa_mc_member_record, &sa_service_record,
	&sa_inform_info,      &sa_inform_info_record,
};

const struct sa_record *sa_record_find(unsigned attribute)
{
	for (uint32_t i = 0; i < sizeof(sa_records) / sizeof(sa_records[0]); i++)
		if (sa_records[i]->attribute == attribute)
			return sa_records[i];
	return NULL;
}

/* ---- answers ---- */

static void sa_send(struct sa_query *q, const uint8_t *mad, uint32_t length)
{
	const struct mad_message request = {
		.from = q->who,
		.length = q->request_bytes,
		.data = q->request,
	};

	/* Without memory the answer is lost, and the asker asks again. */
	if (mad_agent_reply(&q->sa->agent, &request, mad, length))
		return;
}

static void sa_answer_header(const struct sa_query *q, uint8_t *mad, unsigned status)
{
	unsigned attribute = q->kind && q->kind->answered_as
				     ? q->kind->answered_as
				     : mad_get16(q->request, MAD_AT_ATTRIBUTE);

	memcpy(mad, q->request, SA_AT_DATA);
	memset(mad + MAD_AT_RMPP_VERSION, 0, SA_AT_SM_KEY - MAD_AT_RMPP_VERSION);
	mad_put16(mad, MAD_AT_ATTRIBUTE, attribute);
	mad_put64(mad, SA_AT_SM_KEY, 0);
	mad_put16(mad, SA_AT_OFFSET, q->kind ? (q->kind->bytes + 7u) / 8u : 0);
	mad_answer(mad, q->method == MAD_SET ? MAD_GET_RESP : q->method | MAD_RESPONSE, status);
}

void sa_answer(struct sa_query *q, unsigned status)
{
	uint8_t mad[MAD_BYTES] = {0};
	uint32_t bytes = q->kind ? q->kind->bytes : 0;

	sa_answer_header(q, mad, status);
	if (bytes > MAD_BYTES - SA_AT_DATA)
		bytes = MAD_BYTES - SA_AT_DATA;
	memcpy(mad + SA_AT_DATA, q->record, bytes);
	sa_send(q, mad, MAD_BYTES);
}

void sa_answer_table(struct sa_query *q)
{
	const uint32_t each = (q->kind->bytes + 7u) & ~7u;

	sa_answer_header(q, q->answer, MAD_STATUS_OK);
	q->answer[MAD_AT_RMPP_VERSION] = 1;
	q->answer[MAD_AT_RMPP_TYPE] = MAD_RMPP_DATA;
	q->answer[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	sa_send(q, q->answer, SA_AT_DATA + q->nrecords * each);
}

/* ---- requests ---- */

static void sa_change(struct sa_query *q)
{
	unsigned status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;

	if (q->kind->change)
		status = q->kind->change(q, q->method);
	if (status != SA_SILENCE)
		sa_answer(q, status);
	sa_query_free(q);
}

static void sa_dispatch(struct sa_query *q)
{
	switch (q->method) {
	case MAD_GET:
	case MAD_GET_TABLE:
	case MAD_GET_MULTI:
		/* GetMulti, and only it, asks for several paths from lists of GIDs. */
		if (q->kind->count && (q->method == MAD_GET_MULTI) == (q->kind->answered_as != 0)) {
			sa_query_begin(q);
			return;
		}
		break;
	case MAD_SET:
	case MAD_DELETE:
		sa_change(q);
		return;
	default:
		break;
	}
	sa_answer(q, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	sa_query_free(q);
}

static struct sa_query *sa_query_new(struct sa *s, const struct mad_message *m)
{
	struct sa_query *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->sa = s;
	q->net = s->fabric->net;
	q->who = m->from;
	q->request_bytes = m->length < SA_REQUEST_BYTES ? m->length : SA_REQUEST_BYTES;
	memcpy(q->request, m->data, q->request_bytes);
	q->method = q->request[MAD_AT_METHOD];
	q->mask = mad_get64(q->request, SA_AT_MASK);
	q->modifier = mad_get32(q->request, MAD_AT_MODIFIER);
	q->trusted = mad_get64(q->request, SA_AT_SM_KEY) != 0;
	q->record = q->request + SA_AT_DATA;
	q->record_bytes = q->request_bytes - SA_AT_DATA;
	q->from = sa_port_by_lid(q->net, m->from.lid);
	q->kind = sa_record_find(mad_get16(q->request, MAD_AT_ATTRIBUTE));
	s->nqueries++;
	return q;
}

/* An asker that waits long asks again; the answer that is being made is also for that request. */
static bool sa_asked_again(const struct sa *s, const struct mad_message *m)
{
	for (const struct sa_query *q = s->queries; q; q = q->next)
		if (q->who.lid == m->from.lid && q->who.qpn == m->from.qpn &&
		    mad_get64(q->request, MAD_AT_TID) == mad_get64(m->data, MAD_AT_TID) &&
		    q->method == m->data[MAD_AT_METHOD])
			return true;
	return false;
}

static void sa_receive(struct mad_agent *a, struct mad_message *m)
{
	struct sa *s = (struct sa *)((char *)a - offsetof(struct sa, agent));
	uint64_t key;
	struct sa_query *q;

	if (m->length < SA_AT_DATA)
		return;
	/* An asker with a wrong key gets no answer, so that nobody can guess the key (15.4.1). */
	key = mad_get64(m->data, SA_AT_SM_KEY);
	if (key && key != SA_SM_KEY)
		return;
	if (s->nqueries >= SA_MOST_QUERIES || sa_asked_again(s, m))
		return;
	q = sa_query_new(s, m);
	if (!q)
		return;
	if (q->kind) {
		sa_dispatch(q);
		return;
	}
	sa_answer(q, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	sa_query_free(q);
}

static void sa_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header, int status)
{
	(void)a, (void)note, (void)header, (void)status;
}

static const struct mad_agent_ops sa_ops = {.receive = sa_receive, .sent = sa_sent};

/* ---- life ---- */

int sa_open(struct sa *s, struct mad_fabric *f, uint32_t row)
{
	const struct mad_agent_attr attr = {
		.row = row,
		.qpn = 1,
		.class = MAD_CLASS_SA,
		.class_version = SA_CLASS_VERSION,
		.rmpp_version = 1,
		.methods = {SA_METHODS_LOW},
	};
	int ret;

	s->fabric = f;
	s->row = row;
	s->queries = NULL;
	s->queries_end = &s->queries;
	s->work.run = sa_query_run;
	s->lease.fire = sa_service_lease;
	ret = sa_groups_open(s);
	if (ret)
		return ret;
	ret = mad_agent_register(f, &s->agent, &attr, &sa_ops, &s->scope);
	if (ret) {
		sa_groups_close(s);
		return ret;
	}
	s->open = true;
	return 0;
}

void sa_close(struct sa *s)
{
	if (!s->open)
		return;
	s->open = false;
	mad_agent_unregister(&s->agent);
	loop_unqueue(s->fabric->loop, &s->work);
	while (s->queries) {
		struct sa_query *q = s->queries;

		s->queries = q->next;
		sa_query_free(q);
	}
	s->queries_end = &s->queries;
	sa_groups_close(s);
	sa_services_close(s);
	sa_subscriptions_close(s);
}
