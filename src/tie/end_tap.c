// SPDX-License-Identifier: BSD-2-Clause
/* See end_tap.h. */
#include "tie/end_tap.h"

#include <errno.h>
#include <unistd.h>

/* How many frames it takes in a row before it looks at the link. */
#define TAP_BATCH 64u

static struct end_tap *end_tap_of(struct tie_end *e)
{
	return container_of(e, struct end_tap, end);
}

/* The kernel takes no frame while the interface is down. */
static bool end_tap_put(struct tie_end *e, const uint8_t *frame, uint32_t bytes)
{
	return write(end_tap_of(e)->tap.fd, frame, bytes) == (ssize_t)bytes;
}

static bool end_tap_is_up(struct tie_end *e)
{
	struct end_tap *t = end_tap_of(e);

	t->up = tap_is_up(&t->tap);
	return t->up;
}

static void end_tap_port(struct tie_end *e, bool active)
{
	tap_set_carrier(&end_tap_of(e)->tap, active);
}

/* Returns true if there may be more. */
static bool end_tap_batch(struct end_tap *t, struct carrier *c)
{
	uint8_t frame[CARRIER_FRAME_MAX + 1];

	for (unsigned i = 0; i < TAP_BATCH; i++) {
		ssize_t n = read(t->tap.fd, frame, sizeof(frame));
		enum carrier_verdict v = CARRIER_UNHEARD;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n >= (ssize_t)CARRIER_FRAME_MIN && n <= (ssize_t)CARRIER_FRAME_MAX)
			v = carrier_arrive(c, frame, (uint32_t)n);
		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
	}
	return true;
}

static void end_tap_take(struct tie_end *e, struct carrier *c)
{
	struct end_tap *t = end_tap_of(e);
	const int fds[] = {t->tap.fd, t->tap.links};

	while (carrier_sleep(c, UINT64_MAX, fds, 2)) {
		while (end_tap_batch(t, c))
			;
		tap_links_taken(&t->tap);
		if (tap_is_gone(&t->tap))
			carrier_stop(c);
		else if (tap_is_up(&t->tap) != t->up)
			carrier_link_changed(c);
	}
}

static const struct tie_end_ops end_tap_ops = {
	.put = end_tap_put,
	.take = end_tap_take,
	.is_up = end_tap_is_up,
	.port = end_tap_port,
};

void end_tap_init(struct end_tap *e, const struct tap_device *tap)
{
	*e = (struct end_tap){.end = {.ops = &end_tap_ops}, .tap = *tap};
}
