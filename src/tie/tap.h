/* SPDX-License-Identifier: BSD-2-Clause */
/* A TAP interface of this machine's kernel, in the network namespace that we are in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "tie/carrier.h"

/* ---- the interface ---- */

#define TAP_ERROR_BYTES 256u

struct tap_device {
	int fd;	   /* does not block */
	int links; /* readable when an interface has changed */
	int query; /* a socket to ask about interfaces with */
	unsigned index;
};

/*
 * Attaches to the interface, and makes it if there is none.  An interface that we make is set up,
 * and goes when we go.  False: 'error' says what is wrong and what to do.
 */
bool tap_open(struct tap_device *t, const char *name, char error[TAP_ERROR_BYTES]) must_check;

/* ---- the end of a tie ---- */

/* The cable ends at a TAP interface: frames go between the port's programs and the kernel. */

struct end_tap {
	struct tie_end end;
	struct tap_device tap;
	bool up; /* what the fabric was told last */
};

/* Takes the open interface over. */
void end_tap_init(struct end_tap *e, const struct tap_device *tap);
