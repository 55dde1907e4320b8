/* SPDX-License-Identifier: BSD-2-Clause */
/* Definers of steering: general objects. */
#pragma once

#include "driver/devx/devx.h"

/* For devx/general.c. */
int devx_create_definer(struct devx_call *c, struct devx_obj *obj);
