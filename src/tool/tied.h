/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what ports are tied to, for status. */
#pragma once

#include "tool/view.h"

/* Prints a line behind that of the port, if the port is tied. */
void tied_print(struct view *v, uint32_t row);
/* Writes the member "tie" of a port's object, if the port is tied. */
void tied_json(struct view *v, struct json *j, uint32_t row);
