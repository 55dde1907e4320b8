// SPDX-License-Identifier: BSD-2-Clause
/* ServiceRecord (15.2.5.14): what hosts announce, for as long as they say. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sa/sa.h"

#define SERVICES_MOST 65536u
#define COMP_ID	      0u
#define COMP_GID      1u
#define COMP_PKEY     2u
#define COMP_LEASE    4u
#define COMP_KEY      5u
#define SR_NAME_BYTES 24u /* ID and GID */
#define SECOND	      1000000000ull

struct sa_service {
	uint64_t ends_ns; /* UINT64_MAX: never */
	uint8_t record[SR_BYTES];
};

static const struct sa_field service_fields[] = {
	{0, 64},    {64, 128},	{192, 16},  {208, 16},	{224, 32},  {256, 128}, {384, 512},
	{896, 8},   {904, 8},	{912, 8},   {920, 8},	{928, 8},   {936, 8},	{944, 8},
	{952, 8},   {960, 8},	{968, 8},   {976, 8},	{984, 8},   {992, 8},	{1000, 8},
	{1008, 8},  {1016, 8},	{1024, 16}, {1040, 16}, {1056, 16}, {1072, 16}, {1088, 16},
	{1104, 16}, {1120, 16}, {1136, 16}, {1152, 32}, {1184, 32}, {1216, 32}, {1248, 32},
	{1280, 64}, {1344, 64},
};

/* ---- leases ---- */

static void services_arm(struct sa *s)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < s->nservices; i++)
		if (s->services[i]->ends_ns < first)
			first = s->services[i]->ends_ns;
	if (first == UINT64_MAX)
		loop_timer_cancel(s->fabric->loop, &s->lease);
	else
		loop_timer_arm(s->fabric->loop, &s->lease, first);
}

static void service_remove(struct sa *s, uint32_t i)
{
	free(s->services[i]);
	s->services[i] = s->services[--s->nservices];
}

static bool service_add(struct sa *s, struct sa_service *v)
{
	struct sa_service **services =
		reallocarray(s->services, s->nservices + 1u, sizeof(struct sa_service *));

	if (!services)
		return false;
	s->services = services;
	services[s->nservices++] = v;
	return true;
}

void sa_service_lease(struct loop *l, struct loop_timer *t)
{
	struct sa *s = (struct sa *)((char *)t - offsetof(struct sa, lease));
	uint64_t now = loop_now(l);

	for (uint32_t i = s->nservices; i--;)
		if (s->services[i]->ends_ns <= now)
			service_remove(s, i);
	services_arm(s);
}

void sa_services_close(struct sa *s)
{
	while (s->nservices)
		service_remove(s, s->nservices - 1);
	free(s->services);
	s->services = NULL;
	loop_timer_cancel(s->fabric->loop, &s->lease);
}

/* ---- announcing ---- */

/* ID, GID and P_Key name a service.  Returns its number, or how many there are. */
static uint32_t service_find(const struct sa *s, const uint8_t *record)
{
	uint32_t i = 0;

	while (i < s->nservices &&
	       (memcmp(s->services[i]->record, record, SR_NAME_BYTES) != 0 ||
		prm_get(s->services[i]->record, SR_PKEY) != prm_get(record, SR_PKEY)))
		i++;
	return i;
}

/* Returns the service that the record names, and makes it if it is not there; NULL: no room. */
static struct sa_service *service_get_or_add(struct sa *s, const uint8_t *record)
{
	uint32_t i = service_find(s, record);
	struct sa_service *v;

	if (i < s->nservices)
		return s->services[i];
	v = s->nservices < SERVICES_MOST ? calloc(1, sizeof(*v)) : NULL;
	if (v && service_add(s, v))
		return v;
	free(v);
	return NULL;
}

/* Tells whether asker and service are in the partition that the record names. */
static bool service_allowed(const struct sa_query *q)
{
	uint16_t pkey = (uint16_t)prm_get(q->record, SR_PKEY);
	uint8_t gid[16];
	uint32_t row;

	if (!sa_asked(q, COMP_PKEY))
		return true;
	if (q->from == SUBNET_NONE || !sa_has_pkey(q->net, q->from, pkey))
		return false;
	if (!sa_asked(q, COMP_GID) || sa_is_multicast(q->record + SR_AT_GID))
		return true;
	/* Compares the GUID alone, because some programs leave the prefix out. */
	memcpy(gid, q->net->ports[q->sa->row].info + 8, 8);
	memcpy(gid + 8, q->record + SR_AT_GID + 8, 8);
	row = sa_port_by_gid(q->net, gid);
	return row != SUBNET_NONE && sa_has_pkey(q->net, row, pkey);
}

static unsigned service_set(struct sa_query *q)
{
	struct sa *s = q->sa;
	struct sa_service *v;
	uint64_t lease;

	if (!sa_asked(q, COMP_ID) || !sa_asked(q, COMP_GID))
		return SA_INVALID;
	if (!sa_asked(q, COMP_LEASE))
		prm_set(q->record, SR_LEASE, SR_LEASE_FOR_EVER);
	if (!sa_asked(q, COMP_PKEY))
		prm_set(q->record, SR_PKEY, SUBNET_PKEY_DEFAULT);
	v = service_get_or_add(s, q->record);
	if (!v)
		return SA_NO_RESOURCES;
	memcpy(v->record, q->record, SR_BYTES);
	lease = prm_get(q->record, SR_LEASE);
	v->ends_ns = lease == SR_LEASE_FOR_EVER ? UINT64_MAX
						: loop_now(s->fabric->loop) + lease * SECOND;
	services_arm(s);
	return MAD_STATUS_OK;
}

static unsigned service_delete(struct sa_query *q)
{
	uint32_t i;

	if (!sa_asked(q, COMP_PKEY))
		prm_set(q->record, SR_PKEY, SUBNET_PKEY_DEFAULT);
	i = service_find(q->sa, q->record);
	if (i == q->sa->nservices)
		return SA_NO_RECORDS;
	memcpy(q->record, q->sa->services[i]->record, SR_BYTES);
	service_remove(q->sa, i);
	services_arm(q->sa);
	return MAD_STATUS_OK;
}

static unsigned service_change(struct sa_query *q, unsigned method)
{
	unsigned status = SA_INVALID;

	if (service_allowed(q))
		status = method == MAD_SET ? service_set(q) : service_delete(q);
	/* The SA stores the key, but no answer shows it, as no record does (15.4.1.2). */
	if (!q->trusted)
		memset(q->record + SR_AT_KEY, 0, SR_AT_NAME - SR_AT_KEY);
	return status;
}

/* ---- asking ---- */

static unsigned service_check(struct sa_query *q)
{
	return service_allowed(q) ? MAD_STATUS_OK : SA_INVALID;
}

static uint64_t service_count(const struct sa_query *q)
{
	return q->sa->nservices;
}

static bool service_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct sa_service *v;

	if (i >= q->sa->nservices)
		return false;
	v = q->sa->services[i];
	if (q->from != SUBNET_NONE &&
	    !sa_has_pkey(q->net, q->from, (uint16_t)prm_get(v->record, SR_PKEY)))
		return false;
	memcpy(out, v->record, SR_BYTES);
	/* Only those who announce may see the key. */
	if (!q->trusted && !sa_asked(q, COMP_KEY))
		memset(out + SR_AT_KEY, 0, SR_AT_NAME - SR_AT_KEY);
	return true;
}

const struct sa_record sa_service_record = {
	.attribute = SA_SERVICE_RECORD,
	.bytes = SR_BYTES,
	.fields = service_fields,
	.nfields = sizeof(service_fields) / sizeof(service_fields[0]),
	.check = service_check,
	.count = service_count,
	.get = service_get,
	.change = service_change,
};
