/* SPDX-License-Identifier: BSD-2-Clause */
/* A MAD under way, with what its headers say (LRH, GRH, BTH, DETH). */
#pragma once

#include "fabric/daemon/node/net.h"
#include "prm/ib.h"
#include "prm/mad.h"

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
	MAD_STARTS, /* 'row' is the end port that sends it */
	MAD_LEAVES, /* 'row' is a port that it leaves by */
	MAD_ENTERS, /* 'row' is a port that it has come to over the link */
	MAD_HELD,   /* it waits */
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
	bool local;    /* it never was on a link: the zero-hop way (2.12) */
	bool grh;
	bool roce_v1; /* at ports of Ethernet */
	uint8_t hop_limit, traffic_class;
	uint32_t flow_label;
	union ib_gid sgid, dgid;
	_Alignas(8) uint8_t mad[MAD_BYTES];
};
