// SPDX-License-Identifier: BSD-2-Clause
/*
 * The communication manager: commands of programs on two hosts in any order, any message at any port, and
 * time.  Whatever comes, an event is told by as many bytes as there are events, and nothing stays behind
 * when the files are closed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/daemon/cm/id.h"
#include "fabric/daemon/sa/sa.h"
#include "fuzz.h"
#include "test_mad.h"

#define FILES	 3u
#define MOST_OPS 96u

enum op { OP_CALL, OP_CALL_AGAIN, OP_MESSAGE, OP_RUN, OP_CLOSE, OP_LINK, OP_COUNT };

static struct test_mad m;
static struct sa sa;
static struct cm cm;
static uint64_t tokens[FILES];
static int fds[FILES];

void target_init(void)
{
}

static void files_open(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		MUST(!cm_file_open(&cm, i % 2, 1, &tokens[i], &fds[i]));
}

static void everything_open(void)
{
	test_mad_open(&m);
	test_net_raise(&m.t);
	net_set_sm(&m.t.net, m.t.h1, 4, 0);
	net_set_sm(&m.t.net, m.t.h2, 4, 0);
	MUST(!sa_open(&sa, &m.mad, m.t.h2));
	cm_open(&cm, &m.mad);
	cm.random = 7;
	files_open();
}

static void everything_close(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	test_mad_run(&m, 5000);
	MUST(!cm.nfiles && !cm_id_first(&cm));
	/* All that was asked for is answered, and the ports have left their groups. */
	MUST(!cm.sa_requests);
	for (const struct sa_group *g = sa.groups; g; g = g->next)
		MUST(!g->nmembers);
	cm_close(&cm);
	sa_close(&sa);
	MUST(!cm.nearly && !m.mad.queued);
	MUST(!m.loop.ntimers);
	test_mad_close(&m);
}

/* An address that means something, or nearly. */
static void put_address(struct input *in, uint8_t *at)
{
	static const char *const names[] = {"198.18.0.1", "198.18.1.1", "127.0.0.1", "0.0.0.0",
					    "198.18.9.1", "239.1.2.3",	"127.18.0.1"};
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)(7000 + in_u8(in) % 3))};

	MUST(inet_pton(AF_INET, names[in_u8(in) % array_size(names)], &a.sin_addr) == 1);
	memcpy(at, &a, sizeof(a));
	for (uint32_t n = in_u8(in) % 3; n; n--)
		at[in_u8(in) % 28] = in_u8(in);
}

/* Where a command names its id, and where an address may be. */
static const struct {
	uint8_t id, address, second;
} places[] = {
	[RDMA_USER_CM_CMD_DESTROY_ID] = {8, 0, 0},
	[RDMA_USER_CM_CMD_BIND_IP] = {36, 8, 0},
	[RDMA_USER_CM_CMD_RESOLVE_IP] = {56, 28, 0},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {0, 0, 0},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {8, 0, 0},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {8, 0, 0},
	[RDMA_USER_CM_CMD_SET_OPTION] = {8, 0, 0},
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {44, 16, 0},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {8, 0, 0},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {8, 0, 0},
	[RDMA_USER_CM_CMD_QUERY] = {8, 0, 0},
	[RDMA_USER_CM_CMD_BIND] = {0, 8, 0},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {0, 16, 144},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {16, 24, 0},
	[CM_COMMAND_WRITE_EVENT] = {0, 0, 0},
};

static void put_id(struct msg_cm_call *c, uint32_t at, uint32_t id)
{
	memcpy(c->bytes + at, &id, sizeof(id));
}

static void op_call(struct input *in)
{
	static struct msg_cm_call c;
	struct msg_cm_call_reply reply;
	const uint8_t file = in_u8(in) % FILES, id = in_u8(in) % 8;

	c = (struct msg_cm_call){.token = in_u8(in) == 255 ? in_u64(in) : tokens[file],
				 .other = tokens[in_u8(in) % FILES],
				 .command = in_u8(in) % 25u,
				 .in = sizeof(c.bytes),
				 .out = in_u8(in) ? 512 : in_u16(in),
				 .explain = 1};
	if (c.command == RDMA_USER_CM_CMD_CREATE_ID) {
		const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, 5};

		c.bytes[0] = in_u8(in);
		memcpy(c.bytes + 16, &spaces[in_u8(in) % 4], 2);
		c.bytes[18] = in_u8(in) % 5;
	} else if (c.command == RDMA_USER_CM_CMD_CONNECT) {
		put_id(&c, 272, id);
		c.bytes[264] = in_u8(in);
		c.bytes[271] = 1;
	} else if (c.command == RDMA_USER_CM_CMD_ACCEPT) {
		c.bytes[0] = 9;
		put_id(&c, 280, id);
		c.bytes[272] = in_u8(in);
		c.bytes[279] = in_u8(in) & 1;
	} else if (c.command < array_size(places)) {
		put_id(&c, places[c.command].id, id);
		if (c.command == RDMA_USER_CM_CMD_BIND)
			c.bytes[4] = in_u8(in) & 1 ? 16 : in_u8(in);
		if (c.command == RDMA_USER_CM_CMD_RESOLVE_ADDR)
			c.bytes[10] = in_u8(in) & 1 ? 16 : in_u8(in);
		if (c.command == CM_COMMAND_WRITE_EVENT)
			c.bytes[8] = 17 + in_u8(in) % 3;
		if (places[c.command].address)
			put_address(in, c.bytes + places[c.command].address);
		if (places[c.command].second)
			put_address(in, c.bytes + places[c.command].second);
	}
	for (uint32_t n = in_u8(in) % 4; n; n--) {
		const uint16_t at = in_u16(in) % sizeof(c.bytes);

		c.bytes[at] = in_u8(in);
	}
	/* Nobody has a file that is closed, though the daemon may not know that yet. */
	for (uint32_t i = 0; i < FILES; i++)
		if (fds[i] < 0 && c.token == tokens[i])
			return;
	if (!cm_call(&cm, &c, &reply))
		MUST(reply.length <= sizeof(reply.bytes));
}

/* A message of the manager with any fields, which may name an id that is there. */
static void op_message(struct input *in)
{
	static const uint16_t attributes[] = {CM_REQ,  CM_MRA,	CM_REJ,	     CM_REP,	  CM_RTU,
					      CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_LAP};
	struct mad_packet *p = mad_packet_get(&m.mad);
	const struct cm_id *id = cm_id_next(&cm, in_u8(in) % 2, in_u8(in) % 4);

	MUST(p);
	p->row = in_u8(in) & 1 ? m.t.h1 : m.t.h2;
	p->mad[MAD_AT_BASE_VERSION] = 1;
	p->mad[MAD_AT_CLASS] = MAD_CLASS_CM;
	p->mad[MAD_AT_CLASS_VERSION] = CM_CLASS_VERSION;
	p->mad[MAD_AT_METHOD] = MAD_SEND;
	mad_put16(p->mad, MAD_AT_ATTRIBUTE, attributes[in_u8(in) % array_size(attributes)]);
	if (id) {
		prm_set(p->mad, in_u8(in) & 1 ? CM_LOCAL_ID : CM_REMOTE_ID, id->local_id);
		prm_set(p->mad, DREQ_QPN, id->qpn);
	}
	prm_set(p->mad, REQ_SERVICE_ID, 0x1060000u + 7000 + in_u8(in) % 3);
	p->mad[REQ_AT_PRIVATE + 1] = 0x40;
	for (uint32_t n = in_u8(in) % 8; n; n--) {
		const uint8_t at = in_u8(in);

		p->mad[at] = in_u8(in);
	}
	p->sqpn = p->dqpn = IB_GSI_QPN;
	p->qkey = MAD_QKEY_WELL_KNOWN;
	p->slid = in_u8(in) % 6;
	p->dlid = in_u8(in) % 6;
	p->pkey = SUBNET_PKEY_DEFAULT;
	mad_emit(&m.mad, p);
}

/* What a file has told of is what waits in it, when nothing of it has been spoilt. */
static void events_check(void)
{
	for (const struct cm_file *f = cm.files; f; f = f->next) {
		uint32_t n = 0;

		for (const struct cm_event *e = f->events; e; e = e->next, n++)
			MUST(cm_id_find(f, e->id->number) == e->id && e->id->file == f);
		MUST(n == f->nevents && f->owed <= f->nevents);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	/* As the daemon does. */
	signal(SIGPIPE, SIG_IGN);
	everything_open();
	for (uint32_t n = 0; in.left && n < MOST_OPS; n++) {
		switch (in_u8(&in) % OP_COUNT) {
		case OP_CALL:
		case OP_CALL_AGAIN:
			op_call(&in);
			break;
		case OP_MESSAGE:
			op_message(&in);
			break;
		case OP_RUN:
			test_mad_run(&m, in_u16(&in) % 20000);
			break;
		case OP_LINK:
			net_reregister(&m.t.net, in_u8(&in) & 1 ? m.t.h1 : m.t.h2);
			break;
		default: {
			const uint8_t i = in_u8(&in);

			if (i < FILES && fds[i] >= 0) {
				close(fds[i]);
				fds[i] = -1;
			}
		}
		}
		events_check();
	}
	everything_close();
	return 0;
}

/* ---- seeds ---- */

static void put_call(struct seed *s, uint32_t file, uint32_t id, uint32_t command)
{
	put_u8(s, OP_CALL);
	put_u8(s, file);
	put_u8(s, id);
	put_u8(s, 0);
	put_u8(s, 0);
	put_u8(s, command);
	put_u8(s, 1);
}

static void put_create(struct seed *s, uint32_t file, uint32_t space)
{
	put_call(s, file, 0, RDMA_USER_CM_CMD_CREATE_ID);
	put_u8(s, 1);
	put_u8(s, space);
	put_u8(s, 2);
	put_u8(s, 0);
}

static void put_where(struct seed *s, uint32_t port, uint32_t name)
{
	put_u8(s, port);
	put_u8(s, name);
	put_u8(s, 0);
}

static void put_run(struct seed *s, uint32_t ms)
{
	put_u8(s, OP_RUN);
	put_u16(s, ms);
}

/* A listener on the second host, a client on the first, and all the rest of a connection's life. */
static void put_life(struct seed *s, uint32_t space)
{
	put_create(s, 1, space);
	put_call(s, 1, 0, RDMA_USER_CM_CMD_BIND_IP);
	put_where(s, 0, 3);
	put_u8(s, 0);
	put_call(s, 1, 0, RDMA_USER_CM_CMD_LISTEN);
	put_u8(s, 0);
	put_create(s, 0, space);
	put_call(s, 0, 1, RDMA_USER_CM_CMD_RESOLVE_IP);
	put_where(s, 0, 1);
	put_u8(s, 0);
	put_call(s, 0, 1, RDMA_USER_CM_CMD_RESOLVE_ROUTE);
	put_u8(s, 0);
	put_run(s, 1);
	put_call(s, 0, 1, RDMA_USER_CM_CMD_CONNECT);
	put_u8(s, 20);
	put_u8(s, 0);
	put_run(s, 100);
	put_call(s, 1, 0, RDMA_USER_CM_CMD_GET_EVENT);
	put_u8(s, 0);
	put_call(s, 1, 2, RDMA_USER_CM_CMD_ACCEPT);
	put_u8(s, 2);
	put_u8(s, 1);
	put_u8(s, 0);
	put_run(s, 100);
	put_call(s, 0, 1, RDMA_USER_CM_CMD_ACCEPT);
	put_u8(s, 0);
	put_u8(s, 0);
	put_u8(s, 0);
	put_run(s, 100);
	put_call(s, 0, 1, RDMA_USER_CM_CMD_DISCONNECT);
	put_u8(s, 0);
	put_run(s, 100);
	put_call(s, 1, 2, RDMA_USER_CM_CMD_DISCONNECT);
	put_u8(s, 0);
	put_run(s, 19999);
}

/* Two ids of a host join a group; one leaves, and then the link is another. */
static void put_groups(struct seed *s)
{
	for (uint32_t id = 0; id < 2; id++) {
		put_create(s, 0, 1);
		put_call(s, 0, id, RDMA_USER_CM_CMD_BIND_IP);
		put_where(s, id, 0);
		put_u8(s, 0);
		put_call(s, 0, id, RDMA_USER_CM_CMD_JOIN_IP_MCAST);
		put_where(s, 0, 5);
		put_u8(s, 0);
		put_run(s, 10);
	}
	put_call(s, 0, 0, RDMA_USER_CM_CMD_LEAVE_MCAST);
	put_u8(s, 0);
	put_run(s, 10);
	put_u8(s, OP_LINK);
	put_u8(s, 1);
	put_run(s, 10);
	put_call(s, 0, 0, RDMA_USER_CM_CMD_GET_EVENT);
	put_u8(s, 0);
}

void target_seeds(struct seed *s)
{
	put_groups(s);
	put_end(s, "groups");
	put_life(s, 0);
	put_end(s, "connection");
	put_life(s, 1);
	put_end(s, "datagrams");
}
