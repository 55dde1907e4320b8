// SPDX-License-Identifier: BSD-2-Clause
/* See view.h. */
#include "fabric/client/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/client/link.h"

int fabric_view_open(struct fabric_view *v)
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS], none[MSG_MAX_FDS], sock, ret;
	struct msg info = {0}, host = {0};

	*v = (struct fabric_view){0};
	if (!env)
		return -ENODEV;
	sock = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, &info, MSG_INFO, fds);
	if (sock < 0)
		return sock;
	memcpy(host.host.name, env->host, sizeof(host.host.name));
	ret = link_call(sock, &host, MSG_HOST, none);
	if (!ret)
		ret = client_segments_map_to_look(&v->segments, &info.info_reply, &host.host_reply,
						  fds);
	v->host = host.host_reply.index;
	msg_close_fds(fds);
	close(sock);
	return ret;
}

void fabric_view_close(struct fabric_view *v)
{
	client_segments_unmap(&v->segments);
}

/* Adds an id to a list; false: there is no memory. */
static bool cm_id_add(struct msg_cm_id_reply **ids, uint32_t *n, uint32_t *room,
		      const struct msg_cm_id_reply *id)
{
	if (*n == *room) {
		const uint32_t more = *room ? 2 * *room : 64;
		struct msg_cm_id_reply *grown = realloc(*ids, more * sizeof(*grown));

		if (!grown)
			return false;
		*ids = grown;
		*room = more;
	}
	(*ids)[(*n)++] = *id;
	return true;
}

/* Has the daemon answered what was asked? */
static bool is_from(const struct msg_cm_id_reply *id, const struct msg_cm_id *from)
{
	return id->host > from->host || (id->host == from->host && id->number >= from->number);
}

int fabric_cm_ids(const char *dir, struct msg_cm_id_reply **ids, uint32_t *n)
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS], sock, ret = 0;
	uint32_t room = 0;
	struct msg_cm_id from = {0};
	struct msg m = {0};

	*ids = NULL;
	*n = 0;
	if (!dir && !env)
		return -ENODEV;
	if (!dir)
		dir = env->dir;
	sock = link_open(dir, NULL, &m, MSG_CM_ID, fds);
	if (sock < 0)
		return sock;
	/* Hosts and numbers rise, so this ends. */
	while (!ret && m.cm_id_reply.number != CM_NO_ID && is_from(&m.cm_id_reply, &from)) {
		from = (struct msg_cm_id){m.cm_id_reply.number + 1, m.cm_id_reply.host};
		if (!cm_id_add(ids, n, &room, &m.cm_id_reply)) {
			ret = -ENOMEM;
			break;
		}
		m = (struct msg){.cm_id = from};
		ret = link_call(sock, &m, MSG_CM_ID, fds);
	}
	close(sock);
	if (ret) {
		free(*ids);
		*ids = NULL;
		*n = 0;
	}
	return ret;
}
