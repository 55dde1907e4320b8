// SPDX-License-Identifier: BSD-2-Clause
/* Statements 44 to 53: the old header and the one that has a P_Key index. */
#include "checklist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* As programs open it that know of no newer layout; libibumad cannot. */
static int bare_file(void)
{
	int fd = open("/dev/infiniband/umad0", O_RDWR | O_CLOEXEC);

	must(fd >= 0, "open: %s", strerror(errno));
	return fd;
}

static int bare_register(int fd)
{
	struct ib_user_mad_reg_req r = {.mgmt_class = CLASS_DIRECTED, .mgmt_class_version = 1};

	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) == 0 ? (int)r.id : -errno;
}

static int bare_register_second(int fd)
{
	struct ib_user_mad_reg_req2 r = {.mgmt_class = CLASS_DIRECTED, .mgmt_class_version = 1};

	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r) == 0 ? (int)r.id : -errno;
}

/* Writes a question with that header, and reads the answer with room for more than there is: the header
 * that is in force, or 0 if there is no answer that makes sense. */
static size_t header_in_force(int fd, int id, size_t header)
{
	struct letter question = letter_to_self((uint32_t)id, 0x51);
	struct ib_user_mad_hdr_old *h;
	_Alignas(8) uint8_t bytes[2 * NEW_HEADER + MAD_BYTES] = {0};
	ssize_t n;

	must(id >= 0, "register: %s", strerror(-id));
	h = (struct ib_user_mad_hdr_old *)bytes;
	h->id = (uint32_t)id;
	h->timeout_ms = WAIT_MS;
	h->lid = htons(0xffff);
	memcpy(bytes + header, question.mad, MAD_BYTES);
	must(write(fd, bytes, header + MAD_BYTES) == (ssize_t)(header + MAD_BYTES), "write: %s",
	     strerror(errno));
	must(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) == 1, "poll");
	n = read(fd, bytes, sizeof(bytes));
	if (n == OLD_HEADER + MAD_BYTES && bytes[OLD_HEADER + 3] == METHOD_GET_RESP &&
	    h->length == OLD_HEADER + MAD_BYTES)
		return OLD_HEADER;
	if (n == NEW_HEADER + MAD_BYTES && bytes[NEW_HEADER + 3] == METHOD_GET_RESP)
		return NEW_HEADER;
	return 0;
}

static void s44_the_old_header_sets_no_pkey(void)
{
	int fd = bare_file();

	/* Its MAD begins where the index would be. */
	must(sizeof(struct ib_user_mad_hdr_old) == OLD_HEADER, "header");
	must(header_in_force(fd, bare_register(fd), OLD_HEADER) == OLD_HEADER, "layout");
}

static void s45_the_old_header_tells_no_pkey(void)
{
	s44_the_old_header_sets_no_pkey();
}

static void s46_a_newer_header_has_it(void)
{
	int fd = bare_file();

	must(offsetof(struct ib_user_mad_hdr, pkey_index) == OLD_HEADER &&
		     sizeof(struct ib_user_mad_hdr) == NEW_HEADER,
	     "header");
	must(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0, "%s", strerror(errno));
	must(header_in_force(fd, bare_register(fd), NEW_HEADER) == NEW_HEADER, "layout");
}

static void s47_the_old_layout_is_the_default(void)
{
	int fd = bare_file();

	must(header_in_force(fd, bare_register(fd), OLD_HEADER) == OLD_HEADER, "layout");
}

static void s48_enable_pkey_turns_it_on(void)
{
	int fd = bare_file();

	must(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0, "%s", strerror(errno));
	must(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0, "again: %s", strerror(errno));
	must(header_in_force(fd, bare_register(fd), NEW_HEADER) == NEW_HEADER, "layout");
}

static void s49_the_newer_call_turns_it_on(void)
{
	int fd = bare_file();

	must(header_in_force(fd, bare_register_second(fd), NEW_HEADER) == NEW_HEADER, "layout");
}

static void s50_too_late_it_fails(void)
{
	int fd = bare_file(), id = bare_register(fd);

	must(id >= 0, "register");
	must(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == -1 && errno == EINVAL, "%s", strerror(errno));
	must(header_in_force(fd, id, OLD_HEADER) == OLD_HEADER, "layout");
	/* Nor does the newer call change it then. */
	must(header_in_force(fd, bare_register_second(fd), OLD_HEADER) == OLD_HEADER, "layout");
}

static void s51_each_descriptor_has_its_own(void)
{
	int old = bare_file(), new = bare_file();

	must(ioctl(new, IB_USER_MAD_ENABLE_PKEY) == 0, "%s", strerror(errno));
	must(header_in_force(new, bare_register(new), NEW_HEADER) == NEW_HEADER, "the new one");
	must(header_in_force(old, bare_register(old), OLD_HEADER) == OLD_HEADER, "the old one");
	must(header_in_force(new, 0, NEW_HEADER) == NEW_HEADER, "the new one again");
}

#define PKEY_OF_OURS 0x8123

/* Writes the first keys of a port's table, by an SMP to itself. */
static void pkeys_set(unsigned port, const uint16_t keys[3])
{
	int fd = port_file(port);
	struct letter l = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), 0x51), answer;

	l.mad[3] = 2;
	l.mad[17] = ATTRIBUTE_PKEYS;
	for (unsigned i = 0; i < 3; i++) {
		l.mad[64 + 2 * i] = (uint8_t)(keys[i] >> 8);
		l.mad[65 + 2 * i] = (uint8_t)keys[i];
	}
	letter_is_sent(fd, &l);
	answer = letter_received(fd);
	must(letter_status(&answer) == 0x8000, "P_KeyTable: %#x", letter_status(&answer));
	must(port_close(fd) == 0, "close");
}

static void s52_the_index_counts(void)
{
	struct agent client = agent_of(CLASS_VENDOR), server = server_of(CLASS_VENDOR, METHOD_SEND);
	struct letter l = letter_to(lid_of(2), CLASS_VENDOR, METHOD_SEND, 0, 0x51), got;
	size_t more = NEW_HEADER - OLD_HEADER;
	int from = port_file(1), to = port_file(2);
	uint16_t index;

	client.second = true;
	server.second = true;
	pkeys_set(1, (uint16_t[]){0xffff, PKEY_OF_OURS, 0});
	pkeys_set(2, (uint16_t[]){0xffff, 0, PKEY_OF_OURS});
	l.id = port_agent(from, client);
	port_agent(to, server);
	/* Ours may write the old header; so the whole of it is written here. */
	{
		_Alignas(8) uint8_t bytes[NEW_HEADER + MAD_BYTES] = {0};
		struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)bytes;

		h->id = l.id;
		h->qpn = htonl(1);
		h->lid = htons(l.lid);
		h->pkey_index = 1;
		memcpy(bytes + NEW_HEADER, l.mad, MAD_BYTES);
		must(write(from, bytes, sizeof(bytes)) == sizeof(bytes), "write: %s",
		     strerror(errno));
		must(port_receive(to, &got, MAD_BYTES + more) == 0, "receive");
		/* With the old header the new one's end stands before the MAD. */
		index = port_header(to) == NEW_HEADER ? got.pkey_index
						      : (uint16_t)(got.mad[0] | got.mad[1] << 8);
	}
	must(index == 2, "index %u", index);
	pkeys_set(1, (uint16_t[]){0xffff, 0, 0});
	pkeys_set(2, (uint16_t[]){0xffff, 0, 0});
}

static void s53_version_6_never_came(void)
{
	int fd = bare_file(), other = bare_file();

	must(strcmp(text_of("/sys/class/infiniband_mad/abi_version"), "5") == 0, "ABI version");
	must(header_in_force(fd, bare_register(fd), OLD_HEADER) == OLD_HEADER, "default");
	must(ioctl(other, IB_USER_MAD_ENABLE_PKEY) == 0, "ENABLE_PKEY: %s", strerror(errno));
}

const struct statement statements_of_layouts[] = {
	{44, s44_the_old_header_sets_no_pkey},
	{45, s45_the_old_header_tells_no_pkey},
	{46, s46_a_newer_header_has_it},
	{47, s47_the_old_layout_is_the_default},
	{48, s48_enable_pkey_turns_it_on},
	{49, s49_the_newer_call_turns_it_on},
	{50, s50_too_late_it_fails},
	{51, s51_each_descriptor_has_its_own},
	{52, s52_the_index_counts},
	{53, s53_version_6_never_came},
	{0, NULL},
};
