// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters of the ports, as device code reads them.  The manual says that a program crashes if it
 * asks for a counter that does not exist: here it ends by a fault, and the log says why.
 */
#include "dpa/process.h"

#include <string.h>

#include "base/log.h"
#include "usermem/usermem.h"

/* Numbers of enum flexio_dev_nic_counter_ids: a kind, and a port in the lowest bits. */
#define ID_RX	     0x10u
#define ID_TX	     0x20u
#define ID_PORT_MASK 0x03u

void dpa_counters_init(struct dpa_counters *c)
{
	*c = (struct dpa_counters){0};
	pthread_mutex_init(&c->lock, NULL);
}

void dpa_counters_free(struct dpa_counters *c)
{
	pthread_mutex_destroy(&c->lock);
}

static bool id_is_known(uint32_t id)
{
	return (id & ~ID_PORT_MASK) == ID_RX || (id & ~ID_PORT_MASK) == ID_TX;
}

static bool counters_wrong(struct dpa_wrong *wrong, uint64_t addr, uint64_t bytes, bool write,
			   const char *why)
{
	log_warn("DPA: counters of the ports: %s", why);
	*wrong = (struct dpa_wrong){.addr = addr, .bytes = bytes, .write = write};
	return false;
}

/*
 * Stacks lie above all else in the region; they may go while the choice stays, so no array may lie
 * there.
 */
static bool array_may_stay(const struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	return range_inside(addr - (uintptr_t)p->region, bytes, (uint64_t)(p->stacks - p->region));
}

bool dpa_counters_choose(struct dpa_process *p, uint64_t values, uint64_t ids, uint32_t count,
			 struct dpa_wrong *wrong)
{
	struct dpa_counters chosen = {.values = values, .count = count};
	uint64_t bytes = (uint64_t)count * sizeof(uint32_t);

	if (count > DPA_COUNTERS)
		return counters_wrong(wrong, ids, bytes, false, "there are too many");
	if (!array_may_stay(p, ids, bytes) ||
	    !usermem_copy(chosen.ids, (void *)(uintptr_t)ids, bytes))
		return counters_wrong(wrong, ids, bytes, false,
				      "their numbers are not in global or heap memory");
	if (!array_may_stay(p, values, bytes))
		return counters_wrong(wrong, values, bytes, true,
				      "their values are not to go to global or heap memory");
	for (uint32_t i = 0; i < count; i++)
		if (!id_is_known(chosen.ids[i]))
			return counters_wrong(wrong, ids + i * sizeof(uint32_t), sizeof(uint32_t),
					      false, "one has a number that there is not");
	pthread_mutex_lock(&p->counters.lock);
	p->counters.values = chosen.values;
	p->counters.count = chosen.count;
	memcpy(p->counters.ids, chosen.ids, sizeof(chosen.ids));
	pthread_mutex_unlock(&p->counters.lock);
	return true;
}

/* Returns the counter's value; nothing went through a port that does not exist. */
static uint32_t counter_read(const struct dpa_process *p, uint32_t id)
{
	uint64_t bytes = 0;

	if (p->attr.port_bytes)
		(void)p->attr.port_bytes(p->attr.user, id & ID_PORT_MASK,
					 (id & ~ID_PORT_MASK) == ID_RX, &bytes);
	return (uint32_t)bytes;
}

bool dpa_counters_sample(struct dpa_process *p, struct dpa_wrong *wrong)
{
	struct dpa_counters *c = &p->counters;
	uint32_t ids[DPA_COUNTERS], values[DPA_COUNTERS], count;
	uint64_t to;

	pthread_mutex_lock(&c->lock);
	to = c->values;
	count = c->count;
	memcpy(ids, c->ids, sizeof(ids));
	pthread_mutex_unlock(&c->lock);
	if (!to)
		return counters_wrong(wrong, 0, 0, true, "none were chosen before they are read");
	for (uint32_t i = 0; i < count; i++)
		values[i] = counter_read(p, ids[i]);
	if (!usermem_copy((void *)(uintptr_t)to, values, count * sizeof(uint32_t)))
		return counters_wrong(wrong, to, count * sizeof(uint32_t), true,
				      "their values cannot be written there");
	return true;
}
