/* SPDX-License-Identifier: BSD-2-Clause */
/* The device image that the build makes of tests/unit/dpa/device_code.c, for tests of the runtime. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* The whole file, from malloc. */
static inline void *fixture_read(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "r");
	void *data;
	long end;

	CHECK(f && fseek(f, 0, SEEK_END) == 0);
	end = ftell(f);
	CHECK(end > 0);
	rewind(f);
	data = malloc((size_t)end);
	CHECK(data && fread(data, 1, (size_t)end, f) == (size_t)end);
	fclose(f);
	*bytes = (size_t)end;
	return data;
}
