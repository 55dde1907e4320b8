/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet between the transport state machines: decoded headers plus a payload by reference.
 * What differs between wires is how large a payload one packet may carry and how it travels.
 *
 * On the fast wires a packet may carry a whole message; npkts says how many path-MTU packets it
 * stands for, so that PSNs advance exactly as on a real wire.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/explain.h"
#include "base/run.h"
#include "prm/ib.h"
#include "subnet/subnet.h"
#include "wire/bth.h"

/* AETH syndrome, IBTA 9.7.5.1.1. */
enum aeth_kind { AETH_ACK = 0x00, AETH_RNR_NAK = 0x20, AETH_NAK = 0x60 };
#define AETH_KIND_MASK	0x60u
#define AETH_VALUE_MASK 0x1fu
#define AETH_NO_CREDIT	0x1fu /* ACK without end-to-end credits */
enum aeth_nak {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATIONAL = 3,
	NAK_INVALID_RD_REQUEST = 4,
	/* Reserved on a real wire.  Here: the memory of the payload, which the sender sent by
	 * reference, no longer exists. */
	NAK_SENDER_FAULT = 0x1f,
};
/* The name of the NAK in a syndrome with AETH_NAK; for traces. */
const char *aeth_nak_name(uint8_t syndrome);

/* What a connection remembers of its route, see wire/route.h.  0: it knows nothing. */
struct route {
	_Atomic(uint64_t) word; /* epoch, number and owner */
	_Atomic(uint64_t) here; /* the epoch in which the owner was this process, */
	_Atomic(uint64_t) away; /* or another one */
	/* Cells plus one (wire/traffic.h) for what the connection sends and for what comes back; 0:
	 * not looked up.  They stay the same when the epoch changes. */
	_Atomic(uint32_t) traffic, traffic_back;
};

/* Explicit congestion notification (RFC 3168), the low bits of a traffic class: what routers do not
 * mark, may mark, and have marked. */
enum ip_ecn { IP_ECN_NOT = 0, IP_ECN_CAPABLE = 2, IP_ECN_MARKED = 3 };
#define IP_ECN 3u

/* Where a packet goes, resolved once per connection (RC, UC) or per datagram. */
struct path {
	uint32_t src_port; /* rows of subnet->ports */
	uint32_t dst_port;
	uint16_t slid;
	uint16_t dlid;
	/* The P_Key of the packets, which switches on the way check; 0: they do not check it. */
	uint16_t pkey;
	uint8_t mtu; /* enum ib_mtu */
	uint8_t sl;
	uint8_t path_bits; /* of our own LID, 7 bits */
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint32_t flow_label;
	bool grh;
	bool roce_v1;
	union ib_gid sgid;
	union ib_gid dgid; /* Ethernet frame: the destination address in the first 6 bytes */
	/* For RoCE packets that leave the fabric (wire/roce.h): the station that they go to; 0:
	 * whoever has dgid. */
	uint8_t dmac[6];
	_Atomic(uint16_t) udp_sport; /* may change while packets are sent */
	/* Octets of the headers in front of the BTH; 0: not known yet. */
	uint32_t routing_octets;
	struct route *route; /* the connection's memory; NULL: looked up per packet */
};

/*
 * What a request to a DCT carries, so that any packet of a connection can open it at the far end
 * and none needs an answer before data flows.
 */
struct pkt_dc {
	uint64_t key;	     /* access key of the target */
	uint64_t connection; /* a later one of the same initiator has a higher number */
	uint32_t psn;	     /* requests before this one have all been answered */
	uint32_t process;    /* the initiator's: its slot 9:0, the slot's generation 31:10 */
};

struct way_peer;

/* The process in which payloads by reference lie. */
struct pkt_foreign {
	struct way_peer *process; /* NULL: out of reach */
	/* The word in which that process looks whether we may read its memory.  May be NULL. */
	_Atomic(uint32_t) *readable;
	bool refused; /* the last payload could not be read although its memory may exist */
};

/* The sqpn of a packet of a connection from outside the fabric: the packet does not say who sent
 * it. */
#define PKT_SQPN_UNKNOWN 0xffffffffu

struct pkt {
	uint8_t opcode; /* enum bth_transport | enum bth_op */
	bool solicited;
	bool ack_req;
	/* BTH.MigReq is 0: the sender's path migration is not in the state MIGRATED. */
	bool migreq_clear;
	/* An atomic that its sender has executed in memory that both map, but could not count. */
	bool executed;
	uint8_t aeth; /* syndrome byte, where the operation has an AETH */
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t sqpn; /* DETH source QP; on connected transports the sender's QP */
	uint32_t qkey; /* DETH */
	uint32_t psn;
	uint32_t npkts; /* path-MTU packets this one stands for, at least 1 */
	uint32_t msn;	/* AETH */
	uint32_t imm;	/* immediate or IETH rkey, host order of the 32 wire bits */
	uint32_t srqn;	/* XRCETH */
	uint64_t va;	/* RETH / AtomicETH */
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t swap_add;  /* AtomicETH */
	uint64_t compare;   /* of a masked fetch-and-add: the boundaries of its fields */
	uint64_t swap_mask; /* of a masked compare-and-swap */
	uint64_t compare_mask;
	uint64_t atomic_orig;	 /* AtomicAckETH; also of a request that is executed */
	const struct pkt_dc *dc; /* request of BTH_DC, otherwise NULL */
	const struct path *path;
	uint32_t payload_len;
	uint32_t nruns;
	/* The payload; readable until the call that passes the packet returns.  For a READ request:
	 * the places for its answer, dma_len bytes, or none. */
	const struct run *runs;
	/*
	 * On the sending side: the memory key under which the requester found each run; 0: that run
	 * stays readable in any case.  NULL: the payload cannot go by reference.
	 */
	const uint32_t *run_keys;
	/* Loopback: a receiver sets it if the payload's memory no longer exists.  May be NULL. */
	bool *payload_gone;
	/* The packet came in a batch from another process: an answer may wait until the batch's
	 * end. */
	bool batched;
	/* On an unreliable transport: packets for other processes wait behind this one, so it does
	 * not wait for room in one process's channel. */
	bool no_wait;
	/* Not NULL: the runs are addresses in another process; wire/payload.h reads and writes
	 * them. */
	struct pkt_foreign *foreign;
	/* An answer to a READ whose payload already lies in its places, so the packet does not
	 * carry it. */
	bool placed;
	/*
	 * Not 0: the sender has given the request up, and its payload has changed.  The sender
	 * points to a word of the queue pair.  A receiver points to a word of the record if the
	 * payload comes by reference; otherwise the pointer is NULL.
	 */
	const _Atomic(uint32_t) *withdrawn;
	/* Not NULL: the payload does not exist yet, and this source makes it in place of the
	 * runs. */
	struct pkt_source *source;
};

/*
 * Makes a payload where it is wanted.  The data changes on its way, or is scattered over more runs
 * than a packet carries; so it goes in one pass from the sender's memory into the channel or, on
 * loopback, to its destination.
 */
struct pkt_source {
	/*
	 * Writes bytes [off, off + the runs' sum) of the payload, as usermem_pull would copy them.
	 * Cheap if off is where the last call ended.  False: either the maker's memory or the
	 * taker's no longer exists.
	 */
	bool (*pull)(struct pkt_source *s, uint64_t off, const struct run *dst, uint32_t ndst);
	bool gone; /* the maker's memory no longer exists */
};

static inline uint8_t pkt_transport(const struct pkt *p)
{
	return p->opcode & BTH_TRANSPORT_MASK;
}

/* True for an Ethernet frame, which has no BTH. */
static inline bool pkt_is_frame(const struct pkt *p)
{
	return pkt_transport(p) == BTH_RAW;
}

/* True if the sender repeats the packet until it is answered.  Other packets may be lost. */
static inline bool pkt_is_reliable(const struct pkt *p)
{
	uint8_t transport = pkt_transport(p);

	return transport == BTH_RC || transport == BTH_XRC || transport == BTH_DC;
}

static inline uint8_t pkt_op(const struct pkt *p)
{
	return p->opcode & BTH_OP_MASK;
}

static inline const struct bth_props *pkt_props(const struct pkt *p)
{
	return bth_props_of(p->opcode);
}

/*
 * Call it after the payload has been read: false means that the sender had not taken the payload
 * back when it was read.  The fence keeps the reads in front of the look; partner: the fence in
 * channel_withdraw.
 */
static inline bool pkt_withdrawn(const struct pkt *p)
{
	if (!p->withdrawn)
		return false;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(p->withdrawn, memory_order_relaxed);
}

/* True if the packet carries struct pkt_dc. */
static inline bool pkt_has_dc(const struct pkt *p)
{
	return bth_transport_props_of(p->opcode)->dc && pkt_props(p)->request;
}

/*
 * How large a packet would be on a real wire, which is what the port counters count.  PortXmitData
 * counts from the LRH to the ICRC, without the VCRC (IBTA, "PortCounters").
 */

/* Octets of the headers in front of the BTH and behind the payload; annexes A16 and A17 for
 * RoCE. */
#define LRH_OCTETS	8u
#define GRH_OCTETS	40u
#define ICRC_OCTETS	4u
#define ETHERNET_OCTETS 14u
#define ETHERNET_FCS	4u
#define IPV4_OCTETS	20u
#define IPV6_OCTETS	40u
#define UDP_OCTETS	8u

/* True if UDP stands in front of the BTH.  On InfiniBand each path has a LID. */
static inline bool path_is_roce_v2(const struct path *path)
{
	return !path->dlid && !path->roce_v1;
}

/* True if the packets have an IPv4 header, as the type of the sender's GID says. */
static inline bool path_has_ipv4(const struct path *path)
{
	return path_is_roce_v2(path) && ib_gid_is_ipv4(&path->sgid);
}

/* The number of packets on the wire; a read request that stands for many responses is one. */
uint32_t pkt_wire_packets(const struct pkt *p);
/* Their octets from the link header to the ICRC (Ethernet: to the frame check sequence). */
uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet);
/* Octets of the headers in front of the BTH, and on Ethernet of the frame check sequence. */
uint32_t path_routing_octets(const struct path *path, bool ethernet);

/* True if the payload fills as many packets of the path MTU as the packet stands for. */
static inline bool pkt_fills(const struct pkt *p, uint32_t mtu)
{
	return p->npkts == (likely(p->payload_len <= mtu) ? 1 : div_round_up(p->payload_len, mtu));
}

/*
 * The packets of the path MTU that one packet stands for, as they are on a real wire.  Returns their
 * MTU; 0: the packet has no such form, or its payload is no single run.
 */
uint32_t pkt_parts_mtu(const struct pkt *p);
/* Makes one of them, i < npkts; *run is the place for its payload's. */
void pkt_part(const struct pkt *p, uint32_t mtu, uint32_t i, struct pkt *part, struct run *run);

enum message_kind {
	MESSAGE_SEND,
	MESSAGE_SEND_IMM,
	MESSAGE_WRITE,
	MESSAGE_ANSWER,	      /* to a READ */
	MESSAGE_ATOMIC_ANSWER /* its value is in a header */
};

/* Messages of one kind. */
struct message_sizes {
	enum message_kind kind;
	uint32_t messages;
	uint32_t packets; /* of all of them */
	uint64_t payload; /* likewise, each message padded to 4 octets */
	bool unanswered;  /* the peer sends no acknowledgement */
	uint8_t bth;	  /* enum bth_transport of the headers that each packet of a request has */
};

static inline uint32_t routing_octets(const struct path *path, bool ethernet)
{
	return likely(path->routing_octets) ? path->routing_octets
					    : path_routing_octets(path, ethernet);
}

/* The operation of a message in one packet. */
static inline uint8_t message_op(enum message_kind kind)
{
	static const uint8_t whole[] = {
		[MESSAGE_SEND] = BTH_SEND_ONLY,		  [MESSAGE_SEND_IMM] = BTH_SEND_ONLY_IMM,
		[MESSAGE_WRITE] = BTH_WRITE_ONLY,	  [MESSAGE_ANSWER] = BTH_READ_RESP_ONLY,
		[MESSAGE_ATOMIC_ANSWER] = BTH_ATOMIC_ACK,
	};

	return whole[kind];
}

/* Octets of the extended headers of one message. */
static inline uint32_t header_octets(const struct message_sizes *m)
{
	const struct bth_props *p = bth_props_of(message_op(m->kind));

	return m->packets > m->messages ? bth_ext_octets_of_many(p) : bth_ext_octets(p);
}

/* Octets of these messages. */
static inline uint64_t message_octets(const struct path *path, bool ethernet,
				      const struct message_sizes *m)
{
	uint64_t each = routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS;

	if (unlikely(m->bth))
		each += bth_transport_octets((uint8_t)(m->bth | message_op(m->kind)));
	return m->packets * each + (uint64_t)m->messages * header_octets(m) + m->payload;
}

/* Octets of the request for such an answer, and of an acknowledgement. */
static inline uint64_t request_octets(const struct path *path, bool ethernet,
				      const struct message_sizes *answer)
{
	uint8_t op = answer->kind == MESSAGE_ANSWER ? BTH_READ_REQUEST : BTH_FETCH_ADD;

	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS +
	       bth_transport_octets((uint8_t)(answer->bth | op)) + bth_ext_octets(bth_props_of(op));
}

static inline uint64_t ack_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS +
	       bth_ext_octets(bth_props_of(BTH_ACK));
}

/* Explains packets that the wire itself drops; call these after explaining() (base/explain.h). */

/* Explains a datagram to a group, or a frame, that this port sends or that has come to this
 * process. */
void packet_explain_group(const struct subnet *s, uint32_t row, const struct pkt *p,
			  const char *why) __attribute__((cold));
/* Explains a datagram to queue pair 1 that is dropped for its Q_Key where it arrives. */
void packet_explain_gsi_key(const struct subnet *s, uint32_t row, const struct pkt *p)
	__attribute__((cold));
/* Explains a packet that names a sender which the sending process has not got. */
void packet_explain_sender(const struct subnet *s, const struct pkt *p) __attribute__((cold));
