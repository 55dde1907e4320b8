/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of a program as `softhca status` shows them. */
#pragma once

#include "tool/reach.h"

struct status_program {
	struct view *view;
	const struct reach *reach;
	const struct reach_process *process; /* or NULL */
	int32_t pid;
	const char *host;
	const char *state;
	char command[32];
	uint32_t only_qp; /* shows only this one; 0: shows all */
};

void status_objects_print(const struct status_program *p);
/* Prints its keys; in status_key.c. */
void status_keys_print(const struct status_program *p);
void status_keys_json(const struct status_program *p, struct json *j);
/* Writes members of an object. */
void status_objects_json(const struct status_program *p, struct json *j);
