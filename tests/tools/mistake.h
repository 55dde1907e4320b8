/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process, and what a mistake with them is told by.  Plain libibverbs: the
 * program can be run on real hardware.
 */
#pragma once

#include "../support/verbs_device.h"

#define MISTAKE_BYTES	8192u
#define MISTAKE_ENTRIES 16u

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct ibv_qp_init_attr init;  /* what the queue pair is made with */
	struct device_connection how;  /* what it is connected with */
	struct device_address address; /* what the other end is told of this one */
	uint32_t psn;		       /* where its send queue begins */
	int access;		       /* of the region */
	bool reset;		       /* connect leaves it as it is */
};

struct scene {
	struct device_port port;
	struct ibv_comp_channel *channel;
	struct end a, b; /* a makes requests of b */
};

/* What a case may change in between: make, connect. */
void scene_prepare(struct scene *s, const char *device, enum ibv_qp_type type);
void scene_make(struct scene *s);
void scene_connect(struct scene *s);

/* A signaled request of a's memory to b's. */
struct ibv_send_wr scene_request(struct scene *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge);
void post(struct end *e, struct ibv_send_wr *wr);
void post_receive(struct end *e, uint32_t bytes);
/* The same with what a case does in one go: a request of so many bytes. */
void request(struct scene *s, enum ibv_wr_opcode opcode, uint32_t bytes);

/* The scene of most: two connected queue pairs. */
struct scene connected(const char *device, enum ibv_qp_type type);
/* On InfiniBand, reliable, not yet made. */
struct scene prepared(void);
/* a's queue pair is in INIT. */
struct scene at_init(const char *device);
/* Takes a's queue pair there, with the attributes less those of a mask; the result of the call. */
int to_rtr(struct scene *s, struct ibv_ah_attr ah, enum ibv_mtu mtu, int less);
/* An RDMA WRITE of a, and what becomes of it. */
void write_with(struct scene *s, uint32_t rkey, uint64_t addr, uint32_t bytes);

#define MISTAKE_INFINIBAND "mlx5_0"
#define MISTAKE_ETHERNET   "mlx5_1"

/* Print what is told: "NAME: status N vendor 0xNN", "CALL: ERRNO", "event: NAME". */
void tell_completion(const char *name, struct end *e);
void tell_nothing(const char *name, struct end *e);
void tell_call(const char *name, int error);
void tell_event(struct scene *s);

/* All cases. */
#define MISTAKES(m)                                                                                         \
	m(rtr_without_grh) m(gid_index_missing) m(attribute_missing) m(state_skipped) m(                    \
		mtu_too_large) m(region_without_local_write) m(region_of_constants)                         \
		m(domain_in_use) m(rkey_in_wrong_order) m(behind_region) m(address_is_offset) m(            \
			region_without_remote_write) m(queue_pair_without_access) m(region_of_other_domain) \
			m(peer_region_deregistered) m(own_region_deregistered) m(                           \
				lkey_of_other_domain) m(lkey_not_set) m(buffer_unmapped)                    \
				m(receive_without_local_write) m(no_receive) m(receive_too_short) m(        \
					datagram_without_room_for_grh) m(datagram_over_mtu)                 \
					m(datagram_of_other_qkey) m(address_handle_without_grh) m(          \
						reads_not_allowed) m(atomic_not_aligned)                    \
						m(psn_of_other) m(number_of_nobody) m(                      \
							gid_of_nobody) m(port_of_other_link_type)           \
							m(peer_not_connected) m(peer_destroyed) m(          \
								timeout_zero) m(not_in_rts)                 \
								m(posted_after_error) m(                    \
									send_queue_full)                    \
									m(completion_queue_small) m(        \
										inline_too_long)            \
										m(too_many_pieces) m(       \
											armed_once)         \
											m(child_uses_device)

#define MISTAKE_DECLARE(name) void mistake_##name(void);
MISTAKES(MISTAKE_DECLARE)
#undef MISTAKE_DECLARE
