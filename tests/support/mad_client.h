/* SPDX-License-Identifier: BSD-2-Clause */
/* An agent that asks and keeps what it is answered. */
#pragma once

#include "test_mad.h"

#define CLIENT_ANSWER_BYTES (256u << 10)

struct mad_client {
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t next_tid;
	uint32_t answers, requests, timeouts;
	uint32_t length; /* of the last that came */
	uint8_t answer[CLIENT_ANSWER_BYTES];
};

/* Has methods 0 to 127 of a class; none: it gets answers only. */
void mad_client_open(struct mad_client *c, struct test_mad *m, uint32_t row, unsigned class,
		     unsigned class_version, uint64_t methods);
void mad_client_close(struct mad_client *c);
/* A MAD of the client's class; 'mad' has all but the first 16 bytes. */
void mad_client_send(struct mad_client *c, uint32_t lid, unsigned method, const uint8_t *mad);
