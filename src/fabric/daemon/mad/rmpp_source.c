// SPDX-License-Identifier: BSD-2-Clause
/* Messages that are held instead of copied; see rmpp_source.h. */
#include "fabric/daemon/mad/rmpp_source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that are kept, of all messages together: what has none is read from its memory. */
#define MOST_FILES 256u
#define SEALS	   (F_SEAL_SHRINK | F_SEAL_WRITE)

/* The daemon has one thread. */
static uint32_t nfiles;

struct rmpp_source *rmpp_source_copy(const uint8_t *message, uint32_t length)
{
	struct rmpp_source *s = malloc(sizeof(*s) + length);

	if (!s)
		return NULL;
	*s = (struct rmpp_source){.refs = 1, .file = -1};
	memcpy(s->bytes, message, length);
	if (rmpp_message_init(&s->message, s->bytes, length))
		return s;
	free(s);
	return NULL;
}

static int file_keep(int file)
{
	int copy = nfiles < MOST_FILES ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;

	nfiles += copy >= 0;
	return copy;
}

/* Is all of it there, for ever?  Else a touch of it could end us. */
static bool file_is_still(int file, uint64_t bytes)
{
	int seals = fcntl(file, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(file, &st) &&
	       (uint64_t)st.st_size == bytes;
}

struct rmpp_source *rmpp_source_map(int file, uint32_t at, uint32_t length)
{
	struct rmpp_source *s =
		file_is_still(file, (uint64_t)at + length) ? malloc(sizeof(*s)) : NULL;
	void *map;

	if (!s)
		return NULL;
	map = mmap(NULL, (size_t)at + length, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED) {
		free(s);
		return NULL;
	}
	*s = (struct rmpp_source){
		.refs = 1, .file = -1, .file_at = at, .map = map, .map_bytes = (size_t)at + length};
	if (rmpp_message_init(&s->message, (const uint8_t *)map + at, length)) {
		s->file = file_keep(file);
		return s;
	}
	rmpp_source_put(s);
	return NULL;
}

void rmpp_source_put(struct rmpp_source *s)
{
	if (!s || --s->refs)
		return;
	if (s->file >= 0) {
		close(s->file);
		nfiles--;
	}
	if (s->map)
		munmap(s->map, s->map_bytes);
	free(s);
}
