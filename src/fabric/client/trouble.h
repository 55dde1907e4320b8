/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in words why a fabric cannot be had.  An error number alone misleads: "permission denied"
 * may be a directory of another user, a mode, or a filter of system calls.  So this looks at what
 * is there, after the failure.
 */
#pragma once

#include <stddef.h>

#define TROUBLE_BYTES 512u

/* Who wants the fabric, and what failed. */
struct trouble {
	const char *dir;    /* the run-time directory */
	const char *daemon; /* path of softhcad, if it may be started; NULL or "": it may not */
	const char *host;   /* NULL or "": any */
	int error;	    /* negative, as from link_open */
};

/* Writes what the error is called, and the limit of the address space if that may be the cause. */
void trouble_error_text(int error, char *buf, size_t size);
/* Writes one line without its end: what is wrong, where, and what to do; cut if it is too long. */
void trouble_text(const struct trouble *t, char *buf, size_t size);
