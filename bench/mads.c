// SPDX-License-Identifier: BSD-2-Clause
/*
 * MADs a second: NodeInfo by a directed route, so many in flight, by libibumad.
 * Usage: mads WINDOW COUNT [PORT...]     the ports are the route
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAD_BYTES 256

static double clock_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void failed(const char *what)
{
	perror(what);
	exit(1);
}

static void question_make(uint8_t *mad, int nports, char **ports)
{
	mad[0] = 1;
	mad[1] = 0x81;
	mad[2] = 1;
	mad[3] = 1;
	mad[7] = (uint8_t)nports;
	mad[17] = 0x11;
	memset(mad + 32, 0xff, 4);
	for (int i = 0; i < nports; i++)
		mad[129 + i] = (uint8_t)atoi(ports[i]);
}

int main(int argc, char **argv)
{
	unsigned window = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	unsigned sent = 0, lost = 0;
	uint8_t *question, *answer;
	int port, agent;
	double begin, processor;

	port = umad_open_port(NULL, 0);
	agent = port < 0 ? -1 : umad_register(port, 0x81, 1, 0, NULL);
	question = calloc(1, umad_size() + MAD_BYTES);
	answer = calloc(1, umad_size() + MAD_BYTES);
	if (!window || agent < 0 || !question || !answer)
		failed("mads");
	umad_set_addr(question, 0xffff, 0, 0, 0);
	question_make(umad_get_mad(question), argc - 3, argv + 3);
	begin = clock_seconds(CLOCK_MONOTONIC);
	processor = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned got = 0; got < count; got++) {
		int length = MAD_BYTES;

		for (; sent < count && sent - got < window; sent++) {
			uint32_t tid = htonl(sent + 1);
			uint8_t *mad = umad_get_mad(question);

			memcpy(mad + 12, &tid, sizeof(tid));
			mad[6] = 0; /* the hop pointer, which libraries in between may move on */
			if (umad_send(port, agent, question, MAD_BYTES, 1000, 3) < 0)
				failed("umad_send");
		}
		if (umad_recv(port, answer, &length, -1) < 0)
			failed("umad_recv");
		lost += umad_status(answer) != 0;
	}
	free(question);
	free(answer);
	processor = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
	printf("rate %.1f k/s\n", count / (clock_seconds(CLOCK_MONOTONIC) - begin) / 1e3);
	printf("processor %.2f us a MAD\nlost %u MADs\n", processor / count * 1e6, lost);
	return lost != 0;
}
