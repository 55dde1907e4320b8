// SPDX-License-Identifier: BSD-2-Clause
/* Messages that are held instead of copied; see rmpp_source.h. */
#include "fabric/daemon/mad/rmpp_source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many descriptors all messages keep; a message without one is read from its memory. */
#define MOST_FILES 256u
#define SEALS	   (F_SEAL_SHRINK | F_SEAL_GROW)

/* A plain variable is enough, because the daemon has one thread. */
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

/* Tells whether all of it is there for ever.  Otherwise an access could kill us. */
static bool file_stays(int file, uint32_t length, uint64_t *at)
{
	int seals = fcntl(file, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(file, &st) || st.st_size < length)
		return false;
	*at = (uint64_t)st.st_size - length;
	return true;
}

/* Maps the bytes from 'at' on.  False: no memory. */
static bool source_map(struct rmpp_source *s, int file, uint64_t at, uint32_t length)
{
	uint64_t page = at & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);

	s->map_bytes = (size_t)(at - page) + length;
	s->map = mmap(NULL, s->map_bytes, PROT_READ, MAP_SHARED, file, (off_t)page);
	if (s->map == MAP_FAILED)
		return false;
	s->message.bytes = (const uint8_t *)s->map + (at - page);
	s->file_at = at;
	return true;
}

struct rmpp_source *rmpp_source_map(int file, const uint8_t *first, uint32_t length)
{
	struct rmpp_source *s;
	uint64_t at;

	if (!file_stays(file, length, &at))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->refs = 1;
	if (!rmpp_message_init(&s->message, first, length) || !source_map(s, file, at, length)) {
		free(s);
		return NULL;
	}
	s->file = file_keep(file);
	return s;
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
