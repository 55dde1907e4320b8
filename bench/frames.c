/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw Ethernet frames there and back: half of the time, the median of the trips, with both ends in one
 * process (near), whose one thread does everything, or in two (far), each on a processor of its own
 * where there are two.
 * An end waits for each frame, so one that is lost ends the program with an error.
 *
 * frames DEVICE near|far: prints "name value unit" lines.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mac_rule.h"
#include "raw_end.h"
#include "talk.h"
#include "verbs_device.h"

#define TRIPS	4000u
#define WARM_UP 100u
#define MAC	6u
#define WAIT_NS 30000000000u

static const uint32_t sizes[] = {64, 1500};

#define SIZES (sizeof(sizes) / sizeof(*sizes))

/* Takes what is sent to it, and sends to the other. */
struct frames_end {
	struct raw_end raw;
	unsigned under_way; /* sent, and not completed */
	uint32_t arrived;   /* bytes */
};

static void end_open(struct frames_end *e, const char *device, unsigned number)
{
	uint8_t own[MAC] = {2, 0, 0, 0, 0, (uint8_t)(10 + number)};

	raw_end_open(&e->raw, device);
	if (!mac_rule(e->raw.qp, own))
		device_die("ibv_create_flow: %m");
	raw_end_receive(&e->raw);
}

static void take(struct frames_end *e)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->raw.cq, 1, &wc);

	if (n < 0 || (n && wc.status))
		device_die("completion: %s", n < 0 ? "none" : ibv_wc_status_str(wc.status));
	if (n && wc.opcode == IBV_WC_RECV)
		e->arrived += wc.byte_len;
	else if (n)
		e->under_way--;
}

/* The completion of the frame that was sent before has been seen by then. */
static void send_to(struct frames_end *e, unsigned to, uint32_t bytes)
{
	const uint8_t header[] = {
		2, 0, 0, 0, 0, (uint8_t)(10 + to), 2, 0, 0, 0, 0, (uint8_t)(10 + !to), 0x88, 0xb5};
	struct ibv_sge out = {(uintptr_t)e->raw.frame, bytes, e->raw.mr->lkey};
	struct ibv_send_wr send = {.sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	memcpy(e->raw.frame, header, sizeof(header));
	if (ibv_post_send(e->raw.qp, &send, &bad))
		device_die("ibv_post_send: %m");
	for (e->under_way++; e->under_way;)
		take(e);
}

static void receive(struct frames_end *e, uint32_t bytes)
{
	uint64_t since = device_now_ns();

	for (unsigned polls = 1; !e->arrived; polls++) {
		take(e);
		if (polls % 4096 == 0 && device_now_ns() - since > WAIT_NS)
			device_die("a frame of %u bytes is lost", bytes);
	}
	if (e->arrived != bytes)
		device_die("%u bytes have come instead of %u", e->arrived, bytes);
	e->arrived = 0;
	raw_end_receive(&e->raw);
}

/* How long each trip took. */
struct trips {
	uint64_t begun;
	uint64_t ns[TRIPS];
};

/* The next trip begins where this one ends. */
static void trips_note(struct trips *t, unsigned i)
{
	uint64_t now = device_now_ns();

	if (i >= WARM_UP)
		t->ns[i - WARM_UP] = now - t->begun;
	t->begun = now;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print(uint32_t bytes, struct trips *t)
{
	qsort(t->ns, TRIPS, sizeof(*t->ns), compare);
	printf("frame_%u %.3f us\n", bytes, (double)t->ns[TRIPS / 2] / 2e3);
}

static void near(const char *device)
{
	static struct frames_end end[2];
	static struct trips trips;

	for (unsigned i = 0; i < 2; i++)
		end_open(&end[i], device, i);
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned i = 0; i < WARM_UP + TRIPS; i++) {
			for (unsigned from = 0; from < 2; from++) {
				send_to(&end[from], !from, sizes[s]);
				receive(&end[!from], sizes[s]);
			}
			trips_note(&trips, i);
		}
		print(sizes[s], &trips);
	}
}

/* ---- two processes ---- */

static void far(const char *device, unsigned number, int fd)
{
	static struct frames_end end;
	static struct trips trips;

	talk_pin(number);
	end_open(&end, device, number);
	talk_put(fd, &(char){0}, 1);
	talk_get(fd, &(char){0}, 1);
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned i = 0; i < WARM_UP + TRIPS; i++) {
			if (!number)
				send_to(&end, 1, sizes[s]);
			receive(&end, sizes[s]);
			if (number)
				send_to(&end, 0, sizes[s]);
			trips_note(&trips, i);
		}
		if (!number)
			print(sizes[s], &trips);
	}
}

int main(int argc, char **argv)
{
	int fd[2], status = 0;
	pid_t child;

	if (argc != 3 || (strcmp(argv[2], "near") != 0 && strcmp(argv[2], "far") != 0)) {
		fputs("Usage: frames DEVICE near|far\n", stderr);
		return 2;
	}
	if (!strcmp(argv[2], "near")) {
		near(argv[1]);
		return 0;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		device_die("socketpair: %m");
	child = fork();
	if (child < 0)
		device_die("fork: %m");
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	far(argv[1], !child, fd[!child]);
	if (child && waitpid(child, &status, 0) != child)
		device_die("waitpid: %m");
	return status ? 1 : 0;
}
