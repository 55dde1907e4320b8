/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running programs as others see them: name and state, and their objects with figures.  What a program
 * has written is checked, or made printable.
 */
#pragma once

#include "tool/reach.h"

#define PROGRAM_COMMAND_BYTES 32u

/* Makes text from others harmless to terminals and to JSON; it ends within size. */
void text_printable(char *text, size_t size);
/* The state of a process, for people, and its command, printable, or "?".  Waits for nobody. */
const char *program_state(int32_t pid, char *command, size_t size);

/* The object that a row has, whatever its kind. */
struct shown {
	const struct object_about *about;
	const struct look_object *seen;
	const char *device;
	uint32_t failures;
	char why[OBJECT_WHY_BYTES];
};

/* A figure that may be unknown. */
struct figure {
	bool known;
	uint64_t value;
};

/* False: the row has no object of this kind. */
bool shown_at(const struct view *v, const struct reach_process *p, uint32_t row,
	      enum object_kind kind, struct shown *out);
struct figure figure_of(const struct shown *s, enum object_figure f);
/* Counts requests that have begun and have not ended. */
struct figure qp_outstanding(const struct shown *s);
/* Counts receives that the program has posted and nobody has taken. */
struct figure receives_posted(const struct shown *s);
/* Counts completions that the program has not polled. */
struct figure cq_fill(const struct shown *s);

/* The other end of a connection. */
struct peer_end {
	uint32_t qpn; /* 0: there is none */
	const char *host, *device;
	int32_t pid; /* 0: it is not known */
};

/* host has room for the name that the answer points to. */
struct peer_end peer_end_of(struct view *v, const struct reach *r, const struct reach_process *p,
			    const struct reach_qp *way, struct msg_host_reply *host);
