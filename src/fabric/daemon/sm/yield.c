// SPDX-License-Identifier: BSD-2-Clause
/*
 * Standing back and taking back.  An SM that a program runs shall find the subnet without one, whatever
 * its priority: that is what users expect who start OpenSM.  When the last is gone we wait a little, so
 * that one that is started again finds its subnet as it left it.
 */
#include "fabric/daemon/sm/yield.h"

#include "base/log.h"

int sm_stand_up(struct sm *s)
{
	int ret;

	if (s->answers)
		return 0;
	ret = sm_info_open(s);
	if (ret)
		return ret;
	ret = sa_open(&s->sa, s->fabric, s->home);
	if (ret) {
		sm_info_close(s);
		return ret;
	}
	s->sa.groups_changed = &s->make_trees;
	s->sa.sm = (struct sa_sm){
		.guid = s->fabric->net->ports[s->home].guid,
		.act_count = s->sa.sm.act_count,
		.state = SM_STATE_MASTER,
	};
	net_hold_issm(s->fabric->net, s->home, 1);
	s->answers = true;
	return 0;
}

void sm_stand_back(struct sm *s)
{
	if (!s->answers)
		return;
	s->answers = false;
	net_hold_issm(s->fabric->net, s->home, -1);
	sa_close(&s->sa);
	sm_info_close(s);
}

void sm_take_back(struct loop *l, struct loop_timer *t)
{
	struct sm *s = (struct sm *)((char *)t - offsetof(struct sm, take_back));

	(void)l;
	log_info("subnet manager: takes the subnet back");
	s->master = true;
	s->reregister = true;
	sm_sweep_soon(s);
}

void sm_program_began(struct sm *s)
{
	loop_timer_cancel(s->fabric->loop, &s->take_back);
	if (s->programs++ || s->mode == SM_EXTERNAL || !s->master)
		return;
	log_info("subnet manager: leaves the subnet to a program");
	s->master = false;
	sm_routes_end(s);
	loop_unqueue(s->fabric->loop, &s->sweep);
	sm_stand_back(s);
}

void sm_program_ended(struct sm *s)
{
	if (--s->programs || s->mode == SM_EXTERNAL)
		return;
	loop_timer_arm(s->fabric->loop, &s->take_back,
		       loop_now(s->fabric->loop) + SM_TAKE_BACK_MS * 1000000ull);
}
