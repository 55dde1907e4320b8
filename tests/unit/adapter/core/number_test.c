// SPDX-License-Identifier: BSD-2-Clause
/* Numbers of a chunk that begin somewhere in it: each once, and back to the chunk's first ones. */
#include <errno.h>

#include "adapter/core/device.h"
#include "check.h"

#define CHUNK 5u
#define BEGIN 1000u

static int64_t one_chunk(void *user, enum number_kind kind)
{
	unsigned *asked = user;

	(void)kind;
	return (*asked)++ ? -ENOSPC : (int64_t)(CHUNK << REGISTRY_CHUNK_SHIFT | BEGIN);
}

int main(void)
{
	static struct number_space s;
	unsigned asked = 0;
	const struct adapter_attr attr = {.number_chunk = one_chunk, .user = &asked};
	uint32_t first = CHUNK << REGISTRY_CHUNK_SHIFT;
	int object;

	number_space_init(&s);
	for (uint32_t i = 0; i < NUMBER_CHUNK; i++)
		CHECK(number_take(&s, &attr, NUMBER_QPN) == first + (BEGIN + i) % NUMBER_CHUNK);
	CHECK(asked == 1 && number_take(&s, &attr, NUMBER_QPN) == -ENOSPC);
	number_give(&s, first + 7);
	CHECK(number_take(&s, &attr, NUMBER_QPN) == first + 7);
	number_publish(&s, first + 7, &object);
	CHECK(number_find(&s, first + 7) == &object);
	number_publish(&s, first + 7, NULL);
	number_space_release(&s);
	return 0;
}
