// SPDX-License-Identifier: BSD-2-Clause
/*
 * The states of connections by the commands of two programs on two hosts: what the messages say, and what
 * happens when they are lost.  With a file's name as argument, all messages go into that file as a capture,
 * which tshark reads (tests/clients/connections.py).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fabric/daemon/cm/id.h"
#include "fabric/daemon/sa/sa.h"
#include "test_mad.h"

#define SERVER	   1u
#define CLIENT	   0u
#define PORT	   7174u
#define SERVER_QPN 0x222u
#define CLIENT_QPN 0x111u
#define REPEAT_MS \
	6200u /* more than the time after which a message is sent again, less than twice as much */
#define TRIES 16u /* of a message that is not answered */
#define UID   0x77u

static struct test_mad m;
static struct sa sa;
static struct cm cm;
static struct port_agent *taken_by;
static uint64_t tokens[2];
static int fds[2];
/* By attribute: how many have come to a port, and how many of the next are lost there. */
static unsigned seen[32], lose[32];
static FILE *capture;

/* ---- the capture ---- */

#define LINKTYPE_ERF   197u
#define ERF_INFINIBAND 21u
#define ERF_BYTES      16u
#define PACKET_BYTES   (8u + 12u + 8u + MAD_BYTES + 4u + 2u) /* LRH, BTH, DETH, MAD, ICRC, VCRC */

static void capture_open(const char *name)
{
	const uint32_t head[] = {0xa1b2c3d4, 4u << 16 | 2u, 0, 0, 65535, LINKTYPE_ERF};

	capture = fopen(name, "w");
	CHECK(capture && fwrite(head, sizeof(head), 1, capture) == 1);
}

static void capture_packet(const struct mad_packet *p)
{
	const uint32_t bytes = ERF_BYTES + PACKET_BYTES;
	const uint64_t ms = m.loop.still_ns / 1000000u;
	const uint32_t head[] = {(uint32_t)(ms / 1000), (uint32_t)(ms % 1000 * 1000), bytes, bytes};
	const uint64_t stamp = htole64(ms / 1000 << 32 | (ms % 1000 << 32) / 1000);
	uint8_t b[ERF_BYTES + PACKET_BYTES] = {[8] = ERF_INFINIBAND, [9] = 4};
	uint8_t *lrh = b + ERF_BYTES, *bth = lrh + 8, *deth = bth + 12;

	if (!capture)
		return;
	memcpy(b, &stamp, sizeof(stamp));
	mad_put16(b, 10, bytes);
	mad_put16(b, 14, PACKET_BYTES);
	lrh[0] = 0;
	lrh[1] = 0x02; /* a BTH is next */
	mad_put16(lrh, 2, p->dlid);
	mad_put16(lrh, 4, (PACKET_BYTES - 2) / 4);
	mad_put16(lrh, 6, p->slid);
	bth[0] = 0x64; /* UD SEND only */
	mad_put16(bth, 2, p->pkey);
	mad_put32(bth, 4, p->dqpn);
	mad_put32(deth, 0, p->qkey);
	mad_put32(deth, 4, p->sqpn);
	memcpy(deth + 8, p->mad, MAD_BYTES);
	CHECK(fwrite(head, sizeof(head), 1, capture) == 1 && fwrite(b, sizeof(b), 1, capture) == 1);
}

static enum mad_verdict message_comes(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	const uint16_t attribute = mad_get16(p->mad, MAD_AT_ATTRIBUTE);

	(void)a;
	capture_packet(p);
	CHECK(attribute < array_size(seen));
	seen[attribute]++;
	if (lose[attribute]) {
		lose[attribute]--;
		return MAD_SILENT;
	}
	return taken_by->handle(taken_by, row, p);
}

static struct port_agent tap = {.handle = message_comes};

/* ---- programs ---- */

static void world_open(void)
{
	memset(seen, 0, sizeof(seen));
	memset(lose, 0, sizeof(lose));
	test_mad_open(&m);
	test_net_raise(&m.t);
	net_set_sm(&m.t.net, m.t.h1, 4, 0);
	net_set_sm(&m.t.net, m.t.h2, 4, 0);
	CHECK(!sa_open(&sa, &m.mad, m.t.h2));
	cm_open(&cm, &m.mad);
	taken_by = m.mad.port_agents[MAD_CLASS_CM];
	mad_port_agent(&m.mad, MAD_CLASS_CM, &tap);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(!cm_file_open(&cm, i, 1, &tokens[i], &fds[i]));
}

static void world_close(void)
{
	for (uint32_t i = 0; i < 2; i++)
		close(fds[i]);
	test_mad_run(&m, 10000);
	CHECK(!cm.nfiles && !cm_id_first(&cm) && !cm.sa_requests);
	cm_close(&cm);
	sa_close(&sa);
	CHECK(!m.loop.ntimers);
	test_mad_close(&m);
}

static int call_do(uint32_t who, uint32_t command, const void *in, size_t n, void *out, size_t room)
{
	struct msg_cm_call c = {
		.token = tokens[who], .command = command, .in = (uint16_t)n, .out = (uint16_t)room};
	struct msg_cm_call_reply r;
	int ret;

	memcpy(c.bytes, in, n);
	ret = cm_call(&cm, &c, &r);
	if (!ret && out)
		memcpy(out, r.bytes, room);
	return ret;
}

#define CALL(who, cmd, in) call_do(who, RDMA_USER_CM_CMD_##cmd, &(in), sizeof(in), NULL, 0)

/* The next event; CM_TIMEWAIT_EXIT + 1: there is none. */
static struct rdma_ucm_event_resp event_of(uint32_t who)
{
	struct rdma_ucm_get_event c = {0};
	struct rdma_ucm_event_resp e = {.event = CM_TIMEWAIT_EXIT + 1};
	int ret = call_do(who, RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), &e, sizeof(e));

	CHECK(!ret || ret == -EAGAIN);
	return e;
}

static struct rdma_ucm_event_resp event_is(uint32_t who, enum cm_event_type type, int status)
{
	const struct rdma_ucm_event_resp e = event_of(who);

	CHECK_SAY(e.event == type && (int)e.status == status, "event %u status %d", e.event,
		  (int)e.status);
	return e;
}

static void no_event(uint32_t who)
{
	const struct rdma_ucm_event_resp e = event_of(who);

	CHECK_SAY(e.event == CM_TIMEWAIT_EXIT + 1, "event %u", e.event);
}

static uint32_t id_new(uint32_t who, uint16_t ps)
{
	struct rdma_ucm_create_id c = {.uid = UID, .ps = ps};
	struct rdma_ucm_create_id_resp r;

	CHECK(!call_do(who, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), &r, sizeof(r)));
	return r.id;
}

static void id_end(uint32_t who, uint32_t id)
{
	struct rdma_ucm_destroy_id c = {.id = id};
	struct rdma_ucm_destroy_id_resp r;

	CHECK(!call_do(who, RDMA_USER_CM_CMD_DESTROY_ID, &c, sizeof(c), &r, sizeof(r)));
}

static void address_put(void *at, const char *name)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	CHECK(inet_pton(AF_INET, name, &a.sin_addr) == 1);
	memcpy(at, &a, sizeof(a));
}

static uint32_t listener_new(uint16_t ps, uint32_t backlog)
{
	const uint32_t id = id_new(SERVER, ps);
	struct rdma_ucm_bind_ip b = {.id = id};
	struct rdma_ucm_listen l = {.id = id, .backlog = backlog};

	address_put(&b.addr, "198.18.1.1");
	CHECK(!CALL(SERVER, BIND_IP, b) && !CALL(SERVER, LISTEN, l));
	return id;
}

/* An id of the client whose path to the server is known. */
static uint32_t client_new(uint16_t ps)
{
	const uint32_t id = id_new(CLIENT, ps);
	struct rdma_ucm_resolve_ip a = {.id = id, .timeout_ms = 1000};
	struct rdma_ucm_resolve_route r = {.id = id, .timeout_ms = 1000};

	address_put(&a.dst_addr, "198.18.1.1");
	CHECK(!CALL(CLIENT, RESOLVE_IP, a));
	event_is(CLIENT, CM_ADDR_RESOLVED, 0);
	CHECK(!CALL(CLIENT, RESOLVE_ROUTE, r));
	test_mad_run(&m, 0);
	event_is(CLIENT, CM_ROUTE_RESOLVED, 0);
	return id;
}

static void client_connects(uint32_t id)
{
	struct rdma_ucm_connect c = {.id = id,
				     .conn_param = {.valid = 1,
						    .qp_num = CLIENT_QPN,
						    .responder_resources = 3,
						    .initiator_depth = 5,
						    .retry_count = 6,
						    .rnr_retry_count = 4,
						    .private_data = "hello",
						    .private_data_len = 6}};

	CHECK(!CALL(CLIENT, CONNECT, c));
	test_mad_run(&m, 0);
}

static int server_accepts(uint32_t id)
{
	struct rdma_ucm_accept c = {.id = id,
				    .uid = UID,
				    .conn_param = {.valid = 1,
						   .qp_num = SERVER_QPN,
						   .responder_resources = 2,
						   .initiator_depth = 1,
						   .private_data = "welcome",
						   .private_data_len = 8}};
	const int ret = CALL(SERVER, ACCEPT, c);

	test_mad_run(&m, 0);
	return ret;
}

static void client_establishes(uint32_t id)
{
	struct rdma_ucm_accept c = {.id = id};

	CHECK(!CALL(CLIENT, ACCEPT, c));
	test_mad_run(&m, 0);
}

static int disconnect(uint32_t who, uint32_t id)
{
	struct rdma_ucm_disconnect c = {.id = id};
	const int ret = CALL(who, DISCONNECT, c);

	test_mad_run(&m, 0);
	return ret;
}

struct pair {
	uint32_t listener, client, server;
};

/* A connection that stands. */
static struct pair pair_new(void)
{
	struct pair p = {.listener = listener_new(RDMA_PS_TCP, 4)};

	p.client = client_new(RDMA_PS_TCP);
	client_connects(p.client);
	p.server = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	CHECK(!server_accepts(p.server));
	event_is(CLIENT, CM_CONNECT_RESPONSE, 0);
	client_establishes(p.client);
	event_is(SERVER, CM_ESTABLISHED, 0);
	return p;
}

/* ---- tests ---- */

static void test_life(void)
{
	uint32_t listener, client, server;
	struct rdma_ucm_event_resp e;
	const struct rdma_ucm_conn_param *conn = &e.param.conn;

	world_open();
	listener = listener_new(RDMA_PS_TCP, 4);
	client = client_new(RDMA_PS_TCP);
	CHECK(disconnect(CLIENT, client) == -EINVAL);
	client_connects(client);
	e = event_is(SERVER, CM_CONNECT_REQUEST, 0);
	server = e.id;
	CHECK(e.uid == UID && server != listener && conn->qp_num == CLIENT_QPN);
	/* What one may begin is what the other has room for. */
	CHECK(conn->responder_resources == 5 && conn->initiator_depth == 3);
	CHECK(conn->retry_count == 6 && conn->rnr_retry_count == 4);
	CHECK(conn->private_data_len == 56 && !memcmp(conn->private_data, "hello\0\0", 7));
	CHECK(!server_accepts(server));
	e = event_is(CLIENT, CM_CONNECT_RESPONSE, 0);
	CHECK(conn->qp_num == SERVER_QPN && conn->responder_resources == 1 &&
	      conn->initiator_depth == 2);
	CHECK(conn->private_data_len == 196 &&
	      !strcmp((const char *)conn->private_data, "welcome"));
	client_establishes(client);
	event_is(SERVER, CM_ESTABLISHED, 0);
	CHECK(!disconnect(CLIENT, client));
	event_is(SERVER, CM_DISCONNECTED, 0);
	no_event(CLIENT);
	CHECK(!disconnect(SERVER, server));
	event_is(CLIENT, CM_DISCONNECTED, 0);
	no_event(SERVER);
	/* The numbers are not used again for some time. */
	test_mad_run(&m, 10000);
	event_is(CLIENT, CM_TIMEWAIT_EXIT, 0);
	event_is(SERVER, CM_TIMEWAIT_EXIT, 0);
	CHECK(seen[CM_REQ] == 1 && seen[CM_REP] == 1 && seen[CM_RTU] == 1 && seen[CM_DREQ] == 1 &&
	      seen[CM_DREP] == 1 && !seen[CM_REJ] && !seen[CM_MRA]);
	world_close();
}

static void test_refusals(void)
{
	struct rdma_ucm_reject r = {
		.private_data = "no", .private_data_len = 3, .reason = CM_REJECT_CONSUMER};
	struct rdma_ucm_event_resp e;
	uint32_t client;

	world_open();
	/* Nobody listens; the answer takes a moment, as somebody may. */
	client = client_new(RDMA_PS_TCP);
	client_connects(client);
	no_event(CLIENT);
	test_mad_run(&m, 60);
	event_is(CLIENT, CM_REJECTED, CM_REJECT_NO_SERVICE);
	/* The program says no. */
	(void)listener_new(RDMA_PS_TCP, 1);
	client_connects(client = client_new(RDMA_PS_TCP));
	r.id = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	CHECK(!CALL(SERVER, REJECT, r));
	test_mad_run(&m, 0);
	e = event_is(CLIENT, CM_REJECTED, CM_REJECT_CONSUMER);
	CHECK(e.param.conn.private_data_len == 148 &&
	      !strcmp((const char *)e.param.conn.private_data, "no"));
	/* It ends without a word, and so does the client. */
	client_connects(client = client_new(RDMA_PS_TCP));
	id_end(SERVER, event_is(SERVER, CM_CONNECT_REQUEST, 0).id);
	test_mad_run(&m, 0);
	event_is(CLIENT, CM_REJECTED, CM_REJECT_CONSUMER);
	client_connects(client = client_new(RDMA_PS_TCP));
	r.id = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	id_end(CLIENT, client);
	test_mad_run(&m, 0);
	no_event(SERVER); /* the program has not accepted it, and does not know the id */
	CHECK(server_accepts(r.id) == -EINVAL);
	world_close();
}

static void test_lost_requests(void)
{
	uint32_t client;

	world_open();
	(void)listener_new(RDMA_PS_TCP, 1);
	client = client_new(RDMA_PS_TCP);
	lose[CM_REQ] = 2;
	client_connects(client);
	test_mad_run(&m, 2 * REPEAT_MS);
	CHECK(seen[CM_REQ] == 3);
	event_is(SERVER, CM_CONNECT_REQUEST, 0);
	/* One that has come is not told of twice; the sender hears that it has to wait. */
	CHECK(!seen[CM_MRA]);
	test_mad_run(&m, REPEAT_MS);
	CHECK(seen[CM_REQ] == 4 && seen[CM_MRA] == 1);
	no_event(SERVER);
	test_mad_run(&m, 5 * REPEAT_MS);
	CHECK(seen[CM_REQ] == 4);
	id_end(CLIENT, client);
	/* None arrives. */
	client = client_new(RDMA_PS_TCP);
	lose[CM_REQ] = seen[CM_REQ] = 0;
	lose[CM_REQ] = 1000;
	client_connects(client);
	test_mad_run(&m, (TRIES - 1) * REPEAT_MS);
	no_event(CLIENT);
	test_mad_run(&m, REPEAT_MS);
	event_is(CLIENT, CM_UNREACHABLE, -ETIMEDOUT);
	CHECK(seen[CM_REQ] == TRIES);
	world_close();
}

/* The backlog is full: the request is dropped, and its repetition finds room. */
static void test_backlog(void)
{
	uint32_t clients[2];

	world_open();
	(void)listener_new(RDMA_PS_TCP, 1);
	for (unsigned i = 0; i < 2; i++)
		client_connects(clients[i] = client_new(RDMA_PS_TCP));
	event_is(SERVER, CM_CONNECT_REQUEST, 0);
	no_event(SERVER);
	/* Both have the same queue pair, of which a connection is being made. */
	test_mad_run(&m, REPEAT_MS);
	CHECK(seen[CM_REJ] == 1);
	world_close();
}

static void test_lost_answers(void)
{
	uint32_t client, server;

	world_open();
	(void)listener_new(RDMA_PS_TCP, 1);
	client_connects(client = client_new(RDMA_PS_TCP));
	server = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	lose[CM_REP] = 1;
	CHECK(!server_accepts(server));
	no_event(CLIENT);
	test_mad_run(&m, REPEAT_MS);
	event_is(CLIENT, CM_CONNECT_RESPONSE, 0);
	/* The server has not heard that the connection stands, and asks again. */
	lose[CM_RTU] = 1;
	client_establishes(client);
	no_event(SERVER);
	test_mad_run(&m, REPEAT_MS);
	event_is(SERVER, CM_ESTABLISHED, 0);
	CHECK(seen[CM_RTU] == 2);
	/* Nobody answers the end. */
	lose[CM_DREQ] = 1000;
	CHECK(!disconnect(CLIENT, client));
	test_mad_run(&m, TRIES * REPEAT_MS);
	event_is(CLIENT, CM_DISCONNECTED, -ETIMEDOUT);
	CHECK(seen[CM_DREQ] == TRIES);
	no_event(SERVER);
	/* The server asks for the end of what has ended, and is told so. */
	lose[CM_DREQ] = 0;
	test_mad_run(&m, 20000);
	event_is(CLIENT, CM_TIMEWAIT_EXIT, 0);
	CHECK(!disconnect(SERVER, server));
	event_is(SERVER, CM_DISCONNECTED, 0);
	world_close();
}

/* The data may come before the message that says so. */
static void test_established_by_data(void)
{
	uint32_t client;
	struct rdma_ucm_notify n = {.event = IB_EVENT_COMM_EST};

	world_open();
	(void)listener_new(RDMA_PS_TCP, 1);
	client_connects(client = client_new(RDMA_PS_TCP));
	n.id = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	CHECK(CALL(SERVER, NOTIFY, n) == -EINVAL);
	CHECK(!server_accepts(n.id) && !CALL(SERVER, NOTIFY, n));
	event_is(SERVER, CM_ESTABLISHED, 0);
	client_establishes(client);
	no_event(SERVER);
	world_close();
}

/* A queue pair whose connection stands here makes another: its side has forgotten that one. */
static void test_stale(void)
{
	struct pair p;
	uint32_t again;

	world_open();
	p = pair_new();
	again = client_new(RDMA_PS_TCP);
	client_connects(again);
	event_is(CLIENT, CM_REJECTED, CM_REJECT_STALE);
	event_is(CLIENT, CM_DISCONNECTED, 0);
	CHECK(!disconnect(CLIENT, p.client));
	event_is(SERVER, CM_DISCONNECTED, 0);
	world_close();
}

/* A DREQ with all the right numbers ends the connection, but not from a queue pair of a program. */
static void test_forged(void)
{
	struct mad_packet *packet;
	struct pair p;

	world_open();
	p = pair_new();
	for (uint32_t qpn = 2; qpn; qpn--) {
		packet = mad_packet_get(&m.mad);
		CHECK(packet);
		packet->row = m.t.h2;
		packet->slid = 4;
		packet->dlid = 1;
		packet->pkey = SUBNET_PKEY_DEFAULT;
		packet->sqpn = qpn;
		packet->dqpn = IB_GSI_QPN;
		packet->qkey = MAD_QKEY_WELL_KNOWN;
		cm_message_begin(cm_id_find(cm_file_find(&cm, tokens[SERVER]), p.server),
				 packet->mad, CM_DREQ);
		prm_set(packet->mad, DREQ_QPN, CLIENT_QPN);
		mad_emit(&m.mad, packet);
		test_mad_run(&m, 0);
		if (qpn == IB_GSI_QPN)
			event_is(CLIENT, CM_DISCONNECTED, 0);
		else
			no_event(CLIENT);
	}
	world_close();
}

/* The program of one side is gone. */
static void test_death(void)
{
	world_open();
	(void)pair_new();
	close(fds[SERVER]);
	test_mad_run(&m, 0);
	fds[SERVER] = -1;
	event_is(CLIENT, CM_DISCONNECTED, 0);
	CHECK(cm.nfiles == 1);
	world_close();
}

static void test_datagrams(void)
{
	struct rdma_ucm_connect c = {
		.conn_param = {.valid = 1, .private_data = "ask", .private_data_len = 4}};
	struct rdma_ucm_reject r = {.reason = CM_REJECT_CONSUMER};
	struct rdma_ucm_event_resp e;
	uint32_t server;

	world_open();
	(void)listener_new(RDMA_PS_UDP, 2);
	c.id = client_new(RDMA_PS_UDP);
	lose[CM_SIDR_REQ] = lose[CM_SIDR_REP] = 1;
	CHECK(!CALL(CLIENT, CONNECT, c));
	test_mad_run(&m, REPEAT_MS);
	e = event_is(SERVER, CM_CONNECT_REQUEST, 0);
	CHECK(e.param.ud.private_data_len == 180 &&
	      !strcmp((const char *)e.param.ud.private_data, "ask"));
	server = e.id;
	CHECK(!server_accepts(server));
	no_event(CLIENT);
	test_mad_run(&m, REPEAT_MS);
	e = event_is(CLIENT, CM_ESTABLISHED, 0);
	CHECK(e.param.ud.qp_num == SERVER_QPN && e.param.ud.qkey == CM_UDP_QKEY &&
	      e.param.ud.ah_attr.dlid == 4);
	CHECK(seen[CM_SIDR_REQ] == 3 && seen[CM_SIDR_REP] == 2);
	/* Refused by the program, and by nobody. */
	c.id = client_new(RDMA_PS_UDP);
	CHECK(!CALL(CLIENT, CONNECT, c));
	test_mad_run(&m, 0);
	r.id = event_is(SERVER, CM_CONNECT_REQUEST, 0).id;
	CHECK(!CALL(SERVER, REJECT, r));
	test_mad_run(&m, 0);
	event_is(CLIENT, CM_UNREACHABLE, CM_SIDR_REJECT);
	world_close();
}

/* Each host has numbers of its own, and the lowest that is free is given again. */
static void test_numbers(void)
{
	struct msg_cm_id_reply said;
	struct rdma_ucm_create_id c = {.uid = 1, .ps = RDMA_PS_TCP};

	world_open();
	for (uint32_t i = 0; i < CM_IDS; i++)
		CHECK(id_new(CLIENT, RDMA_PS_TCP) == i);
	CHECK(CALL(CLIENT, CREATE_ID, c) == -ENOMEM);
	CHECK(!id_new(SERVER, RDMA_PS_TCP));
	id_end(CLIENT, 4711);
	CHECK(id_new(CLIENT, RDMA_PS_TCP) == 4711);
	/* Those of a host, then those of the next. */
	cm_describe(&cm, CLIENT, CM_IDS - 1, &said);
	CHECK(said.host == CLIENT && said.number == CM_IDS - 1);
	cm_describe(&cm, said.host, said.number + 1, &said);
	CHECK(said.host == SERVER && !said.number);
	cm_describe(&cm, said.host, said.number + 1, &said);
	CHECK(said.number == CM_NO_ID);
	world_close();
}

int main(int argc, char **argv)
{
	/* As the daemon does. */
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2)
		capture_open(argv[1]);
	test_life();
	test_refusals();
	test_lost_requests();
	test_backlog();
	test_lost_answers();
	test_established_by_data();
	test_stale();
	test_forged();
	test_death();
	test_datagrams();
	test_numbers();
	if (capture)
		CHECK(!fclose(capture));
	return 0;
}
