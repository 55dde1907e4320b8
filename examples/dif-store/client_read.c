/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a range of blocks, several requests at a time, and names every bad block in it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "complain.h"

struct reading {
	const struct client_options *o;
	struct initiator i;
	uint64_t next, end; /* blocks not asked for yet */
	uint64_t good, bad, refused;
	int fd; /* -1: nowhere */
};

static bool ask(struct reading *r, struct flight *f, uint64_t block, uint64_t blocks)
{
	uint32_t size = r->i.target.format.block_size;

	return initiator_submit(&r->i, f, PROTO_READ, block * size, (uint32_t)blocks * size);
}

/* Data of the first blocks of a flight, without protection information. */
static bool save(struct reading *r, const struct flight *f, uint64_t blocks)
{
	uint32_t size = r->i.target.format.block_size, unit = initiator_unit(&r->i);

	for (uint64_t b = 0; b < blocks && r->fd >= 0; b++) {
		uint64_t at = (f->block + b - r->o->block) * size;

		if (pwrite(r->fd, f->units + b * unit, size, (off_t)at) != (ssize_t)size) {
			complain("cannot write %s: %m", r->o->file);
			return false;
		}
	}
	return true;
}

/* True if software agrees that the first blocks are good. */
static bool agrees(struct reading *r, struct flight *f, uint64_t blocks)
{
	struct dif_error e;

	if (!r->o->software || r->o->connection.memory != KEY_PROTECTED)
		return true;
	e = dif_check(&r->i.target.format, f->units, f->block, blocks);
	if (e.part == DIF_NO_ERROR)
		return true;
	printf("block %" PRIu64 ": both adapters took it for good, but software finds a bad %s, "
	       "expected %04" PRIx64 ", actual %04" PRIx64 "\n",
	       e.block, dif_part_name(e.part), e.expected, e.actual);
	return false;
}

/* Takes in an outcome.  Behind a bad block the flight goes on with the rest of its range. */
static bool take(struct reading *r, struct flight *f)
{
	uint64_t end = f->block + f->blocks, good_end = end;
	bool spoilt = client_report(&r->i, f);

	if (spoilt && f->response.status != PROTO_BAD_BLOCK && f->response.status != PROTO_OK) {
		r->refused++;
		initiator_release(f);
		return true;
	}
	if (spoilt) {
		/* What lies before the first error has been checked and is good. */
		good_end = f->response.status == PROTO_BAD_BLOCK ? f->response.error.block
								 : f->here.block;
		if (good_end < f->block || good_end >= end) {
			complain("the bad block is none of those asked for");
			return false;
		}
		r->bad++;
	}
	if (!agrees(r, f, good_end - f->block)) {
		r->bad++;
		initiator_release(f);
		return true;
	}
	r->good += good_end - f->block;
	if (!save(r, f, good_end - f->block))
		return false;
	if (spoilt && good_end + 1 < end)
		return ask(r, f, good_end + 1, end - good_end - 1);
	initiator_release(f);
	return true;
}

static bool read_all(struct reading *r)
{
	while (r->next < r->end || r->i.under_way > 0 || r->i.done_count > 0) {
		struct flight *f = r->next < r->end ? initiator_free_flight(&r->i) : NULL;
		uint64_t blocks = r->end - r->next;

		if (!f) {
			f = initiator_reap(&r->i);
			if (!f || !take(r, f))
				return false;
			continue;
		}
		if (blocks > r->o->connection.max_blocks)
			blocks = r->o->connection.max_blocks;
		if (!ask(r, f, r->next, blocks))
			return false;
		r->next += blocks;
	}
	return true;
}

static int summary(const struct reading *r)
{
	const struct initiator *i = &r->i;

	printf("%s, %s: %" PRIu64 " good blocks, %" PRIu64 " bad",
	       ibv_get_device_name(i->e.ctx->device), i->target.pipelined ? "pipelined" : "plain",
	       r->good, r->bad);
	if (r->refused)
		printf(", %" PRIu64 " requests refused", r->refused);
	printf("%s\n", r->o->software ? "; checked in software as well" : "");
	return r->bad || r->refused ? CLIENT_BAD : CLIENT_GOOD;
}

int client_read(const struct client_options *o)
{
	struct reading r = {.o = o, .fd = -1};
	int status = CLIENT_LOST;

	if (o->file) {
		r.fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (r.fd < 0) {
			complain("cannot create %s: %m", o->file);
			return CLIENT_BAD;
		}
	}
	if (initiator_open(&r.i, &o->connection)) {
		r.next = o->block;
		r.end = o->count ? o->block + o->count : r.i.target.blocks;
		if (!client_block_exists(&r.i, o))
			status = CLIENT_USAGE;
		else if (read_all(&r))
			status = summary(&r);
		initiator_close(&r.i);
	}
	if (r.fd >= 0 && close(r.fd)) {
		complain("cannot write %s: %m", o->file);
		status = CLIENT_BAD;
	}
	return status;
}

int client_verify(const struct client_options *o)
{
	struct client_options all = *o;

	all.file = NULL;
	all.software = o->connection.memory == KEY_PROTECTED;
	return client_read(&all);
}
