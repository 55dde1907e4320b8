// SPDX-License-Identifier: BSD-2-Clause
/*
 * What no program of ours puts into the descriptor of a umad or issm file, which is a socket: garbage of
 * every length, markers with and without files, descriptors, shut-down ends, a scribbled page.  After
 * each of them two other files exchange a letter.  Needs a host with two ports.
 * Usage: hostile_mads SEED
 */
#include "checklist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/umad.h"

#define MOST_BYTES 70000u
#define MOST_FDS   253		     /* that one message may carry */
#define NAPS	   (WAIT_MS * 2)     /* of half a ms */
#define SHORTEST   (OLD_HEADER + 36) /* that a program may write */

static struct pair others;
static uint8_t bytes[MOST_BYTES];
static uint64_t tid;

static void others_go_on(const char *after)
{
	struct letter l = letter_to(others.server_lid, CLASS_VENDOR, METHOD_GET, 0, ++tid), got;

	l.id = others.client_id;
	l.timeout_ms = WAIT_MS;
	letter_is_sent(others.client, &l);
	got = letter_received(others.server);
	pair_answer(&others, &got);
	letter_free(&got);
	got = letter_received(others.client);
	must(got.status == 0 && (uint32_t)letter_tid(&got) == tid, "after %s", after);
	letter_free(&got);
	letter_free(&l);
}

static int victim_open(void)
{
	int fd = port_file(1);
	struct agent a = agent_of(CLASS_VENDOR);

	a.rmpp = 1;
	port_agent(fd, a);
	return fd;
}

static int put(int fd, const void *data, size_t n, const int *fds, int nfds)
{
	static union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MOST_FDS * sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)data, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds) {
		struct cmsghdr *c = &control.align;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	return sendmsg(fd, &mh, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The daemon has ended the file: whatever was there to read is followed by EIO. */
static bool file_is_ended(int fd)
{
	uint8_t mad[NEW_HEADER + MAD_BYTES];

	for (unsigned nap = 0; nap < NAPS; nap++) {
		if (read(fd, mad, sizeof(mad)) >= 0)
			continue;
		if (errno == EIO)
			return true;
		usleep(500);
	}
	return false;
}

static void bytes_draw(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand();
}

/* ---- attacks ---- */

static void sends_every_length(void)
{
	for (size_t n = 0; n < MOST_BYTES; n += n < 420 ? 1 : 1 + n / 3) {
		int fd = victim_open();

		bytes_draw();
		if (rand() % 2)
			memset(bytes, 0,
			       OLD_HEADER); /* the header is good: the rest goes out as a MAD */
		must(put(fd, bytes, n, NULL, 0) == 0, "%zu bytes: %s", n, strerror(errno));
		must(n >= SHORTEST || file_is_ended(fd), "%zu bytes do not end it", n);
		port_close(fd);
		if (n % 16 == 0)
			others_go_on("garbage");
	}
}

static int memory_file(size_t n, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0,
	     "memfd");
	return fd;
}

/* Ends the file, or not. */
static void marker_is_put(const char *what, struct umad_marker m, const int *fds, int nfds,
			  bool ends)
{
	int fd = victim_open();

	must(put(fd, &m, sizeof(m), fds, nfds) == 0, "%s: %s", what, strerror(errno));
	if (ends)
		must(file_is_ended(fd), "%s: it goes on", what);
	others_go_on(what);
	port_close(fd);
}

static void sends_markers(void)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	const struct umad_marker m = {UMAD_MAGIC, 0, 5000},
				 returned = {UMAD_MAGIC, UMAD_RETURNED, 5000};
	struct umad_marker other = m;
	int good = memory_file(5000, all), shorter = memory_file(4000, all), pair[2],
	    many[MOST_FDS];
	int folder = open("/", O_RDONLY | O_CLOEXEC),
	    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	must(pipe(pair) == 0 && folder >= 0 && zero >= 0, "files");
	marker_is_put("a marker without a file", m, NULL, 0, true);
	marker_is_put("a marker with a good file", m, &good, 1, false);
	marker_is_put("a marker with too short a file", m, &shorter, 1, true);
	marker_is_put("a marker with a pipe", m, &pair[0], 1, true);
	marker_is_put("a marker with a folder", m, &folder, 1, true);
	marker_is_put("a marker with /dev/zero", m, &zero, 1, true);
	for (int i = 0; i < MOST_FDS; i++)
		many[i] = i % 2 ? good : pair[1];
	marker_is_put("a marker with many files", m, many, MOST_FDS, true);
	marker_is_put("something given back, without a file", returned, NULL, 0, true);
	marker_is_put("something given back", returned, &good, 1, false);
	other.id = 77;
	marker_is_put("a marker of nothing", other, NULL, 0, true);
	other = m;
	for (unsigned bit = 13; bit < 64; bit++) {
		other.length = 1ull << bit;
		marker_is_put("a long marker", other, &good, 1, true);
	}
	for (uint64_t n = 0; n < 2 * SHORTEST; n++) {
		int file = memory_file(n, all);

		other.length = n;
		marker_is_put("a short file", other, &file, 1, n < SHORTEST);
		close(file);
	}
	for (size_t i = 0; i < 2; i++)
		close(pair[i]);
	close(good), close(shorter), close(folder), close(zero);
}

/* Given back are bytes, which may look like a marker, or like nothing. */
static void gives_back(void)
{
	struct {
		struct umad_marker marker;
		uint8_t rest[400];
	} m = {.marker = {UMAD_MAGIC, UMAD_RETURNED, 0}};

	for (size_t n = 0; n <= sizeof(m.rest); n += 1 + n / 8) {
		for (unsigned look = 0; look < 3; look++) {
			struct umad_marker inner = {UMAD_MAGIC, look == 1 ? 1 : UMAD_RETURNED,
						    5000};
			int fd = victim_open();

			bytes_draw();
			memcpy(m.rest, bytes, sizeof(m.rest));
			if (look)
				memcpy(m.rest, &inner, sizeof(inner));
			m.marker.length = n + (rand() % 4 == 0);
			must(put(fd, &m, sizeof(m.marker) + n, NULL, 0) == 0, "%s",
			     strerror(errno));
			must(m.marker.length == n || file_is_ended(fd), "%zu bytes: it goes on", n);
			others_go_on("bytes given back");
			port_close(fd);
		}
	}
}

/* Beside a good message they are nobody's. */
static void attaches_files(void)
{
	int fds[MOST_FDS], fd = victim_open();
	struct letter l = letter_to_self(0, 1);

	for (int i = 0; i < MOST_FDS; i++)
		fds[i] = i % 2 ? fd : STDOUT_FILENO;
	memset(bytes, 0, OLD_HEADER);
	memcpy(bytes + OLD_HEADER, l.mad, MAD_BYTES);
	for (int n = 1; n <= MOST_FDS; n += n)
		must(put(fd, bytes, OLD_HEADER + MAD_BYTES, fds, n) == 0, "%s", strerror(errno));
	others_go_on("descriptors");
	letter_free(&l);
	port_close(fd);
}

static void shuts_down(void)
{
	static const int ways[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int fd = port_file(1), error;
		struct letter l = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), 1);

		must(port_send(fd, &l) == 0 && shutdown(fd, ways[i]) == 0, "shutdown");
		for (unsigned n = 0; n < 50; n++) {
			l.mad[15]++;
			error = port_send(fd, &l);
			must(error == 0 || (error == -EIO && ways[i] != SHUT_RD), "write: %d",
			     error);
		}
		others_go_on("shutdown");
		letter_free(&l);
		port_close(fd);
	}
}

/* The page is the daemon's word to the program and no more. */
static void scribbles(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct letter l = letter_to_self(0, 1);
	int fd = port_file(1);
	char line[512];
	void *pages[8];
	size_t n = 0;

	port_agent(fd, agent_of(CLASS_DIRECTED));
	memset(bytes, 0, OLD_HEADER);
	bytes[4 + 4] = 1; /* a time limit of 1 ms */
	memcpy(bytes + OLD_HEADER, l.mad, MAD_BYTES);
	while (maps && fgets(line, sizeof(line), maps) && n < 8)
		if (strstr(line, "softhca-umad-page"))
			pages[n++] = (void *)strtoul(line, NULL, 16);
	fclose(maps);
	must(n == 3, "%zu pages", n);
	/* Which is this file's is not known: in a process of its own it does not matter. */
	for (unsigned round = 0; round < 200; round++) {
		for (size_t i = 0; i < n; i++)
			for (size_t at = 0; at < sizeof(struct umad_page); at++)
				((volatile uint8_t *)pages[i])[at] = (uint8_t)rand();
		bytes[OLD_HEADER + 15] = (uint8_t)round;
		must(put(fd, bytes, OLD_HEADER + MAD_BYTES, NULL, 0) == 0, "%s", strerror(errno));
	}
	letter_free(&l);
}

static void spoils_issm(void)
{
	int fd = open("/dev/infiniband/issm0", O_RDONLY | O_CLOEXEC | O_NONBLOCK), fds[2] = {0, 1};

	must(fd >= 0, "issm: %s", strerror(errno));
	bytes_draw();
	for (size_t n = 1; n < 1000; n += 1 + n / 4)
		must(put(fd, bytes, n, fds, n % 3 ? 2 : 0) == 0, "%zu: %s", n, strerror(errno));
	others_go_on("garbage for issm");
	shutdown(fd, SHUT_RDWR);
	for (unsigned nap = 0; issm_bit_of(1); nap++) {
		must(nap < NAPS, "the IsSM bit");
		usleep(500);
	}
	close(fd);
	others_go_on("the end of issm");
}

int main(int argc, char **argv)
{
	must(argc == 2, "see the head of hostile.c");
	srand((unsigned)atoi(argv[1]));
	alarm(120);
	others = pair_open(0);
	sends_every_length();
	sends_markers();
	gives_back();
	attaches_files();
	shuts_down();
	spoils_issm();
	scribbles();
	return 0;
}
