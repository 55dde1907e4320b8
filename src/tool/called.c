// SPDX-License-Identifier: BSD-2-Clause
/* Lists the nodes that share a name. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/client/link.h"
#include "subnet/subnet.h"
#include "tool/tool.h"

#define LIST_BYTES 512u

/* Lists as many as there is room for, each by something that it alone has. */
static void candidates_list(const struct subnet *subnet, const char *name, char *list, size_t size)
{
	size_t used = 0;

	list[0] = '\0';
	for (uint32_t i = 0; i < subnet->nnodes; i++) {
		const struct subnet_node *n = &subnet->nodes[i];
		int more;

		if (strncmp(n->description, name, sizeof(n->description)) != 0)
			continue;
		more = snprintf(list + used, size - used, "%s%.*s (0x%lx)", used ? ", " : "",
				(int)sizeof(n->id), n->id, (unsigned long)n->guid);
		if (more < 0 || (size_t)more >= size - used) {
			snprintf(list + used, size - used, ", ...");
			return;
		}
		used += (size_t)more;
	}
}

void session_called_twice(const struct session *s, const char *name)
{
	char list[LIST_BYTES] = "see softhca fabric show";
	int fds[MSG_MAX_FDS];
	struct subnet subnet;
	struct msg m = {0};
	void *memory;
	int sock = link_open(s->dir, NULL, &m, MSG_INFO, fds);

	if (sock >= 0) {
		memory = mmap(NULL, m.info_reply.subnet_bytes, PROT_READ, MAP_SHARED,
			      fds[HELLO_FD_SUBNET], 0);
		if (memory != MAP_FAILED) {
			if (!subnet_attach(&subnet, memory, m.info_reply.subnet_bytes))
				candidates_list(&subnet, name, list, sizeof(list));
			munmap(memory, m.info_reply.subnet_bytes);
		}
		msg_close_fds(fds);
		close(sock);
	}
	tool_error(s->command,
		   "'%s' is several nodes of fabric '%s': %s; name one by its id or GUID", name,
		   s->fabric, list);
}
