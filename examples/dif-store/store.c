/* SPDX-License-Identifier: BSD-2-Clause */
/* The backing file; see store.h. */
#include "store.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

#define STORE_MAGIC   "DIFSTORE"
#define STORE_VERSION 1u
/* Units that formatting writes at a time. */
#define CHUNK 256u

struct store_header {
	char magic[8];
	uint32_t version; /* all numbers big-endian */
	uint32_t block_size;
	uint64_t blocks;
	uint16_t app_tag;
};

static int all_at(int fd, bool writing, uint8_t *bytes, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t done =
			writing ? pwrite(fd, bytes, n, (off_t)at) : pread(fd, bytes, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO; /* the file has shrunk */
		bytes += done;
		n -= (size_t)done;
		at += (size_t)done;
	}
	return 0;
}

static uint64_t place(const struct dif_format *f, uint64_t block)
{
	return STORE_HEADER_BYTES + block * dif_unit(f);
}

static int write_blocks(int fd, const struct dif_format *f, uint64_t blocks, uint64_t seed)
{
	uint32_t unit = dif_unit(f);
	uint8_t *chunk = malloc((size_t)CHUNK * unit);
	int error = chunk ? 0 : -ENOMEM;

	for (uint64_t first = 0; first < blocks && !error; first += CHUNK) {
		uint64_t count = blocks - first < CHUNK ? blocks - first : CHUNK;

		for (uint64_t i = 0; i < count; i++) {
			dif_fill(f, chunk + i * unit, seed, first + i);
			dif_protect(f, chunk + i * unit, first + i);
		}
		error = all_at(fd, true, chunk, count * unit, place(f, first));
	}
	free(chunk);
	return error;
}

bool store_format(const char *path, const struct dif_format *format, uint64_t blocks, uint64_t seed)
{
	struct store_header header = {
		.magic = STORE_MAGIC,
		.version = htobe32(STORE_VERSION),
		.block_size = htobe32(format->block_size),
		.blocks = htobe64(blocks),
		.app_tag = htobe16(format->app_tag),
	};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0) {
		complain("cannot create %s: %m", path);
		return false;
	}
	int error = write_blocks(fd, format, blocks, seed);
	/* The header last: what was not finished is not taken for a store. */
	if (!error)
		error = all_at(fd, true, (uint8_t *)&header, sizeof(header), 0);
	if (close(fd) && !error)
		error = -errno;
	if (error)
		complain("cannot write %s: %s", path, strerror(-error));
	return !error;
}

/* What is wrong with the header of a file of size bytes; NULL if nothing. */
static const char *take_header(struct store *s, const struct store_header *h, uint64_t size)
{
	if (memcmp(h->magic, STORE_MAGIC, sizeof(h->magic)) != 0)
		return "is not a store; make one with: dif-store format";
	if (be32toh(h->version) != STORE_VERSION)
		return "is a store of another version; make a new one with: dif-store format";
	s->format.block_size = be32toh(h->block_size);
	s->format.app_tag = be16toh(h->app_tag);
	s->blocks = be64toh(h->blocks);
	if ((s->format.block_size != 512 && s->format.block_size != 4096) || s->blocks == 0 ||
	    s->blocks > STORE_BLOCKS_MAX)
		return "has a damaged header; make a new store with: dif-store format";
	if (size < place(&s->format, s->blocks))
		return "is shorter than its header says; make a new store with: dif-store format";
	return NULL;
}

bool store_open(struct store *s, const char *path, bool writable)
{
	struct store_header header;
	const char *wrong;
	struct stat st;

	*s = (struct store){.fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)};
	if (s->fd < 0) {
		complain("cannot open %s: %m", path);
		return false;
	}
	if (fstat(s->fd, &st)) {
		complain("cannot look at %s: %m", path);
		close(s->fd);
		return false;
	}
	if (all_at(s->fd, false, (uint8_t *)&header, sizeof(header), 0))
		wrong = "is not a store; make one with: dif-store format";
	else
		wrong = take_header(s, &header, (uint64_t)st.st_size);
	if (wrong) {
		complain("%s %s", path, wrong);
		close(s->fd);
		return false;
	}
	pthread_rwlock_init(&s->lock, NULL);
	return true;
}

void store_close(struct store *s)
{
	pthread_rwlock_destroy(&s->lock);
	close(s->fd);
}

int store_read(struct store *s, uint64_t block, uint32_t count, void *units)
{
	pthread_rwlock_rdlock(&s->lock);
	int error = all_at(s->fd, false, units, (size_t)count * dif_unit(&s->format),
			   place(&s->format, block));

	pthread_rwlock_unlock(&s->lock);
	return error;
}

int store_write(struct store *s, uint64_t block, uint32_t count, const void *units)
{
	pthread_rwlock_wrlock(&s->lock);
	/* all_at only reads what it writes to the file. */
	int error = all_at(s->fd, true, (uint8_t *)(uintptr_t)units,
			   (size_t)count * dif_unit(&s->format), place(&s->format, block));

	pthread_rwlock_unlock(&s->lock);
	return error;
}
