// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: it answers ARP requests and ICMP echo requests. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>
#include <string.h>

#include "ping.h"

#define OPCODE_RESPONDER_SEND 2u

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_ARP  0x0806u
#define ARP_REQUEST    1u
#define ARP_REPLY      2u
#define ARP_BYTES      42u
#define IP_ICMP	       1u
#define IP_MORE	       0x3fffu /* more fragments, and the offset of this one */
#define ICMP_ECHO      8u
#define HEADERS_BYTES  (14u + 20u + 8u)

/* Where things are in a frame. */
enum {
	AT_TO = 0,
	AT_FROM = 6,
	AT_TYPE = 12,
	AT_ARP_OPERATION = 20,
	AT_ARP_SENDER = 22, /* MAC and address */
	AT_ARP_TARGET = 32,
	AT_ARP_TARGET_ADDRESS = 38,
	AT_IP = 14,
	AT_IP_FRAGMENT = 20,
	AT_IP_PROTOCOL = 23,
	AT_IP_FROM = 26,
	AT_IP_TO = 30,
	AT_ICMP = 34, /* the type, of a header without options */
	AT_ICMP_SUM = 36,
};

static const uint8_t own_mac[6] = OWN_MAC;

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static int is_ours(const struct responder *r, const uint8_t *address)
{
	return !memcmp(address, &r->address, 4);
}

/* Makes the answer of an ARP request in its place; 0: it is none for us. */
static uint32_t answer_arp(const struct responder *r, uint8_t *frame, uint32_t bytes)
{
	static const uint8_t kind[6] = {0, 1, 8, 0, 6, 4}; /* Ethernet, IPv4, and their lengths */

	if (bytes < ARP_BYTES || memcmp(frame + AT_TYPE + 2, kind, sizeof(kind)) != 0 ||
	    get16(frame + AT_ARP_OPERATION) != ARP_REQUEST ||
	    !is_ours(r, frame + AT_ARP_TARGET_ADDRESS))
		return 0;
	put16(frame + AT_ARP_OPERATION, ARP_REPLY);
	memcpy(frame + AT_ARP_TARGET, frame + AT_ARP_SENDER, 10);
	memcpy(frame + AT_ARP_SENDER, own_mac, 6);
	memcpy(frame + AT_ARP_SENDER + 6, &r->address, 4);
	return ARP_BYTES;
}

/* The same of an echo request. */
static uint32_t answer_echo(const struct responder *r, uint8_t *frame, uint32_t bytes)
{
	uint32_t sum;

	if (bytes < HEADERS_BYTES || frame[AT_IP] != 0x45 || frame[AT_IP_PROTOCOL] != IP_ICMP ||
	    get16(frame + AT_IP_FRAGMENT) & IP_MORE || frame[AT_ICMP] != ICMP_ECHO ||
	    !is_ours(r, frame + AT_IP_TO))
		return 0;
	/* Addresses that change places leave the sum of the IP header as it is. */
	memcpy(frame + AT_IP_TO, frame + AT_IP_FROM, 4);
	memcpy(frame + AT_IP_FROM, &r->address, 4);
	frame[AT_ICMP] = 0;
	/* The sum is the complement: it grows by what is taken away (RFC 1624). */
	sum = get16(frame + AT_ICMP_SUM) + (ICMP_ECHO << 8);
	put16(frame + AT_ICMP_SUM, (sum & 0xffff) + (sum >> 16));
	return bytes;
}

static uint32_t answer(const struct responder *r, uint8_t *frame, uint32_t bytes)
{
	uint32_t type = bytes < HEADERS_BYTES ? 0 : get16(frame + AT_TYPE);
	uint32_t n = 0;

	if (type == ETHERTYPE_ARP)
		n = answer_arp(r, frame, bytes);
	else if (type == ETHERTYPE_IPV4)
		n = answer_echo(r, frame, bytes);
	if (n) {
		memcpy(frame + AT_TO, frame + AT_FROM, 6);
		memcpy(frame + AT_FROM, own_mac, 6);
	}
	return n;
}

/* A work request of one block: control, Ethernet and data segments. */
static void send_frame(struct flexio_dev_thread_ctx *ctx, struct responder *r, const uint8_t *frame,
		       uint32_t bytes)
{
	union flexio_dev_sqe_seg *segment =
		(union flexio_dev_sqe_seg *)(uintptr_t)r->send_ring + r->requests % ENTRIES * 4;

	flexio_dev_swqe_seg_ctrl_set(segment, (uint32_t)r->requests, (uint32_t)r->sqn,
				     MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR, FLEXIO_CTRL_SEG_SEND_EN);
	flexio_dev_swqe_seg_eth_set(segment + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(segment + 2, bytes, (uint32_t)r->send_key,
					     (uintptr_t)frame);
	memset(segment + 3, 0, sizeof(*segment));
	r->requests++;
	/* The request is there before the bell. */
	__dpa_thread_memory_fence(__DPA_W, __DPA_W);
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)r->requests, (uint32_t)r->sqn);
}

static void take_frame(struct flexio_dev_thread_ctx *ctx, struct responder *r,
		       struct flexio_dev_cqe64 *cqe)
{
	/* The place of the receive in its queue is the place of its data, too. */
	uint32_t slot = flexio_dev_cqe_get_wqe_counter(cqe) % ENTRIES;
	uint32_t bytes = flexio_dev_cqe_get_byte_cnt(cqe);
	const uint8_t *frame = (const uint8_t *)(uintptr_t)r->receive_data + slot * FRAME_BYTES;
	uint8_t *out = (uint8_t *)(uintptr_t)r->send_data + r->requests % ENTRIES * FRAME_BYTES;

	if (flexio_dev_cqe_get_opcode(cqe) != OPCODE_RESPONDER_SEND || bytes > FRAME_BYTES) {
		__atomic_fetch_add(&r->errors, 1, __ATOMIC_RELEASE);
		return;
	}
	memcpy(out, frame, bytes);
	bytes = answer(r, out, bytes);
	if (bytes)
		send_frame(ctx, r, out, bytes);
	__atomic_fetch_add(bytes ? &r->answers : &r->others, 1, __ATOMIC_RELEASE);
}

/* The next completion, or NULL.  The device turns an entry's owner bit over each time it comes round. */
static struct flexio_dev_cqe64 *next_completion(const struct responder *r)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)r->receive_cq_ring + r->completions % ENTRIES;

	if (flexio_dev_cqe_get_owner(cqe) != (r->completions / ENTRIES & 1))
		return NULL;
	/* What is in the entry is read after its owner. */
	__dpa_thread_memory_fence(__DPA_R, __DPA_R);
	return cqe;
}

/* Each activation begins here.  It takes all that has come, asks for the next event, and ends. */
__dpa_global__ void on_frame(uint64_t arg)
{
	struct responder *r = (struct responder *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct flexio_dev_cqe64 *cqe;

	flexio_dev_get_thread_ctx(&ctx);
	while ((cqe = next_completion(r))) {
		take_frame(ctx, r, cqe);
		r->completions++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)r->receive_cq_record,
					 (uint32_t)r->completions);
		/* The receive lies in its queue as before: the counter alone posts it again, after
		 * its data was read. */
		__dpa_thread_memory_fence(__DPA_RW, __DPA_W);
		flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)r->receive_record);
	}
	flexio_dev_cq_arm(ctx, (uint32_t)r->completions, (uint32_t)r->receive_cqn);
	flexio_dev_thread_reschedule();
}

/* For the host, which cannot read the DPA's memory by itself. */
__dpa_rpc__ uint64_t read_counter(uint64_t at)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)at, __ATOMIC_ACQUIRE);
}
