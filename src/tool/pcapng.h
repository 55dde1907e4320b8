/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes capture files (pcapng, draft-ietf-opsawg-pcapng).  Errors of the stream stay in it
 * (ferror).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LINKTYPE_ETHERNET 1u
#define LINKTYPE_ERF	  197u /* records of Endace cards, which hold packets of InfiniBand, too */
#define ERF_OCTETS	  16u  /* in front of each packet of that type, besides the snaplen */

struct pcapng_packet {
	uint32_t interface; /* in the order in which they were written */
	bool received;
	uint64_t ns;
	const uint8_t *bytes;
	uint32_t captured, whole;
};

struct pcapng_counts {
	uint64_t begun_ns, ended_ns;
	uint64_t received, dropped;
};

void pcapng_begin(FILE *out, const char *application);
void pcapng_interface(FILE *out, uint32_t linktype, uint32_t snaplen, const char *name);
/* A frame of Ethernet. */
void pcapng_ethernet(FILE *out, const struct pcapng_packet *p);
/* A packet of InfiniBand, from the LRH to the VCRC, as an ERF record. */
void pcapng_infiniband(FILE *out, const struct pcapng_packet *p);
void pcapng_statistics(FILE *out, uint32_t interface, const struct pcapng_counts *c);
