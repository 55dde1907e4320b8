/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with one connected queue pair each and a block of memory that the other may write.
 * They meet over TCP on this machine; the connection then tells each whether the other still lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "verbs_device.h"

#define PAIR_DEPTH 64u

/* The other cannot be reached, or has gone before the connection stood. */
#define STATUS_ALONE 3

struct pair {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *mem;
	size_t bytes;
	int sock;
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

extern const struct device_connection pair_impatient; /* gives up within a tenth of a second */

/* Exit on failure, as the device does. */
void pair_open(struct pair *p, const char *device, const struct device_connection *how,
	       size_t bytes);
/* tcp_port on the loopback interface; the listener waits ten seconds at most. */
void pair_meet(struct pair *p, const struct device_connection *how, bool listens,
	       uint16_t tcp_port);
/* Connects the queue pair with itself. */
void pair_alone(struct pair *p, const struct device_connection *how);
void pair_close(struct pair *p);

void pair_write(struct pair *p, uint64_t id, size_t from, size_t to, uint32_t bytes);
void pair_read(struct pair *p, uint64_t id, size_t into, size_t from, uint32_t bytes);
/* Polls until a request ends, which must be with success; what is its name for a failure. */
void pair_complete(struct pair *p, const char *what);
uint64_t pair_now_ms(void);
/* What the command line of every program here begins with: DEVICE. */
uint16_t pair_number(const char *text);
