// SPDX-License-Identifier: BSD-2-Clause
/* InformInfo (13.4.8.3): who wants to hear of which notices, and the reports that they get. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sa/sa.h"

#define SUBSCRIPTIONS_MOST 65536u
#define REPORT_TIMEOUT_MS  200u
#define REPORT_RETRIES	   3u
#define ANY16		   0xffffu
#define ANY24		   0xffffffu
#define TYPE_SM		   3u
#define PRODUCER_SM	   4u
#define TRAP_BAD_MKEY	   256u
#define TRAP_BAD_SW_PKEY   259u

struct sa_subscription {
	struct mad_address to;
	uint32_t row;
	uint16_t number;
	uint8_t info[II_BYTES];
};

/* ---- subscribing ---- */

/* Tells whether both are the same subscription.  The response time is not a part of it. */
static bool inform_same(const struct sa_subscription *v, uint32_t row, const uint8_t *info)
{
	return v->row == row && !memcmp(v->info, info, 20) && /* GID and LIDs */
	       prm_get(v->info, II_GENERIC) == prm_get(info, II_GENERIC) &&
	       prm_get(v->info, II_TYPE) == prm_get(info, II_TYPE) &&
	       prm_get(v->info, II_TRAP) == prm_get(info, II_TRAP) &&
	       prm_get(v->info, II_QPN) == prm_get(info, II_QPN) &&
	       prm_get(v->info, II_PRODUCER) == prm_get(info, II_PRODUCER);
}

/* Returns its number, or how many subscriptions there are. */
static uint32_t inform_find(const struct sa *s, uint32_t row, const uint8_t *info)
{
	uint32_t i = 0;

	while (i < s->nsubscriptions && !inform_same(s->subscriptions[i], row, info))
		i++;
	return i;
}

static void inform_remove(struct sa *s, uint32_t i)
{
	free(s->subscriptions[i]);
	s->subscriptions[i] = s->subscriptions[--s->nsubscriptions];
}

static struct sa_subscription *inform_add(struct sa *s)
{
	struct sa_subscription *v =
		s->nsubscriptions < SUBSCRIPTIONS_MOST ? calloc(1, sizeof(*v)) : NULL;
	struct sa_subscription **all =
		v ? reallocarray(s->subscriptions, s->nsubscriptions + 1u, sizeof(v)) : NULL;

	if (!all) {
		free(v);
		return NULL;
	}
	s->subscriptions = all;
	all[s->nsubscriptions++] = v;
	return v;
}

void sa_subscriptions_close(struct sa *s)
{
	while (s->nsubscriptions)
		inform_remove(s, s->nsubscriptions - 1);
	free(s->subscriptions);
	s->subscriptions = NULL;
}

static unsigned inform_subscribe(struct sa_query *q)
{
	struct sa *s = q->sa;
	struct sa_subscription *v;
	uint32_t i;

	prm_set(q->record, II_QPN, q->who.qpn);
	i = inform_find(s, q->from, q->record);
	if (i < s->nsubscriptions) {
		s->subscriptions[i]->to = q->who;
		return MAD_STATUS_OK;
	}
	v = inform_add(s);
	if (!v)
		return SA_NO_RESOURCES;
	v->to = q->who;
	v->row = q->from;
	v->number = s->next_enum++;
	memcpy(v->info, q->record, II_BYTES);
	return MAD_STATUS_OK;
}

static unsigned inform_change(struct sa_query *q, unsigned method)
{
	uint32_t subscribe = prm_get32(q->record, II_SUBSCRIBE);
	uint32_t trap = prm_get32(q->record, II_TRAP);
	unsigned status = MAD_STATUS_OK;

	if (method != MAD_SET)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	/* Only askers that we trust hear of violations of keys (C15-0.2-1.16). */
	if (q->from == SUBNET_NONE || subscribe > 1 ||
	    (!q->trusted && prm_get(q->record, II_GENERIC) && trap >= TRAP_BAD_MKEY &&
	     trap <= TRAP_BAD_SW_PKEY)) {
		status = SA_INVALID;
	} else if (subscribe) {
		status = inform_subscribe(q);
	} else {
		uint32_t i = inform_find(q->sa, q->from, q->record);

		if (i < q->sa->nsubscriptions)
			inform_remove(q->sa, i);
		else
			status = SA_INVALID;
	}
	if (status)
		prm_set(q->record, II_SUBSCRIBE, 0); /* o13-13.1.1 */
	return status;
}

const struct sa_record sa_inform_info = {
	.attribute = SA_INFORM_INFO,
	.bytes = II_BYTES,
	.change = inform_change,
};

/* ---- InformInfoRecord ---- */

#define IIR_AT_INFO 24u
#define IIR_BYTES   60u
#define IIR_ENUM    PRM_FIELD(128, 16)

static const struct sa_field inform_fields[] = {
	{0, 128}, {128, 16}, {0, 0},	{192, 128}, {320, 16}, {336, 16}, {0, 0}, {368, 8},
	{376, 8}, {384, 16}, {400, 16}, {416, 24},  {0, 0},    {443, 5},  {0, 0}, {456, 24},
};

static uint64_t inform_record_count(const struct sa_query *q)
{
	return q->sa->nsubscriptions;
}

static bool inform_record_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct sa_subscription *v;
	union ib_gid gid;

	if (i >= q->sa->nsubscriptions)
		return false;
	v = q->sa->subscriptions[i];
	sa_port_gid(q->net, v->row, &gid);
	memcpy(out, &gid, sizeof(gid));
	prm_set(out, IIR_ENUM, v->number);
	memcpy(out + IIR_AT_INFO, v->info, II_BYTES);
	return true;
}

const struct sa_record sa_inform_info_record = {
	.attribute = SA_INFORM_INFO_RECORD,
	.bytes = IIR_BYTES,
	.fields = inform_fields,
	.nfields = sizeof(inform_fields) / sizeof(inform_fields[0]),
	.count = inform_record_count,
	.get = inform_record_get,
};

/* ---- reports ---- */

/* Zero names no issuer; then the LIDs name them, unless they are wildcards. */
static bool inform_wants_issuer(const uint8_t *info, const uint8_t *notice)
{
	static const uint8_t none[16];
	uint32_t lid = prm_get32(notice, NOTICE_ISSUER), begin = prm_get32(info, II_LID_BEGIN);

	if (memcmp(info + II_AT_GID, none, sizeof(none)) != 0)
		return !memcmp(info + II_AT_GID, notice + NOTICE_AT_GID, sizeof(none));
	return begin == ANY16 || (begin <= lid && lid <= prm_get32(info, II_LID_END));
}

static bool inform_wants(const uint8_t *info, const uint8_t *notice)
{
	uint32_t type = prm_get32(info, II_TYPE), trap = prm_get32(info, II_TRAP);
	uint32_t producer = prm_get32(info, II_PRODUCER);

	return inform_wants_issuer(info, notice) &&
	       !prm_get(info, II_GENERIC) == !prm_get(notice, NOTICE_GENERIC) &&
	       (type == ANY16 || type == prm_get32(notice, NOTICE_TYPE)) &&
	       (trap == ANY16 || trap == prm_get32(notice, NOTICE_TRAP)) &&
	       (producer == ANY24 || producer == prm_get32(notice, NOTICE_PRODUCER));
}

static void report_send(struct sa *s, const struct sa_subscription *v, const uint8_t *notice)
{
	uint8_t mad[MAD_BYTES] = {1, MAD_CLASS_SA, SA_CLASS_VERSION, MAD_REPORT};
	const struct mad_send_attr send = {
		.to = v->to,
		.mad = mad,
		.length = MAD_BYTES,
		.timeout_ms = REPORT_TIMEOUT_MS,
		.retries = REPORT_RETRIES,
	};

	mad_put64(mad, MAD_AT_TID, ++s->next_tid);
	mad_put16(mad, MAD_AT_ATTRIBUTE, SA_NOTICE);
	mad_put16(mad, SA_AT_OFFSET, NOTICE_BYTES / 8);
	memcpy(mad + SA_AT_DATA, notice, NOTICE_BYTES);
	/* Without memory this report is lost, as it might be on a link. */
	if (mad_agent_send(&s->agent, &send))
		return;
}

static void report_all(struct sa *s, const uint8_t *notice)
{
	for (uint32_t i = 0; i < s->nsubscriptions; i++)
		if (inform_wants(s->subscriptions[i]->info, notice))
			report_send(s, s->subscriptions[i], notice);
}

void sa_report(struct sa *s, const uint8_t *notice)
{
	uint8_t full[NOTICE_BYTES] = {0};
	uint32_t row = sa_port_by_lid(s->fabric->net, prm_get32(notice, NOTICE_ISSUER));
	union ib_gid gid;

	if (!s->open)
		return;
	memcpy(full, notice, NOTICE_AT_GID);
	if (row != SUBNET_NONE) {
		sa_port_gid(s->fabric->net, row, &gid);
		memcpy(full + NOTICE_AT_GID, &gid, sizeof(gid));
	}
	report_all(s, full);
}

/* Reports a notice of ours: the issuer is the SM's port, and the details begin with a GID. */
static void report_own(struct sa *s, enum sa_trap trap, const void *gid)
{
	uint8_t notice[NOTICE_BYTES] = {0};
	union ib_gid issuer;

	prm_set(notice, NOTICE_GENERIC, 1);
	prm_set(notice, NOTICE_TYPE, TYPE_SM);
	prm_set(notice, NOTICE_PRODUCER, PRODUCER_SM);
	prm_set(notice, NOTICE_TRAP, trap);
	prm_set(notice, NOTICE_ISSUER, sa_lid_of(s->fabric->net, s->row));
	memcpy(notice + NOTICE_AT_DETAILS + 6, gid, 16);
	sa_port_gid(s->fabric->net, s->row, &issuer);
	memcpy(notice + NOTICE_AT_GID, &issuer, sizeof(issuer));
	report_all(s, notice);
}

void sa_report_group(struct sa *s, const struct sa_group *g, enum sa_trap trap)
{
	report_own(s, trap, &g->mgid);
}

void sa_report_port(struct sa *s, uint32_t row, enum sa_trap trap)
{
	union ib_gid gid;

	if (!s->open)
		return;
	sa_port_gid(s->fabric->net, row, &gid);
	report_own(s, trap, &gid);
}
