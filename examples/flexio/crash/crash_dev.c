// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: adds the numbers of a list that the host has made, and believes its links. */
#include <libflexio-dev/flexio_dev.h>

#include "list.h"

__dpa_rpc__ uint64_t sum_list(uint64_t first)
{
	uint64_t sum = 0;

	for (uint64_t link = first; link;) {
		const struct node *node = (const struct node *)link;

		sum += node->number;
		link = node->next;
	}
	return sum;
}
