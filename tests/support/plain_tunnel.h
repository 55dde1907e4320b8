/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames in tunnels, and their checksums by sums that know nothing of the device. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t plain_sum(const uint8_t *at, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i & 1 ? at[i] : (uint32_t)at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline void plain_put(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* Fills in the header's sum of an IPv4 datagram, and that of its TCP or UDP. */
static inline void plain_fill_l3(uint8_t *ip)
{
	plain_put(ip + 10, ~plain_sum(ip, 20, 0));
}

static inline void plain_fill_l4(uint8_t *ip)
{
	uint32_t n = (uint32_t)(ip[2] << 8 | ip[3]) - 20, at = ip[9] == 6 ? 16 : 6;

	plain_put(ip + 20 + at, ~plain_sum(ip + 20, n, plain_sum(ip + 12, 8, ip[9] + n)));
}

static inline void plain_ipv4(uint8_t *ip, uint8_t proto, uint32_t bytes)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	plain_put(ip + 2, bytes);
	ip[8] = 64;
	ip[9] = proto;
	memcpy(ip + 12, "\x0a\x01\x00\x01\x0a\x01\x00\x02", 8);
}

/* A TCP frame in VXLAN, or its datagram in GRE or in IP; returns its bytes, and says where the inner
 * datagram is. */
static inline uint32_t tunnelled(const uint8_t *frame, uint32_t n, uint8_t proto, uint8_t *out,
				 uint32_t *inner)
{
	uint32_t header = proto == 17 ? 16 : proto == 47 ? 4 : 0;
	uint32_t skip = proto == 17 ? 0 : 14, rest = n - skip;

	plain_ipv4(out + 14, proto, 20 + header + rest);
	memset(out + 34, 0, header);
	if (proto == 17) {
		plain_put(out + 36, 4789);
		plain_put(out + 38, header + rest);
		out[42] = 0x08;
	} else if (proto == 47) {
		plain_put(out + 36, 0x0800);
	}
	memcpy(out + 34 + header, frame + skip, rest);
	*inner = 34 + header + 14 - skip;
	return 34 + header + rest;
}
