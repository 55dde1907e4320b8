/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions for doorbells of a DPA: general objects. */
#pragma once

#include "driver/devx/devx.h"

int devx_create_duar(struct devx_call *c, struct devx_obj *obj);
