// SPDX-License-Identifier: BSD-2-Clause
/* SMInfo (IBTA 14.2.5.13), and traps, which go to the SM's port. */
#include "fabric/daemon/sm/sm.h"

#include <string.h>

#define SM_METHODS (1ull << MAD_GET | 1ull << MAD_SET | 1ull << MAD_TRAP)

#define SMI_GUID      PRM_FIELD(0, 64)
#define SMI_KEY	      PRM_FIELD(64, 64)
#define SMI_ACT_COUNT PRM_FIELD(128, 32)
#define SMI_PRIORITY  PRM_FIELD(160, 4)
#define SMI_STATE     PRM_FIELD(164, 4)

static struct sm *sm_of_agent(struct mad_agent *a)
{
	size_t at = a->attr.class == MAD_CLASS_SMP_LID ? offsetof(struct sm, info)
						       : offsetof(struct sm, directed_info);

	return (struct sm *)((char *)a - at);
}

void sm_info_fill(struct sm *s, uint8_t *data)
{
	s->sa.sm = (struct sa_sm){
		.guid = s->fabric->net->ports[s->home].guid,
		.act_count = ++s->act_count,
		.priority = s->priority,
		.state = (uint8_t)s->state,
	};
	memset(data, 0, MAD_ATTRIBUTE_BYTES);
	prm_set(data, SMI_GUID, s->sa.sm.guid);
	prm_set(data, SMI_KEY, s->negotiates ? SM_KEY : 0);
	prm_set(data, SMI_ACT_COUNT, s->sa.sm.act_count);
	prm_set(data, SMI_PRIORITY, s->sa.sm.priority);
	prm_set(data, SMI_STATE, s->sa.sm.state);
}

static unsigned sm_info_answer(struct sm *s, uint8_t *mad)
{
	unsigned status;

	if (mad_get16(mad, MAD_AT_ATTRIBUTE) != SMP_SM_INFO)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (mad[MAD_AT_METHOD] == MAD_SET)
		status = sm_set_status(s, mad);
	else
		status = mad_get32(mad, MAD_AT_MODIFIER) ? MAD_STATUS_BAD_VALUE : MAD_STATUS_OK;
	if (!status)
		sm_info_fill(s, mad + MAD_SMP_DATA);
	return status;
}

/*
 * Answers a trap by its repression, with the rest unchanged (14.3.9), and reports it to
 * subscribers.
 */
static void sm_trap(struct sm *s, struct mad_agent *a, const struct mad_message *m)
{
	uint8_t mad[MAD_BYTES];

	memcpy(mad, m->data, MAD_BYTES);
	mad[MAD_AT_METHOD] = MAD_TRAP_REPRESS;
	if (mad_agent_reply(a, m, mad, MAD_BYTES))
		return; /* the trap comes again */
	if (mad_get16(mad, MAD_AT_ATTRIBUTE) == SMP_NOTICE && s->serves)
		sa_report(&s->sa, mad + MAD_SMP_DATA);
}

static void sm_info_receive(struct mad_agent *a, struct mad_message *m)
{
	struct sm *s = sm_of_agent(a);
	uint8_t mad[MAD_BYTES];
	unsigned status;

	if (m->data[MAD_AT_METHOD] == MAD_TRAP) {
		sm_trap(s, a, m);
		return;
	}
	if (mad_is_response(m->data)) {
		sm_answered(s, m);
		return;
	}
	memcpy(mad, m->data, MAD_BYTES);
	status = sm_info_answer(s, mad);
	mad_answer(mad, MAD_GET_RESP, status);
	/* Without memory the answer is lost, and the asker asks again. */
	if (mad_agent_reply(a, m, mad, MAD_BYTES))
		return;
	if (m->data[MAD_AT_METHOD] == MAD_SET && !status)
		sm_set_perform(s, m);
}

static void sm_info_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
			 int status)
{
	(void)a, (void)note, (void)header, (void)status;
}

static const struct mad_agent_ops sm_info_ops = {
	.receive = sm_info_receive,
	.sent = sm_info_sent,
};

static int sm_info_register(struct sm *s, struct mad_agent *a, unsigned class)
{
	const struct mad_agent_attr attr = {
		.row = s->home,
		.qpn = 0,
		.class = (uint8_t) class,
		.class_version = 1,
		.methods = {SM_METHODS},
	};

	return mad_agent_register(s->fabric, a, &attr, &sm_info_ops, &s->scope);
}

int sm_info_open(struct sm *s)
{
	int ret = sm_info_register(s, &s->info, MAD_CLASS_SMP_LID);

	if (ret)
		return ret;
	ret = sm_info_register(s, &s->directed_info, MAD_CLASS_SMP_DIRECTED);
	if (ret)
		mad_agent_unregister(&s->info);
	return ret;
}

void sm_info_close(struct sm *s)
{
	mad_agent_unregister(&s->directed_info);
	mad_agent_unregister(&s->info);
}
