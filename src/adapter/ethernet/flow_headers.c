// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/ethernet/flow_headers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"

int flow_headers_create(struct adapter *a, const uint8_t *bytes, uint32_t n,
			struct flow_headers **out, uint32_t *number)
{
	struct flow_headers *h;
	int64_t got;

	if (!n || n % 2 || n > FLOW_HEADERS_MAX)
		return -EINVAL;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->n = n;
	memcpy(h->byte, bytes, n);
	got = ids_add(&a->ethernet->headers, h);
	if (got < 0) {
		free(h);
		return (int)got;
	}
	*out = h;
	*number = (uint32_t)got;
	return 0;
}

void flow_headers_destroy(struct adapter *a, struct flow_headers *h, uint32_t number)
{
	ids_remove(&a->ethernet->headers, number);
	free(h);
}
