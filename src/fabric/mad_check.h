/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an agent may not send, whatever else is under way: those of the kernel's checks of a write
 * that look at nothing but the message and its agent.  The preload library makes them before it
 * writes, because write(2) has to say why.  The daemon makes them because a program can write to
 * the socket without the library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct mad_sender {
	uint32_t gids;	/* entries of its port's table */
	bool rmpp;	/* it was registered with rmpp_version 1 */
	bool user_rmpp; /* the program makes the packets itself */
};

/* Tells whether the message has to be made into packets.  'mad' has MAD_RMPP_BYTES. */
bool mad_sends_rmpp(const struct mad_sender *a, const uint8_t *mad) must_check;
/* Returns 0 or -EINVAL.  gid_index: -1 without a GRH; 'mad' has MAD_RMPP_BYTES of 'length'. */
int mad_send_check(const struct mad_sender *a, uint8_t sl, int gid_index, const uint8_t *mad,
		   size_t length) must_check;
