// SPDX-License-Identifier: BSD-2-Clause
/*
 * stream DEVICE listen|connect TCP-PORT MILLISECONDS: writes into the other's memory, small and
 * large, with the queue always full.  Either may be killed at any moment.  The survivor must see
 * its oldest request fail with "transport retry counter exceeded", all others flushed, each request
 * completed exactly once, and all that soon.
 *
 * Status 0: all as it should be; 1: not; 3: the other never came.  Prints what happened.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"

#define BYTES	  (1u << 20)
#define LARGE	  (256u << 10)
#define DRAIN_MS  5000 /* from the first error to the last completion */
#define GOODBY_MS 5000

struct counts {
	uint64_t posted;
	uint64_t done;
	uint64_t flushed;
	enum ibv_wc_status first; /* of those that failed */
	uint64_t failed_at_ms;
};

_Noreturn static void wrong(const char *what, const struct counts *c)
{
	printf("wrong: %s (%" PRIu64 " posted, %" PRIu64 " done, %" PRIu64 " flushed, first %s)\n",
	       what, c->posted, c->done, c->flushed, ibv_wc_status_str(c->first));
	exit(1);
}

static void collect_completions(struct pair *p, struct counts *c)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(p->cq, 16, wc);

	if (n < 0)
		wrong("polling fails", c);
	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id != c->done + c->flushed + (c->first != IBV_WC_SUCCESS))
			wrong("a completion out of order", c);
		if (wc[i].status == IBV_WC_SUCCESS && c->first == IBV_WC_SUCCESS) {
			c->done++;
		} else if (wc[i].status == IBV_WC_WR_FLUSH_ERR && c->first != IBV_WC_SUCCESS) {
			c->flushed++;
		} else if (c->first == IBV_WC_SUCCESS) {
			c->first = wc[i].status;
			c->failed_at_ms = pair_now_ms();
		} else {
			wrong(ibv_wc_status_str(wc[i].status), c);
		}
	}
}

static uint64_t count_outstanding(const struct counts *c)
{
	return c->posted - c->done - c->flushed - (c->first != IBV_WC_SUCCESS);
}

/* Both stay until both have written all they want. */
static bool say_goodbye(struct pair *p)
{
	struct pollfd ready = {.fd = p->sock, .events = POLLIN};
	char byte = 0;

	return send(p->sock, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&ready, 1, GOODBY_MS) == 1 &&
	       recv(p->sock, &byte, 1, 0) == 1;
}

static int write_epitaph(struct pair *p, struct counts *c)
{
	/* What is posted now is flushed as well. */
	for (int i = 0; i < 4 && count_outstanding(c) < PAIR_DEPTH; i++)
		pair_write(p, c->posted++, 0, 0, 8);
	while (count_outstanding(c)) {
		if (pair_now_ms() - c->failed_at_ms > DRAIN_MS)
			wrong("requests that never complete", c);
		collect_completions(p, c);
	}
	if (c->first != IBV_WC_RETRY_EXC_ERR)
		wrong(ibv_wc_status_str(c->first), c);
	printf("peer lost: %" PRIu64 " done, %" PRIu64 " flushed\n", c->done, c->flushed);
	return 0;
}

int main(int argc, char **argv)
{
	struct counts c = {.first = IBV_WC_SUCCESS};
	struct pair p;
	uint64_t end;
	int status = 0;

	if (argc != 5)
		device_die("usage: stream DEVICE listen|connect TCP-PORT MILLISECONDS");
	pair_open(&p, argv[1], &pair_impatient, 2 * BYTES);
	pair_meet(&p, &pair_impatient, !strcmp(argv[2], "listen"), pair_number(argv[3]));
	end = pair_now_ms() + pair_number(argv[4]);
	while (c.first == IBV_WC_SUCCESS && (pair_now_ms() < end || count_outstanding(&c))) {
		while (count_outstanding(&c) < PAIR_DEPTH && pair_now_ms() < end) {
			uint32_t n = c.posted % 7 ? 8 + (uint32_t)(c.posted % 500) : LARGE;

			pair_write(&p, c.posted, 0, BYTES, n);
			c.posted++;
		}
		collect_completions(&p, &c);
		if (pair_now_ms() > end + DRAIN_MS)
			wrong("no end", &c);
	}
	if (c.first != IBV_WC_SUCCESS)
		status = write_epitaph(&p, &c);
	else
		printf("done: %" PRIu64 "%s\n", c.done,
		       say_goodbye(&p) ? "" : ", the other is gone");
	pair_close(&p);
	return status;
}
