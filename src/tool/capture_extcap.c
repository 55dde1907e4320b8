// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca capture as Wireshark calls programs of its folder extcap (extcap(4)): which ports there
 * are, and how they are captured.  An interface is called "softhca" (all ports) or by its port,
 * "softhca-host1/mlx5_0".
 */
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/capture.h"
#include "tool/pcapng.h"

#define INTERFACE_ALL	 "softhca"
#define INTERFACE_PREFIX "softhca-"
/* A menu is no place for more. */
#define INTERFACES_MOST 64u

/* Opens a view without a word if there is no fabric: Wireshark asks at each start. */
static bool view_try(const struct session *s, struct view *v)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock = link_open(s->dir, NULL, &m, MSG_INFO, fds);

	return sock >= 0 && view_take(s, sock, &m, fds, v);
}

static void interfaces_print(struct view *v)
{
	char name[CAPTURE_PORT_TEXT];
	uint32_t n = 0;

	printf("interface {value=" INTERFACE_ALL "}{display=softhca: all ports}\n");
	for (uint32_t row = 0; row < v->subnet.nports && n < INTERFACES_MOST; row++) {
		if (subnet_node_of(&v->subnet, row)->kind != SUBNET_HCA)
			continue;
		capture_port_text(v, row, name);
		printf("interface {value=" INTERFACE_PREFIX "%s}{display=softhca: %s}\n", name,
		       name);
		n++;
	}
}

int capture_extcap_port(const struct session *s, struct view *v, const char *interface,
			struct msg_capture *want)
{
	const size_t prefix = sizeof(INTERFACE_PREFIX) - 1;
	struct msg_host_reply host;
	struct port_name name;

	if (!strcmp(interface, INTERFACE_ALL))
		return 0;
	if (strncmp(interface, INTERFACE_PREFIX, prefix) != 0) {
		tool_error(s->command, "'%s' is no interface of softhca", interface);
		return EXIT_USAGE;
	}
	if (!port_name_read(s, interface + prefix, &name))
		return EXIT_USAGE;
	if (!port_name_find(s, v, &name, &host, &want->rows[0]))
		return EXIT_OURS;
	want->nrows = 1;
	return 0;
}

/* All ports together are of several types; each says in the file which. */
static int dlts_print(const struct session *s, const char *interface)
{
	struct msg_capture want = {0};
	bool ethernet = false;
	struct view v;
	int status;

	if (!interface)
		return EXIT_USAGE;
	if (!view_try(s, &v))
		return EXIT_OURS;
	status = capture_extcap_port(s, &v, interface, &want);
	if (!status && want.nrows)
		ethernet = v.subnet.ports[want.rows[0]].ethernet;
	view_close(&v);
	if (!status)
		printf("dlt {number=%u}{name=%s}{display=%s}\n",
		       ethernet ? LINKTYPE_ETHERNET : LINKTYPE_ERF, ethernet ? "EN10MB" : "ERF",
		       ethernet ? "Ethernet" : "InfiniBand in ERF records");
	return status;
}

/* Wireshark shows what is printed as the reason that a filter is bad. */
static int filter_check(const char *filter)
{
	struct capture_want want = {0};
	char error[256];

	if (capture_expression_read(filter, &want, error, sizeof(error)))
		return 0;
	puts(error);
	return EXIT_USAGE;
}

int capture_extcap(const struct session *s, const struct capture_options *o)
{
	struct view v;

	if (o->interfaces) {
		printf("extcap {version=" SOFTHCA_VERSION "}{display=softhca}\n");
		if (view_try(s, &v)) {
			interfaces_print(&v);
			view_close(&v);
		}
		return 0;
	}
	if (o->dlts)
		return dlts_print(s, o->interface);
	if (o->config) {
		printf("arg {number=0}{call=--snaplen}{display=Octets of each packet}"
		       "{type=integer}{range=1,%u}{default=%u}\n",
		       CAPTURE_SNAPLEN, CAPTURE_SNAPLEN);
		return 0;
	}
	return filter_check(o->filter);
}
