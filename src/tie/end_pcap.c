// SPDX-License-Identifier: BSD-2-Clause
/* See end_pcap.h. */
#include "tie/end_pcap.h"

#include "base/clock.h"

/* How often it looks whether somebody listens by now. */
#define PCAP_HEARD_NS 10000000u

static struct end_pcap *end_pcap_of(struct tie_end *e)
{
	return container_of(e, struct end_pcap, end);
}

/* ---- out ---- */

static void end_pcap_is_full(struct end_pcap *p)
{
	char words[128];

	(void)snprintf(words, sizeof(words), "the file takes no more frames: %m");
	carrier_warn(p->end.carrier, words);
}

static bool end_pcap_put(struct tie_end *e, const uint8_t *frame, uint32_t bytes)
{
	struct end_pcap *p = end_pcap_of(e);

	/* A frame that is cut off would spoil all that follows it. */
	if (!p->out || p->full)
		return false;
	p->full = !pcap_append(p->out, clock_realtime_ns(), frame, bytes);
	if (p->full)
		end_pcap_is_full(p);
	return !p->full;
}

static void end_pcap_idle(struct tie_end *e)
{
	struct end_pcap *p = end_pcap_of(e);

	if (!p->out || p->full || !fflush(p->out))
		return;
	p->full = true;
	end_pcap_is_full(p);
}

static bool end_pcap_is_up(struct tie_end *e)
{
	(void)e;
	return true;
}

/* ---- in ---- */

/* The state of a pass through the file. */
struct pass {
	uint64_t begun_ns; /* when its first frame went in */
	uint64_t first_ns; /* when that frame was captured */
	uint64_t frames;
	bool heard; /* whether a frame has found a listener */
};

static uint64_t frame_due(const struct end_pcap *p, const struct pass *pass,
			  const struct pcap_frame *frame)
{
	switch (p->pace) {
	case PACE_ORIGINAL:
		return frame->ns > pass->first_ns ? pass->begun_ns + frame->ns - pass->first_ns
						  : pass->begun_ns;
	case PACE_RATE:
		return pass->begun_ns + pass->frames * UINT64_C(1000000000) / p->rate;
	case PACE_TOP:
		break;
	}
	return 0;
}

/* Waits in a loop for fractions of a millisecond instead of sleeping. */
static bool frame_wait(struct carrier *c, uint64_t due_ns)
{
	const uint64_t ms = 1000000;

	if (clock_ns() + ms < due_ns && !carrier_sleep(c, due_ns - ms, NULL, 0))
		return false;
	while (clock_ns() < due_ns)
		;
	return true;
}

static bool frame_is_whole(const struct pcap_frame *frame)
{
	return frame->bytes == frame->whole && frame->bytes >= CARRIER_FRAME_MIN &&
	       frame->bytes <= CARRIER_FRAME_MAX;
}

/* The first frame waits until somebody listens. */
static enum carrier_verdict frame_in(struct carrier *c, struct pass *pass, const uint8_t *data,
				     uint32_t bytes)
{
	enum carrier_verdict v = carrier_arrive(c, data, bytes);

	while (v == CARRIER_UNHEARD && !pass->heard) {
		if (!carrier_sleep(c, clock_ns() + PCAP_HEARD_NS, NULL, 0))
			return CARRIER_ENDS;
		pass->begun_ns = clock_ns();
		v = carrier_arrive(c, data, bytes);
	}
	pass->heard |= v != CARRIER_BAD;
	return v;
}

/* Goes once through the file.  False: the carrier has to end. */
static bool end_pcap_pass(struct end_pcap *p, struct carrier *c, struct pass *pass)
{
	uint8_t data[CARRIER_FRAME_MAX];
	struct pcap_frame frame;
	char words[128];

	pcap_rewind(&p->in);
	for (pass->frames = 0; pcap_next(&p->in, &frame, data, sizeof(data)); pass->frames++) {
		enum carrier_verdict v = CARRIER_UNHEARD;

		if (!pass->frames) {
			pass->begun_ns = clock_ns();
			pass->first_ns = frame.ns;
		}
		if (!frame_wait(c, frame_due(p, pass, &frame)))
			return false;
		if (frame_is_whole(&frame))
			v = frame_in(c, pass, data, frame.bytes);
		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
	}
	if (pass->frames == p->in.frames)
		return true;
	(void)snprintf(words, sizeof(words),
		       "the pcap file has been changed: its frame %llu cannot be read any more",
		       (unsigned long long)pass->frames + 1);
	carrier_warn(c, words);
	return false;
}

static void end_pcap_take(struct tie_end *e, struct carrier *c)
{
	struct end_pcap *p = end_pcap_of(e);
	struct pass pass = {0};

	if (!p->in.file)
		return;
	for (uint32_t i = 0; !p->loops || i < p->loops; i++)
		if (!carrier_sleep(c, 0, NULL, 0) || !end_pcap_pass(p, c, &pass))
			return;
	carrier_all_in(c);
}

static const struct tie_end_ops end_pcap_ops = {
	.put = end_pcap_put,
	.idle = end_pcap_idle,
	.take = end_pcap_take,
	.is_up = end_pcap_is_up,
};

void end_pcap_init(struct end_pcap *e)
{
	e->end.ops = &end_pcap_ops;
	e->full = false;
}
