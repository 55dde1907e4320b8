/* SPDX-License-Identifier: BSD-2-Clause */
/* What ports are tied to, for status. */
#pragma once

#include "tool/view.h"

/* A line behind that of the port, if it is tied. */
void tied_print(struct view *v, uint32_t row);
/* The member "tie" of a port's object, if it is tied. */
void tied_json(struct view *v, struct json *j, uint32_t row);
