/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of an Ethernet frame that steering compares. */
#pragma once

#include <stdint.h>

enum { FRAME_TYPE_IPV4 = 0x0800, FRAME_TYPE_VLAN = 0x8100, FRAME_TYPE_IPV6 = 0x86dd };
enum { IP_PROTO_TCP = 6, IP_PROTO_UDP = 17, IP_PROTO_GRE = 47 };

/*
 * The fields that tell frames apart.  Numbers are in network order, absent fields zero; an IPv4
 * address takes the first 4 bytes.  All bytes belong to fields, so that masked comparison works on
 * words.
 */
struct flow_key {
	union {
		struct {
			uint8_t dst_mac[6];
			uint8_t src_mac[6];
			uint8_t ether_type[2]; /* the type behind a VLAN tag */
			uint8_t vlan_tag[2];
			uint8_t src_ip[16];
			uint8_t dst_ip[16];
			uint8_t flow_label[4];
			uint8_t ip_proto; /* IPv6: next header */
			uint8_t ip_tos;	  /* IPv6: traffic class */
			uint8_t ip_ttl;
			uint8_t ip_flags; /* IPv4: more fragments 0, don't fragment 1 */
			uint8_t src_port[2];
			uint8_t dst_port[2];
			uint8_t ip_version; /* 4, 6 or 0 */
			uint8_t l4_proto;   /* protocol that the ports belong to: TCP, UDP or 0 */
			uint8_t vlan;	    /* 1: tagged */
			uint8_t reserved;
		};
		uint64_t word[8];
	};
};

#define FLOW_KEY_WORDS 8u

/* What lies behind the outer headers; the same holds for its fields. */
struct flow_deep {
	union {
		struct {
			struct flow_key inner; /* the headers inside a tunnel */
			uint8_t vni[4];	       /* VXLAN; the first byte is zero */
			uint8_t gre_key[4];
			uint8_t gre_protocol[2];
			uint8_t reserved[2];
			uint8_t esp_spi[4];
			/* The first entry of a label stack: behind the Ethernet header, behind that
			 * of a frame in a tunnel, in GRE, in UDP. */
			uint8_t mpls[4];
			uint8_t mpls_inner[4];
			uint8_t mpls_over_gre[4];
			uint8_t mpls_over_udp[4];
		};
		uint64_t word[12];
	};
};

#define FLOW_DEEP_WORDS 12u
