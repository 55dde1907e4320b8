// SPDX-License-Identifier: BSD-2-Clause
/* See port_name.h. */
#include "tool/port_name.h"

#include <string.h>

#include "base/text.h"

/* Splits "HCA:PORT", or "HCA" for port 1.  False if PORT is no number of a port. */
static bool split_port(char *hca, uint32_t *port)
{
	char *colon = strchr(hca, ':');

	*port = 1;
	if (!colon)
		return true;
	*colon = '\0';
	return text_number(colon + 1, UINT8_MAX, port);
}

static bool port_name_split(const char *text, struct port_name *out)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : 0;

	*out = (struct port_name){0};
	if (n >= sizeof(out->host))
		return false;
	memcpy(out->host, text, n);
	if (slash && !fabric_name_ok(out->host))
		return false;
	return text_copy(out->hca, sizeof(out->hca), slash ? slash + 1 : text) &&
	       split_port(out->hca, &out->number) && fabric_name_ok(out->hca);
}

bool port_name_read(const struct session *s, const char *text, struct port_name *out)
{
	if (port_name_split(text, out))
		return true;
	tool_error(s->command, "'%s' is not the name of a port, [HOST/]HCA[:PORT]", text);
	return false;
}

bool port_name_find(const struct session *s, struct view *v, const struct port_name *name,
		    struct msg_host_reply *host, uint32_t *row)
{
	struct session at = *s;

	if (name->host[0])
		at.host = name->host;
	if (!session_host(&at, v->sock, host))
		return false;
	/* Asks once more, because only view_host checks the rows. */
	for (uint32_t i = 0; view_host(v, host->index, host) && i < host->nports; i++) {
		const struct subnet_node *node = subnet_node_of(&v->subnet, host->rows[i]);

		*row = host->rows[i];
		if (!strncmp(node->name, name->hca, sizeof(node->name)) &&
		    v->subnet.ports[*row].number == name->number)
			return true;
	}
	tool_error(s->command, "host '%s' has no device '%s' with a port %u; see softhca devices",
		   host->name, name->hca, name->number);
	return false;
}
