// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages of many packets between two hosts, by libibumad.  One serves: who asks gets one of BYTES, which was made
 * before and stays.
 * Usage: messages serve BYTES
 *        messages ask BYTES LID COUNT     prints the seconds from question to answer, of the fastest
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAD_BYTES   256
#define HEADERS	    40 /* of the class */
#define MOST_HEADER 64 /* of umad */
#define CLASS	    0x31
#define GET	    0x01
#define GET_RESP    0x81
#define OUI	    0x001405
#define ASKED_MS    2000
#define ACK_TRIES   5
#define WAIT_MS	    10000

struct end {
	int port, agent;
	void *umad;
	uint8_t *mad;
	int bytes;
};

static double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void failed(const char *what)
{
	perror(what);
	exit(1);
}

static uint8_t byte_at(int at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static struct end end_open(int bytes, unsigned method)
{
	struct end e = {.port = umad_open_port(NULL, 1), .bytes = HEADERS + bytes};
	uint8_t oui[3] = {OUI >> 16, OUI >> 8 & 0xff, OUI & 0xff};
	long mask[16 / sizeof(long)] = {method ? 1l << method : 0};

	e.agent = e.port < 0 ? -1 : umad_register_oui(e.port, CLASS, 1, oui, mask);
	e.umad = malloc(umad_size() + (size_t)e.bytes);
	if (e.agent < 0 || !e.umad)
		failed("messages");
	memset(e.umad, 0, umad_size() + (size_t)e.bytes);
	e.mad = umad_get_mad(e.umad);
	return e;
}

static void mad_head(uint8_t *mad, uint8_t method)
{
	static const uint8_t oui[3] = {OUI >> 16, OUI >> 8 & 0xff, OUI & 0xff};

	mad[0] = 1;
	mad[1] = CLASS;
	mad[2] = 1;
	mad[3] = method;
	memcpy(mad + 37, oui, sizeof(oui));
}

/* Until it is killed. */
static void serve(struct end *e)
{
	uint8_t question[MOST_HEADER + MAD_BYTES];

	mad_head(e->mad, GET_RESP);
	e->mad[24] = e->mad[25] = e->mad[26] = 1; /* RMPP's version, DATA, active */
	for (int i = HEADERS; i < e->bytes; i++)
		e->mad[i] = byte_at(i);
	for (;;) {
		const ib_mad_addr_t *from = umad_get_mad_addr(question);
		int length = MAD_BYTES;

		if (umad_recv(e->port, question, &length, -1) < 0 || umad_status(question))
			continue;
		memcpy(e->mad + 8, (uint8_t *)umad_get_mad(question) + 8, 8);
		umad_set_addr_net(e->umad, from->lid, from->qpn, 0, htonl(0x80010000));
		if (umad_send(e->port, e->agent, e->umad, e->bytes, 0, ACK_TRIES))
			failed("umad_send");
	}
}

static double ask(struct end *e, int lid, int number)
{
	uint8_t question[MOST_HEADER + MAD_BYTES], *mad = umad_get_mad(question);
	uint32_t tid = htonl((uint32_t)number + 1);
	double begin;
	int length = e->bytes;

	memset(question, 0, sizeof(question));
	mad_head(mad, GET);
	memcpy(mad + 12, &tid, sizeof(tid));
	umad_set_addr(question, lid, 1, 0, 0x80010000);
	begin = clock_seconds();
	if (umad_send(e->port, e->agent, question, MAD_BYTES, ASKED_MS, ACK_TRIES) ||
	    umad_recv(e->port, e->umad, &length, WAIT_MS) < 0 || umad_status(e->umad) ||
	    length != e->bytes)
		failed("the answer");
	begin = clock_seconds() - begin;
	for (int i = HEADERS; i < e->bytes; i++)
		if (e->mad[i] != byte_at(i))
			failed("other bytes");
	return begin;
}

int main(int argc, char **argv)
{
	bool serves = argc == 3 && strcmp(argv[1], "serve") == 0;
	bool asks = argc == 5 && strcmp(argv[1], "ask") == 0;
	double best = 0;
	struct end e;

	if ((!serves && !asks) || atoi(argv[2]) < MAD_BYTES)
		return 2;
	e = end_open(atoi(argv[2]), serves ? GET : 0);
	if (serves)
		serve(&e);
	for (int i = 0; i < atoi(argv[4]); i++) {
		double took = ask(&e, atoi(argv[3]), i);

		if (i == 0 || took < best)
			best = took;
	}
	printf("seconds %.6f\n", best);
	return 0;
}
