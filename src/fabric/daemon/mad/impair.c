// SPDX-License-Identifier: BSD-2-Clause
/* Faults of links, drawn from a seed; see impair.h. */
#include "fabric/daemon/mad/impair.h"

#include <errno.h>
#include <stdlib.h>

#define ONE 1000000u /* all of loss_ppm */

struct impair_row {
	uint32_t row;
	struct impair_link how;
};

struct impair_held {
	struct impair_held *next, **prev;
	struct loop_timer timer;
	struct mad_fabric *fabric;
	struct mad_packet *packet;
};

struct impair {
	uint64_t state;		 /* state of the generator */
	struct impair_link all;	 /* for links that have no row below */
	struct impair_row *rows; /* sorted by row */
	uint32_t nrows, room;
	struct impair_held *held;
};

struct impair *impair_open(uint64_t seed)
{
	struct impair *i = calloc(1, sizeof(*i));

	if (i)
		i->state = seed;
	return i;
}

static void held_free(struct impair_held *h)
{
	*h->prev = h->next;
	if (h->next)
		h->next->prev = h->prev;
	free(h);
}

void impair_close(struct impair *i)
{
	struct impair_held *h, *next;

	if (!i)
		return;
	for (h = i->held; h; h = next) {
		next = h->next;
		loop_timer_cancel(h->fabric->loop, &h->timer);
		mad_packet_put(h->fabric, h->packet);
		free(h);
	}
	free(i->rows);
	free(i);
}

/* ---- which links ---- */

/* Returns where the row is, or would be. */
static uint32_t row_place(const struct impair *i, uint32_t row)
{
	uint32_t from = 0, to = i->nrows;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (i->rows[middle].row < row)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool row_is_at(const struct impair *i, uint32_t at, uint32_t row)
{
	return at < i->nrows && i->rows[at].row == row;
}

static int row_insert(struct impair *i, uint32_t at, uint32_t row)
{
	if (i->nrows == i->room) {
		uint32_t room = i->room ? i->room * 2 : 16;
		struct impair_row *rows = realloc(i->rows, room * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		i->rows = rows;
		i->room = room;
	}
	for (uint32_t n = i->nrows++; n > at; n--)
		i->rows[n] = i->rows[n - 1];
	i->rows[at].row = row;
	return 0;
}

int impair_set(struct impair *i, uint32_t row, const struct impair_link *how)
{
	uint32_t at = row_place(i, row);
	int ret;

	if (how->loss_ppm > ONE || how->duplicate_ppm > ONE)
		return -EINVAL;
	if (row == SUBNET_NONE) {
		i->all = *how;
		i->nrows = 0;
		return 0;
	}
	ret = row_is_at(i, at, row) ? 0 : row_insert(i, at, row);
	if (!ret)
		i->rows[at].how = *how;
	return ret;
}

/* ---- what happens to packets ---- */

/* Draws a number below 'limit', all with equal chance (splitmix64). */
static uint32_t impair_draw(struct impair *i, uint32_t limit)
{
	uint64_t z = i->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(((z ^ z >> 31) >> 32) * limit >> 32);
}

uint32_t impair_decide(struct impair *i, uint32_t row, uint64_t *delay_ns)
{
	uint32_t at = row_place(i, row);
	const struct impair_link *how = row_is_at(i, at, row) ? &i->rows[at].how : &i->all;

	*delay_ns = how->delay_us * 1000ull;
	if (how->jitter_us)
		*delay_ns += impair_draw(i, how->jitter_us) * 1000ull;
	if (how->loss_ppm && impair_draw(i, ONE) < how->loss_ppm)
		return 0;
	return how->duplicate_ppm && impair_draw(i, ONE) < how->duplicate_ppm ? 2 : 1;
}

static void held_fires(struct loop *l, struct loop_timer *t)
{
	struct impair_held *h = container_of(t, struct impair_held, timer);

	(void)l;
	h->packet->stage = MAD_ENTERS;
	mad_requeue(h->fabric, h->packet);
	held_free(h);
}

bool impair_hold(struct mad_fabric *f, struct mad_packet *p, uint64_t delay_ns)
{
	struct impair_held *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	h->fabric = f;
	h->packet = p;
	p->stage = MAD_HELD;
	h->timer.fire = held_fires;
	h->prev = &f->impair->held;
	h->next = f->impair->held;
	if (h->next)
		h->next->prev = &h->next;
	f->impair->held = h;
	loop_timer_arm(f->loop, &h->timer, loop_now(f->loop) + delay_ns);
	return true;
}
