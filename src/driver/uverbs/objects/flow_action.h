/* SPDX-License-Identifier: BSD-2-Clause */
/* What rules do with headers: lists of changes, each an object. */
#pragma once

#include "driver/uverbs/core/request.h"

/* The list of the object; NULL: it is none. */
const struct flow_modify *uflow_action_modify(struct uobj *obj);
