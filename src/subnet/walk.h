/* SPDX-License-Identifier: BSD-2-Clause */
/* What walks through unicast and multicast tables have in common. */
#pragma once

#include "subnet/subnet.h"

/* What the two ends of a link have against the packet. */
enum subnet_way subnet_link_pass(const struct subnet *s, uint32_t row, uint32_t peer,
				 const struct subnet_packet *p) must_check;
