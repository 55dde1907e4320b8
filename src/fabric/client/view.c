// SPDX-License-Identifier: BSD-2-Clause
/* See view.h. */
#include "fabric/client/view.h"

#include <errno.h>
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
