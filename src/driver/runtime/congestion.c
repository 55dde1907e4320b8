// SPDX-License-Identifier: BSD-2-Clause
/* See congestion.h.  The value is RATE[,QUEUE], in bits per second and in bytes; K, M or G may
 * follow each number. */
#include "driver/runtime/congestion.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

#define MARK_BYTES 64000u
/* A terabit, so that products with times stay within 64 bits. */
#define MOST 1000000000000ull

/* False: there is no number there. */
static bool read_number(const char **text, uint64_t *out)
{
	static const struct {
		char name;
		uint64_t factor;
	} units[] = {{'K', 1000}, {'M', 1000000}, {'G', 1000000000}};
	char *end;

	errno = 0;
	if (**text < '0' || **text > '9')
		return false;
	*out = strtoull(*text, &end, 10);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (*end == units[i].name) {
			if (*out > MOST / units[i].factor)
				return false;
			*out *= units[i].factor;
			end++;
			break;
		}
	*text = end;
	return !errno && *out && *out <= MOST;
}

bool congestion_wanted(uint64_t *bytes_per_second, uint64_t *mark_bytes)
{
	const char *value = getenv("SOFTHCA_CONGESTION"), *at = value;
	uint64_t bits = 0, mark = MARK_BYTES;
	bool right;

	*bytes_per_second = *mark_bytes = 0;
	if (!value || !*value)
		return false;
	right = read_number(&at, &bits);
	if (right && *at == ',') {
		at++;
		right = read_number(&at, &mark);
	}
	if (!right || *at || bits < 8) {
		log_warn("SOFTHCA_CONGESTION: '%s' is not RATE[,QUEUE]", value);
		return false;
	}
	*bytes_per_second = bits / 8;
	*mark_bytes = mark;
	return true;
}
