// SPDX-License-Identifier: BSD-2-Clause
/* What programs and allocators do with pages that are registered, or were a moment ago. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11, NEW = 0x22, PEER = 0x33 };

/* Registered, written by the peer, and given back. */
static uint8_t *pages_used(struct host *h, size_t bytes)
{
	uint8_t *at = host_map(bytes, OLD);
	struct ibv_mr *mr = host_reg(h, at, bytes);

	host_exchange(h, at, mr, bytes, PEER);
	host_dereg(mr);
	host_want_all(at, bytes, PEER, "deregistered memory");
	return at;
}

static void stays_private(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want_private(at, HOST_BYTES, "registered memory");
	host_dereg(mr);
}

/* ---- mremap, realloc ---- */

static uint8_t *grown_pages(uint8_t *at, size_t from, size_t to)
{
	uint8_t *moved = mremap(at, from, to, MREMAP_MAYMOVE);

	if (moved == MAP_FAILED)
		device_die("mremap: %m");
	return moved;
}

/* Memory that grows must not grow into another region's. */
static void grows_region(struct host *h)
{
	size_t half = HOST_BYTES / 2;
	uint8_t *a = host_map(half, OLD), *b = host_map(half, OLD);
	struct ibv_mr *mr_a = host_reg(h, a, half), *mr_b = host_reg(h, b, half);

	host_exchange(h, a, mr_a, half, PEER);
	host_exchange(h, b, mr_b, half, PEER);
	host_dereg(mr_a);
	a = grown_pages(a, half, 2 * half);
	host_want_all(a, half, PEER, "what has grown");
	host_want_all(a + half, half, 0, "what is new");
	memset(a, NEW, 2 * half);
	host_want_all(b, half, PEER, "the region behind it");
	host_exchange(h, b, mr_b, half, OLD);
	host_want_all(a, 2 * half, NEW, "what has grown, after the peer's write elsewhere");
	host_dereg(mr_b);
}

/* What the program moves away while it is registered stays what it is; the peer may be told so. */
static void moves_registered(struct host *h)
{
	size_t half = HOST_BYTES / 2;
	uint8_t *at = host_map(half, OLD), *moved;
	struct ibv_mr *mr = host_reg(h, at, half);
	int expected = PEER;

	host_exchange(h, at, mr, half, PEER);
	moved = mremap(at, half, 2 * half, MREMAP_MAYMOVE | MREMAP_FIXED, host_map(2 * half, 0));
	host_want(moved != MAP_FAILED, "mremap: %m");
	host_want_all(moved, half, PEER, "what has moved");
	host_want_all(moved + half, half, 0, "what is new behind it");
	if (peer_write(&h->peer, at, mr->rkey, half, NEW) == IBV_WC_SUCCESS)
		expected = NEW;
	host_want_all(moved, half, expected, "what has moved, after a write");
	host_want_all(moved + half, half, 0, "what is new behind it, after a write");
	host_dereg(mr);
	memset(moved, OLD, 2 * half);
	host_want_all(moved, 2 * half, OLD, "what has moved, deregistered");
}

static void allocator_case(struct host *h)
{
	size_t bytes = HOST_BYTES / 2;

	for (int i = 0; i < 12; i++) {
		uint8_t *at = aligned_alloc(HOST_PAGE, bytes);
		struct ibv_mr *mr;

		host_want(at, "no memory");
		memset(at, OLD, bytes);
		mr = host_reg(h, at, bytes);
		host_exchange(h, at, mr, bytes, PEER);
		host_dereg(mr);
		at = realloc(at, 4 * bytes);
		host_want(at, "no more memory");
		host_want_all(at, bytes, PEER, "what realloc keeps");
		memset(at, NEW, 4 * bytes);
		host_want_all(at, 4 * bytes, NEW, "what realloc gives");
		free(at);
		malloc_trim(0);
		at = calloc(1, 4 * bytes);
		host_want(at, "no more memory");
		host_want_all(at, 4 * bytes, 0, "what calloc gives");
		free(at);
	}
}

/* ---- madvise ---- */

static void want_advice(void *at, int advice, const char *name)
{
	host_want(!madvise(at, HOST_BYTES, advice), "madvise(%s): %m", name);
}

static void forgets_pages(struct host *h)
{
	uint8_t *at = pages_used(h, HOST_BYTES);

	want_advice(at, MADV_DONTNEED, "MADV_DONTNEED");
	host_want_all(at, HOST_BYTES, 0, "memory that was given up");
}

static void forgets_registered(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	want_advice(at, MADV_DONTNEED, "MADV_DONTNEED");
	host_want_all(at, HOST_BYTES, 0, "memory that was given up");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
	host_want_all(at, HOST_BYTES, NEW, "memory that was written again");
}

static void frees_pages(struct host *h)
{
	uint8_t *at = pages_used(h, HOST_BYTES);

	want_advice(at, MADV_FREE, "MADV_FREE");
	host_want(side_count(at, HOST_BYTES, 0) + side_count(at, HOST_BYTES, PEER) == HOST_BYTES,
		  "freed memory holds what was never in it");
	memset(at, NEW, HOST_BYTES);
	host_want_all(at, HOST_BYTES, NEW, "freed memory, written again");
}

static void frees_registered(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	want_advice(at, MADV_FREE, "MADV_FREE");
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_dereg(mr);
	host_want_all(at, HOST_BYTES, PEER, "memory that was written after it was freed");
}

/* A child sees zeros, and nothing of it comes back. */
static void wipes_page(uint8_t *at)
{
	int status;
	pid_t child;

	want_advice(at, MADV_WIPEONFORK, "MADV_WIPEONFORK");
	child = fork();
	if (!child) {
		bool zeros = !side_not(at, HOST_BYTES, 0);

		memset(at, OLD, HOST_BYTES);
		_exit(zeros ? 0 : 1);
	}
	host_want(child > 0 && waitpid(child, &status, 0) == child && !status,
		  "the child does not see zeros");
	want_advice(at, MADV_KEEPONFORK, "MADV_KEEPONFORK");
}

static void wiped_registered(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	wipes_page(at);
	host_want_all(at, HOST_BYTES, PEER, "the parent's memory");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
}

static void wiped_in_child(struct host *h)
{
	uint8_t *at = pages_used(h, HOST_BYTES);

	wipes_page(at);
	host_want_all(at, HOST_BYTES, PEER, "the parent's memory");
}

/* ---- mprotect ---- */

/* A write that is refused changes nothing; one that is not is seen whole. */
static void protects_pages(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	static const int rights[] = {PROT_READ, PROT_NONE};

	for (int i = 0; i < 2; i++) {
		int value = OLD;

		host_exchange(h, at, mr, HOST_BYTES, OLD);
		host_want(!mprotect(at, HOST_BYTES, rights[i]), "mprotect: %m");
		if (peer_write(&h->peer, at, mr->rkey, HOST_BYTES, PEER) == IBV_WC_SUCCESS)
			value = PEER;
		host_want(!mprotect(at, HOST_BYTES, PROT_READ | PROT_WRITE), "mprotect: %m");
		host_want_all(at, HOST_BYTES, value, "protected memory");
		peer_connect(&h->peer);
		host_exchange(h, at, mr, HOST_BYTES, NEW);
	}
	host_dereg(mr);
}

/* Half of the pages are not there; the rest still belongs to nobody else. */
#define HALF_TRIES 20

/* False: some thread of this process has mapped something else in the place meanwhile. */
static bool half_is_unmapped(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	size_t half = HOST_BYTES / 2;
	uint8_t *other;

	host_exchange(h, at, mr, HOST_BYTES, OLD);
	host_want(!munmap(at + half, half), "munmap: %m");
	host_exchange(h, at, mr, half, PEER);
	other = mmap(at + half, half, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (other == MAP_FAILED && errno == EEXIST) {
		host_dereg(mr);
		return false;
	}
	host_want(other == at + half, "nothing can be mapped in its place: %m");
	host_want_all(other, half, 0, "what was mapped in its place");
	host_dereg(mr);
	host_want_all(at, half, PEER, "the half that stayed");
	host_want_all(other, half, 0, "what was mapped in its place, in the end");
	host_want_private(at, HOST_BYTES, "both halves");
	return true;
}

static void unmapped_half(struct host *h)
{
	int tries = 0;

	while (!half_is_unmapped(h))
		host_want(++tries < HALF_TRIES, "its place is taken each time");
}

/* ---- a file's memory makes room ---- */

static uint8_t *file_map(int *fd)
{
	uint8_t *at;

	*fd = memfd_create("host", MFD_CLOEXEC);
	host_want(*fd >= 0 && !ftruncate(*fd, HOST_BYTES), "a file: %m");
	at = mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	host_want(at != MAP_FAILED, "mapping it: %m");
	memset(at, OLD, HOST_BYTES);
	return at;
}

static void want_file(int fd, int value)
{
	uint8_t *again = mmap(NULL, HOST_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	host_want(again != MAP_FAILED, "mapping the file again: %m");
	host_want_all(again, HOST_BYTES, value, "the file");
	munmap(again, HOST_BYTES);
}

/* The region is what lies at its addresses, for all alike, and the file is as it was left. */
static void file_replaced(struct host *h)
{
	int fd;
	uint8_t *at = file_map(&fd), *other;
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	other = mmap(at, HOST_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	host_want(other == at, "other memory in its place: %m");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_messages(h, at, mr);
	want_file(fd, PEER);
	host_dereg(mr);
	close(fd);
}

/* Of memory that has gone, nothing is reached, and the rest as before. */
static void want_gone(struct host *h, uint8_t *at, const struct ibv_mr *mr, int fd)
{
	size_t half = HOST_BYTES / 2;

	host_want(peer_write(&h->peer, at + half, mr->rkey, half, NEW) != IBV_WC_SUCCESS,
		  "what was unmapped can be written");
	want_file(fd, PEER);
	peer_connect(&h->peer);
}

static void file_unmapped_half(struct host *h)
{
	size_t half = HOST_BYTES / 2;
	int fd;
	uint8_t *at = file_map(&fd);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want(!munmap(at + half, half), "munmap: %m");
	want_gone(h, at, mr, fd);
	host_exchange(h, at, mr, half, NEW);
	host_dereg(mr);
	munmap(at, half);
	close(fd);
}

static void file_shrunk(struct host *h)
{
	int fd;
	uint8_t *at = file_map(&fd);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want(mremap(at, HOST_BYTES, HOST_BYTES / 2, 0) == at, "mremap: %m");
	want_gone(h, at, mr, fd);
	host_dereg(mr);
	munmap(at, HOST_BYTES / 2);
	close(fd);
}

static void file_moved(struct host *h)
{
	int fd;
	uint8_t *at = file_map(&fd), *to = host_map(HOST_BYTES, 0);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want(mremap(at, HOST_BYTES, HOST_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to,
		  "mremap: %m");
	want_gone(h, at, mr, fd);
	host_dereg(mr);
	munmap(to, HOST_BYTES);
	close(fd);
}

#define BACK_NAP_US 20000u
#define BACK_NAPS   3000

static bool peer_maps(const struct host *h, const char *file)
{
	char path[64], line[512];
	bool maps = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)h->peer.pid);
	f = fopen(path, "re");
	host_want(f, "%s: %m", path);
	while (!maps && fgets(line, sizeof(line), f))
		maps = strstr(line, file);
	fclose(f);
	return maps;
}

/* Once the program has the file no more its memory is free, though a peer had mapped it and has
 * nothing else to do with us. */
static void file_given_back(struct host *h)
{
	int fd, naps = 0;
	uint8_t *at = file_map(&fd);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_dereg(mr);
	host_want(!munmap(at, HOST_BYTES) && !close(fd), "its end: %m");
	while (peer_maps(h, "/memfd:host")) {
		host_want(++naps < BACK_NAPS, "the peer keeps it");
		usleep(BACK_NAP_US);
	}
}

/* ---- two regions with the same pages ---- */

#define SECOND_ROUNDS 100

/* The second one begins and ends all the time, and takes nothing of the first with it. */
static void written_meanwhile(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *first = host_reg(h, at, HOST_BYTES);
	struct peer_answer a;

	peer_count(&h->peer, at, first->rkey);
	for (int i = 0; i < SECOND_ROUNDS; i++)
		host_dereg(host_reg(h, at, HOST_BYTES));
	a = peer_rest(&h->peer);
	host_want(!a.status, "the peer's request fails: %u", a.status);
	host_want(!a.wrong, "%lu of the peer's %lu WRITEs are lost", (unsigned long)a.wrong,
		  (unsigned long)a.done);
	host_dereg(first);
}

/* ---- a region over others ---- */

/* A region over two others stays within reach when these end. */
static void over_two(struct host *h)
{
	size_t half = HOST_BYTES / 2;
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *low = host_reg(h, at, half), *high = host_reg(h, at + half, half), *both;

	host_exchange(h, at, low, half, PEER);
	host_exchange(h, at + half, high, half, PEER);
	both = host_reg(h, at, HOST_BYTES);
	host_exchange(h, at, both, HOST_BYTES, NEW);
	host_dereg(low);
	host_dereg(high);
	host_want_all(at, HOST_BYTES, NEW, "what two regions have left");
	host_exchange(h, at, both, HOST_BYTES, PEER);
	host_dereg(both);
	host_want_all(at, HOST_BYTES, PEER, "what all have left");
}

const struct host_case page_cases[] = {
	{"memory stays private", stays_private, NULL},
	{"mremap", grows_region, NULL},
	{"mremap while registered", moves_registered, NULL},
	{"realloc and calloc", allocator_case, NULL},
	{"MADV_DONTNEED", forgets_pages, NULL},
	{"MADV_DONTNEED while registered", forgets_registered, NULL},
	{"MADV_FREE", frees_pages, NULL},
	{"MADV_FREE while registered", frees_registered, NULL},
	{"MADV_WIPEONFORK", wiped_in_child, NULL},
	{"MADV_WIPEONFORK while registered", wiped_registered, NULL},
	{"mprotect", protects_pages, NULL},
	{"munmap of a half", unmapped_half, NULL},
	{"a file's memory replaced", file_replaced, NULL},
	{"a file's memory unmapped by half", file_unmapped_half, NULL},
	{"a file's memory shrunk", file_shrunk, NULL},
	{"a file's memory moved", file_moved, NULL},
	{"a file's memory given back", file_given_back, NULL},
	{"written while a second region begins and ends", written_meanwhile, NULL},
	{"a region over two", over_two, NULL},
	{NULL, NULL, NULL},
};
