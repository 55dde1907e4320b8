// SPDX-License-Identifier: BSD-2-Clause
/* See train.h. */
#include "wire/train.h"

#include "wire/brief.h"

/* Brief requests that belong together, and where their records end behind the ring's cursor. */
struct briefs {
	struct brief b[BRIEF_TRAIN];
	const void *record[BRIEF_TRAIN];
	uint32_t end[BRIEF_TRAIN];
	uint32_t n;
};

static struct train briefs_taken(const struct briefs *s, uint32_t taken)
{
	struct train t = {.packets = taken};

	for (uint32_t i = 0; i < s->n && taken; i++) {
		uint32_t n = min_u32(s->b[i].n, taken);

		if (unlikely(n < s->b[i].n)) {
			t.rest = s->record[i];
			t.rest_bytes = s->end[i] - t.bytes;
			t.rest_part = n;
			t.packets += s->b[i].n - n;
		}
		t.payload += (uint64_t)s->b[i].n * s->b[i].payload_len;
		t.bytes = s->end[i];
		taken -= n;
	}
	return t;
}

struct train train_deliver(const struct ring *rx, const void *record, uint32_t bytes,
			   const struct channel_sink *to)
{
	uint32_t requests, port, next_port;
	struct briefs s;

	if (!brief_read(record, bytes, &s.b[0], &port))
		return (struct train){0};
	s.record[0] = record;
	s.end[0] = bytes;
	requests = s.b[0].n;
	for (s.n = 1; requests < BRIEF_TRAIN; s.n++) {
		if (!ring_peek_behind(rx, s.end[s.n - 1], &record, &bytes) ||
		    !brief_read(record, bytes, &s.b[s.n], &next_port) || next_port != port ||
		    !brief_follows(&s.b[s.n - 1], &s.b[s.n]) || requests + s.b[s.n].n > BRIEF_TRAIN)
			break;
		ring_fetch(record, bytes);
		s.record[s.n] = record;
		s.end[s.n] = s.end[s.n - 1] + bytes;
		requests += s.b[s.n].n;
	}
	return briefs_taken(&s, to->briefs(to->user, port, s.b, s.n));
}
