// SPDX-License-Identifier: BSD-2-Clause
/* The invariant CRC of RoCE: Ethernet's CRC over what no switch or router changes (IBTA
 * A17.3.3). */
#include <isa-l/crc.h>
#include <string.h>

#include "wire/roce.h"
#include "wire/size.h"

/* Octets that stand for the local route header. */
#define ICRC_LRH 8u

#define BTH_RESERVED 4u /* the byte with the marks of congestion */

uint32_t roce_icrc(const uint8_t *ip, uint32_t ip_bytes, bool v2, uint32_t bytes)
{
	uint8_t head[ICRC_LRH + IPV6_OCTETS + UDP_OCTETS + BTH_OCTETS];
	uint32_t headers = ip_bytes + (v2 ? UDP_OCTETS : 0) + BTH_OCTETS;
	uint8_t *h = head + ICRC_LRH;
	uint32_t crc;

	memset(head, 0xff, ICRC_LRH);
	memcpy(h, ip, headers);
	if (ip_bytes == IPV4_OCTETS) {
		h[1] = 0xff;		 /* type of service */
		h[8] = 0xff;		 /* time to live */
		memset(h + 10, 0xff, 2); /* checksum */
	} else {
		h[0] |= 0x0f; /* traffic class and flow label */
		memset(h + 1, 0xff, 3);
		h[7] = 0xff; /* hop limit */
	}
	if (v2)
		memset(h + ip_bytes + 6, 0xff, 2); /* checksum of UDP */
	h[headers - BTH_OCTETS + BTH_RESERVED] = 0xff;
	crc = crc32_gzip_refl(0, head, ICRC_LRH + headers);
	return crc32_gzip_refl(crc, ip + headers, bytes - headers);
}
