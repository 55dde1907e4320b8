/* SPDX-License-Identifier: BSD-2-Clause */
/* What the walks through unicast and multicast tables have in common. */
#pragma once

#include "subnet/subnet.h"

/* Says why one of the two ends of a link does not let the packet pass, or SUBNET_ARRIVES. */
enum subnet_way subnet_link_pass(const struct subnet *s, uint32_t row, uint32_t peer,
				 const struct subnet_packet *p) must_check;
