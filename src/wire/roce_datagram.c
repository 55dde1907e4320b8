// SPDX-License-Identifier: BSD-2-Clause
/* See roce_datagram.h. */
#include "wire/roce_datagram.h"

#include <assert.h>
#include <string.h>

#include "prm/ib.h"

/* ---- headers that the kernel has taken away ---- */

#define IP_PROTOCOL_UDP	 17u
#define IPV4_ID		 4u /* where the identification is, and behind it flags and offset */
#define IPV4_FLAGS	 6u
#define DONT_FRAGMENT	 0x40u /* of the first byte of the flags */
#define IPV4_SOURCE	 12u
#define IPV4_DESTINATION 16u

static void word_put(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void ipv4_sum(uint8_t *ip)
{
	uint32_t sum = 0;

	word_put(ip + 10, 0);
	for (unsigned i = 0; i < IPV4_OCTETS; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	word_put(ip + 10, ~sum);
}

static void put_ipv4(const struct roce_datagram *d, uint8_t *ip, uint32_t behind)
{
	memset(ip, 0, IPV4_OCTETS);
	ip[0] = 0x45;
	ip[1] = d->traffic_class;
	word_put(ip + 2, IPV4_OCTETS + behind);
	word_put(ip + IPV4_ID, d->identification);
	ip[IPV4_FLAGS] = DONT_FRAGMENT;
	ip[8] = d->hop_limit;
	ip[9] = IP_PROTOCOL_UDP;
	memcpy(ip + 12, d->sgid.raw + 12, 4);
	memcpy(ip + 16, d->dgid.raw + 12, 4);
	ipv4_sum(ip);
}

static void put_ipv6(const struct roce_datagram *d, uint8_t *ip, uint32_t behind)
{
	memset(ip, 0, 8);
	ip[0] = (uint8_t)(0x60 | d->traffic_class >> 4);
	ip[1] = (uint8_t)(d->traffic_class << 4);
	word_put(ip + 4, behind);
	ip[6] = IP_PROTOCOL_UDP;
	ip[7] = d->hop_limit;
	memcpy(ip + 8, &d->sgid, 16);
	memcpy(ip + 24, &d->dgid, 16);
}

uint32_t roce_routing_octets(const struct path *path)
{
	return ETHERNET_OCTETS + (path_has_ipv4(path) ? IPV4_OCTETS : IPV6_OCTETS) +
	       (path_is_roce_v2(path) ? UDP_OCTETS : 0);
}

uint8_t *roce_datagram_frame(const struct roce_datagram *d, uint8_t *payload, uint32_t bytes)
{
	bool ipv4 = ib_gid_is_ipv4(&d->dgid);
	uint8_t *udp = payload - UDP_OCTETS;
	uint8_t *ip = udp - (ipv4 ? IPV4_OCTETS : IPV6_OCTETS);
	uint8_t *frame = ip - ETHERNET_OCTETS;

	memcpy(frame, d->dmac, 6);
	memset(frame + 6, 0, 6);
	word_put(frame + 12, ipv4 ? 0x0800u : 0x86ddu);
	if (ipv4)
		put_ipv4(d, ip, UDP_OCTETS + bytes);
	else
		put_ipv6(d, ip, UDP_OCTETS + bytes);
	word_put(udp, d->sport);
	word_put(udp + 2, ROCE_V2_UDP_PORT);
	word_put(udp + 4, UDP_OCTETS + bytes);
	word_put(udp + 6, 0);
	return frame;
}

/* ---- the identification ---- */

/*
 * A CRC is the remainder of a polynomial, so two packets that differ in four bytes alone have CRCs
 * whose difference is that of the four bytes times a power of x, which depends on how many bytes
 * follow.  Divided by that power, the difference says which bytes the sender had there.  Bits are in
 * the order of crc32_gzip_refl: x^0 is the highest bit.
 */
#define CRC_POLYNOMIAL 0xedb88320u
#define CRC_ONE	       0x80000000u

static uint32_t crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = CRC_ONE; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? CRC_POLYNOMIAL : 0);
	}
	return product;
}

/* x to the power of -8 * bytes. */
static uint32_t crc_back(uint32_t bytes)
{
	/* The powers -8, -16, -32 and so on. */
	static const uint32_t powers[] = {0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b,
					  0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
					  0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
					  0x24ee460c, 0x23783fcf};
	uint32_t power = CRC_ONE;

	assert(bytes >> sizeof(powers) / sizeof(powers[0]) == 0);
	for (unsigned i = 0; bytes >> i; i++)
		if (bytes >> i & 1)
			power = crc_multiply(power, powers[i]);
	return power;
}

/* x to the power of 8 * bytes.  Datagrams of a row have the same size, so the last power is kept. */
static uint32_t crc_ahead(uint32_t bytes)
{
	static _Thread_local uint32_t last_bytes, last_power = CRC_ONE;
	uint32_t power = CRC_ONE, factor = CRC_ONE >> 8;

	if (bytes == last_bytes)
		return last_power;
	last_bytes = bytes;
	for (; bytes; bytes >>= 1) {
		if (bytes & 1)
			power = crc_multiply(power, factor);
		factor = crc_multiply(factor, factor);
	}
	last_power = power;
	return power;
}

static uint32_t crc_of_frame(const uint8_t *end)
{
	const uint8_t *at = end - ICRC_OCTETS;

	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Tells whether another identification makes the CRC right. */
static bool identification_is_other(const uint8_t *ip, const uint8_t *end)
{
	uint32_t covered = (uint32_t)(end - ip) - ICRC_OCTETS;
	uint32_t difference = roce_icrc(ip, IPV4_OCTETS, true, covered) ^ crc_of_frame(end);
	/* The four bytes and those behind them. */
	uint32_t bytes = crc_multiply(difference, crc_back(covered - IPV4_ID));

	/* The first of the four is the lowest. */
	return !(bytes >> 16 & ~DONT_FRAGMENT);
}

void roce_datagram_number(uint8_t *frame, uint32_t bytes, uint16_t identification)
{
	uint8_t *ip = frame + ETHERNET_OCTETS, *crc = frame + bytes - ICRC_OCTETS;
	uint32_t number = (uint32_t)ip[IPV4_ID] << 8 | ip[IPV4_ID + 1];
	uint32_t covered = bytes - ETHERNET_OCTETS - ICRC_OCTETS, other, difference;

	if (number == identification)
		return;
	other = number ^ identification;
	/* The first byte is the lowest. */
	difference = crc_multiply(other >> 8 | (other & 0xff) << 8, crc_ahead(covered - IPV4_ID));
	word_put(ip + IPV4_ID, identification);
	ipv4_sum(ip);
	for (unsigned i = 0; i < ICRC_OCTETS; i++)
		crc[i] ^= (uint8_t)(difference >> 8 * i);
}

/* The four bytes at this offset of the IP header that the sender had there, as a difference from those
 * that are. */
static uint32_t bytes_changed(const uint8_t *ip, const uint8_t *end, uint32_t at)
{
	uint32_t covered = (uint32_t)(end - ip) - ICRC_OCTETS;
	uint32_t difference = roce_icrc(ip, IPV4_OCTETS, true, covered) ^ crc_of_frame(end);

	return crc_multiply(difference, crc_back(covered - at));
}

static void bytes_before(const uint8_t *at, uint32_t changed, uint8_t out[4])
{
	/* The first of the four is the lowest. */
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(at[i] ^ changed >> 8 * i);
}

bool roce_datagram_rewritten(uint8_t *frame, uint32_t bytes, struct roce_rewritten *out)
{
	uint8_t *ip = frame + ETHERNET_OCTETS, *end = frame + bytes, *udp = ip + IPV4_OCTETS;
	uint8_t port[4], here[2];

	if (bytes < ETHERNET_OCTETS + IPV4_OCTETS + UDP_OCTETS + BTH_OCTETS + ICRC_OCTETS ||
	    bytes > ROCE_FRAME_MAX || ip[0] != 0x45)
		return false;
	bytes_before(ip + IPV4_SOURCE, bytes_changed(ip, end, IPV4_SOURCE), out->source);
	bytes_before(ip + IPV4_DESTINATION, bytes_changed(ip, end, IPV4_DESTINATION),
		     out->destination);
	bytes_before(udp, bytes_changed(ip, end, IPV4_OCTETS), port);
	/* The port behind it is ours, so it has not changed. */
	out->sport = (uint16_t)(memcmp(port + 2, udp + 2, 2) ? 0 : port[0] << 8 | port[1]);
	memcpy(here, udp, sizeof(here));
	word_put(udp, ROCE_V2_UDP_PORT);
	bytes_before(ip + IPV4_SOURCE, bytes_changed(ip, end, IPV4_SOURCE), out->source_4791);
	memcpy(udp, here, sizeof(here));
	return true;
}

enum roce_verdict roce_datagram_decode(const uint8_t *frame, uint32_t bytes,
				       struct roce_packet *out)
{
	enum roce_verdict v = roce_decode(frame, bytes, out);

	if (v == ROCE_CRC && ib_gid_is_ipv4(&out->path.dgid) && bytes <= ROCE_FRAME_MAX &&
	    identification_is_other(frame + ETHERNET_OCTETS, frame + bytes))
		return ROCE_TAKEN;
	return v;
}
