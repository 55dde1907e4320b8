/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts with a raw packet queue pair each, between which frames go: what the tests of steering
 * stand on.  Stock libibverbs alone.  What fails in setting up ends the program with status 2.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RAW_PATIENCE_MS 5000u

#define NEED(what)                                                                     \
	do {                                                                           \
		if (!(what)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what); \
			exit(2);                                                       \
		}                                                                      \
	} while (0)

struct raw_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t frame[2048];
};

/* In RTS, without rules. */
void raw_end_open(struct raw_end *e, const char *device);
void raw_end_close(struct raw_end *e);
/* Sends the first bytes of e->frame and waits for the completion. */
void raw_end_send(struct raw_end *e, uint32_t bytes);
/* Room for one more frame, which goes to e->frame. */
void raw_end_receive(struct raw_end *e);
/* The size of the frame that has arrived within that time; 0: none. */
uint32_t raw_end_arrived(struct raw_end *e, unsigned ms);

/* One row per case: outcome, name, reason. */
extern int raw_row_failed;
void raw_row(const char *name, int good);
