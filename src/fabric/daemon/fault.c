// SPDX-License-Identifier: BSD-2-Clause
/* The rules of faults on demand, which processes apply; see registry/fault.h. */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/fabric.h"

/* What a rule concerns. */
static struct fault_rule fault_selectors(const struct fault_rule *r)
{
	struct fault_rule s = {
		.kind = r->kind,
		.link_row_plus_1 = r->link_row_plus_1,
		.from_row_plus_1 = r->from_row_plus_1,
		.from_host_plus_1 = r->from_host_plus_1,
		.to_row_plus_1 = r->to_row_plus_1,
		.to_host_plus_1 = r->to_host_plus_1,
		.qpn = r->qpn,
		.ops = r->ops,
		.first = r->first,
		.count = r->count,
		.object = r->object,
		.event_plus_1 = r->event_plus_1,
		.error_state = r->error_state,
	};

	memcpy(s.call, r->call, sizeof(s.call));
	return s;
}

static bool fault_same(const struct fault_rule *a, const struct fault_rule *b)
{
	struct fault_rule x = fault_selectors(a), y = fault_selectors(b);

	return !memcmp(&x, &y, sizeof(x));
}

static bool fault_does(const struct fault_rule *r)
{
	switch (r->kind) {
	case FAULT_REQUESTS:
	case FAULT_RECEIVES:
		return r->syndrome;
	case FAULT_CALLS:
		return r->error;
	case FAULT_OBJECTS:
		return r->event_plus_1 || r->error_state;
	default:
		break;
	}
	return r->loss_ppm || r->corrupt_ppm || r->duplicate_ppm || r->reorder_ppm || r->delay_us ||
	       r->jitter_us || r->rate_mbps;
}

static bool fault_is_whole(const struct fault_rule *r)
{
	return r->kind < FAULT_KINDS && r->object < FAULT_OBJECT_TYPES &&
	       r->event_plus_1 <= IB_EVENT_WQ_FATAL + 1 && r->syndrome <= UINT8_MAX &&
	       r->vendor_err <= UINT8_MAX && r->error >= 0 && r->some_ppm <= FAULT_ALL &&
	       !r->call[FAULT_CALL_BYTES - 1] && !r->call[0] == (r->kind != FAULT_CALLS) &&
	       r->loss_ppm <= FAULT_ALL && r->corrupt_ppm <= FAULT_ALL &&
	       r->duplicate_ppm <= FAULT_ALL && r->reorder_ppm <= FAULT_ALL &&
	       !r->first == !r->count;
}

/* From now on processes make packets of all that they send, or need not any more. */
static void fault_observe(struct fabric *f, bool any)
{
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++) {
		if (f->rows[slot].state != SLOT_TAKEN)
			continue;
		if (any)
			atomic_fetch_or(&f->slots[slot].observers, SLOT_HAS_FAULTS);
		else
			atomic_fetch_and(&f->slots[slot].observers, ~SLOT_HAS_FAULTS);
	}
}

bool fault_observes(const struct fabric *f)
{
	const struct fault_rule *rule = f->registry->faults.rule;

	/* What happens to objects happens at once. */
	for (uint32_t i = 0; i < FAULT_RULES; i++)
		if (rule[i].set && rule[i].kind != FAULT_OBJECTS)
			return true;
	return false;
}

/* Stores a rule in a row, or takes it away (NULL), and begins to count anew. */
static void fault_store(struct fabric *f, uint32_t row, const struct fault_rule *rule,
			const void *owner)
{
	static const struct fault_rule none;
	struct fault_rules *rules = &f->registry->faults;
	uint32_t n = 0;

	atomic_fetch_add(&rules->sequence, 1);
	atomic_thread_fence(memory_order_release);
	rules->rule[row] = rule ? *rule : none;
	rules->rule[row].set = rule ? ++f->faults_set : 0;
	for (uint32_t i = 0; i < FAULT_RULES; i++)
		if (rules->rule[i].set)
			n = i + 1;
	atomic_store(&rules->n, n);
	/* Before anybody counts for the new rule. */
	f->fault_seen[row] = f->fault_done[row] = 0;
	f->fault_owner[row] = owner;
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++) {
		if (f->rows[slot].state == SLOT_FREE)
			continue;
		atomic_store(&f->slots[slot].faults[row].seen, 0);
		atomic_store(&f->slots[slot].faults[row].done, 0);
	}
	atomic_fetch_add(&rules->sequence, 1);
	fault_observe(f, fault_observes(f));
}

int fault_set(struct fabric *f, const struct fault_rule *rule, const void *owner,
	      struct msg_impair_reply *where)
{
	const struct fault_rules *rules = &f->registry->faults;
	uint32_t unused = FAULT_RULES, same = FAULT_RULES;

	if (!fault_is_whole(rule))
		return -EINVAL;
	for (uint32_t i = 0; i < FAULT_RULES; i++) {
		if (!rules->rule[i].set)
			unused = unused == FAULT_RULES ? i : unused;
		else if (fault_same(&rules->rule[i], rule))
			same = i;
	}
	if (fault_does(rule)) {
		same = same == FAULT_RULES ? unused : same;
		if (same == FAULT_RULES)
			return -ENOSPC;
		fault_store(f, same, rule, owner);
		*where = (struct msg_impair_reply){same, rules->rule[same].set};
	} else if (same < FAULT_RULES) {
		fault_store(f, same, NULL, NULL);
	}
	return 0;
}

void fault_clear(struct fabric *f, bool packets)
{
	const struct fault_rule *rule = f->registry->faults.rule;

	for (uint32_t i = 0; i < FAULT_RULES; i++)
		if (rule[i].set && (rule[i].kind == FAULT_PACKETS) == packets)
			fault_store(f, i, NULL, NULL);
}

void fault_owner_ended(struct fabric *f, const void *owner)
{
	for (uint32_t i = 0; i < FAULT_RULES; i++)
		if (f->fault_owner[i] == owner)
			fault_store(f, i, NULL, NULL);
}

void fault_fold(struct fabric *f, uint32_t slot)
{
	for (uint32_t i = 0; i < FAULT_RULES; i++) {
		f->fault_seen[i] += atomic_exchange(&f->slots[slot].faults[i].seen, 0);
		f->fault_done[i] += atomic_exchange(&f->slots[slot].faults[i].done, 0);
	}
}

void fault_count(const struct fabric *f, uint32_t row, uint64_t *seen, uint64_t *done)
{
	*seen = f->fault_seen[row];
	*done = f->fault_done[row];
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++) {
		if (f->rows[slot].state == SLOT_FREE)
			continue;
		*seen += atomic_load(&f->slots[slot].faults[row].seen);
		*done += atomic_load(&f->slots[slot].faults[row].done);
	}
}
