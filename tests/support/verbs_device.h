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

#define DEVICE_PORT 1
#define DEVICE_QKEY 0x11223344u

struct device_port {
	struct ibv_context *ctx;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int gid_index;
	bool ethernet;
	bool global; /* addresses carry a GRH: on Ethernet always, on InfiniBand if asked for */
};

/* What the other side must know to connect. */
struct device_address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint64_t lid; /* so wide that nothing between is sent as it happens to be */
};

struct device_connection {
	uint32_t access; /* IBV_ACCESS_REMOTE_* that the queue pair grants */
	uint8_t rnr_retry;
	uint8_t retry_cnt;
	uint8_t timeout;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	enum ibv_mtu mtu;
};

extern const struct device_connection device_default_connection;

_Noreturn void device_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* device NULL: the first.  gid_index -1: none on InfiniBand, 0 on Ethernet. */
void device_port_open(struct device_port *port, const char *device, int gid_index);
/* The same for contexts that ibv_open_device does not make. */
void device_port_open_by(struct device_port *port, const char *device, int gid_index,
			 struct ibv_context *(*open)(struct ibv_device *device));
void device_port_close(struct device_port *port);

/*
 * Memory of zeros to register: private memory, or, if TEST_MEMORY is "shared" in the environment,
 * memory of a file that softhca lets peers map.  The file's descriptor stays open, so that softhca can
 * open the file without privileges.
 */
uint8_t *device_memory(size_t bytes);

struct device_address device_address(const struct device_port *port, const struct ibv_qp *qp,
				     uint32_t psn);
struct ibv_ah_attr device_ah_attr(const struct device_port *port,
				  const struct device_address *peer);

/* RESET to INIT, to RTR, to RTS.  UD needs no peer. */
void device_qp_init(struct ibv_qp *qp, const struct device_connection *how);
void device_qp_connect(const struct device_port *port, struct ibv_qp *qp,
		       const struct device_connection *how, const struct device_address *peer,
		       uint32_t psn);

enum ibv_qp_state device_qp_state(struct ibv_qp *qp);

uint64_t device_now_ns(void);
/* Samples in ascending order: the median is in the middle. */
void device_sort(uint64_t *values, size_t n);
