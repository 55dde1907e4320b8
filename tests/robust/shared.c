// SPDX-License-Identifier: BSD-2-Clause
/*
 * shared DEVICE listen|connect TCP-PORT: the listener registers memory of a file that it has mapped
 * shared.  The connecting side writes into it while the listener, with all its threads, is stopped.
 * Afterwards the memory is still that of the file, and has what was written.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

#define BYTES	    (1u << 20)
#define THREADS	    3
#define PATIENCE_MS 60000
#define NAME	    "shared-memory"

static void *sleeper_thread(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* Has this process mapped the other's file? */
static bool is_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4400];
	bool is = false;

	while (f && !is && fgets(line, sizeof(line), f))
		is = strstr(line, "memfd:" NAME) != NULL;
	if (f)
		fclose(f);
	return is;
}

/* All threads of a process that has got SIGSTOP stop; some may take a moment. */
static void stop_child(pid_t pid)
{
	uint64_t end = pair_now_ms() + PATIENCE_MS;
	char path[64], text[256], state = 0;

	if (kill(pid, SIGSTOP))
		device_die("stopping the listener: %m");
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'T' && pair_now_ms() < end) {
		FILE *f = fopen(path, "r");

		if (!f || !fgets(text, sizeof(text), f) || !strrchr(text, ')'))
			device_die("%s: %m", path);
		state = strrchr(text, ')')[2];
		fclose(f);
	}
	if (state != 'T')
		device_die("the listener does not stop");
}

static int drive_traffic(struct pair *p)
{
	uint64_t end = pair_now_ms() + PATIENCE_MS;
	pid_t target;
	char byte = 0;

	if (recv(p->sock, &target, sizeof(target), MSG_WAITALL) != sizeof(target))
		device_die("no word of the listener");
	memset(p->mem, 's', BYTES);
	do {
		pair_write(p, 0, 0, 0, 64);
		pair_complete(p, "a write");
	} while (!is_mapped() && pair_now_ms() < end);
	if (!is_mapped())
		device_die("the listener's file is never mapped");
	stop_child(target);
	pair_write(p, 0, 0, 0, BYTES);
	pair_complete(p, "a write to a stopped process");
	memset(p->mem, 0, BYTES);
	pair_read(p, 0, 0, 0, BYTES);
	pair_complete(p, "a read from a stopped process");
	kill(target, SIGCONT);
	if (p->mem[0] != 's' || p->mem[BYTES - 1] != 's')
		device_die("the read returns something else");
	printf("written and read while the process was stopped\n");
	return send(p->sock, &byte, 1, MSG_NOSIGNAL) != 1;
}

/* Instead of the private memory that comes with the pair. */
static int memory_replace(struct pair *p)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 2 * BYTES) || ibv_dereg_mr(p->mr))
		device_die("memory: %m");
	munmap(p->mem, p->bytes);
	p->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	if (p->mem == MAP_FAILED)
		device_die("mapping the file: %m");
	p->mr = ibv_reg_mr(p->pd, p->mem, BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!p->mr)
		device_die("ibv_reg_mr: %m");
	return fd;
}

static int wait_and_look(struct pair *p, int fd)
{
	pid_t self = getpid();
	uint8_t in_file = 0;
	char byte;

	if (send(p->sock, &self, sizeof(self), MSG_NOSIGNAL) != sizeof(self) ||
	    recv(p->sock, &byte, 1, MSG_WAITALL) != 1)
		return 1;
	for (uint32_t i = 0; i < BYTES; i++)
		if (p->mem[i] != 's')
			device_die("byte %u was not written", i);
	p->mem[BYTES - 1] = 'f';
	if (pread(fd, &in_file, 1, 4096 + BYTES - 1) != 1 || in_file != 'f')
		device_die("the memory is that of the file no more");
	return 0;
}

int main(int argc, char **argv)
{
	struct device_connection how = device_default_connection;
	bool listens = argc > 2 && !strcmp(argv[2], "listen");
	struct pair p;
	pthread_t t;
	int fd = -1, ret;

	if (argc != 4) {
		fputs("usage: shared DEVICE listen|connect TCP-PORT\n", stderr);
		return 2;
	}
	how.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	pair_open(&p, argv[1], &how, BYTES);
	for (unsigned i = 0; listens && i < THREADS; i++)
		if (pthread_create(&t, NULL, sleeper_thread, NULL))
			device_die("no thread");
	if (listens)
		fd = memory_replace(&p);
	pair_meet(&p, &how, listens, pair_number(argv[3]));
	ret = listens ? wait_and_look(&p, fd) : drive_traffic(&p);
	if (listens) {
		/* the file's memory is not the pair's to free */
		if (ibv_dereg_mr(p.mr))
			device_die("ibv_dereg_mr: %m");
		return ret;
	}
	pair_close(&p);
	return ret;
}
