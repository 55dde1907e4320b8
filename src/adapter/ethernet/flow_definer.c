// SPDX-License-Identifier: BSD-2-Clause
/* Definers by number; an entry has 8 bits for the number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "base/hazard.h"

int flow_definer_create(struct adapter *a, uint32_t format, const uint8_t mask[FLOW_DEFINER_BYTES],
			uint32_t *number)
{
	struct ste_definer *d, *none;

	if (!ste_definer_known(format))
		return -EOPNOTSUPP;
	d = malloc(sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->format = format;
	memcpy(d->mask, mask, sizeof(d->mask));
	/* Lower numbers are kinds that the device has by itself. */
	for (uint32_t i = STE_DEFINER_FIRST; i < FLOW_DEFINERS; i++) {
		none = NULL;
		if (!atomic_compare_exchange_strong(&a->ethernet->definers[i], &none, d))
			continue;
		*number = i;
		return 0;
	}
	free(d);
	return -ENOSPC;
}

void flow_definer_destroy(struct adapter *a, uint32_t number)
{
	struct ste_definer *d = atomic_exchange(&a->ethernet->definers[number], NULL);

	hazard_wait(d, 1);
	free(d);
}
