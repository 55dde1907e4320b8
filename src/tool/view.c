// SPDX-License-Identifier: BSD-2-Clause
/* Gathers what status and devices print; see view.h. */
#include "tool/view.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/client/link.h"

bool view_open(const struct session *s, bool start, struct view *v)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int ret = -EBADMSG;
	void *p;

	memset(v, 0, sizeof(*v));
	v->sock = session_link(s, start, &m, MSG_INFO, fds);
	if (v->sock < 0)
		return false;
	v->info = m.info_reply;
	v->info.release[sizeof(v->info.release) - 1] = '\0';
	v->info.model[sizeof(v->info.model) - 1] = '\0';
	p = mmap(NULL, v->info.subnet_bytes, PROT_READ, MAP_SHARED, fds[HELLO_FD_SUBNET], 0);
	msg_close_fds(fds);
	if (p != MAP_FAILED) {
		v->memory = p;
		ret = subnet_attach(&v->subnet, p, v->info.subnet_bytes);
	}
	if (!ret)
		return true;
	tool_error(s->command, "the ports of fabric '%s' cannot be read", s->fabric);
	view_close(v);
	return false;
}

void view_close(struct view *v)
{
	if (v->memory)
		munmap(v->memory, v->info.subnet_bytes);
	close(v->sock);
}

bool view_host(struct view *v, uint32_t index, struct msg_host_reply *host)
{
	struct msg m = {.host.index = index};
	int fds[MSG_MAX_FDS];

	if (index >= v->info.nhosts || link_call(v->sock, &m, MSG_HOST, fds))
		return false;
	*host = m.host_reply;
	host->name[sizeof(host->name) - 1] = '\0';
	if (host->nports > SLOT_PORTS)
		return false;
	for (uint32_t i = 0; i < host->nports; i++)
		if (host->rows[i] >= v->subnet.nports)
			return false;
	return true;
}

bool view_counters(struct view *v, uint32_t row, struct msg_counters_reply *counters)
{
	struct msg m = {.index.index = row};
	int fds[MSG_MAX_FDS];

	if (link_call(v->sock, &m, MSG_COUNTERS, fds))
		return false;
	*counters = m.counters_reply;
	return true;
}

void view_attr(struct view *v, const char *host, uint32_t row, enum port_attr attr, char *buf,
	       size_t size)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};

	buf[0] = '\0';
	snprintf(m.attr.host, sizeof(m.attr.host), "%s", host);
	snprintf(m.attr.path, sizeof(m.attr.path), "sys/class/infiniband/%s/ports/%u/%s",
		 subnet_node_of(&v->subnet, row)->name, v->subnet.ports[row].number,
		 port_attr_name[attr]);
	if (link_call(v->sock, &m, MSG_ATTR, fds) ||
	    m.attr_reply.length >= sizeof(m.attr_reply.text))
		return;
	snprintf(buf, size, "%.*s", (int)strcspn(m.attr_reply.text, "\n"), m.attr_reply.text);
}

void view_guid(uint64_t guid, char *buf, size_t size)
{
	snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
}

void view_gid(const union ib_gid *gid, char *buf, size_t size)
{
	int n = 0;

	for (unsigned i = 0; i < 16 && (size_t)n < size; i += 2)
		n += snprintf(buf + n, size - (size_t)n, "%s%02x%02x", i ? ":" : "", gid->raw[i],
			      gid->raw[i + 1]);
}

const char *view_gid_type(const struct subnet_port *p, enum gid_type type)
{
	if (!p->ethernet)
		return "IB";
	return type == GID_ROCE_V2 ? "RoCE v2" : "RoCE v1";
}
