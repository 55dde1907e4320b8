// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reaches memory by the kernel.  The kernel copies piece after piece and promises nothing about the
 * order within one.  So a longer WRITE is two pieces, and the second is its last aligned word.
 * Where stores keep their order, these are two pieces of our memory, so the kernel makes two copies
 * with one look-up of the target's pages.  Where stores may overtake each other, they are two
 * pieces of the target's memory, because the kernel takes and drops locks between them.
 */
#include "base/clock.h"
#include "reach/way_internal.h"
#include "usermem/usermem.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* From this length on the routine uses the string instruction if it is fast for long copies. */
#define STRING_BYTES 64u

struct way_copies way_copies_of(const struct way_machine *m)
{
	/* arm64's routine stores pairs of words at any alignment. */
	if (!m->x86)
		return (struct way_copies){0};
	/* Since Linux 6.4 the routine is the instruction, whatever the length. */
	if (m->fsrm && (m->major > 6 || (m->major == 6 && m->minor >= 4)))
		return (struct way_copies){.any = true};
	/*
	 * The routine copies words of 8 bytes by plain moves, and the rest byte by byte.  It makes
	 * long copies by plain moves, too, or by an instruction, which was hammered on some
	 * processors and not on others.
	 */
	if (m->erms && !m->fsrm)
		return (struct way_copies){.most = STRING_BYTES - 1};
	return (struct way_copies){.most = UINT64_MAX};
}

#if defined(__x86_64__)
static void processor_find(struct way_machine *m)
{
	unsigned a, b, c, d;
	char vendor[12];

	if (!__get_cpuid(0, &a, &b, &c, &d))
		return;
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	m->x86 = !memcmp(vendor, "GenuineIntel", 12) || !memcmp(vendor, "AuthenticAMD", 12);
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return;
	m->erms = b & 1u << 9;
	m->fsrm = d & 1u << 4;
}
#else
static void processor_find(struct way_machine *m)
{
	(void)m;
}
#endif

struct way_machine way_machine_here(void)
{
	struct way_machine m = {0};
	struct utsname name;

	processor_find(&m);
	if (uname(&name) || sscanf(name.release, "%u.%u", &m.major, &m.minor) != 2)
		m.major = m.minor = 0;
	return m;
}

/* Once the system has refused the kernel way, we ask it only this often. */
#define WAY_PROBE_NS 100000000u
/* True where others see what one copy stores before what the next one stores. */
#if defined(__x86_64__)
#define WAY_STORES_IN_ORDER true
#else
#define WAY_STORES_IN_ORDER false
#endif

/* Returns how many bytes of the run, from 'off' on, one piece may have that leaves out the run's
 * last aligned word. */
static size_t until_tail(const struct run *r, size_t off)
{
	size_t tail = word_tail((uintptr_t)r->addr + r->len);
	size_t left = r->len - off;

	return r->len > WORD_BYTES && left > tail ? left - tail : left;
}

/* Returns how many bytes from 'off' on the next piece has.  A run is cut only where an aligned word
 * begins, so that no word is copied in two parts. */
static size_t piece_bytes(const struct run *r, size_t off, bool read, size_t room)
{
	size_t left = read || WAY_STORES_IN_ORDER ? r->len - off : until_tail(r, off);

	return left <= room ? left : room - ((uintptr_t)r->addr + off + room) % WORD_BYTES;
}

/* Lists the pieces of the next call, and returns how many there are; *bytes: their sum. */
static uint32_t pieces_list(const struct way_access *a, struct way_cursor at, struct iovec *pieces,
			    size_t *bytes)
{
	const struct run *end = a->remote + a->requests;
	uint32_t n = 0;

	/* So the room that is left for the last piece holds at least one aligned word. */
	for (*bytes = 0; n < ACCESS_PIECES && at.run < end && *bytes < WAY_CALL_BYTES - WORD_BYTES;
	     n++) {
		void *addr = way_cursor_at(&at);
		size_t len = piece_bytes(at.run, at.off, a->read, WAY_CALL_BYTES - *bytes);

		pieces[n].iov_len = len;
		if (n)
			pieces[n].iov_base = addr;
		else
			way_call_first(pieces, addr);
		*bytes += len;
		way_cursor_advance(&at, len);
	}
	return n;
}

/*
 * Lists our pieces of a call that moves so many bytes; the kernel makes each piece one copy.  The
 * string instruction moves powers of two counted from where it begins, so it would cut words if it
 * began inside of one.
 */
static long locals_list(const struct way_access *a, struct way_cursor at, struct way_cursor remote,
			size_t bytes, struct iovec *local)
{
	long n = 0;

	while (bytes) {
		size_t len = min_u64(at.run->len - at.off, bytes);

		if (WAY_STORES_IN_ORDER) {
			size_t left = remote.run->len - remote.off;

			len = min_u64(len, word_piece((uintptr_t)way_cursor_at(&remote), left,
						      !a->read));
			way_cursor_advance(&remote, len);
		}
		if (len)
			local[n++] = (struct iovec){way_cursor_at(&at), len};
		way_cursor_advance(&at, len);
		bytes -= len;
	}
	return n;
}

/* Returns the bytes that were moved, or what rseq_syscall returns. */
static long one_call(const struct way_access *a, const struct way_cursor *local,
		     const struct way_cursor *remote, size_t *bytes)
{
	const struct way_call call = {&a->hold, a->alive, a->tid, a->read};
	struct iovec *pieces = a->hold.slot->remote, here[WAY_LOCALS];
	uint32_t n = pieces_list(a, *remote, pieces, bytes);
	long nhere = locals_list(a, *local, *remote, *bytes, here);

	return way_call_once(&call, here, (unsigned long)nhere, n);
}

static long call_bounded(const struct way_access *a, const struct way_cursor *local,
			 const struct way_cursor *remote, size_t *bytes)
{
	long ret = RSEQ_ABORTED;

	for (int i = 0; ret == RSEQ_ABORTED && i < WAY_CALL_TRIES; i++)
		ret = one_call(a, local, remote, bytes);
	return ret;
}

/* Moves the cursors past what was moved, and counts the requests that are complete. */
static void account_request(struct way_access *a, struct way_cursor *local,
			    struct way_cursor *remote, size_t moved)
{
	while (moved) {
		size_t part = min_u64(moved, way_cursors_part(local, remote));

		way_cursors_advance(local, remote, part);
		moved -= part;
	}
	a->done = (uint32_t)(remote->run - a->remote);
}

/* Returns the most bytes of a request whose words the kernel's copy keeps whole, plus 2; 1: any
 * request.  The static word is 0 as long as this is not known. */
static uint64_t copies_known(void)
{
	static _Atomic(uint64_t) known;
	uint64_t is = atomic_load_explicit(&known, memory_order_relaxed);

	if (unlikely(!is)) {
		const struct way_machine here = way_machine_here();
		const struct way_copies c = way_copies_of(&here);

		is = c.any ? 1 : c.most ? min_u64(c.most, UINT64_MAX - 2) + 2 : 2;
		atomic_store_explicit(&known, is, memory_order_relaxed);
	}
	return is;
}

bool way_kernel_keeps(size_t bytes)
{
	uint64_t known = copies_known();

	return known == 1 || bytes <= known - 2;
}

static bool requests_fit(const struct way_access *a)
{
	uint64_t known = copies_known();

	if (likely(known == 1))
		return true;
	for (uint32_t i = 0; i < a->requests; i++)
		if (((uintptr_t)a->remote[i].addr | a->remote[i].len) % WORD_BYTES ||
		    a->remote[i].len > known - 2)
			return false;
	return true;
}

static enum way_verdict move_all(struct way_access *a)
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	a->done = 0;
	while (a->done < a->requests) {
		size_t bytes;
		long moved = call_bounded(a, &local, &remote, &bytes);

		if (likely(moved > 0))
			account_request(a, &local, &remote, (size_t)moved);
		if (unlikely(moved != (long)bytes))
			return way_call_why(&a->hold, moved);
	}
	return WAY_DONE;
}

/* ---- what one call would not keep whole ---- */

/*
 * Would one copy keep the words of this part whole?  The string instruction aligns its stores, and
 * reads words in parts if the source lies otherwise.  It also cuts words if it takes source and
 * destination for overlapping (words_alias).
 */
static bool part_is_whole(const struct way_access *a, const char *local, const char *remote)
{
	if (!a->read)
		return !words_alias(remote, local);
	return ((uintptr_t)local - (uintptr_t)remote) % WORD_BYTES == 0 &&
	       !words_alias(local, remote);
}

static bool parts_are_whole(const struct way_access *a)
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	while (remote.run < a->remote + a->requests) {
		if (unlikely(!part_is_whole(a, way_cursor_at(&local), way_cursor_at(&remote))))
			return false;
		way_cursors_advance(&local, &remote, way_cursors_part(&local, &remote));
	}
	return true;
}

/* ---- the peer ---- */

static void way_peer_note(const struct way_peer *p, bool open)
{
	if (p->note)
		atomic_store_explicit(p->note, open ? p->note_open : p->note_closed,
				      memory_order_relaxed);
}

/* Threads that ask at the same time all get the answer, so that none has to go another way because
 * another thread was first. */
static __attribute__((noinline, cold)) uint32_t way_kernel_probe(struct way_peer *p)
{
	uint64_t now = clock_ns(), last = atomic_load(&p->refused_ns);
	uint32_t tid;

	if (last && now - last < WAY_PROBE_NS)
		return 0;
	tid = alive_probe(p->alive, p->pid);
	if (tid)
		atomic_store(&p->tid, tid);
	else
		atomic_store(&p->refused_ns, now);
	way_peer_note(p, tid);
	return tid;
}

uint32_t way_kernel_tid(struct way_peer *p)
{
	uint32_t tid = atomic_load_explicit(&p->tid, memory_order_relaxed);

	return likely(tid) ? tid : way_kernel_probe(p);
}

void way_kernel_close(struct way_peer *p)
{
	atomic_store(&p->refused_ns, clock_ns());
	atomic_store(&p->tid, 0);
	way_peer_note(p, false);
}

enum way_verdict way_kernel(struct way_access *a)
{
	a->done = 0;
	if (!requests_fit(a))
		return WAY_UNFIT;
	if (unlikely(!parts_are_whole(a)))
		return way_bounced(a, move_all);
	if (unlikely(way_is_cut(a)))
		return way_whole(a, move_all);
	return move_all(a);
}
