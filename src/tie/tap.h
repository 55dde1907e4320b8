/* SPDX-License-Identifier: BSD-2-Clause */
/* A TAP interface of this machine's kernel, in the network namespace that we are in. */
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
 * Attaches to the interface, and makes it if there is none.  An interface that we make is set up,
 * and goes when we go.  False: 'error' says what is wrong and what to do.
 */
bool tap_open(struct tap_device *t, const char *name, char error[TAP_ERROR_BYTES]) must_check;
void tap_close(struct tap_device *t);
/* Tells whether it is there, and set up. */
bool tap_is_up(const struct tap_device *t);
/* Tells whether it has gone. */
bool tap_is_gone(const struct tap_device *t);
/* Reads what 'links' reported. */
void tap_links_taken(const struct tap_device *t);
/* Plugs its cable in, or pulls it. */
void tap_set_carrier(const struct tap_device *t, bool on);
