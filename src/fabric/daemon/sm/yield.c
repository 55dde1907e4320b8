// SPDX-License-Identifier: BSD-2-Clause
/*
 * Standing back and taking back.  An SM that a program runs shall find the subnet without an SM,
 * whatever its priority, because users who start OpenSM expect that.  When the last program has
 * gone we wait a little, so that one that is started again finds its subnet as it left it.  An SM
 * that has a priority does this only for programs at its own port, where there is room for one SM.
 */
#include "fabric/daemon/sm/yield.h"

#include "base/log.h"

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
