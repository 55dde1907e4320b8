// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pages that hold more than a memory region: registering and deregistering it must not lose what is
 * stored beside it meanwhile.
 *
 *	neighbours DEVICE thread                        by another thread of the program
 *	neighbours DEVICE listen|connect TCP-PORT       by a peer, through a region of its own
 *
 *	page   0           1           2
 *	       |      AAAAAA AAA    BBB BBBBBBBBBB ...
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

#define PAGE   4096u
#define BYTES  (16u << 20) /* long enough to copy that a store falls into it */
#define ROUNDS 40u
#define REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static uint8_t *map_pages(void)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		device_die("mmap: %m");
	memset(at, 0, BYTES);
	return at;
}

static struct ibv_mr *reg_between(struct ibv_pd *pd, uint8_t *from, const uint8_t *to)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, from, (size_t)(to - from), REMOTE);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr;
}

/* ---- a thread that stores ---- */

struct storing {
	_Atomic uint64_t *cell;
	_Atomic bool started, stop;
	uint64_t lost;
};

static void *store_loop(void *arg)
{
	struct storing *s = arg;
	uint64_t value = 0;

	while (!atomic_load(&s->stop)) {
		/* The next value only if the last one is still there. */
		if (!atomic_compare_exchange_strong(s->cell, &value, value + 1))
			s->lost++;
		else
			value++;
		atomic_store(&s->started, true);
	}
	return NULL;
}

static int beside_thread(struct pair *p)
{
	uint8_t *pages = map_pages();
	uint64_t lost = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct storing s = {.cell = (_Atomic uint64_t *)(void *)pages};
		struct ibv_mr *mr = reg_between(p->pd, pages + PAGE / 2, pages + BYTES);
		pthread_t thread;

		atomic_store(s.cell, 0);
		if (pthread_create(&thread, NULL, store_loop, &s))
			device_die("no thread");
		while (!atomic_load(&s.started))
			;
		if (ibv_dereg_mr(mr))
			device_die("ibv_dereg_mr: %m");
		mr = reg_between(p->pd, pages + PAGE / 2, pages + BYTES);
		atomic_store(&s.stop, true);
		pthread_join(thread, NULL);
		if (ibv_dereg_mr(mr))
			device_die("ibv_dereg_mr: %m");
		lost += s.lost;
	}
	if (lost)
		printf("wrong: %lu stores lost\n", (unsigned long)lost);
	else
		printf("no store of %u threads lost\n", ROUNDS);
	return lost > 0;
}

/* ---- a peer that writes ---- */

struct place {
	uint64_t addr;
	uint32_t rkey;
};

static int beside_peer(struct pair *p)
{
	uint8_t *pages = map_pages();
	struct ibv_mr *b = reg_between(p->pd, pages + PAGE + PAGE / 2, pages + BYTES);
	struct ibv_mr *a = reg_between(p->pd, pages + PAGE / 2, pages + PAGE + PAGE / 4);
	struct place place = {.addr = (uintptr_t)(pages + PAGE), .rkey = a->rkey};
	char verdict = 0;

	if (send(p->sock, &place, sizeof(place), MSG_NOSIGNAL) != sizeof(place))
		device_die("send: %m");
	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (ibv_dereg_mr(b))
			device_die("ibv_dereg_mr: %m");
		b = reg_between(p->pd, pages + PAGE + PAGE / 2, pages + BYTES);
		/* The peer gives up if nothing here answers it for half a second. */
		usleep(5000);
	}
	if (shutdown(p->sock, SHUT_WR) || recv(p->sock, &verdict, 1, 0) != 1)
		verdict = 0;
	ibv_dereg_mr(a);
	ibv_dereg_mr(b);
	return verdict != 1;
}

static int write_and_look(struct pair *p)
{
	uint64_t *here = (void *)p->mem, *back = here + 1;
	struct place place;
	char byte;

	if (recv(p->sock, &place, sizeof(place), MSG_WAITALL) != sizeof(place))
		device_die("recv: %m");
	p->peer_addr = place.addr;
	p->peer_rkey = place.rkey;
	/* Until the other has done all its rounds. */
	for (*here = 1; recv(p->sock, &byte, 1, MSG_DONTWAIT) != 0; ++*here) {
		pair_write(p, 0, 0, 0, sizeof(*here));
		pair_complete(p, "a write");
		for (int again = 0; again < 2; again++) {
			pair_read(p, 0, sizeof(*here), 0, sizeof(*back));
			pair_complete(p, "a read");
			if (*back == *here)
				continue;
			printf("wrong: wrote %lu, then read %lu\n", (unsigned long)*here,
			       (unsigned long)*back);
			return 1;
		}
	}
	printf("%lu writes, each read twice\n", (unsigned long)*here);
	byte = 1;
	return send(p->sock, &byte, 1, MSG_NOSIGNAL) != 1;
}

int main(int argc, char **argv)
{
	struct pair p;
	int status;

	if (argc != 3 && argc != 4)
		device_die("usage: neighbours DEVICE thread | listen TCP-PORT | connect TCP-PORT");
	pair_open(&p, argv[1], &device_default_connection, PAGE);
	if (argc == 3) {
		status = beside_thread(&p);
	} else {
		bool listens = !strcmp(argv[2], "listen");

		pair_meet(&p, &device_default_connection, listens, pair_number(argv[3]));
		status = listens ? beside_peer(&p) : write_and_look(&p);
	}
	pair_close(&p);
	return status;
}
