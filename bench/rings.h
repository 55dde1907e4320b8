/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two processes need at least that hand messages over through memory which both share, and do nothing else:
 * floors of what goes through softhca's channels.  Each process has a processor of its own where there are two.
 *
 *	line		a word there and back, half of the time
 *	frame_64, frame_1500
 *			the same of a message: a header of 48 bytes and so many more, copied into the ring and out of it,
 *			and once more on either side, as frames are
 *	single		lines of 64 bytes one way, as fast as it goes; either side executes a locked instruction for
 *			each, as libmlx5 does for each request, completion and receive
 *	single_unlocked	the same without these
 */
#pragma once

#include <stdbool.h>

/* Prints a "name value unit" line; false: nothing has this name. */
bool rings_measure(const char *name);
