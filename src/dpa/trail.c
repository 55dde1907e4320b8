// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/trail.h. */
#include "dpa/trail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lines.h"
#include "dpa/process.h"

/* The address behind a call may belong to the next line. */
static uint64_t place_of(const struct dpa_process *p, uint64_t pc)
{
	return pc - 1 - (uintptr_t)p->region;
}

/* Functions that the compiler calls before an access, and what is behind them. */
static bool is_check(const char *name)
{
	static const char *const begin[] = {"__asan_", "__tsan_", "dpa_check_", "dpa_watch_"};

	for (size_t i = 0; i < array_size(begin); i++)
		if (name && !strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

/* Functions of the device library that touch memory for their caller. */
static bool is_library(const char *name)
{
	static const char *const begin[] = {"bytes_move", "__dpa_", "flexio_dev_"};
	static const char *const whole[] = {"memmove", "memcpy",  "memset",  "memcmp",	"bcmp",
					    "memchr",  "strlen",  "strcpy",  "strncpy", "strcat",
					    "strncat", "strcmp",  "strncmp", "strcoll", "strxfrm",
					    "strchr",  "strrchr", "strspn",  "strcspn", "strpbrk",
					    "strstr"};

	for (size_t i = 0; name && i < array_size(begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	for (size_t i = 0; name && i < array_size(whole); i++)
		if (!strcmp(name, whole[i]))
			return true;
	return false;
}

static unsigned trail_first(const struct dpa_process *p, const struct dpa_trail *trail)
{
	unsigned i = 0;
	uint64_t offset;

	while (i < DPA_TRAIL && trail->pc[i] &&
	       is_check(dpa_image_where(&p->image, place_of(p, trail->pc[i]), &offset)))
		i++;
	return i;
}

uint64_t dpa_trail_place(const struct dpa_process *p, const struct dpa_trail *trail)
{
	unsigned i = trail_first(p, trail);
	uint64_t offset;

	while (i + 1 < DPA_TRAIL && trail->pc[i + 1] &&
	       is_library(dpa_image_where(&p->image, place_of(p, trail->pc[i]), &offset)))
		i++;
	return i < DPA_TRAIL ? trail->pc[i] : 0;
}

const char *dpa_trail_text(const struct dpa_process *p, const struct dpa_trail *trail,
			   char text[DPA_TRAIL_TEXT])
{
	unsigned i = trail_first(p, trail);
	const char *word = "in", *name = NULL;
	size_t bytes = 0;

	snprintf(text, DPA_TRAIL_TEXT, "at an unknown place");
	for (; i < DPA_TRAIL && trail->pc[i]; i++) {
		struct elf_line line;
		uint64_t offset;

		name = dpa_image_where(&p->image, place_of(p, trail->pc[i]), &offset);
		bytes += (size_t)snprintf(text + bytes, DPA_TRAIL_TEXT - bytes, "%s %.64s", word,
					  name ? name : "?");
		if (bytes < DPA_TRAIL_TEXT &&
		    elf_line_find(p->attr.elf, p->attr.elf_bytes, place_of(p, trail->pc[i]), &line))
			bytes += (size_t)snprintf(text + bytes, DPA_TRAIL_TEXT - bytes,
						  " at %.64s:%llu", line.file,
						  (unsigned long long)line.line);
		word = ", called by";
		if (!is_library(name) || bytes >= DPA_TRAIL_TEXT)
			break;
	}
	return text;
}

bool dpa_said(struct dpa_said *said, uint64_t place)
{
	bool known = false;

	spin_lock(&said->lock);
	for (uint32_t i = 0; i < said->count; i++)
		known = known || said->place[i] == place;
	known = known || said->count == DPA_SAID;
	if (!known)
		said->place[said->count++] = place;
	spin_unlock(&said->lock);
	return known;
}
