// SPDX-License-Identifier: BSD-2-Clause
/* What an agent may not send; see umad.h. */
#include "fabric/umad.h"

#include "prm/mad.h"

#include <errno.h>

#define SL_MAX 15u

bool mad_sends_rmpp(const struct mad_sender *a, const uint8_t *mad)
{
	return a->rmpp && !a->user_rmpp && mad_rmpp_is_active(mad);
}

int mad_send_check(const struct mad_sender *a, uint8_t sl, int gid_index, const uint8_t *mad,
		   size_t length)
{
	unsigned class = mad[MAD_AT_CLASS];

	if (gid_index >= (int)a->gids || sl > SL_MAX)
		return -EINVAL;
	if (length < mad_data_at(class))
		return -EINVAL;
	if (length > MAD_BYTES && !mad_sends_rmpp(a, mad))
		return -EINVAL;
	return a->rmpp && !mad_class_has_rmpp(class) ? -EINVAL : 0;
}
