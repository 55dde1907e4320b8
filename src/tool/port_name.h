/* SPDX-License-Identifier: BSD-2-Clause */
/* A port as users name it: [HOST/]HCA[:PORT]. */
#pragma once

#include "tool/view.h"

struct port_name {
	char host[FABRIC_NAME_BYTES]; /* empty: the session's host */
	char hca[FABRIC_NAME_BYTES];
	uint32_t number;
};

/* Reads a name.  False after an error line: it is no name of a port. */
bool port_name_read(const struct session *s, const char *text, struct port_name *out);
/* Gives its row, and the name of its host.  False after an error line: there is no such port. */
bool port_name_find(const struct session *s, struct view *v, const struct port_name *name,
		    struct msg_host_reply *host, uint32_t *row);
