/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MAD layer of all ports of the subnet: packets hop by hop, and who gets them.  Nothing here
 * recurses: a send is queued, and the loop's work takes one packet after the other, each on its
 * whole way to where it is delivered or lost.  So answers come in the order of the questions,
 * however far each went; the order in which ibnetdiscover prints nodes follows from that.
 */
#pragma once

#include "fabric/daemon/loop/loop.h"
#include "fabric/daemon/node/net.h"
#include "prm/ib.h"
#include "prm/mad.h"

/* A MAD under way, with what its headers say (LRH, GRH, BTH, DETH). */

/* Where a MAD goes to or came from, in host order. */
struct mad_address {
	uint32_t qpn;
	uint16_t lid;
	uint16_t pkey_index;
	uint8_t sl;
	uint8_t path_bits; /* path bits of our own LID */
	bool grh;
	uint8_t gid_index, hop_limit, traffic_class;
	uint32_t flow_label;
	union ib_gid gid; /* the other end's */
};

struct mad_send;

/* Where a packet goes on when its turn comes. */
enum mad_stage {
	MAD_STARTS,  /* 'row' is the end port that sends it */
	MAD_LEAVES,  /* 'row' is a port that it leaves by */
	MAD_ENTERS,  /* 'row' is a port that it has come to over the link */
	MAD_ARRIVES, /* it has come from outside of the fabric, and 'row' is its end */
	MAD_HELD,    /* it waits */
	MAD_OUTSIDE, /* it has left the fabric */
};

struct mad_packet {
	struct mad_packet *next;
	struct mad_send *send; /* the send that it belongs to, told when it leaves */
	enum mad_stage stage;
	uint32_t row; /* the port that it leaves, or has arrived at */
	uint32_t sqpn, dqpn, qkey;
	uint16_t slid, dlid;
	uint16_t pkey;
	uint16_t pkey_index; /* at the receiver */
	uint8_t sl, hops;
	bool arriving; /* it is arriving at 'row'; else it leaves 'row' */
	bool local;    /* a directed route of no hops: it never was on a link */
	bool grh;
	bool roce_v1; /* at ports of Ethernet */
	uint8_t hop_limit, traffic_class;
	uint32_t flow_label;
	union ib_gid sgid, dgid;
	_Alignas(8) uint8_t mad[MAD_BYTES];
};

struct mad_agent;
struct impair;
struct rmpp_recv;

/* What a port's own agent (its firmware) does with a MAD that has arrived. */
enum mad_verdict {
	MAD_ANSWERED, /* p->mad is the answer now */
	MAD_SILENT,   /* taken, without an answer */
	MAD_PASSED,   /* not for me: programs may have it */
};

/*
 * The agent of one class; 'row' is p->row: the port that the MAD came in by (external ports of
 * switches too).
 */
struct port_agent {
	enum mad_verdict (*handle)(struct port_agent *a, uint32_t row, struct mad_packet *p);
};

struct mad_fabric {
	struct net *net;
	struct loop *loop;
	struct loop_work work;
	struct loop_work *after; /* not NULL: done at once when packets have moved */
	struct mad_packet *queue, **queue_end;
	struct mad_packet *pool;
	uint32_t queued, pool_size;
	struct mad_send *send_pool;
	uint32_t send_pool_size;
	struct port_agent *port_agents[256]; /* by class */
	struct mad_agent **by_tid;	     /* hash by the high half of a TID; agent.c */
	uint32_t nagents, by_tid_mask;
	struct mad_send **sends; /* hash by the TID; send.c */
	uint32_t nsends, sends_mask;
	struct rmpp_recv **receives; /* hash by the TID; rmpp_transfer.c */
	uint64_t receive_bytes;	     /* bytes of unfinished messages */
	struct mad_agent **of_port;  /* [row]: agents that take requests; agent.c */
	uint32_t next_tid;	     /* 1 to 2^24 - 1, then from the beginning */
	struct impair *impair;	     /* NULL: every link is perfect */
	/* p->row dropped a MAD whose P_Key its table does not have.  NULL: nobody asks. */
	void (*pkey_violated)(void *user, const struct mad_packet *p);
	/* 'row', a switch's port that enforces partitions, dropped it on its way. */
	void (*pkey_enforced)(void *user, const struct mad_packet *p, uint32_t row);
	/* The same for a datagram of a queue pair to queue pair 1 with another Q_Key than that one
	 * has. */
	void (*qkey_violated)(void *user, const struct mad_packet *p);
	void *key_user;
	/* p has arrived at p->row for a queue pair of a process.  NULL: there are none. */
	void (*to_queue_pair)(void *user, const struct mad_packet *p);
	/* p leaves the fabric at p->row, a port of Ethernet; false: nobody carries it.  NULL: there
	 * is nothing outside.  It has the same user. */
	bool (*to_outside)(void *user, const struct mad_packet *p);
	void *queue_pair_user;
	/* p has left port 'from' and reached port 'to', at the other end of its link; SUBNET_NONE: the
	 * end that is outside of the fabric.  NULL: nobody wants to see it. */
	void (*crossed)(void *user, const struct mad_packet *p, uint32_t from, uint32_t to);
	void *crossed_user;
	uint64_t delivered, dropped;
};

int mad_open(struct mad_fabric *f, struct net *net, struct loop *loop) must_check;
void mad_close(struct mad_fabric *f);
void mad_port_agent(struct mad_fabric *f, unsigned class, struct port_agent *a);

/* ---- packet.c: the pool and the queue, a leaf that everybody calls ---- */

/* Returns a packet that is all zero, or NULL. */
struct mad_packet *mad_packet_get(struct mad_fabric *f);
void mad_packet_put(struct mad_fabric *f, struct mad_packet *p);
/*
 * The packet leaves its row, which is an end port; from now on the layer owns it.  The caller has
 * set where it goes: dlid (or GRH), dqpn, and the way: a directed route begins here.
 */
void mad_emit(struct mad_fabric *f, struct mad_packet *p);
/* The same for one that has come to its row, a port of Ethernet, from outside of the fabric. */
void mad_arrive(struct mad_fabric *f, struct mad_packet *p);
/* The packet goes on from where it is (p->stage). */
void mad_requeue(struct mad_fabric *f, struct mad_packet *p);
/* Turns an answered request round, so that mad_emit takes it back where it came from. */
void mad_turn(struct mad_fabric *f, struct mad_packet *p);

/* ---- forward.c: one hop ---- */

/*
 * Moves p from an end port to the port that it leaves by, or says that it is there already.  As
 * forward_step.
 */
bool forward_start(struct mad_fabric *f, struct mad_packet *p) must_check;
/* Moves p over the link and through the node behind it.  Then p->row is the next port that it
 * leaves by, or p->arriving tells that it is at its end, or it is MAD_HELD on the way and its
 * holder queues it again.  False: it is lost, and counted. */
bool forward_step(struct mad_fabric *f, struct mad_packet *p) must_check;
/* p->row is the end of a packet from outside of the fabric. */
void forward_arrive(struct mad_fabric *f, struct mad_packet *p);
/* The second half of forward_step: through the node, from the port p->row that p has come to. */
bool forward_enter(struct mad_fabric *f, struct mad_packet *p) must_check;

/* ---- forward.c: at its end: the port's agent, then agents, then the automatic 0x000C ---- */
void mad_deliver(struct mad_fabric *f, struct mad_packet *p);
