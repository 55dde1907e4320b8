// SPDX-License-Identifier: BSD-2-Clause
/* See tied.h. */
#include "tool/tied.h"

#include <inttypes.h>

#include "fabric/client/link.h"

static const char *const carried_names[CARRIED_COUNTS] = {
	[CARRIED_IN] = "in",
	[CARRIED_OUT] = "out",
	[CARRIED_IN_DROPPED] = "in_dropped",
	[CARRIED_OUT_DROPPED] = "out_dropped",
	[CARRIED_IN_BAD] = "in_bad",
};

static bool tied_ask(struct view *v, uint32_t row, struct msg_tied_reply *out)
{
	struct msg m = {.index.index = row};
	int fds[MSG_MAX_FDS];

	if (!v->subnet.ports[row].ethernet ||
	    !atomic_load_explicit(&v->subnet.ports[row].tie_plus_1, memory_order_acquire) ||
	    link_call(v->sock, &m, MSG_TIED, fds) || !m.tied_reply.tied)
		return false;
	*out = m.tied_reply;
	out->text[sizeof(out->text) - 1] = '\0';
	out->warning[sizeof(out->warning) - 1] = '\0';
	return true;
}

/* Writes the name of the port at the other end of a cable. */
static void peer_text(const struct view *v, const struct msg_tied_reply *t, char *text, size_t size)
{
	char name[SUBNET_PORT_TEXT];

	(void)snprintf(text, size, "port=%s", subnet_port_text(&v->subnet, t->peer, name));
}

void tied_print(struct view *v, uint32_t row)
{
	char peer[SUBNET_PORT_TEXT + 8];
	struct msg_tied_reply t;

	if (!tied_ask(v, row, &t))
		return;
	peer_text(v, &t, peer, sizeof(peer));
	printf("    tied to %s", t.peer == SUBNET_NONE ? t.text : peer);
	if (t.peer == SUBNET_NONE && !t.pid)
		printf(", whose carrier has ended");
	else if (t.pid)
		printf(" by pid %d%s", t.pid, t.all ? ", all in" : "");
	for (int i = 0; t.pid && i < CARRIED_COUNTS; i++)
		printf(", %s %" PRIu64, carried_names[i], t.carried[i]);
	putchar('\n');
	if (t.warning[0])
		printf("      %s\n", t.warning);
}

void tied_json(struct view *v, struct json *j, uint32_t row)
{
	char peer[SUBNET_PORT_TEXT + 8];
	struct msg_tied_reply t;

	if (!tied_ask(v, row, &t))
		return;
	peer_text(v, &t, peer, sizeof(peer));
	json_open(j, "tie", '{');
	json_string(j, "to", t.peer == SUBNET_NONE ? t.text : peer);
	json_number(j, "pid", (uint64_t)t.pid);
	json_bool(j, "all_in", t.all);
	if (t.warning[0])
		json_string(j, "warning", t.warning);
	for (int i = 0; i < CARRIED_COUNTS; i++)
		json_number(j, carried_names[i], t.carried[i]);
	json_close(j, '}');
}
