/* SPDX-License-Identifier: BSD-2-Clause */
/* A TAP interface of this machine's kernel, or of the network namespace that we are in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define TAP_ERROR_BYTES 256u

struct tap_device {
	int fd;	   /* does not block */
	int links; /* readable when an interface has changed */
	int query; /* a socket to ask about interfaces with */
	unsigned index;
};

/*
 * Attaches to the interface, which is made if there is none; one that we make is set up and goes with
 * us.  False after it has said in error what is wrong and what to do.
 */
bool tap_open(struct tap_device *t, const char *name, char error[TAP_ERROR_BYTES]) must_check;
void tap_close(struct tap_device *t);
/* Is it there, and set up? */
bool tap_is_up(const struct tap_device *t);
/* Has it gone? */
bool tap_is_gone(const struct tap_device *t);
/* Takes what 'links' reported. */
void tap_links_taken(const struct tap_device *t);
/* Its cable is plugged in or not. */
void tap_set_carrier(const struct tap_device *t, bool on);
