// SPDX-License-Identifier: BSD-2-Clause
/* See answers.h. */
#include "driver/netlink/answers.h"

#include <stdlib.h>
#include <string.h>

/* Room for n bytes, which the caller fills in; NULL: there is no memory. */
static void *answer_room(struct answers *a, size_t n)
{
	const size_t aligned = NLMSG_ALIGN(n);
	void *at;

	if (!a->failed && a->room - a->used < aligned) {
		size_t room = a->room ? 2 * a->room + aligned : 2 * ANSWER_DATAGRAM_BYTES + aligned;
		uint8_t *bytes = realloc(a->bytes, room);

		a->failed = !bytes;
		if (bytes) {
			a->bytes = bytes;
			a->room = room;
		}
	}
	if (a->failed)
		return NULL;
	at = a->bytes + a->used;
	memset(at, 0, aligned);
	a->used += aligned;
	return at;
}

size_t answer_begin(struct answers *a, const struct nlmsghdr *request, uint16_t type,
		    uint16_t flags)
{
	const size_t begin = a->used;
	struct nlmsghdr *head = answer_room(a, NLMSG_HDRLEN);

	if (head)
		*head = (struct nlmsghdr){.nlmsg_type = type,
					  .nlmsg_flags = flags,
					  .nlmsg_seq = request->nlmsg_seq,
					  .nlmsg_pid = a->portid};
	return begin;
}

void answer_end(struct answers *a, size_t begin)
{
	if (!a->failed)
		((struct nlmsghdr *)(void *)(a->bytes + begin))->nlmsg_len =
			(uint32_t)(a->used - begin);
}

void answer_cut(struct answers *a, size_t at)
{
	a->used = at;
}

static void answer_attr(struct answers *a, uint16_t type, const void *value, size_t n)
{
	struct nlattr *attr = answer_room(a, NLA_HDRLEN + n);

	if (!attr)
		return;
	*attr = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type};
	if (n)
		memcpy((uint8_t *)attr + NLA_HDRLEN, value, n);
}

void answer_u8(struct answers *a, uint16_t type, uint8_t value)
{
	answer_attr(a, type, &value, sizeof(value));
}

void answer_u32(struct answers *a, uint16_t type, uint32_t value)
{
	answer_attr(a, type, &value, sizeof(value));
}

void answer_u64(struct answers *a, uint16_t type, uint64_t value)
{
	answer_attr(a, type, &value, sizeof(value));
}

void answer_string(struct answers *a, uint16_t type, const char *value)
{
	answer_attr(a, type, value, strlen(value) + 1);
}

void answer_binary(struct answers *a, uint16_t type, const void *value, size_t n)
{
	answer_attr(a, type, value, n);
}

size_t answer_nest(struct answers *a, uint16_t type)
{
	const size_t begin = a->used;

	answer_attr(a, type, NULL, 0);
	return begin;
}

void answer_nest_end(struct answers *a, size_t begin)
{
	if (!a->failed)
		((struct nlattr *)(void *)(a->bytes + begin))->nla_len =
			(uint16_t)(a->used - begin);
}

void answer_done(struct answers *a, const struct nlmsghdr *request, int error)
{
	const size_t begin = answer_begin(a, request, NLMSG_DONE, NLM_F_MULTI);
	void *body = answer_room(a, sizeof(error));

	if (body)
		memcpy(body, &error, sizeof(error));
	answer_end(a, begin);
}

void answer_ack(struct answers *a, const struct nlmsghdr *request, int error, bool whole)
{
	const size_t repeated = whole ? request->nlmsg_len : sizeof(*request);
	const size_t begin = answer_begin(a, request, NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED);
	uint8_t *body = answer_room(a, sizeof(error) + repeated);

	if (body) {
		memcpy(body, &error, sizeof(error));
		memcpy(body + sizeof(error), request, repeated);
	}
	answer_end(a, begin);
}

/* May another message follow this one in its datagram?  Programs may count on one datagram for an
 * answer and one for its acknowledgement, as the kernel sends them. */
static bool is_followed(const struct nlmsghdr *head)
{
	return head->nlmsg_flags & NLM_F_MULTI && head->nlmsg_type != NLMSG_DONE;
}

size_t answers_datagram(const struct answers *a, size_t from)
{
	bool more = true;
	size_t n = 0;

	while (more && from + n < a->used) {
		const struct nlmsghdr *head = (const void *)(a->bytes + from + n);
		const size_t length = NLMSG_ALIGN(head->nlmsg_len);

		if (n && (n + length > ANSWER_DATAGRAM_BYTES || !(head->nlmsg_flags & NLM_F_MULTI)))
			break;
		more = is_followed(head);
		n += length;
	}
	return n;
}
