/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of RDMA netlink by chance, several in a datagram, with attributes that are missing, doubled,
 * too short or cut off, beside a plain model: which answers come, in which order, with which errors.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "netlink_fabric.h"

#define DATAGRAMS   20000u
#define DEVICES	    2u
#define LIST	    UINT32_MAX /* a model that does not say how many messages a list takes */
#define MOST_IN_ONE 6u

static uint32_t seed = 1;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(seed >> 4) * n >> 28);
}

static bool admin;

/* ---- the model ---- */

struct expected {
	uint32_t messages; /* that answer the request; LIST */
	bool done;	   /* a dump, whose end has the error */
	int error;
};

/* An attribute of the request, found by a walk of its own. */
static const uint8_t *attr_find(const struct nlmsghdr *head, uint16_t type, size_t *n)
{
	const uint8_t *bytes = (const uint8_t *)head, *found = NULL;
	size_t at = sizeof(*head);

	while (at + 4 <= head->nlmsg_len) {
		uint16_t length, kind;

		memcpy(&length, bytes + at, 2);
		memcpy(&kind, bytes + at + 2, 2);
		if (length < 4 || at + length > head->nlmsg_len)
			break;
		if ((kind & 0x3fff) == type) {
			found = bytes + at + 4;
			*n = length - 4u;
		}
		at += (length + 3u) & ~3u;
	}
	return found;
}

static bool has(const struct nlmsghdr *head, uint16_t type)
{
	size_t n;

	return attr_find(head, type, &n);
}

/* A number among the attributes, or -1. */
static int64_t number(const struct nlmsghdr *head, uint16_t type)
{
	size_t n = 0;
	const uint8_t *at = attr_find(head, type, &n);
	uint32_t value;

	if (!at || n < 4)
		return -1;
	memcpy(&value, at, 4);
	return value;
}

/* The number of the device's ports; 0: there is no such device. */
static uint32_t device_ports(const struct nlmsghdr *head)
{
	const int64_t device = number(head, RDMA_NLDEV_ATTR_DEV_INDEX);

	return device == 0 ? 2 : device == 1 ? 1 : 0;
}

static bool has_port(const struct nlmsghdr *head)
{
	const int64_t port = number(head, RDMA_NLDEV_ATTR_PORT_INDEX);

	return port >= 1 && port <= device_ports(head);
}

static struct expected answer_if(bool ok, uint32_t messages)
{
	return (struct expected){ok ? messages : 0, false, ok ? 0 : -EINVAL};
}

static struct expected dump_if(bool ok, uint32_t messages)
{
	return (struct expected){ok ? messages : 0, true, ok ? 0 : -EINVAL};
}

static struct expected refused(int error)
{
	return (struct expected){0, false, error};
}

static struct expected chardev_expected(const struct nlmsghdr *head)
{
	const bool port = has(head, RDMA_NLDEV_ATTR_PORT_INDEX);
	size_t n = 0;
	const char *kind = (const char *)attr_find(head, RDMA_NLDEV_ATTR_CHARDEV_TYPE, &n);

	if (!kind || strnlen(kind, n) == n)
		return refused(-EINVAL);
	if (has(head, RDMA_NLDEV_ATTR_DEV_INDEX) && !device_ports(head))
		return refused(-EINVAL);
	if (port && !has_port(head))
		return refused(-EINVAL);
	if (!has(head, RDMA_NLDEV_ATTR_DEV_INDEX) && !strcmp(kind, "rdma_cm"))
		return answer_if(true, 1);
	if (!device_ports(head))
		return refused(-EOPNOTSUPP);
	if (!strcmp(kind, "uverbs"))
		return answer_if(!port, 1);
	if (!strcmp(kind, "umad"))
		return answer_if(port, 1);
	if (strcmp(kind, "issm") != 0)
		return refused(-EOPNOTSUPP);
	if (port && device_ports(head) == 1) /* Ethernet has no subnet manager */
		return refused(-EOPNOTSUPP);
	return answer_if(port, 1);
}

static struct expected list_expected(const struct nlmsghdr *head, bool dump, uint16_t id,
				     bool by_port)
{
	const bool port = has(head, RDMA_NLDEV_ATTR_PORT_INDEX);
	const bool ok = device_ports(head) && (!port || has_port(head));

	if (dump)
		return dump_if(ok, LIST);
	if (!ok || number(head, id) < 0 || port != by_port)
		return refused(-EINVAL);
	return refused(-ENOENT); /* or the object, which the caller knows */
}

static struct expected model(const struct nlmsghdr *head)
{
	const bool dump = head->nlmsg_flags & NLM_F_DUMP;
	const bool device = device_ports(head), port = has_port(head);
	const int64_t counted = number(head, RDMA_NLDEV_ATTR_STAT_RES);

	if (head->nlmsg_type >> 10 != RDMA_NL_NLDEV)
		return refused(-EINVAL);
	switch (head->nlmsg_type & 0x3ff) {
	case RDMA_NLDEV_CMD_SET:
	case RDMA_NLDEV_CMD_NEWLINK:
	case RDMA_NLDEV_CMD_DELLINK:
	case RDMA_NLDEV_CMD_SYS_SET:
	case RDMA_NLDEV_CMD_STAT_SET:
	case RDMA_NLDEV_CMD_STAT_DEL:
		return refused(!admin ? -EPERM : dump ? -EINVAL : -EOPNOTSUPP);
	case RDMA_NLDEV_CMD_RES_QP_GET_RAW:
	case RDMA_NLDEV_CMD_RES_CQ_GET_RAW:
	case RDMA_NLDEV_CMD_RES_MR_GET_RAW:
		return (struct expected){0, admin && dump, admin ? -EOPNOTSUPP : -EPERM};
	case RDMA_NLDEV_CMD_GET:
		return dump ? dump_if(true, DEVICES) : answer_if(device, 1);
	case RDMA_NLDEV_CMD_PORT_GET:
		return dump ? dump_if(device, device_ports(head)) : answer_if(port, 1);
	case RDMA_NLDEV_CMD_SYS_GET:
		return answer_if(!dump, 1);
	case RDMA_NLDEV_CMD_RES_GET:
		return dump ? dump_if(true, DEVICES)
			    : answer_if(device && (!has(head, RDMA_NLDEV_ATTR_PORT_INDEX) || port),
					1);
	case RDMA_NLDEV_CMD_RES_QP_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_LQPN, true);
	case RDMA_NLDEV_CMD_RES_CM_ID_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_CM_IDN, true);
	case RDMA_NLDEV_CMD_RES_CQ_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_CQN, false);
	case RDMA_NLDEV_CMD_RES_MR_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_MRN, false);
	case RDMA_NLDEV_CMD_RES_PD_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_PDN, false);
	case RDMA_NLDEV_CMD_RES_CTX_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_CTXN, false);
	case RDMA_NLDEV_CMD_RES_SRQ_GET:
		return list_expected(head, dump, RDMA_NLDEV_ATTR_RES_SRQN, false);
	case RDMA_NLDEV_CMD_GET_CHARDEV:
		return dump ? refused(-EINVAL) : chardev_expected(head);
	case RDMA_NLDEV_CMD_STAT_GET:
		if (dump)
			return dump_if(counted == RDMA_NLDEV_ATTR_RES_QP ||
					       counted == RDMA_NLDEV_ATTR_RES_MR,
				       0);
		return answer_if(port && !has(head, RDMA_NLDEV_ATTR_STAT_RES), 1);
	case RDMA_NLDEV_CMD_STAT_GET_STATUS:
		return answer_if(port && !dump, 1);
	default:
		return refused(-EINVAL);
	}
}

/* ---- requests ---- */

struct datagram {
	_Alignas(8) uint8_t bytes[4096];
	size_t n;
};

static const uint16_t types[] = {
	RDMA_NLDEV_ATTR_DEV_INDEX, RDMA_NLDEV_ATTR_DEV_INDEX,	 RDMA_NLDEV_ATTR_DEV_INDEX,
	RDMA_NLDEV_ATTR_DEV_INDEX, RDMA_NLDEV_ATTR_PORT_INDEX,	 RDMA_NLDEV_ATTR_PORT_INDEX,
	RDMA_NLDEV_ATTR_RES_LQPN,  RDMA_NLDEV_ATTR_RES_CQN,	 RDMA_NLDEV_ATTR_RES_MRN,
	RDMA_NLDEV_ATTR_RES_PDN,   RDMA_NLDEV_ATTR_RES_CTXN,	 RDMA_NLDEV_ATTR_RES_SRQN,
	RDMA_NLDEV_ATTR_STAT_RES,  RDMA_NLDEV_ATTR_CHARDEV_TYPE, RDMA_NLDEV_ATTR_CHARDEV_TYPE,
};
static const char *const kinds[] = {"uverbs", "umad", "issm", "rdma_cm", ""};

static void attr_add(struct datagram *d)
{
	uint16_t type = chance(10) ? types[chance(array_size(types))] : (uint16_t)chance(65536);
	const char *kind = kinds[chance(array_size(kinds))];
	const bool text = type == RDMA_NLDEV_ATTR_CHARDEV_TYPE;
	struct nlattr attr = {(uint16_t)(text ? 5 + strlen(kind) : 8), type};
	uint32_t value = type == RDMA_NLDEV_ATTR_STAT_RES
				 ? RDMA_NLDEV_ATTR_RES_QP + chance(2) * (RDMA_NLDEV_ATTR_RES_MR -
									 RDMA_NLDEV_ATTR_RES_QP)
				 : chance(4);

	if (!chance(12))
		attr.nla_len = (uint16_t)(4 + chance(12));
	if (!chance(60))
		attr.nla_len = (uint16_t)chance(65536);
	if (!chance(20))
		attr.nla_type |= NLA_F_NESTED;
	memcpy(d->bytes + d->n, &attr, 4);
	memset(d->bytes + d->n + 4, chance(2) ? 0 : 'x', 16);
	memcpy(d->bytes + d->n + 4, text ? (const void *)kind : &value,
	       text ? strlen(kind) + 1 : sizeof(value));
	d->n += (attr.nla_len < 24 ? attr.nla_len + 3u : 8u) & ~3u;
}

static void message_add(struct datagram *d)
{
	const size_t begin = d->n;
	struct nlmsghdr head = {
		.nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, chance(30)),
		.nlmsg_flags = NLM_F_REQUEST,
		.nlmsg_seq = chance(1u << 20),
	};

	if (!chance(30))
		head.nlmsg_type = (uint16_t)chance(65536);
	if (!chance(3))
		head.nlmsg_flags |= NLM_F_DUMP;
	if (!chance(2))
		head.nlmsg_flags |= NLM_F_ACK;
	if (!chance(30))
		head.nlmsg_flags = (uint16_t)chance(65536);
	d->n += sizeof(head);
	for (uint32_t n = chance(6); n; n--)
		attr_add(d);
	head.nlmsg_len = (uint32_t)(d->n - begin);
	/* The last attribute is not whole, or the message's end is no multiple of 4. */
	if (!chance(10) && d->n - begin > sizeof(head))
		head.nlmsg_len -= chance(4);
	if (!chance(50))
		head.nlmsg_len = chance(1u << 16);
	memcpy(d->bytes + begin, &head, sizeof(head));
}

/* ---- answers beside the model ---- */

static void check_end(const struct nlmsghdr *request, const struct nlmsghdr *end,
		      const struct expected *e, bool capped)
{
	int error;

	CHECK(end && end->nlmsg_seq == request->nlmsg_seq);
	CHECK_SAY(end->nlmsg_type == (e->done ? NLMSG_DONE : NLMSG_ERROR), "%u", end->nlmsg_type);
	memcpy(&error, end + 1, sizeof(error));
	CHECK_SAY(error == e->error, "%d instead of %d of request %#x, flags %#x", error, e->error,
		  request->nlmsg_type, request->nlmsg_flags);
	if (!e->done && error && !capped)
		CHECK(end->nlmsg_len == sizeof(*end) + 4 + NLMSG_ALIGN(request->nlmsg_len) &&
		      !memcmp((const uint8_t *)(end + 1) + 4, request, request->nlmsg_len));
	else if (!e->done)
		CHECK(end->nlmsg_len == sizeof(*end) + sizeof(struct nlmsgerr) &&
		      end->nlmsg_flags & NLM_F_CAPPED);
}

static bool is_object_of(const struct nlmsghdr *request)
{
	const unsigned op = request->nlmsg_type & 0x3ff;

	return op > RDMA_NLDEV_CMD_RES_GET && op != RDMA_NLDEV_CMD_GET_CHARDEV;
}

/* Checks what answers one request.  Moves on in the answers. */
static void check_message(const struct nlmsghdr *request, const struct answers *a, size_t *at,
			  bool capped)
{
	const bool control =
		!(request->nlmsg_flags & NLM_F_REQUEST) || request->nlmsg_type < NLMSG_MIN_TYPE;
	struct expected e = control ? (struct expected){0} : model(request);
	uint32_t n = 0;
	size_t next = *at;
	const struct nlmsghdr *head;

	while ((head = netlink_next(a, &next)) && head->nlmsg_type == request->nlmsg_type &&
	       head->nlmsg_seq == request->nlmsg_seq && n < e.messages + (e.error == -ENOENT)) {
		CHECK(!(head->nlmsg_flags & NLM_F_MULTI) == !e.done);
		*at = next;
		n++;
	}
	if (e.error == -ENOENT && n) {
		CHECK(is_object_of(request));
		e = (struct expected){1, false, 0};
	}
	CHECK_SAY(e.messages == LIST || n == e.messages, "%u messages answer %#x", n,
		  request->nlmsg_type);
	if (!e.done && !e.error && !(request->nlmsg_flags & NLM_F_ACK))
		return;
	check_end(request, netlink_next(a, at), &e, capped);
}

static void test_chance(void)
{
	struct answers a = {.portid = 4711};

	for (uint32_t i = 0; i < DATAGRAMS; i++) {
		const bool capped = chance(2);
		struct datagram d = {.n = 0};
		size_t at = 0, from = 0;

		for (uint32_t n = 1 + chance(MOST_IN_ONE); n; n--)
			message_add(&d);
		d.n -= chance(8) ? 0 : chance((uint32_t)d.n);
		/* Looks at programs take most of the time. */
		netlink_programs(i % 128 ? 0 : NETLINK_PROGRAMS);
		netlink_execute(&a, d.bytes, d.n, capped);
		while (from + NLMSG_HDRLEN <= d.n) {
			const struct nlmsghdr *head = (const void *)(d.bytes + from);

			if (head->nlmsg_len < NLMSG_HDRLEN || head->nlmsg_len > d.n - from)
				break;
			check_message(head, &a, &at, capped);
			from += NLMSG_ALIGN(head->nlmsg_len);
		}
		CHECK_SAY(at == a.used, "%zu bytes of answers to nothing", a.used - at);
		netlink_check_datagrams(&a);
		a.used = 0;
	}
	free(a.bytes);
}

/* ---- objects ---- */

#define OBJECTS 3000u

static struct object_about objects[NETLINK_PROGRAMS][OBJECTS];

/* Objects of the first device's ports, of the second's, and of ports that are not there. */
static void objects_choose(void)
{
	for (uint32_t p = 0; p < NETLINK_PROGRAMS; p++)
		for (uint32_t i = 0; i < OBJECTS; i++)
			objects[p][i] = (struct object_about){
				.kind = chance(OBJECT_KINDS),
				.number = 1 + i,
				.type = IB_QPT_RC,
				.port = chance(5) ? chance(NETLINK_PORTS) : chance(1u << 28),
				.pdn = i,
				.send_cqn = chance(OBJECTS),
				.recv_cqn = chance(2) ? chance(OBJECTS) : OBJECT_NO_NUMBER,
				.srqn = chance(2) ? 7 : OBJECT_NO_NUMBER,
			};
}

static void objects_look(uint32_t program, struct look *l)
{
	for (uint32_t i = 0; i < OBJECTS; i++) {
		/* A region of the domain of that number, if there is one, and a window. */
		const struct expose_note region = {.number = i << 8 | 1, .pdn = i};
		const struct expose_note window = {
			.number = i << 8 | 2, .pdn = i, .kind = KEY_WHY_WINDOW};

		netlink_object(l, i, &objects[program][i]);
		netlink_key_note(l, i, &region);
		netlink_key_note(l, OBJECTS + i, &window);
	}
}

static uint32_t objects_count(uint32_t kind, uint32_t device)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < NETLINK_PROGRAMS; p++)
		for (uint32_t i = 0; i < OBJECTS; i++)
			n += objects[p][i].kind == kind && objects[p][i].port < NETLINK_PORTS &&
			     (objects[p][i].port == 2) == (device == 1);
	return n;
}

struct dump {
	struct nlmsghdr head;
	struct nlattr attr;
	uint32_t device;
};

static struct dump dump_of(uint16_t op, uint32_t device)
{
	return (struct dump){{sizeof(struct dump), (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
			      NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
			     {8, RDMA_NLDEV_ATTR_DEV_INDEX},
			     device};
}

/* How many attributes of that type a dump has. */
static unsigned dump_count(uint16_t op, uint32_t device, uint16_t attr)
{
	const struct dump r = dump_of(op, device);
	struct answers a = {.portid = 4711};
	const struct nlmsghdr *head, *last = NULL;
	unsigned found = 0;
	size_t at = 0;

	netlink_execute(&a, &r, sizeof(r), false);
	while ((head = netlink_next(&a, &at))) {
		found += netlink_attrs(head, attr);
		/* A library's buffer is a page. */
		CHECK_SAY(head->nlmsg_len <= 4096, "%u", head->nlmsg_len);
		last = head;
	}
	CHECK(last && last->nlmsg_type == NLMSG_DONE);
	netlink_check_datagrams(&a);
	free(a.bytes);
	return found;
}

static void test_lists(void)
{
	static const struct {
		uint16_t op, entry;
		uint32_t kind;
	} lists[] = {
		{RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP_ENTRY, OBJECT_QP},
		{RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ_ENTRY, OBJECT_CQ},
		{RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, OBJECT_SRQ},
		{RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD_ENTRY, OBJECT_PD},
		{RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX_ENTRY, OBJECT_CONTEXT},
	};

	objects_choose();
	netlink_programs(NETLINK_PROGRAMS);
	netlink_look = objects_look;
	for (size_t i = 0; i < array_size(lists); i++)
		for (uint32_t device = 0; device < DEVICES; device++) {
			const unsigned found = dump_count(lists[i].op, device, lists[i].entry);

			CHECK_SAY(found == objects_count(lists[i].kind, device),
				  "%u instead of %u of kind %u", found,
				  objects_count(lists[i].kind, device), lists[i].kind);
		}
	/* Regions are where their domains are. */
	for (uint32_t device = 0; device < DEVICES; device++)
		CHECK(dump_count(RDMA_NLDEV_CMD_RES_MR_GET, device, RDMA_NLDEV_ATTR_RES_MR_ENTRY) ==
		      objects_count(OBJECT_PD, device));
	/* Each device has an id of its own, and the one that listens everywhere. */
	for (uint32_t device = 0; device < DEVICES; device++)
		CHECK(dump_count(RDMA_NLDEV_CMD_RES_CM_ID_GET, device,
				 RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY) == 2);
	netlink_look = NULL;
}

/* ---- without memory ---- */

static int64_t grants = INT64_MAX; /* how often memory is given before there is none */

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
	return grants-- > 0 ? __real_realloc(p, n) : NULL;
}

/* A list that finds no memory at some point ends with an error, or the sender is told. */
static void test_no_memory(void)
{
	const struct dump r = dump_of(RDMA_NLDEV_CMD_RES_QP_GET, 0);
	unsigned ended = 0;
	bool whole = false;

	netlink_look = objects_look;
	for (int64_t given = 0; !whole; given++) {
		struct answers a = {.portid = 4711};
		const struct nlmsghdr *head;
		size_t at = 0;
		int error, ret;

		grants = given;
		ret = netlink_try(&a, &r, sizeof(r), false);
		grants = INT64_MAX;
		head = netlink_next(&a, &at);
		CHECK(ret == (head ? 0 : -ENOBUFS));
		if (head && head->nlmsg_type == NLMSG_DONE) {
			memcpy(&error, head + 1, sizeof(error));
			CHECK(error == -ENOMEM && at == a.used);
			ended++;
		}
		whole = head && head->nlmsg_type != NLMSG_DONE;
		free(a.bytes);
	}
	CHECK(ended > 1);
	netlink_look = NULL;
}

int main(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	CHECK(!syscall(SYS_capget, &head, data));
	admin = data[0].effective >> CAP_NET_ADMIN & 1;
	netlink_fabric_open();
	test_chance();
	test_lists();
	test_no_memory();
	return 0;
}
