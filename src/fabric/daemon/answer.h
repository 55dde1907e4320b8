/* SPDX-License-Identifier: BSD-2-Clause */
/* How the daemon answers: requests.c finds these functions by the type of a message. */
#pragma once

#include "fabric/daemon/server.h"

/* Descriptors that go with a reply. */
struct attached {
	int fds[MSG_MAX_FDS];
	unsigned n;
	bool given; /* the daemon closes them when the reply has gone; else the fabric keeps them */
};

/* Turns the request into its reply.  Returns its status, or ANSWER_LATER: there is none yet. */
typedef int answer_fn(struct server *s, struct conn *c, struct msg *m, struct attached *a);
#define ANSWER_LATER 1

/* link_requests.c */
answer_fn answer_describe, answer_link, answer_node, answer_impair;
/* tie.c */
answer_fn answer_tie, answer_untie, answer_tied;
/* umad_requests.c */
answer_fn answer_umad_open, answer_issm_open, answer_umad_register, answer_umad_unregister,
	answer_umad_pkey, answer_umad_fetch, answer_umad_in_flight, answer_umad_adopt;
