// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon against clients that say anything: a real server in this process, on a socket in a
 * directory of its own; the input plays up to CLIENTS connections.  When all have gone, nothing of
 * theirs may be left: no slot, no number, no descriptor.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabric/daemon/server.h"
#include "fuzz.h"

#define CLIENTS 4u

enum op {
	OP_CONNECT,
	OP_CLOSE,
	OP_REQUEST, /* a message of the right shape */
	OP_BYTES,   /* any bytes */
	OP_WITH_FD, /* a request with a descriptor attached */
	OP_SERVE,
	OP_READ,
	OP_COUNT,
};

static struct fabric fabric;
static struct server server = {.listener.fd = -1, .signals.fd = -1, .home.fd = -1, .spare = -1};
static char dir[] = "/tmp/softhca-fuzz.XXXXXX";
static uint32_t free_numbers[NUMBER_KINDS];
static int first_fd;

static void remove_dir(void)
{
	rundir_remove(dir);
}

void target_init(void)
{
	int lock;

	MUST(mkdtemp(dir));
	atexit(remove_dir);
	strcpy(fabric.dir, dir);
	strcpy(fabric.name, "fuzz");
	MUST(!topology_generate(&fabric.topology, TOPOLOGY_DEFAULT_HOSTS, &link_types_default,
				NULL));
	MUST(!fabric_create(&fabric));
	MUST(!trees_open(&fabric));
	lock = rundir_lock(dir, true);
	MUST(lock >= 0);
	MUST(!server_open(&server, &fabric, lock));
	for (unsigned i = 0; i < NUMBER_KINDS; i++)
		free_numbers[i] = fabric.numbers[i].count;
	first_fd = fuzz_lowest_fd();
}

static int connect_client(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	MUST(sock >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	MUST(!connect(sock, (struct sockaddr *)&addr, sizeof(addr)));
	return sock;
}

/* One round of the daemon's loop after the other, until it has nothing to do. */
static void serve_messages(void)
{
	/* After its last client the daemon would take nobody any more. */
	do {
		server.leave = false;
		server.served = false;
	} while (loop_round(&fabric.loop, 0) > 0 || fabric.loop.work);
	server.leave = false;
	server.stay = false;
}

static void send_request(int sock, struct input *in, bool with_fd)
{
	struct msg m = {0};
	uint8_t type = in_u8(in);
	uint8_t twist = in_u8(in);

	/* A reply's or note's shape where no request exists: refused by its kind. */
	msg_prepare(&m, (enum msg_type)(type % MSG_TYPES), (enum msg_kind)(twist % MSG_KINDS), 1,
		    0);
	m.head.seq = 1 + twist;
	if (m.head.length < sizeof(m.head) || m.head.length > sizeof(m))
		m.head.length = sizeof(m.head);
	in_bytes(in, (uint8_t *)&m + sizeof(m.head), m.head.length - sizeof(m.head));
	(void)!msg_send(sock, &m, &first_fd, 0, MSG_DONTWAIT);
	if (with_fd) {
		int fd = memfd_create("x", MFD_CLOEXEC);
		int fds[MSG_MAX_FDS] = {fd, fd, fd};

		(void)!msg_send(sock, &m, fds, 1 + twist % MSG_MAX_FDS, MSG_DONTWAIT);
		close(fd);
	}
}

static void send_bytes(int sock, struct input *in)
{
	struct msg m = {0};
	uint8_t bytes[sizeof(m) + 64];
	size_t n = in_u16(in) % sizeof(bytes);

	msg_prepare(&m, MSG_HELLO, MSG_REQUEST, 1, 0);
	memcpy(bytes, &m, sizeof(m));
	/* The head is right unless the input says otherwise. */
	for (unsigned changes = in_u8(in) % 8; changes; changes--) {
		size_t at = in_u16(in) % sizeof(bytes);

		bytes[at] = in_u8(in);
	}
	(void)!send(sock, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What the daemon says must be well formed. */
static void read_replies(int sock)
{
	int fds[MSG_MAX_FDS];
	struct msg m;
	int ret;

	while (!(ret = msg_recv(sock, &m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE, MSG_DONTWAIT)))
		msg_close_fds(fds);
	MUST(ret == -EAGAIN || ret == -ECONNRESET);
}

static void must_be_empty(void)
{
	MUST(!server.nconns);
	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++) {
		MUST(fabric.rows[i].state == SLOT_FREE);
		MUST(!server.by_slot[i]);
	}
	for (unsigned i = 0; i < NUMBER_KINDS; i++)
		MUST(fabric.numbers[i].count == free_numbers[i]);
	for (uint32_t i = 0; i < REGISTRY_CHUNKS; i++)
		MUST(!atomic_load(&fabric.registry->qpn_slot_plus_1[i]));
	/* What a function has in its memory stays as long as the fabric. */
	functions_free(&fabric);
	fuzz_no_fds_from(first_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	int client[CLIENTS];

	/* As the daemon does. */
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < CLIENTS; i++)
		client[i] = -1;
	while (in.left) {
		uint8_t op = in_u8(&in);
		int *sock = &client[op / OP_COUNT % CLIENTS];

		op %= OP_COUNT;
		if (op == OP_SERVE) {
			serve_messages();
			continue;
		}
		if (*sock < 0) {
			*sock = connect_client();
			continue;
		}
		switch (op) {
		case OP_CLOSE:
			close(*sock);
			*sock = -1;
			break;
		case OP_REQUEST:
		case OP_WITH_FD:
			send_request(*sock, &in, op == OP_WITH_FD);
			break;
		case OP_BYTES:
			send_bytes(*sock, &in);
			break;
		case OP_READ:
			serve_messages();
			read_replies(*sock);
			break;
		default:
			break;
		}
	}
	serve_messages();
	for (unsigned i = 0; i < CLIENTS; i++)
		if (client[i] >= 0) {
			read_replies(client[i]);
			close(client[i]);
		}
	serve_messages();
	must_be_empty();
	return 0;
}

static void put_op(struct seed *s, unsigned client, enum op op)
{
	put_u8(s, client * OP_COUNT + op);
}

static void put_request(struct seed *s, unsigned client, enum msg_type type, const void *body,
			size_t n)
{
	put_op(s, client, OP_REQUEST);
	put_u8(s, type);
	put_u8(s, MSG_REQUEST);
	put_bytes(s, body, n);
}

void target_seeds(struct seed *s)
{
	const struct msg_hello hello = {.host = FABRIC_DEFAULT_HOST};
	const struct msg_attr attr = {
		.host = FABRIC_DEFAULT_HOST,
		.path = "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data",
	};
	const struct msg_lease lease = {.host = "host2"};
	const struct msg_host host = {.name = "host2"};
	const uint32_t zero = 0, one = 1;
	const struct msg_umad_adopt adopt = {.inode = 1};
	const struct msg_violated violation = {.violation = {.row = 0, .key = 0x8123}};
	const struct msg_group joins = {.row = 1, .joins = 1, .gid.raw = {0xff, 0x0e, [15] = 1}};
	const struct msg_group leaves = {.row = 1, .gid.raw = {0xff, 0x0e, [15] = 1}};
	const struct msg_set_port down = {.row = 0, .state = IB_PORT_DOWN};

	/* Two processes, a channel between them, the death of one and its acknowledgement. */
	for (unsigned c = 0; c < 2; c++) {
		put_op(s, c, OP_CONNECT);
		put_request(s, c, MSG_HELLO, &hello, sizeof(hello));
		put_op(s, 0, OP_SERVE);
		put_request(s, c, MSG_NUMBERS, &zero, sizeof(zero));
		put_request(s, c, MSG_GROUP, &joins, sizeof(joins));
	}
	put_request(s, 0, MSG_GROUP, &leaves, sizeof(leaves));
	put_request(s, 0, MSG_CHANNEL, &one, sizeof(one));
	put_op(s, 0, OP_READ);
	put_op(s, 1, OP_READ);
	put_op(s, 1, OP_CLOSE);
	put_op(s, 0, OP_SERVE);
	put_request(s, 0, MSG_GONE, &one, sizeof(one));
	put_op(s, 0, OP_READ);
	put_end(s, "channel");

	/* One of every question. */
	put_op(s, 0, OP_CONNECT);
	put_request(s, 0, MSG_ATTR, &attr, sizeof(attr));
	put_request(s, 0, MSG_LEASE, &lease, sizeof(lease));
	put_request(s, 0, MSG_INFO, NULL, 0);
	put_request(s, 0, MSG_HOST, &host, sizeof(host));
	put_request(s, 0, MSG_SLOT, &zero, sizeof(zero));
	put_request(s, 0, MSG_COUNTERS, &one, sizeof(one));
	put_request(s, 0, MSG_SENT, &one, sizeof(one));
	put_request(s, 0, MSG_UMAD_ADOPT, &adopt, sizeof(adopt));
	put_request(s, 0, MSG_CM_IS_FILE, &adopt, sizeof(adopt));
	put_request(s, 0, MSG_VIOLATED, &violation, sizeof(violation));
	put_request(s, 0, MSG_DESCRIBE, &attr, sizeof(attr));
	put_request(s, 0, MSG_SET_PORT, &down, sizeof(down));
	put_request(s, 0, MSG_STAY, NULL, 0);
	put_op(s, 0, OP_READ);
	put_request(s, 0, MSG_SHUTDOWN, NULL, 0);
	put_op(s, 0, OP_READ);
	put_end(s, "questions");

	put_op(s, 0, OP_CONNECT);
	put_op(s, 0, OP_BYTES);
	put_u16(s, sizeof(struct msg_head) + sizeof(hello));
	put_u8(s, 1);
	put_u16(s, offsetof(struct msg_head, version));
	put_u8(s, MSG_VERSION + 1);
	put_op(s, 0, OP_READ);
	put_end(s, "version");
}
