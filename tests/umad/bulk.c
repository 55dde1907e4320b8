// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages of many packets between two hosts.  One serves: who asks gets as many bytes as he asks for,
 * and their place decides each of them.
 * Usage: bulk_mads serve | bulk_mads ask LID BYTES COUNT TIMEOUT_MS RETRIES
 * The time limit is of each acknowledgement.  Prints the seconds that the fastest of COUNT took.
 */
#include "checklist.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the question, which is lost like everything else. */
#define ASKED_MS    500
#define ASKED_TIMES 100
/* Of the server, which may have just been started: so long a question is refused. */
#define START_TRIES 3000u
#define START_MS    10

struct wish {
	uint32_t bytes, timeout_ms, retries;
};

static double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void answer(int fd, uint32_t id, const struct letter *question)
{
	struct letter l;
	struct wish w;

	memcpy(&w, question->mad + VENDOR_DATA, sizeof(w));
	l = letter_with_data(question->lid, letter_tid(question), w.bytes);
	l.id = id;
	l.mad[3] = METHOD_GET_RESP;
	l.timeout_ms = w.timeout_ms;
	l.retries = w.retries;
	letter_is_sent(fd, &l);
	letter_free(&l);
}

/* Until it is killed. */
static void serve(void)
{
	int fd = port_file(1);
	struct agent a = server_of(CLASS_VENDOR, METHOD_GET);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t last = 0;
	uint32_t id;

	a.rmpp = 1;
	id = port_agent(fd, a);
	for (;;) {
		struct letter l;

		/* Longer than port_receive waits for one. */
		if (poll(&p, 1, -1) != 1)
			continue;
		must(port_receive(fd, &l, MAD_BYTES) == 0, "receive");
		/* The same again: the answer is on its way.  A report: nobody took it. */
		if (l.status == 0 && l.mad[3] == METHOD_GET && letter_tid(&l) != last) {
			last = letter_tid(&l);
			answer(fd, id, &l);
		}
		letter_free(&l);
	}
}

/* Nobody takes such questions, says the port. */
static bool is_refusal(const struct letter *got)
{
	return got->bytes == MAD_BYTES && (got->mad[4] || got->mad[5]);
}

static double ask(int fd, uint32_t id, uint16_t lid, uint64_t tid, const struct wish *w)
{
	struct letter question = letter_to(lid, CLASS_VENDOR, METHOD_GET, 0, tid), got;
	double begin;
	int error;

	question.id = id;
	question.timeout_ms = ASKED_MS;
	question.retries = ASKED_TIMES;
	memcpy(question.mad + VENDOR_DATA, w, sizeof(*w));
	for (unsigned tries = 1;; tries++) {
		begin = clock_seconds();
		letter_is_sent(fd, &question);
		error = port_receive(fd, &got, w->bytes + MAD_BYTES);
		must(error == 0 && got.status == 0, "errno %d, status %u", -error, got.status);
		if (!is_refusal(&got) || tries == START_TRIES)
			break;
		letter_free(&got);
		poll(NULL, 0, START_MS);
	}
	begin = clock_seconds() - begin;
	must(letter_has_data(&got, w->bytes), "%zu bytes, or others", got.bytes);
	letter_free(&question);
	letter_free(&got);
	return begin;
}

int main(int argc, char **argv)
{
	double best = 0;
	struct wish w;
	uint32_t id;
	int fd;

	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		serve();
	must(argc == 7 && strcmp(argv[1], "ask") == 0, "see the head of bulk.c");
	w = (struct wish){(uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[5]),
			  (uint32_t)atoi(argv[6])};
	fd = port_file(1);
	{
		struct agent a = agent_of(CLASS_VENDOR);

		a.rmpp = 1;
		id = port_agent(fd, a);
	}
	for (int i = 0; i < atoi(argv[4]); i++) {
		double took = ask(fd, id, (uint16_t)atoi(argv[2]), 0x100 + (uint64_t)i, &w);

		if (i == 0 || took < best)
			best = took;
	}
	printf("seconds %.6f\n", best);
	return 0;
}
