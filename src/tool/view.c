// SPDX-License-Identifier: BSD-2-Clause
/* Gathers what status and devices print; see view.h. */
#include "tool/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"

/* As many as the daemon answers in one turn. */
#define REQUESTS_AHEAD 64u

bool view_open(const struct session *s, bool start, struct view *v)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock = session_link(s, start, &m, MSG_INFO, fds);

	return sock >= 0 && view_take(s, sock, &m, fds, v);
}

bool view_take(const struct session *s, int sock, const struct msg *m, int fds[MSG_MAX_FDS],
	       struct view *v)
{
	int ret = -EBADMSG;
	void *p;

	memset(v, 0, sizeof(*v));
	v->sock = sock;
	v->info = m->info_reply;
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
	free(v->hosts);
	free(v->counters);
	close(v->sock);
}

/* ---- what the processes share ---- */

static const void *segment_map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void segment_unmap(const void *p, size_t bytes)
{
	if (p)
		munmap((void *)(uintptr_t)p, bytes);
}

void view_segments_unmap(struct view_segments *segments)
{
	segment_unmap(segments->slots, segments->slots_bytes);
	segment_unmap(segments->registry, sizeof(*segments->registry));
	*segments = (struct view_segments){0};
}

bool view_segments_map(struct view *v, struct view_segments *out)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};

	*out = (struct view_segments){.slots_bytes = sizeof(struct slot) * REGISTRY_SLOTS};
	if (link_call(v->sock, &m, MSG_INFO, fds))
		return false;
	if (m.info_reply.slots_bytes >= out->slots_bytes) {
		out->slots = segment_map(fds[HELLO_FD_SLOTS], out->slots_bytes);
		out->registry = segment_map(fds[HELLO_FD_REGISTRY], sizeof(*out->registry));
	}
	msg_close_fds(fds);
	if (out->slots && out->registry)
		return true;
	view_segments_unmap(out);
	return false;
}

/* ---- requests to the daemon ---- */

static int reply_check(const struct msg *m, enum msg_type type, uint32_t seq)
{
	if (m->head.status)
		return m->head.status;
	return m->head.type == type && m->head.seq == seq ? 0 : -EBADMSG;
}

/*
 * Asks for n rows of a table and passes each reply on.  Several requests are on their way at a
 * time, because waiting for each answer alone would have both processes wake up for each row.
 */
static int ask_all(struct view *v, enum msg_type type, uint32_t n,
		   void (*take)(struct view *v, uint32_t index, const struct msg *m))
{
	int fds[MSG_MAX_FDS];
	uint32_t asked = 0;

	for (uint32_t got = 0; got < n; got++) {
		struct msg m;
		int ret = 0;

		for (; !ret && asked < n && asked - got < REQUESTS_AHEAD; asked++) {
			m = (struct msg){0};
			if (type == MSG_HOST)
				m.host.index = asked;
			else
				m.index.index = asked;
			msg_prepare(&m, type, MSG_REQUEST, asked + 1, 0);
			ret = msg_send(v->sock, &m, NULL, 0, 0);
		}
		if (!ret)
			ret = msg_recv(v->sock, &m, fds, 1u << MSG_REPLY, 0);
		if (!ret)
			ret = reply_check(&m, type, got + 1);
		if (ret)
			return ret == -EAGAIN ? -ETIMEDOUT : ret;
		take(v, got, &m);
	}
	return 0;
}

static void take_host(struct view *v, uint32_t index, const struct msg *m)
{
	v->hosts[index] = m->host_reply;
}

static void take_counters(struct view *v, uint32_t row, const struct msg *m)
{
	v->counters[row] = m->counters_reply;
}

/* Rows of hosts come first, and only they have counters of programs. */
static uint32_t rows_of_hosts(const struct view *v)
{
	uint32_t rows = 0;

	for (uint32_t i = 0; i < v->subnet.nnodes; i++)
		if (v->subnet.nodes[i].kind == SUBNET_HCA)
			rows = v->subnet.nodes[i].first_port + v->subnet.nodes[i].nports;
	return rows < v->subnet.nports ? rows : v->subnet.nports;
}

int view_read(struct view *v)
{
	int ret = -ENOMEM;

	v->hosts = calloc(v->info.nhosts, sizeof(*v->hosts));
	v->counters = calloc(v->subnet.nports, sizeof(*v->counters));
	if (v->hosts && v->counters)
		ret = ask_all(v, MSG_HOST, v->info.nhosts, take_host);
	return ret ? ret : ask_all(v, MSG_COUNTERS, rows_of_hosts(v), take_counters);
}

bool view_load(const struct session *s, struct view *v)
{
	int ret = view_read(v);

	if (ret)
		session_link_error(s, ret);
	return !ret;
}

static bool host_check(const struct view *v, struct msg_host_reply *host)
{
	host->name[sizeof(host->name) - 1] = '\0';
	if (host->nports > SLOT_PORTS)
		return false;
	for (uint32_t i = 0; i < host->nports; i++)
		if (host->rows[i] >= v->subnet.nports)
			return false;
	return true;
}

bool view_host(struct view *v, uint32_t index, struct msg_host_reply *host)
{
	struct msg m = {.host.index = index};
	int fds[MSG_MAX_FDS];

	if (index >= v->info.nhosts)
		return false;
	if (v->hosts)
		*host = v->hosts[index];
	else if (!link_call(v->sock, &m, MSG_HOST, fds))
		*host = m.host_reply;
	else
		return false;
	return host_check(v, host);
}

void view_attr(const struct view *v, uint32_t row, enum port_attr attr, char *buf, size_t size)
{
	int n = port_attr_text(&v->subnet.ports[row], attr, buf, size);

	buf[n < 0 ? 0 : strcspn(buf, "\n")] = '\0';
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

/* ---- ports as users name them ---- */

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
