// SPDX-License-Identifier: BSD-2-Clause
/*
 * PortSamplesControl and PortSamplesResult (IBTA 16.1.3.2, 16.1.3.4): some time after a Set, the
 * port's mechanism begins to count what the Set has selected, and counts for as long as the Set
 * says.  A node has one mechanism, which works for one port at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/pma/pma.h"
#include "prm/pma.h"

#define SAMPLE_TICK	100u /* of 10 ns each */
#define SAMPLE_TICK_NS	1000ull
#define SAMPLE_WIDTH_32 4u
#define SAMPLE_ANY	1u /* mask of a counter that can count all that is in psc_select */
/* Optional attributes that the node has: bits of OptionMask. */
#define SAMPLE_OPTIONS (1u << 0 | 1u << 1 | 1u << 3 | 1u << 6 | 1u << 7)

struct sampler {
	struct loop_timer timer;
	struct sampler *next;
	struct pma *pma;
	uint32_t node;
	uint32_t row;
	uint32_t start, interval; /* ticks */
	uint16_t tag;
	uint8_t op_code;
	uint8_t status; /* enum psc_status */
	uint16_t select[PSC_COUNTERS];
	uint64_t first[PSC_COUNTERS];
	uint32_t value[PSC_COUNTERS];
};

static struct sampler *sampler_find(const struct pma_request *r)
{
	struct sampler *s = r->pma->samplers;

	while (s && s->node != r->net->ports[r->node_row].node)
		s = s->next;
	return s;
}

static struct sampler *sampler_make(const struct pma_request *r)
{
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->pma = r->pma;
	s->node = r->net->ports[r->node_row].node;
	s->next = r->pma->samplers;
	r->pma->samplers = s;
	return s;
}

/* Returns the total of counter i.  What is not in the list, waiting among it, never happens. */
static uint64_t sampler_total(const struct sampler *s, unsigned i)
{
	static const uint8_t sources[] = {
		[PSC_XMIT_DATA] = NET_XMIT_DATA,
		[PSC_RCV_DATA] = NET_RCV_DATA,
		[PSC_XMIT_PACKETS] = NET_XMIT_PACKETS,
		[PSC_RCV_PACKETS] = NET_RCV_PACKETS,
	};

	if (!s->select[i] || s->select[i] >= sizeof(sources))
		return 0;
	return pma_total(s->pma->fabric->net, s->row, sources[s->select[i]]);
}

static void sampler_arm(struct sampler *s, uint32_t ticks)
{
	struct loop *l = s->pma->fabric->loop;

	loop_timer_arm(l, &s->timer, loop_now(l) + ticks * SAMPLE_TICK_NS);
}

static void sampler_begin(struct sampler *s)
{
	s->status = PSC_RUNNING;
	for (unsigned i = 0; i < PSC_COUNTERS; i++)
		s->first[i] = sampler_total(s, i);
	sampler_arm(s, s->interval);
}

static void sampler_finish(struct sampler *s)
{
	s->status = PSC_DONE;
	for (unsigned i = 0; i < PSC_COUNTERS; i++) {
		uint64_t counted = sampler_total(s, i) - s->first[i];

		s->value[i] = counted < UINT32_MAX ? (uint32_t)counted : UINT32_MAX;
	}
}

static void sampler_fire(struct loop *l, struct loop_timer *t)
{
	struct sampler *s = container_of(t, struct sampler, timer);

	(void)l;
	if (s->status == PSC_STARTING)
		sampler_begin(s);
	else
		sampler_finish(s);
}

static void sampler_set(struct sampler *s, const struct pma_request *r)
{
	s->row = r->row;
	s->op_code = (uint8_t)prm_get32(r->data, PSC_OP_CODE);
	s->tag = (uint16_t)prm_get32(r->data, PSC_TAG);
	s->start = prm_get32(r->data, PSC_START);
	s->interval = prm_get32(r->data, PSC_INTERVAL);
	for (unsigned i = 0; i < PSC_COUNTERS; i++) {
		s->select[i] = (uint16_t)prm_get32(r->data, PSC_SELECT(i));
		s->value[i] = 0;
	}
	s->status = PSC_STARTING;
	s->timer.fire = sampler_fire;
	sampler_arm(s, s->start);
}

static void sampler_write(const struct sampler *s, uint8_t *data)
{
	prm_set(data, PSC_OP_CODE, s->op_code);
	prm_set(data, PSC_STATUS, s->status);
	prm_set(data, PSC_START, s->start);
	prm_set(data, PSC_INTERVAL, s->interval);
	prm_set(data, PSC_TAG, s->tag);
	for (unsigned i = 0; i < PSC_COUNTERS; i++)
		prm_set(data, PSC_SELECT(i), s->select[i]);
}

/* Returns one mask of three bits for each counter. */
static uint32_t sample_masks(unsigned counters)
{
	uint32_t masks = 0;

	while (counters--)
		masks = masks << 3 | SAMPLE_ANY;
	return masks;
}

unsigned pma_samples_control(struct pma_request *r)
{
	struct sampler *s = sampler_find(r);

	/* A Set leaves a working mechanism alone; the answer says so. */
	if (r->set && (!s || s->status == PSC_DONE)) {
		if (!s)
			s = sampler_make(r);
		if (!s)
			return MAD_STATUS_BAD_VALUE;
		sampler_set(s, r);
	}
	memset(r->data, 0, MAD_GMP_BYTES);
	prm_set(r->data, PC_PORT_SELECT, r->net->ports[r->row].number);
	prm_set(r->data, PSC_TICK, SAMPLE_TICK);
	prm_set(r->data, PSC_COUNTER_WIDTH, SAMPLE_WIDTH_32);
	prm_set(r->data, PSC_COUNTER_MASK0, SAMPLE_ANY);
	prm_set(r->data, PSC_COUNTER_MASKS1_9, sample_masks(9));
	prm_set(r->data, PSC_COUNTER_MASKS10_14, sample_masks(5));
	prm_set(r->data, PSC_OPTION_MASK, SAMPLE_OPTIONS);
	if (s)
		sampler_write(s, r->data);
	return MAD_STATUS_OK;
}

unsigned pma_samples_result(struct pma_request *r)
{
	const struct sampler *s = sampler_find(r);

	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	memset(r->data, 0, MAD_GMP_BYTES);
	if (!s)
		return MAD_STATUS_OK;
	prm_set(r->data, PSR_TAG, s->tag);
	prm_set(r->data, PSR_STATUS, s->status);
	for (unsigned i = 0; i < PSC_COUNTERS; i++)
		prm_set(r->data, PSR_COUNTER(i), s->value[i]);
	return MAD_STATUS_OK;
}

void pma_samples_close(struct pma *p)
{
	while (p->samplers) {
		struct sampler *s = p->samplers;

		p->samplers = s->next;
		loop_timer_cancel(p->fabric->loop, &s->timer);
		free(s);
	}
}
