/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains. */
#pragma once

#include "driver/uverbs/core/object.h"

struct upd {
	struct uobj uobj;
	uint32_t pdn;
};
