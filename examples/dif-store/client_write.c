/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a range of blocks, several requests at a time; and single requests of any kind. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "complain.h"

struct writing {
	const struct client_options *o;
	struct initiator i;
	uint64_t next, end;
	uint64_t good, failed; /* blocks; requests */
	int fd;		       /* the data, or -1 */
};

/* The data of a block from the file, filled up with zeros, or from the seed. */
static bool compose(struct writing *w, uint8_t *data, uint64_t block)
{
	const struct dif_format *f = &w->i.target.format;
	uint64_t at = (block - w->o->block) * f->block_size;
	ssize_t n;

	if (w->fd < 0) {
		dif_fill(f, data, w->o->seed, block);
		return true;
	}
	memset(data, 0, f->block_size);
	n = pread(w->fd, data, f->block_size, (off_t)at);
	if (n < 0)
		complain("cannot read %s: %m", w->o->file);
	return n >= 0;
}

static bool fill(struct writing *w, struct flight *f, uint64_t blocks)
{
	const struct client_options *o = w->o;
	const struct dif_format *format = &w->i.target.format;

	for (uint64_t b = 0; b < blocks; b++) {
		uint8_t *unit = f->units + b * initiator_unit(&w->i);
		uint64_t block = w->next + b;

		if (!compose(w, unit, block))
			return false;
		if (o->connection.memory == KEY_BARE)
			continue;
		dif_protect(format, unit, block);
		if (o->damage && block == o->damage_block &&
		    !dif_flip(format, unit, o->damage_part, o->damage_bit)) {
			complain("--bit: the field has no bit %" PRIu64, o->damage_bit);
			return false;
		}
	}
	return true;
}

static bool send_next(struct writing *w, struct flight *f)
{
	uint32_t size = w->i.target.format.block_size;
	uint64_t blocks = w->end - w->next;

	if (blocks > w->o->connection.max_blocks)
		blocks = w->o->connection.max_blocks;
	if (!fill(w, f, blocks) ||
	    !initiator_submit(&w->i, f, PROTO_WRITE, w->next * size, (uint32_t)blocks * size))
		return false;
	w->next += blocks;
	return true;
}

static bool write_all(struct writing *w)
{
	while (w->next < w->end || w->i.under_way > 0 || w->i.done_count > 0) {
		struct flight *f = w->next < w->end ? initiator_free_flight(&w->i) : NULL;

		if (f) {
			if (!send_next(w, f))
				return false;
			continue;
		}
		f = initiator_reap(&w->i);
		if (!f)
			return false;
		if (client_report(&w->i, f))
			w->failed++;
		else
			w->good += f->blocks;
		initiator_release(f);
	}
	return true;
}

static int write_range(struct writing *w)
{
	const struct client_options *o = w->o;

	if (!client_block_exists(&w->i, o))
		return CLIENT_USAGE;
	w->next = o->block;
	w->end = o->block + o->count;
	if (!o->count) {
		struct stat st;

		w->end = w->i.target.blocks;
		if (w->fd >= 0 && fstat(w->fd, &st) == 0)
			w->end = o->block + ((uint64_t)st.st_size + w->i.target.format.block_size -
					     1) / w->i.target.format.block_size;
	}
	if (!write_all(w))
		return CLIENT_LOST;
	printf("%s, %s: %" PRIu64 " blocks written, %" PRIu64 " requests failed\n",
	       ibv_get_device_name(w->i.e.ctx->device),
	       w->i.target.pipelined ? "pipelined" : "plain", w->good, w->failed);
	return w->failed ? CLIENT_BAD : CLIENT_GOOD;
}

int client_write(const struct client_options *o)
{
	struct writing w = {.o = o, .fd = -1};
	int status = CLIENT_LOST;

	if (!o->file == !o->seed_given) {
		complain("write needs either --in FILE or --seed N");
		return CLIENT_USAGE;
	}
	if (o->damage && o->connection.memory == KEY_BARE) {
		complain("--damage: with --bare the adapter makes the protection information, so "
			 "that "
			 "it is always right");
		return CLIENT_USAGE;
	}
	if (o->file) {
		w.fd = open(o->file, O_RDONLY | O_CLOEXEC);
		if (w.fd < 0) {
			complain("cannot open %s: %m", o->file);
			return CLIENT_USAGE;
		}
	}
	if (initiator_open(&w.i, &o->connection)) {
		status = write_range(&w);
		initiator_close(&w.i);
	}
	if (w.fd >= 0)
		close(w.fd);
	return status;
}

int client_raw(const struct client_options *o)
{
	struct initiator i;
	struct flight *f;
	int status = CLIENT_LOST;

	if (!initiator_open(&i, &o->connection))
		return CLIENT_LOST;
	if (initiator_submit(&i, initiator_free_flight(&i), (uint8_t)o->operation, o->offset,
			     (uint32_t)o->length)) {
		f = initiator_reap(&i);
		if (f) {
			status = client_report(&i, f) ? CLIENT_BAD : CLIENT_GOOD;
			printf("answer: %s\n", proto_status_name(f->response.status));
		}
	}
	initiator_close(&i);
	return status;
}
