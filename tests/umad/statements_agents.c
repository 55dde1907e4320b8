// SPDX-License-Identifier: BSD-2-Clause
/* Statements 5 to 13: agents begin and end. */
#include "checklist.h"

#include <errno.h>
#include <rdma/ib_user_mad.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The agent asks its own port and gets the answer. */
static void agent_works(int fd, uint32_t id)
{
	struct letter question = letter_to_self(id, 0x51), answer;

	letter_is_sent(fd, &question);
	answer = letter_received(fd);
	must(answer.id == id && answer.status == 0 && answer.mad[3] == METHOD_GET_RESP &&
		     letter_status(&answer) == 0x8000,
	     "agent %u: status %u, method %#x, %#x", answer.id, answer.status, answer.mad[3],
	     letter_status(&answer));
	letter_free(&question);
	letter_free(&answer);
}

static void s5_registering_makes_an_agent(void)
{
	int fd = port_file(1);
	struct letter question = letter_to_self(0, 0x51);
	int error = port_send(fd, &question);

	must(error == -EIO || error == -EINVAL, "sent without an agent: %d", error);
	agent_works(fd, port_agent(fd, agent_of(CLASS_DIRECTED)));
}

static void s6_the_call_returns_0(void)
{
	int fd = port_file(1);
	struct ib_user_mad_reg_req r = {
		.qpn = 1, .mgmt_class = CLASS_PLAIN, .mgmt_class_version = 1};

	must(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) == 0, "%s", strerror(errno));
}

static void s7_an_id_is_stored(void)
{
	int fd = port_file(1);
	uint32_t first = port_agent(fd, agent_of(CLASS_PLAIN));
	uint32_t second = port_agent(fd, agent_of(CLASS_DIRECTED));
	struct ib_user_mad_reg_req r = {
		.id = UINT32_MAX, .qpn = 1, .mgmt_class = CLASS_PLAIN, .mgmt_class_version = 1};

	must(first == 0 && second == 1, "ids %u and %u", first, second);
	must(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) == 0 && r.id == 2, "id %u", r.id);
	must(port_unregister(fd, first) == 0, "unregister");
	must(port_agent(fd, agent_of(CLASS_PLAIN)) == first, "the lowest free one");
}

static void s8_a_failure_says_why(void)
{
	int fd = port_file(1);
	struct agent a = agent_of(CLASS_PLAIN);
	struct ib_user_mad_reg_req r = {
		.qpn = 2, .mgmt_class = CLASS_PLAIN, .mgmt_class_version = 1};

	errno = 0;
	must(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) == -1 && errno == EINVAL, "QP 2: %s",
	     strerror(errno));
	a.version = 0x83;
	must(port_register(fd, &a) == -EINVAL, "a class version");
	a = agent_of(CLASS_PLAIN);
	a.rmpp = 1;
	must(port_register(fd, &a) == -EINVAL, "RMPP in a class without it");
}

static void s9_an_agent_is_removed(void)
{
	int fd = port_file(1), other = port_file(1);
	struct agent a = server_of(CLASS_PLAIN, METHOD_GET);
	struct letter question;
	uint32_t id = port_agent(fd, a);
	int error;

	must(port_register(other, &a) == -EINVAL, "two servers of a method");
	must(port_unregister(fd, id) == 0, "unregister");
	must(port_unregister(fd, id) == -EINVAL, "unregister twice");
	must(port_unregister(fd, 32) == -EINVAL, "unregister an id that is none");
	port_agent(other, a);
	question = letter_to_self(id, 0x51);
	error = port_send(fd, &question);
	must(error == -EIO || error == -EINVAL, "sent by an agent that was: %d", error);
}

static void s10_close_removes_all(void)
{
	struct agent a = server_of(CLASS_PLAIN, METHOD_GET),
		     b = server_of(CLASS_VENDOR, METHOD_SEND);
	int fd = port_file(1), other = port_file(1);

	port_agent(fd, a);
	port_agent(fd, b);
	must(port_register(other, &a) == -EINVAL && port_register(other, &b) == -EINVAL, "twice");
	must(port_close(fd) == 0, "close");
	port_agent(other, a);
	port_agent(other, b);
}

static void s11_others_survive_a_close(void)
{
	int fd = port_file(1), other = port_file(1);
	uint32_t id = port_agent(other, agent_of(CLASS_DIRECTED));

	port_agent(fd, agent_of(CLASS_DIRECTED));
	must(port_close(fd) == 0, "close");
	agent_works(other, id);
}

static void s12_a_newer_call_has_more_fields(void)
{
	int fd = port_file(1);
	struct agent a = agent_of(CLASS_VENDOR);
	struct ib_user_mad_reg_req2 r = {.qpn = 1,
					 .mgmt_class = CLASS_VENDOR,
					 .mgmt_class_version = 1,
					 .oui = OUI_OF_OURS,
					 .flags = 2};

	must(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r) == -1 && errno == EINVAL, "flag 2");
	must(r.flags == IB_USER_MAD_USER_RMPP, "flags that are known: %#x", r.flags);
	a.second = true;
	a.rmpp = 1;
	a.flags = IB_USER_MAD_USER_RMPP;
	port_agent(fd, a);
	a.oui = 0x1000000;
	must(port_register(fd, &a) == -EINVAL, "an OUI of more than 24 bits");
}

static void s13_the_newer_call_turns_the_header_on(void)
{
	int fd = port_file(1);
	struct ib_user_mad_reg_req2 r = {
		.id = UINT32_MAX, .qpn = 0, .mgmt_class = CLASS_DIRECTED, .mgmt_class_version = 1};
	struct {
		struct ib_user_mad_hdr header;
		uint8_t mad[MAD_BYTES];
	} m = {.header = {.lid = 0xffff, .timeout_ms = WAIT_MS}};
	struct letter question = letter_to_self(0, 0x51), answer;

	must(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r) == 0, "%s", strerror(errno));
	m.header.id = r.id;
	memcpy(m.mad, question.mad, MAD_BYTES);
	must(write(fd, &m, sizeof(m)) == (ssize_t)sizeof(m), "write: %s", strerror(errno));
	must(port_receive(fd, &answer, MAD_BYTES + NEW_HEADER - port_header(fd)) == 0, "read");
	/* Whatever header ours reads with, the message has the new one. */
	must(answer.length == NEW_HEADER + MAD_BYTES, "length %u", answer.length);
}

const struct statement statements_of_agents[] = {
	{5, s5_registering_makes_an_agent},
	{6, s6_the_call_returns_0},
	{7, s7_an_id_is_stored},
	{8, s8_a_failure_says_why},
	{9, s9_an_agent_is_removed},
	{10, s10_close_removes_all},
	{11, s11_others_survive_a_close},
	{12, s12_a_newer_call_has_more_fields},
	{13, s13_the_newer_call_turns_the_header_on},
	{0, NULL},
};
