// SPDX-License-Identifier: BSD-2-Clause
/*
 * What one process lays open and another maps:
 *
 *     parent, slot 0: exposure and a file     child, slot 1: looks and copies
 *
 * The child finds keys and responders by number, never a half-written key; what is taken back is
 * not found any more; a process that exposes nothing is no error.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "exposure/expose.h"
#include "test_slots.h"

#define KEY    0x12345600u
#define BYTES  8192u
#define OFFSET 4096u /* of the memory in its file */

static struct slot *slots_new(void)
{
	struct slot *s = test_slots_map();

	for (uint32_t i = 0; i < 2; i++) {
		s[i].pid = getpid();
		atomic_store(&s[i].alive, i + 1);
	}
	return s;
}

static struct key_block key_of(uint32_t key, uint64_t offset, uint64_t length)
{
	return (struct key_block){
		.key = key,
		.pdn = 3,
		.access = 7,
		.iova = 0x10000,
		.length = length,
		.place = {.way = KEY_MAPPED, .offset = offset},
	};
}

static int in_child(int (*fn)(struct slot *), struct slot *slots)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		_exit(fn(slots));
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Nothing is mapped before somebody has asked for it. */
static uint8_t *mapped_at(struct remote *f, const struct key_block *k, uint64_t at, uint64_t len)
{
	CHECK(!segment_at(&f->segments, k->place.segment, k->place.offset + at, len));
	CHECK(segment_view_map(&f->segments, k->place.segment, k->place.offset + at));
	return segment_at(&f->segments, k->place.segment, k->place.offset + at, len);
}

static int child_writes(struct slot *slots)
{
	struct remote *f = remote_open(slots, 0, 1);
	struct key_block k;
	uint8_t *at;

	CHECK(f);
	CHECK(remote_key(f, KEY, &k) && k.pdn == 3 && k.iova == 0x10000 && k.length == BYTES);
	CHECK(!remote_key(f, KEY + 1, &k) && !remote_key(f, KEY + 0x100, &k));
	at = mapped_at(f, &k, 100, 1000);
	CHECK(at);
	memset(at, 0x5a, 1000);
	remote_close(f);
	return 0;
}

static void test_write(void)
{
	struct slot *slots = slots_new();
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct expose e;
	struct key_block k = key_of(KEY, OFFSET, BYTES);
	uint8_t *mine;

	CHECK(!remote_open(slots, 0, 1));
	CHECK(!expose_open(&e, slots, 0, true));
	CHECK(fd >= 0 && !ftruncate(fd, OFFSET + BYTES));
	mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, OFFSET);
	CHECK(mine != MAP_FAILED);
	CHECK(!segment_table_add(&e.segments, hidden_keep(fd), OFFSET + BYTES, &k.place.segment));
	CHECK(expose_key(&e, &k));
	/* the same place, another key: the first stays */
	k = key_of(KEY + (EXPOSE_BLOCKS << 8), 0, 1);
	CHECK(!expose_key(&e, &k));
	CHECK(in_child(child_writes, slots) == 0);
	CHECK(mine[99] == 0 && mine[100] == 0x5a && mine[1099] == 0x5a && mine[1100] == 0);
	expose_key_end(&e, KEY + (EXPOSE_BLOCKS << 8)); /* not its own: no effect */
	CHECK(in_child(child_writes, slots) == 0);
	expose_close(&e);
	CHECK(!remote_open(slots, 0, 1));
	munmap(mine, BYTES);
}

/* ---- counters ---- */

static unsigned shards_held(const struct slot *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SLOT_REMOTE_SHARDS; i++)
		n += !!atomic_load(&s->remote_shard[i]);
	return n;
}

static bool are_other_shards(unsigned a, unsigned b)
{
	return a >= SLOT_THREAD_SHARDS && a < SLOT_SHARDS && b >= SLOT_THREAD_SHARDS &&
	       b < SLOT_SHARDS && a != b;
}

/* Each thread that counts for the peer is alone in its shard, as long as there are some; those of
 * processes that have ended are taken again. */
static int child_counts(struct slot *slots)
{
	struct remote *f = remote_open(slots, 0, 1), *next;
	unsigned first, second;

	CHECK(f && !shards_held(&slots[0]));
	first = remote_shard(f, 3);
	second = remote_shard(f, 4);
	CHECK(are_other_shards(first, second));
	CHECK(remote_shard(f, 3) == first && remote_shard(f, 4) == second);
	/* one that shares its own counters shares these */
	CHECK(remote_shard(f, 0) == 0 && shards_held(&slots[0]) == 2);
	remote_close(f);
	CHECK(!shards_held(&slots[0]));

	for (unsigned i = 0; i < SLOT_REMOTE_SHARDS; i++)
		atomic_store(&slots[0].remote_shard[i], 1); /* slot 0, of a generation before */
	f = remote_open(slots, 0, 1);
	CHECK(f && remote_shard(f, 1) >= SLOT_THREAD_SHARDS);
	/* Our slot has its next process. */
	atomic_fetch_add(&slots[1].alive, 1);
	next = remote_open(slots, 0, 1);
	for (unsigned own = 1; own < SLOT_THREAD_SHARDS; own++)
		CHECK(next && remote_shard(next, own) >= SLOT_THREAD_SHARDS);
	/* The first one's end takes none of them away. */
	remote_close(f);
	CHECK(shards_held(&slots[0]) == SLOT_REMOTE_SHARDS);
	remote_close(next);
	return 0;
}

static void test_shards(void)
{
	struct slot *slots = slots_new();
	struct expose e;

	CHECK(!expose_open(&e, slots, 0, true));
	CHECK(in_child(child_counts, slots) == 0);
	expose_close(&e);
}

/* ---- threads that register and deregister keys of one block ---- */

#define RACING_ROUNDS 1000000u

static struct {
	struct expose e;
	_Atomic(uint32_t) ended;
} racing;

static void *registers_loop(void *arg)
{
	uint32_t key = KEY + ((uint32_t)(uintptr_t)arg * EXPOSE_BLOCKS << 8);
	struct key_block k = key_of(key, 0, (uint64_t)key);
	const struct key_block *b = &racing.e.mem->keys[(key >> 8) % EXPOSE_BLOCKS];

	k.pdn = k.access = key;
	k.iova = key;
	for (unsigned i = 0; i < RACING_ROUNDS; i++)
		if (expose_key(&racing.e, &k)) {
			/* Until it ends, nobody else's takes its place. */
			CHECK(b->key == key && b->pdn == key && b->length == key);
			expose_key_end(&racing.e, key);
		}
	atomic_fetch_add(&racing.ended, 1);
	return NULL;
}

/* Whatever key is found, all of it is that key's. */
static void test_threads(void)
{
	struct slot *slots = slots_new();
	pthread_t t[2];
	struct remote *f;

	CHECK(!expose_open(&racing.e, slots, 0, true));
	f = remote_open(slots, 0, 1);
	CHECK(f);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, registers_loop, (void *)i));
	while (atomic_load(&racing.ended) < 2)
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t key = KEY + (i * EXPOSE_BLOCKS << 8);
			struct key_block k;

			if (!remote_key(f, key, &k))
				continue;
			CHECK(k.pdn == key && k.access == key && k.iova == key && k.length == key);
		}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < EXPOSE_BLOCKS; i++)
		CHECK(!racing.e.mem->keys[i].key && !(racing.e.mem->keys[i].seq & 1));
	remote_close(f);
	expose_close(&racing.e);
}

/* ---- for people ---- */

static uint64_t bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long n = 0;

	CHECK(f && fscanf(f, "rchar: %lu", &n) == 1);
	fclose(f);
	return n;
}

/* The copy has what stands there, and reads no more than that has pages. */
static void test_snapshot(void)
{
	struct slot *slots = slots_new();
	struct expose_mem *copy = calloc(1, sizeof(*copy));
	struct expose e;
	struct key_block k;
	uint64_t before;
	int fd;

	CHECK(!expose_open(&e, slots, 0, true));
	k = key_of(KEY, 0, BYTES);
	CHECK(expose_key(&e, &k));
	before = bytes_read();
	fd = expose_snapshot_open(&slots[0]);
	CHECK(fd >= 0 && copy && expose_snapshot(fd, copy));
	CHECK(bytes_read() - before < sizeof(*copy) / 16);
	CHECK(!memcmp((const uint8_t *)copy, (const uint8_t *)e.mem, sizeof(*copy)));
	close(fd);
	free(copy);
	expose_close(&e);
	CHECK(expose_snapshot_open(&slots[0]) < 0);
}

/* A key whose range lies outside any file is never handed on, whatever its owner wrote. */
static void test_nonsense(void)
{
	struct slot *slots = slots_new();
	struct expose e;
	struct remote *f;
	struct key_block k;

	CHECK(!expose_open(&e, slots, 0, true));
	k = key_of(KEY, SEGMENT_MAX_BYTES - 10, 11);
	CHECK(expose_key(&e, &k));
	f = remote_open(slots, 0, 1);
	CHECK(f && !remote_key(f, KEY, &k));
	remote_close(f);
	expose_close(&e);
}

/* What has the peer's number may look like its memory: the same size, the same seals. */
static void test_stranger(void)
{
	struct slot *slots = slots_new();
	struct expose e;
	struct stat st;
	int other;

	CHECK(!expose_open(&e, slots, 0, true));
	other = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(other >= 0 && !fstat(e.file.fd, &st) && !ftruncate(other, st.st_size));
	CHECK(!fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	CHECK(dup2(other, e.file.fd) == e.file.fd);
	CHECK(!remote_open(slots, 0, 1));
	expose_close(&e);
	CHECK(fcntl(other, F_GETFD) >= 0);
	close(other);
}

/* Who maps what a process lays open claims slots there.  If that may only be read it is of no use,
 * and the first claim would end the peer. */
static int child_claims(struct slot *slots)
{
	struct remote *f = remote_open(slots, 0, 1);
	struct access a;

	return f && access_claim(&f->mem->access, &a) ? 1 : 0;
}

static void test_read_only(void)
{
	struct slot *slots = slots_new();
	struct expose e;
	int other;

	CHECK(!expose_open(&e, slots, 0, true));
	other = memfd_create("read-only", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(other >= 0 && !ftruncate(other, sizeof(*e.mem)));
	CHECK(pwrite(other, &e.mem->alive, sizeof(e.mem->alive),
		     offsetof(struct expose_mem, alive)) == sizeof(e.mem->alive));
	CHECK(!fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	CHECK(dup2(other, e.file.fd) == e.file.fd);
	atomic_store(&slots[0].expose_id, hidden_id(other));
	CHECK(in_child(child_claims, slots) == 0);
	expose_close(&e);
	close(other);
}

/* A number that collides has no block until the other has gone; a peer finds the word there. */
static void test_block(void)
{
	struct slot *slots = slots_new();
	struct expose e;
	struct qp_block *b;
	struct remote *f;
	uint64_t word;

	CHECK(!expose_open(&e, slots, 0, true));
	b = expose_qp(&e, 0x400, IB_QPT_RC);
	CHECK(b && !expose_qp(&e, 0x400 + EXPOSE_BLOCKS, IB_QPT_RC));
	f = remote_open(slots, 0, 1);
	CHECK(f && qp_word_open(&b->word, qp_word_load(&b->word), 7, 1));
	word = qp_word_load(&remote_qp(f, 0x400)->word);
	CHECK(qp_word_is_open(word) && qp_word_epsn(word) == 7);
	CHECK(qp_word_commit(&remote_qp(f, 0x400)->word, word, 2, 1));
	CHECK(qp_word_epsn(qp_word_close(&b->word)) == 9);
	remote_close(f);
	expose_qp_end(b);
	CHECK(expose_qp(&e, 0x400 + EXPOSE_BLOCKS, IB_QPT_RC) == b);
	expose_close(&e);
}

static struct expose shared;
static _Atomic(bool) over;

static void *changer_loop(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; !atomic_load(&over); i++) {
		struct key_block k = key_of(KEY, i % 1000 * 4096, i % 1000 * 4096 + 4096);

		CHECK(expose_key(&shared, &k));
		expose_key_end(&shared, KEY);
	}
	return NULL;
}

/* Offset and length belong together in every copy that a reader gets. */
static void test_consistent(void)
{
	struct slot *slots = slots_new();
	struct remote *f;
	pthread_t t;

	CHECK(!expose_open(&shared, slots, 0, true));
	f = remote_open(slots, 0, 1);
	CHECK(f && !pthread_create(&t, NULL, changer_loop, NULL));
	for (unsigned i = 0, got = 0; got < 20000 && i < 50000000; i++) {
		struct key_block k;

		if (remote_key(f, KEY, &k)) {
			CHECK(k.length == k.place.offset + 4096);
			got++;
		}
	}
	atomic_store(&over, true);
	pthread_join(t, NULL);
	remote_close(f);
	expose_close(&shared);
}

/* In a PID namespace of its own, if the system gives it one. */
static int child_elsewhere(struct slot *slots)
{
	struct remote *f = remote_open(slots, 0, 1);
	pid_t pid;
	int status;

	CHECK(f);
	remote_close(f);
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
		fprintf(stderr, "CLONE_NEWPID: %m: not looked at\n");
		return 0;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(remote_open(slots, 0, 1) != NULL);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status != 0;
}

/* Thread numbers of the one mean nothing to the other. */
static void test_elsewhere(void)
{
	struct slot *slots = slots_new();
	struct expose e;

	CHECK(!expose_open(&e, slots, 0, true));
	CHECK(!in_child(child_elsewhere, slots));
	expose_close(&e);
}

int main(void)
{
	test_write();
	test_shards();
	test_threads();
	test_snapshot();
	test_nonsense();
	test_stranger();
	test_read_only();
	test_block();
	test_consistent();
	test_elsewhere();
	return 0;
}
