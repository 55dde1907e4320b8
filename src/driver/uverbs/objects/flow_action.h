/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of changes that rules make to headers; each list is an object. */
#pragma once

#include "driver/uverbs/core/request.h"

/* The list of the object; NULL: the object is no such list. */
const struct flow_modify *uflow_action_modify(struct uobj *obj);
