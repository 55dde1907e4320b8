// SPDX-License-Identifier: BSD-2-Clause
/*
 * A list of requests into a peer's memory that the peer revokes in the midst of it: what was
 * executed is not executed again.  And what a requester remembers of a key.
 *
 * The memory that the requests name is the peer's exposure itself, so that one of them can do to
 * its own slot what a revocation does.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/bypass/remote_memory.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "check.h"
#include "exposure/expose.h"
#include "test_life.h"

#define KEY 0x1234u

static struct remote peer;
static struct key_memo memo;

static void peer_up(void)
{
	size_t bytes = align_up(sizeof(struct expose_mem), 4096);
	int fd = memfd_create("exposure", MFD_CLOEXEC);
	static struct segment_table own;
	struct key_block *k;
	struct segment_ref ref;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	peer.mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(peer.mem != MAP_FAILED);
	segment_table_open(&own, peer.mem->segments);
	CHECK(!segment_table_add(&own, hidden_keep(fd), bytes, &ref));
	k = &peer.mem->keys[(KEY >> 8) % EXPOSE_BLOCKS];
	*k = (struct key_block){.key = KEY,
				.access = IB_ACCESS_REMOTE_WRITE,
				.length = bytes,
				.place = {.way = KEY_MAPPED, .segment = ref}};
	segment_view_open(&peer.segments, peer.mem->segments, getpid());
	for (uint64_t at = 0; at < bytes; at += SEGMENT_REACH)
		CHECK(segment_view_map(&peer.segments, ref, at));
	peer.number = 1;
	peer.reach.table = &peer.mem->access;
	peer.reach.alive = &peer.mem->alive;
}

/* By its address, which is the offset of the file. */
static struct remote_range range_of(const void *word)
{
	return (struct remote_range){KEY, (uint64_t)((const char *)word - (const char *)peer.mem),
				     sizeof(uint64_t)};
}

/* NULL, or why it did not come so far. */
static const char *test_revoked_midway(struct bypass_peer at)
{
	uint64_t *word;
	_Atomic(uint64_t) *revocations;
	uint64_t other = 1;
	struct run local[4];
	struct remote_range ranges[4];
	struct remote_move m = {.right = IB_ACCESS_REMOTE_WRITE,
				.ranges = ranges,
				.n = 4,
				.local = local,
				.nlocal = 4,
				.memo = &memo};

	/* memory of the peer that means nothing here */
	word = (uint64_t *)&peer.mem->qps[1];
	revocations = &peer.mem->access.revocations;
	atomic_store(revocations, 0);
	word[0] = 10;
	word[1] = 11;
	word[2] = word[3] = 0;
	/* Each takes what the one behind it replaces, so that a second time is seen. */
	local[0] = (struct run){&word[1], sizeof(*word)};
	ranges[0] = range_of(&word[2]);
	local[1] = (struct run){&word[0], sizeof(*word)};
	ranges[1] = range_of(&word[1]);
	local[2] = (struct run){&other, sizeof(other)};
	ranges[2] = range_of(revocations);
	local[3] = (struct run){&word[0], sizeof(*word)};
	ranges[3] = range_of(&word[3]);

	hazard_enter();
	remote_move(&at, &m);
	hazard_leave();
	/* What counts as done was executed, and only that. */
	CHECK_SAY(word[2] == (m.done > 0 ? 11 : 0) && word[1] == (m.done > 1 ? 10 : 11) &&
			  atomic_load(revocations) == (m.done > 2 ? other : 0) && !word[3],
		  "%u done, %s", (unsigned)m.done, m.why);
	if (m.done == 3)
		CHECK_SAY(m.way == KEY_MAPPED && !strcmp(m.why, "revoked"), "way %d, %s", m.way,
			  m.why);
	return m.done == 3 ? NULL : m.why;
}

/* It gives up earlier for lack of a processor, say; but not each time. */
static void test_revoked(struct bypass_peer at)
{
	const char *why = test_revoked_midway(at);

	for (int i = 0; why && i < 1000; i++) {
		usleep(1000);
		why = test_revoked_midway(at);
	}
	CHECK_SAY(!why, "%s", why);
}

/* ---- what is remembered of a key ---- */

static bool moves_bytes(const struct bypass_peer *at, uint32_t right, uint64_t va, uint64_t len)
{
	static uint8_t mine[64];
	struct run local = {mine, len};
	struct remote_range range = {KEY, va, len};
	struct remote_move m = {.right = right,
				.ranges = &range,
				.n = 1,
				.local = &local,
				.nlocal = 1,
				.memo = &memo};

	hazard_enter();
	remote_move(at, &m);
	hazard_leave();
	return m.done;
}

/* The key's block is looked at again when it has to be, and only then. */
static void test_memo(struct bypass_peer at)
{
	struct key_block *k = &peer.mem->keys[(KEY >> 8) % EXPOSE_BLOCKS];
	uint64_t va = (uint64_t)((char *)&peer.mem->qps[8] - (char *)peer.mem);
	const uint32_t write = IB_ACCESS_REMOTE_WRITE;

	k->iova = va;
	k->length = 64;
	k->place.offset = va;
	atomic_fetch_add(&peer.mem->access.revocations, 1);
	CHECK(moves_bytes(&at, write, va + 8, 8));

	/* It is invalid, but that is not counted: whoever does so waits for us. */
	atomic_store(&k->key, 0);
	CHECK(moves_bytes(&at, write, va, 64) && moves_bytes(&at, write, va + 56, 8));
	CHECK(!moves_bytes(&at, write, va + 57, 8) && !moves_bytes(&at, write, va - 1, 8));
	CHECK(!moves_bytes(&at, IB_ACCESS_REMOTE_READ, va, 8));
	at.pdn++;
	CHECK(!moves_bytes(&at, write, va, 8));
	at.pdn--;
	CHECK(moves_bytes(&at, write, va, 8));
	/* another peer's key of that number */
	peer.number++;
	CHECK(!moves_bytes(&at, write, va, 8));
	peer.number--;
	/* a file was let go, perhaps that one */
	atomic_fetch_add(&peer.segments.let_go, 1);
	CHECK(!moves_bytes(&at, write, va, 8));
	atomic_fetch_sub(&peer.segments.let_go, 1);
	CHECK(moves_bytes(&at, write, va, 8));
	access_revoke(&peer.mem->access);
	CHECK(!moves_bytes(&at, write, va, 8));

	atomic_store(&k->key, KEY);
	CHECK(moves_bytes(&at, write, va, 8));
	k->length = 8;
	access_revoke(&peer.mem->access);
	CHECK(!moves_bytes(&at, write, va + 8, 8) && moves_bytes(&at, write, va, 8));
	CHECK(!moves_bytes(&at, write, va + 8, 8));
}

int main(void)
{
	struct bypass_peer at;
	struct test_life life;

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	peer_up();
	test_life_begin(&life, &peer.mem->alive);
	peer.mem->qps[0].view.access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	at = (struct bypass_peer){.remote = &peer, .block = &peer.mem->qps[0]};
	test_revoked(at);
	test_memo(at);
	test_life_end(&life);
	return 0;
}
