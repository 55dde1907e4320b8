// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA netlink: a datagram of any bytes, and programs that say anything of their objects.  What answers
 * can be read to the last byte, and is cut into datagrams between messages.
 */
#include <string.h>

#include "fuzz.h"
#include "netlink_fabric.h"

#define CAPPED	 1u
#define PROGRAMS 2u /* look at programs, which takes most of the time */
#define KEYS	 1u /* a row of the noise is a key */

static struct input noise;

_Noreturn void __wrap__Exit(int status);

/* A check that does not hold: libFuzzer keeps the input of an abort. */
_Noreturn void __wrap__Exit(int status)
{
	(void)status;
	abort();
}

static void noise_object(struct input *in, struct look *l)
{
	const uint32_t row = in_u16(in);
	struct object_about about;

	in_bytes(in, &about, sizeof(about));
	if (about.kind >= OBJECT_KINDS + 1)
		about.kind %= OBJECT_KINDS;
	netlink_object(l, row, &about);
	l->mem.objects[row].serial = in_u64(in);
	l->objects[row].known = in_u8(in) & 1;
	in_bytes(in, l->objects[row].figures, sizeof(l->objects[row].figures));
}

static void noise_key(struct input *in, struct look *l)
{
	const uint32_t row = in_u16(in);
	struct expose_note note;
	struct key_block key;

	if (in_u8(in) & 1) {
		in_bytes(in, &key, sizeof(key));
		netlink_key(l, row, &key);
	} else {
		in_bytes(in, &note, sizeof(note));
		netlink_key_note(l, row, &note);
	}
}

/* Both programs say the same. */
static void noise_look(uint32_t program, struct look *l)
{
	struct input in = noise;

	(void)program;
	while (in.left)
		if (in_u8(&in) & KEYS)
			noise_key(&in, l);
		else
			noise_object(&in, l);
}

void target_init(void)
{
	netlink_look = noise_look;
	netlink_fabric_open();
}

/* Puts an attribute of four bytes. */
static void seed_attr(struct seed *s, uint16_t type, uint32_t value)
{
	put_u16(s, NLA_HDRLEN + 4);
	put_u16(s, type);
	put_u32(s, value);
}

static void seed_noise(struct seed *s)
{
	struct object_about about = {.number = 5, .port = 0, .srqn = 5, .recv_cqn = 5};

	for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++) {
		about.kind = kind;
		put_u8(s, 0);
		put_u16(s, kind);
		put_bytes(s, &about, sizeof(about));
		put_u64(s, 1);
		put_u8(s, 1);
		for (unsigned i = 0; i < FIGURES; i++)
			put_u64(s, i ? 3 : 5);
	}
}

/* A request with a device, a port and a number of the objects above. */
static void seed_request(struct seed *s, unsigned op, uint16_t flags, uint16_t number, bool port)
{
	const uint16_t n = (uint16_t)(NLMSG_HDRLEN + (number ? 16 : 8) + (port ? 8 : 0));
	char name[32];

	put_u8(s, PROGRAMS);
	put_u16(s, n);
	put_u32(s, n);
	put_u16(s, (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op));
	put_u16(s, NLM_F_REQUEST | NLM_F_ACK | flags);
	put_u64(s, 77);
	seed_attr(s, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	if (port)
		seed_attr(s, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	if (number)
		seed_attr(s, number, 5);
	seed_noise(s);
	snprintf(name, sizeof(name), "op%u_%x_%u_%d", op, flags, number, port);
	put_end(s, name);
}

void target_seeds(struct seed *s)
{
	static const uint16_t numbers[] = {RDMA_NLDEV_ATTR_RES_LQPN, RDMA_NLDEV_ATTR_RES_CQN,
					   RDMA_NLDEV_ATTR_RES_MRN,  RDMA_NLDEV_ATTR_RES_PDN,
					   RDMA_NLDEV_ATTR_RES_CTXN, RDMA_NLDEV_ATTR_RES_SRQN,
					   RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_CM_IDN};

	for (unsigned op = 0; op < RDMA_NLDEV_NUM_OPS; op++) {
		seed_request(s, op, 0, 0, false);
		seed_request(s, op, 0, 0, true);
		seed_request(s, op, NLM_F_DUMP, 0, false);
		for (size_t i = 0; i < array_size(numbers); i++)
			seed_request(s, op, 0, numbers[i], op == RDMA_NLDEV_CMD_RES_QP_GET);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	const uint8_t how = in_u8(&in);
	struct answers a = {.portid = 4711};
	uint8_t datagram[4096];
	size_t n = in_u16(&in), at = 0;

	n = n < sizeof(datagram) ? n : sizeof(datagram);
	n = n < in.left ? n : in.left;
	in_bytes(&in, datagram, n);
	noise = in;
	netlink_programs(how & PROGRAMS ? NETLINK_PROGRAMS : 0);
	netlink_execute(&a, datagram, n, how & CAPPED);
	while (netlink_next(&a, &at))
		;
	netlink_check_datagrams(&a);
	free(a.bytes);
	return 0;
}
