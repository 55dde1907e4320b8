// SPDX-License-Identifier: BSD-2-Clause
#include "reach/way_internal.h"

#include "base/run.h"
#include "usermem/usermem.h"

#define WAY_BOUNCE_BYTES 4096u
/* If source and destination lie alike in their cache lines, the processor does not take them for
 * overlapping (words_alias). */
#define WAY_LINE_BYTES 64u

/* Does a run of ours end inside of a word, while the request goes on? */
static bool ends_in_word(const struct way_cursor *remote, size_t part)
{
	return part < remote->run->len - remote->off &&
	       (uintptr_t)(way_cursor_at(remote) + part) % WORD_BYTES;
}

bool way_is_cut(const struct way_access *a)
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	/* Nearly all accesses have one run. */
	if (likely(a->nlocal == 1))
		return false;
	while (remote.run < a->remote + a->requests) {
		size_t part = way_cursors_part(&local, &remote);

		if (part && ends_in_word(&remote, part))
			return true;
		way_cursors_advance(&local, &remote, part);
	}
	return false;
}

/* ---- writes ---- */

/* Our side of the access, in which each word that was cut has a run of its own. */
struct way_gathered {
	struct run runs[WAY_LOCALS];
	struct {
		_Alignas(WAY_LINE_BYTES) char bytes[WAY_LINE_BYTES];
	} lines[RUNS_MAX];
	uint32_t n, nlines;
};

static void gather_run(struct way_gathered *g, struct way_cursor *local, struct way_cursor *remote,
		       size_t n)
{
	if (!n)
		return;
	g->runs[g->n++] = (struct run){way_cursor_at(local), n};
	way_cursors_advance(local, remote, n);
}

/* Gathers the word in which the remote cursor stands, as far as it belongs to the request. */
static bool gather_word(struct way_gathered *g, struct way_cursor *local, struct way_cursor *remote)
{
	uintptr_t at = (uintptr_t)way_cursor_at(remote);
	size_t n = min_u64(WORD_BYTES - at % WORD_BYTES, remote->run->len - remote->off);
	char *to = g->lines[g->nlines++].bytes + at % WAY_LINE_BYTES;

	g->runs[g->n++] = (struct run){to, n};
	while (n) {
		size_t part = min_u64(n, way_cursors_part(local, remote));

		if (!usermem_copy(to, way_cursor_at(local), part))
			return false;
		way_cursors_advance(local, remote, part);
		to += part;
		n -= part;
	}
	return true;
}

/* False: some of our memory is not there. */
static bool gather_words(const struct way_access *a, struct way_gathered *g)
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	g->n = g->nlines = 0;
	while (remote.run < a->remote + a->requests) {
		size_t part = way_cursors_part(&local, &remote);
		size_t beyond = (uintptr_t)(way_cursor_at(&remote) + part) % WORD_BYTES;

		if (!part) {
			way_cursors_advance(&local, &remote, 0);
		} else if (!ends_in_word(&remote, part)) {
			gather_run(g, &local, &remote, part);
		} else {
			gather_run(g, &local, &remote, part > beyond ? part - beyond : 0);
			if (!gather_word(g, &local, &remote))
				return false;
		}
	}
	return true;
}

static enum way_verdict write_whole(struct way_access *a,
				    enum way_verdict (*by)(struct way_access *a))
{
	struct way_access whole = *a;
	struct way_gathered g;
	enum way_verdict v;

	if (!gather_words(a, &g))
		return WAY_FAULT;
	whole.local = g.runs;
	whole.nlocal = g.n;
	v = by(&whole);
	a->done = whole.done;
	return v;
}

/* ---- through memory of our own ---- */

/* Copies between our runs and the n bytes at 'there'. */
static bool bounce_copy(const struct way_access *a, struct way_cursor *local, char *there, size_t n)
{
	while (n) {
		size_t part = min_u64(n, local->run->len - local->off);
		char *here = way_cursor_at(local);

		if (part && !usermem_copy(a->read ? here : there, a->read ? there : here, part))
			return false;
		way_cursor_advance(local, part);
		there += part;
		n -= part;
	}
	return true;
}

static enum way_verdict bounce_part(const struct way_access *a, char *there, size_t n,
				    struct way_cursor *local,
				    enum way_verdict (*by)(struct way_access *a))
{
	_Alignas(WAY_LINE_BYTES) char copy[WAY_BOUNCE_BYTES];
	struct run here = {copy + (uintptr_t)there % WAY_LINE_BYTES, n}, remote = {there, n};
	struct way_access part = *a;
	enum way_verdict v;

	part.local = &here;
	part.nlocal = 1;
	part.remote = &remote;
	part.requests = 1;
	if (!a->read && !bounce_copy(a, local, here.addr, n))
		return WAY_FAULT;
	v = by(&part);
	if (v == WAY_DONE && a->read && !bounce_copy(a, local, here.addr, n))
		return WAY_FAULT;
	return v;
}

enum way_verdict way_bounced(struct way_access *a, enum way_verdict (*by)(struct way_access *a))
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	a->done = 0;
	while (a->done < a->requests) {
		char *there = way_cursor_at(&remote);
		size_t room = WAY_BOUNCE_BYTES - WAY_LINE_BYTES;
		size_t n = min_u64(remote.run->len - remote.off,
				   room - ((uintptr_t)there + room) % WORD_BYTES);
		enum way_verdict v = bounce_part(a, there, n, &local, by);

		if (v != WAY_DONE)
			return v;
		way_cursor_advance(&remote, n);
		a->done = (uint32_t)(remote.run - a->remote);
	}
	return WAY_DONE;
}

enum way_verdict way_whole(struct way_access *a, enum way_verdict (*by)(struct way_access *a))
{
	return a->read ? way_bounced(a, by) : write_whole(a, by);
}
