// SPDX-License-Identifier: BSD-2-Clause
/* Who is the subnet's SM: SMInfo and traps, standing back, and the protocol between SMs. */
#include "base/log.h"
#include "fabric/daemon/sm/sm.h"
#include "fabric/daemon/sma/sma.h"

#include <string.h>

/*
 * The protocol between subnet managers (IBTA 14.4.1), for a built-in one that has a priority.  A
 * master looks around for others, once a second, and hands the subnet over to one of higher rank.
 * An SM that stands by asks its master whether it is there.  A table of states judges what another
 * SM sets (HANDOVER and so on), also while we have no priority and are the master until we are
 * gone.
 */

#define POLL_NS	   1000000000ull
#define POLLS_LOST 4u /* lost in a row: the master has gone; half as many if nobody is there */
#define ANSWER_MS  400u

#define SMI_GUID     PRM_FIELD(0, 64)
#define SMI_PRIORITY PRM_FIELD(160, 4)
#define SMI_STATE    PRM_FIELD(164, 4)

enum sm_modifier {
	SM_GET = 0,
	SM_HANDOVER = 1,
	SM_ACKNOWLEDGE,
	SM_DISABLE,
	SM_STAND_BY,
	SM_DISCOVER,
};

/* The modifiers that each state admits. */
static const uint8_t legal[] = {
	[SM_NOT_ACTIVE] = 1u << SM_STAND_BY,
	[SM_DISCOVERING] = 1u << SM_HANDOVER,
	[SM_STANDBY] = 1u << SM_HANDOVER | 1u << SM_DISABLE | 1u << SM_DISCOVER,
	[SM_MASTER] = 1u << SM_HANDOVER | 1u << SM_ACKNOWLEDGE | 1u << SM_DISCOVER,
};

static uint64_t sm_guid(const struct sm *s)
{
	return s->fabric->net->ports[s->home].guid;
}

/* Tells whether the sender of this SMInfo has a higher rank than we have. */
static bool sm_is_outranked(const struct sm *s, const uint8_t *info)
{
	uint32_t priority = prm_get32(info, (struct prm_field)SMI_PRIORITY);

	if (priority != s->priority)
		return priority > s->priority;
	return prm_get(info, (struct prm_field)SMI_GUID) < sm_guid(s);
}

static void sm_info_fill(struct sm *s, uint8_t *data);

/* The next poll asks again what nobody has answered. */
static void sm_ask(struct sm *s, uint32_t lid, unsigned method, enum sm_modifier modifier)
{
	uint8_t mad[MAD_BYTES] = {0};
	const struct mad_send_attr attr = {
		.to = {.lid = (uint16_t)lid},
		.mad = mad,
		.length = MAD_BYTES,
		.timeout_ms = ANSWER_MS,
	};

	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = MAD_CLASS_SMP_LID;
	mad[MAD_AT_CLASS_VERSION] = 1;
	mad[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(mad, MAD_AT_TID, ++s->next_tid);
	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_SM_INFO);
	mad_put32(mad, MAD_AT_MODIFIER, modifier);
	sm_info_fill(s, mad + MAD_SMP_DATA);
	if (mad_agent_send(&s->info, &attr))
		return;
}

/* ---- becoming the master, and no longer being it ---- */

/* Ends the SA. */
static void sm_serve_no_more(struct sm *s)
{
	if (s->serves)
		sa_close(&s->sa);
	s->serves = false;
}

/* We are no longer the master: ends the SA and the sweeps. */
static void sm_stand_by(struct sm *s)
{
	s->master = false;
	sm_routes_end(s);
	loop_unqueue(s->fabric->loop, &s->sweep);
	sm_serve_no_more(s);
}

/* Begins a sweep from the beginning. */
static void sm_sweep_queue(struct sm *s)
{
	sm_routes_end(s);
	loop_queue(s->fabric->loop, &s->sweep);
}

static void sm_win(struct sm *s)
{
	log_info("subnet manager: is the master now");
	s->state = SM_MASTER;
	s->master = s->reregister = true;
	s->told = 0;
	sm_sweep_queue(s);
}

static void sm_lose(struct sm *s, uint32_t lid)
{
	log_info("subnet manager: has handed the subnet over to LID %u", lid);
	s->state = SM_STANDBY;
	s->master_lid = lid;
	s->polls = 0;
	sm_stand_by(s);
}

/* ---- polls ---- */

/* Returns the next port from 'row' on at which another SM is, or SUBNET_NONE. */
static uint32_t sm_next_other(const struct sm *s, uint32_t row)
{
	const struct net *n = s->fabric->net;

	for (; row < n->nports; row++)
		if (row != s->home && sm_is_end_port(n, row) && net_info(n, row, PI_LID) &&
		    net_info(n, row, PI_CAP_MASK) & CAP_IS_SM)
			return row;
	return SUBNET_NONE;
}

static void sm_poll_others(struct sm *s)
{
	const struct net *n = s->fabric->net;

	for (uint32_t row = sm_next_other(s, 0); row != SUBNET_NONE;
	     row = sm_next_other(s, row + 1))
		sm_ask(s, net_info(n, row, PI_LID), MAD_GET, SM_GET);
}

static bool sm_is_at(const struct net *n, uint32_t lid)
{
	uint32_t row = sa_port_by_lid(n, lid);

	return row != SUBNET_NONE && net_info(n, row, PI_CAP_MASK) & CAP_IS_SM;
}

/* Our port says who the master is, as soon as the master has been here. */
static void sm_poll_master(struct sm *s)
{
	const struct net *n = s->fabric->net;
	uint32_t lid = net_info(n, s->home, PI_SM_LID);

	if (lid && lid != net_info(n, s->home, PI_LID))
		s->master_lid = lid;
	s->polls++;
	/* Its program has ended, so we need not wait as long. */
	if (!sm_is_at(n, s->master_lid))
		s->polls++;
	if (s->polls <= POLLS_LOST)
		sm_ask(s, s->master_lid, MAD_GET, SM_GET);
	else
		sm_win(s);
}

static void sm_poll(struct loop *l, struct loop_timer *t)
{
	struct sm *s = (struct sm *)((char *)t - offsetof(struct sm, poll));

	loop_timer_arm(l, t, loop_now(l) + POLL_NS);
	if (!s->answers)
		return;
	if (s->state == SM_MASTER)
		sm_poll_others(s);
	else if (s->state == SM_STANDBY)
		sm_poll_master(s);
}

void sm_negotiate(struct sm *s, uint32_t priority, struct sma *sma)
{
	s->negotiates = true;
	s->priority = (uint8_t)priority;
	s->sma = sma;
	s->poll.fire = sm_poll;
	loop_timer_arm(s->fabric->loop, &s->poll, loop_now(s->fabric->loop) + POLL_NS);
}

/* Tells whether another SM is there before us; then we stand by. */
static must_check bool sm_comes_second(struct sm *s)
{
	uint32_t other = s->negotiates ? sm_next_other(s, 0) : SUBNET_NONE;

	if (other == SUBNET_NONE)
		return false;
	s->state = SM_STANDBY;
	s->master_lid = net_info(s->fabric->net, other, PI_LID);
	s->polls = 0;
	return true;
}

/* ---- what another says ---- */

/* If we outrank a master, it may look around when it hears that somebody's priority has changed. */
static void sm_hears_master(struct sm *s, const uint8_t *info)
{
	uint64_t guid = prm_get(info, (struct prm_field)SMI_GUID);

	s->polls = 0;
	if (sm_is_outranked(s, info) || s->told == guid || !s->sma ||
	    prm_get32(info, (struct prm_field)SMI_STATE) != SM_MASTER)
		return;
	s->told = guid;
	notice_local_changes(s->sma, s->home, NOTICE_CHANGED_SM_PRIORITY);
}

/* Another SM has answered. */
static void sm_answered(struct sm *s, const struct mad_message *m)
{
	const uint8_t *info = m->data + MAD_SMP_DATA;
	uint32_t state = prm_get32(info, (struct prm_field)SMI_STATE);
	uint32_t modifier = mad_get32(m->data, MAD_AT_MODIFIER);

	if (mad_get16(m->data, MAD_AT_STATUS) ||
	    mad_get16(m->data, MAD_AT_ATTRIBUTE) != SMP_SM_INFO || !s->negotiates)
		return;
	if (s->state == SM_STANDBY && modifier == SM_GET &&
	    (state == SM_MASTER || state == SM_DISCOVERING))
		sm_hears_master(s, info);
	if (s->state != SM_MASTER)
		return;
	if (modifier == SM_HANDOVER)
		sm_lose(s, m->from.lid);
	else if (modifier == SM_GET && (state == SM_STANDBY || state == SM_MASTER) &&
		 sm_is_outranked(s, info))
		sm_ask(s, m->from.lid, MAD_SET, SM_HANDOVER);
}

static must_check unsigned sm_set_status(const struct sm *s, const uint8_t *mad)
{
	uint32_t modifier = mad_get32(mad, MAD_AT_MODIFIER);
	uint32_t state = prm_get32(mad + MAD_SMP_DATA, (struct prm_field)SMI_STATE);

	if (modifier < SM_HANDOVER || modifier > SM_DISCOVER || !(legal[s->state] & 1u << modifier))
		return MAD_STATUS_BAD_VALUE;
	/* Only a master has something to hand over. */
	if (modifier == SM_HANDOVER && state != SM_MASTER)
		return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}

/* Another SM sets our SMInfo: returns the status of the answer, and what follows when that is 0. */
static void sm_set_perform(struct sm *s, const struct mad_message *m)
{
	switch (mad_get32(m->data, MAD_AT_MODIFIER)) {
	case SM_HANDOVER:
		sm_win(s);
		sm_ask(s, m->from.lid, MAD_SET, SM_ACKNOWLEDGE);
		break;
	case SM_DISABLE:
		s->state = SM_NOT_ACTIVE;
		break;
	case SM_STAND_BY:
		s->state = SM_STANDBY;
		s->polls = 0;
		break;
	case SM_DISCOVER:
		if (s->state == SM_MASTER)
			sm_sweep_queue(s);
		if (s->negotiates)
			sm_poll(s->fabric->loop, &s->poll);
		break;
	default: /* it acknowledges what has been answered already */
		break;
	}
}

/* ---- SMInfo (IBTA 14.2.5.13), and traps, which go to the SM's port ---- */

#define SM_METHODS (1ull << MAD_GET | 1ull << MAD_SET | 1ull << MAD_TRAP)

#define SMI_KEY	      PRM_FIELD(64, 64)
#define SMI_ACT_COUNT PRM_FIELD(128, 32)

static struct sm *sm_of_agent(struct mad_agent *a)
{
	size_t at = a->attr.class == MAD_CLASS_SMP_LID ? offsetof(struct sm, info)
						       : offsetof(struct sm, directed_info);

	return (struct sm *)((char *)a - at);
}

/* Fills in our SMInfo. */
static void sm_info_fill(struct sm *s, uint8_t *data)
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

static must_check int sm_info_open(struct sm *s)
{
	int ret = sm_info_register(s, &s->info, MAD_CLASS_SMP_LID);

	if (ret)
		return ret;
	ret = sm_info_register(s, &s->directed_info, MAD_CLASS_SMP_DIRECTED);
	if (ret)
		mad_agent_unregister(&s->info);
	return ret;
}

static void sm_info_close(struct sm *s)
{
	mad_agent_unregister(&s->directed_info);
	mad_agent_unregister(&s->info);
}

/*
 * Standing back and taking back.  An SM that a program runs shall find the subnet without an SM,
 * whatever its priority, because users who start OpenSM expect that.  When the last program has
 * gone we wait a little, so that one that is started again finds its subnet as it left it.  An SM
 * that has a priority does this only for programs at its own port, where there is room for one SM.
 */

static int sm_serve(struct sm *s)
{
	int ret = sa_open(&s->sa, s->fabric, s->home);

	if (ret)
		return ret;
	s->sa.groups_changed = &s->make_trees;
	s->sa.sm = (struct sa_sm){
		.guid = s->fabric->net->ports[s->home].guid,
		.act_count = s->act_count,
		.priority = s->priority,
		.state = (uint8_t)s->state,
	};
	s->serves = true;
	return 0;
}

int sm_stand_up(struct sm *s)
{
	int ret = 0;

	if (!s->answers)
		ret = sm_info_open(s);
	if (ret)
		return ret;
	if (!s->answers)
		net_hold_issm(s->fabric->net, s->home, 1);
	s->answers = true;
	if (s->master && !s->serves)
		ret = sm_serve(s);
	if (ret)
		sm_stand_back(s);
	return ret;
}

void sm_stand_back(struct sm *s)
{
	if (!s->answers)
		return;
	s->answers = false;
	net_hold_issm(s->fabric->net, s->home, -1);
	sm_serve_no_more(s);
	sm_info_close(s);
}

void sm_take_back(struct loop *l, struct loop_timer *t)
{
	struct sm *s = (struct sm *)((char *)t - offsetof(struct sm, take_back));

	(void)l;
	if (sm_comes_second(s)) {
		/* Without memory we do not appear; the other SM is there. */
		if (sm_stand_up(s))
			return;
		return;
	}
	log_info("subnet manager: takes the subnet back");
	s->state = SM_MASTER;
	s->master = true;
	s->reregister = true;
	sm_sweep_soon(s);
}

void sm_program_began(struct sm *s)
{
	loop_timer_cancel(s->fabric->loop, &s->take_back);
	if (s->programs++ || s->mode == SM_EXTERNAL || !(s->master || s->answers))
		return;
	log_info("subnet manager: leaves the subnet to a program");
	sm_stand_by(s);
	sm_stand_back(s);
}

void sm_program_ended(struct sm *s)
{
	if (--s->programs || s->mode == SM_EXTERNAL)
		return;
	loop_timer_arm(s->fabric->loop, &s->take_back,
		       loop_now(s->fabric->loop) + SM_TAKE_BACK_MS * 1000000ull);
}
