// SPDX-License-Identifier: BSD-2-Clause
/* Does the work of the process's devices, in whichever thread calls it: the engine or a poller. */
#include "driver/runtime/process.h"

static bool process_deliver(struct process *p)
{
	if (!wire_process_progress(p->wire_process))
		return false;
	for (uint32_t i = 0; i < p->nhcas; i++)
		adapter_batch_end(p->hcas[i].adapter);
	return true;
}

bool process_progress_until(struct process *p, uint64_t *deadline_ns)
{
	bool done = false;

	/*
	 * We do first what is owed, and then deliver what has arrived: so a program that polls gets
	 * the completion of a receive before the acknowledgement goes out, which its next poll or
	 * post sends.
	 */
	for (uint32_t i = 0; i < p->nhcas; i++)
		done |= adapter_progress(p->hcas[i].adapter, deadline_ns);
	return process_deliver(p) | done;
}

bool process_progress(struct process *p)
{
	return process_progress_until(p, NULL);
}

bool process_has_received(struct process *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nhcas; i++)
		any |= adapter_has_received(p->hcas[i].adapter);
	return any;
}

bool process_few_receives(struct process *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nhcas; i++)
		any |= adapter_few_receives(p->hcas[i].adapter);
	return any;
}

bool process_owes(const struct process *p)
{
	for (uint32_t i = 0; i < p->nhcas; i++)
		if (adapter_owes(p->hcas[i].adapter))
			return true;
	return false;
}
