/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of two processes that reach into each other's memory: a device, a CQ, a queue pair that is
 * made anew for every connection, and a socket to the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "verbs_device.h"

#define SIDE_SENDS    64u
#define SIDE_RECEIVES 256u

#define SIDE_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define SIDE_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | SIDE_REMOTE)

struct memory_side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int sock;
};

/* Gives up within some tenths of a second. */
extern const struct device_connection side_impatient;

/* All of them end the program if they fail. */
void side_open(struct memory_side *s, const char *device);
void side_close(struct memory_side *s);
/* Makes a queue pair in INIT in place of the former one. */
struct device_address side_renew(struct memory_side *s, const struct device_connection *how);
void side_connect(struct memory_side *s, const struct device_connection *how,
		  const struct device_address *to);
void side_tell(const struct memory_side *s, const void *what, size_t bytes);
/* False if the other has closed its end. */
bool side_hears(const struct memory_side *s, void *what, size_t bytes);
void side_hear(const struct memory_side *s, void *what, size_t bytes);

struct ibv_wc side_next_wc(struct memory_side *s);
void side_post(struct memory_side *s, struct ibv_send_wr *wr);
void side_post_recv(struct memory_side *s, void *at, uint32_t bytes, uint32_t lkey);
/* Posts a signalled request of one piece and waits for it. */
enum ibv_wc_status side_do(struct memory_side *s, enum ibv_wr_opcode opcode, struct ibv_sge sge,
			   uint64_t addr, uint32_t rkey);

/* How many bytes are not `value`, and how many are. */
size_t side_not(const void *at, size_t bytes, int value);
size_t side_count(const void *at, size_t bytes, int value);
