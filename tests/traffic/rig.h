/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a verbs test sets up again and again: an open port, connected queue pairs.  Plain
 * libibverbs, nothing of ours below it, so that the tests run on real hardware as well.
 *
 * A set-up call that fails ends the program with a message: the test has then said nothing about
 * what it tests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define RIG_PORT 1
#define RIG_QKEY 0x11223344u

struct rig_port {
	struct ibv_context *ctx;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int gid_index;
	bool ethernet;
	bool global; /* addresses carry a GRH: on Ethernet always, on InfiniBand if asked for */
};

/* What the other side must know to connect. */
struct rig_address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
};

struct rig_connection {
	uint32_t access; /* IBV_ACCESS_REMOTE_* that the queue pair grants */
	uint8_t rnr_retry;
	uint8_t retry_cnt;
	uint8_t timeout;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	enum ibv_mtu mtu;
};

extern const struct rig_connection rig_default_connection;

_Noreturn void rig_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* device NULL: the first.  gid_index -1: none on InfiniBand, 0 on Ethernet. */
void rig_port_open(struct rig_port *port, const char *device, int gid_index);
/* The same for contexts that ibv_open_device does not make. */
void rig_port_open_by(struct rig_port *port, const char *device, int gid_index,
		      struct ibv_context *(*open)(struct ibv_device *device));
void rig_port_close(struct rig_port *port);

struct rig_address rig_address(const struct rig_port *port, const struct ibv_qp *qp, uint32_t psn);
struct ibv_ah_attr rig_ah_attr(const struct rig_port *port, const struct rig_address *peer);

/* RESET to INIT, to RTR, to RTS.  UD needs no peer. */
void rig_qp_init(struct ibv_qp *qp, const struct rig_connection *how);
void rig_qp_connect(const struct rig_port *port, struct ibv_qp *qp,
		    const struct rig_connection *how, const struct rig_address *peer, uint32_t psn);

enum ibv_qp_state rig_qp_state(struct ibv_qp *qp);

uint64_t rig_now_ns(void);
/* Samples in ascending order: the median is in the middle. */
void rig_sort(uint64_t *values, size_t n);
