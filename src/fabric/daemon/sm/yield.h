/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides who is the subnet's SM: we, or a program. */
#pragma once

#include "fabric/daemon/sm/sm.h"

/* Shows us at the port s->home: IsSM, SMInfo and, as the master, SA.  Does nothing if we are shown
 * already. */
int sm_stand_up(struct sm *s) must_check;
/* Takes us away from that port. */
void sm_stand_back(struct sm *s);
/* The timer that runs after the last program has ended. */
void sm_take_back(struct loop *l, struct loop_timer *t);
/* sm.c: begins a sweep, or begins it again. */
void sm_sweep_soon(struct sm *s);
