// SPDX-License-Identifier: BSD-2-Clause
/* Sending, receiving and validating messages; both ends use this file. */
#include "fabric/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The shape of each message in each of its kinds; body is ABSENT where the kind does not exist. */
struct shape {
	int32_t body; /* bytes, plus 1, so that an unnamed entry of the table is ABSENT */
	uint32_t fds;
};

#define ABSENT	0
#define EMPTY	1
#define BODY(m) ((int32_t)sizeof(struct m) + 1)

static const struct shape shapes[MSG_TYPES][MSG_KINDS] = {
	[MSG_HELLO] = {[MSG_REQUEST] = {BODY(msg_hello), 0},
		       [MSG_REPLY] = {BODY(msg_hello_reply), HELLO_FDS}},
	[MSG_LEASE] = {[MSG_REQUEST] = {BODY(msg_lease), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_NUMBERS] = {[MSG_REQUEST] = {BODY(msg_numbers), 0},
			 [MSG_REPLY] = {BODY(msg_numbers_reply), 0}},
	[MSG_CHANNEL] = {[MSG_REQUEST] = {BODY(msg_peer), 0},
			 [MSG_REPLY] = {BODY(msg_channel), 1},
			 [MSG_NOTE] = {BODY(msg_channel), 1}},
	[MSG_FUNCTION] = {[MSG_REQUEST] = {BODY(msg_index), 0},
			  [MSG_REPLY] = {EMPTY, 1},
			  [MSG_NOTE] = {EMPTY, 0}},
	[MSG_GONE] = {[MSG_REQUEST] = {BODY(msg_peer), 0}, [MSG_NOTE] = {BODY(msg_peer), 0}},
	[MSG_PORT] = {[MSG_NOTE] = {BODY(msg_port), 0}},
	[MSG_VIOLATED] = {[MSG_REQUEST] = {BODY(msg_violated), 0}},
	[MSG_GSI] = {[MSG_REQUEST] = {BODY(msg_gsi), 0}, [MSG_NOTE] = {BODY(msg_gsi), 0}},
	[MSG_GROUP] = {[MSG_REQUEST] = {BODY(msg_group), 0}, [MSG_NOTE] = {BODY(msg_group), 0}},
	[MSG_ATTR] = {[MSG_REQUEST] = {BODY(msg_attr), 0}, [MSG_REPLY] = {BODY(msg_attr_reply), 0}},
	[MSG_DESCRIBE] = {[MSG_REQUEST] = {BODY(msg_attr), 0}, [MSG_REPLY] = {EMPTY, 1}},
	[MSG_INFO] = {[MSG_REQUEST] = {EMPTY, 0}, [MSG_REPLY] = {BODY(msg_info_reply), HELLO_FDS}},
	[MSG_HOST] = {[MSG_REQUEST] = {BODY(msg_host), 0}, [MSG_REPLY] = {BODY(msg_host_reply), 0}},
	[MSG_SLOT] =
		{[MSG_REQUEST] = {BODY(msg_index), 0}, [MSG_REPLY] = {BODY(msg_slot_reply), 0}},
	[MSG_COUNTERS] =
		{[MSG_REQUEST] = {BODY(msg_index), 0}, [MSG_REPLY] = {BODY(msg_counters_reply), 0}},
	[MSG_SENT] =
		{[MSG_REQUEST] = {BODY(msg_index), 0}, [MSG_REPLY] = {BODY(msg_sent_reply), 0}},
	[MSG_STAY] = {[MSG_REQUEST] = {EMPTY, 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_SHUTDOWN] = {[MSG_REQUEST] = {EMPTY, 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_SET_PORT] = {[MSG_REQUEST] = {BODY(msg_set_port), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_LINK] = {[MSG_REQUEST] = {BODY(msg_link), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_NODE] = {[MSG_REQUEST] = {BODY(msg_node), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_IMPAIR] =
		{[MSG_REQUEST] = {BODY(msg_impair), 0}, [MSG_REPLY] = {BODY(msg_impair_reply), 0}},
	[MSG_FAULT] = {[MSG_REQUEST] = {BODY(msg_index), 0},
		       [MSG_REPLY] = {BODY(msg_fault_reply), 0},
		       [MSG_NOTE] = {BODY(msg_index), 0}},
	[MSG_TIE] = {[MSG_REQUEST] = {BODY(msg_tie), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_UNTIE] = {[MSG_REQUEST] = {BODY(msg_index), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_TIED] =
		{[MSG_REQUEST] = {BODY(msg_index), 0}, [MSG_REPLY] = {BODY(msg_tied_reply), 0}},
	[MSG_CAPTURE] = {[MSG_REQUEST] = {BODY(msg_capture), 0},
			 [MSG_REPLY] = {EMPTY, 0},
			 [MSG_NOTE] = {BODY(msg_capture_ring), 1}},
	[MSG_CAPTURE_END] = {[MSG_NOTE] = {BODY(msg_capture_end), 0}},
	[MSG_UMAD_OPEN] = {[MSG_REQUEST] = {BODY(msg_umad_open), 0},
			   [MSG_REPLY] = {BODY(msg_umad_open_reply), UMAD_OPEN_FDS}},
	[MSG_ISSM_OPEN] = {[MSG_REQUEST] = {BODY(msg_umad_open), 0}, [MSG_REPLY] = {EMPTY, 1}},
	[MSG_UMAD_REGISTER] = {[MSG_REQUEST] = {BODY(msg_umad_register), 0},
			       [MSG_REPLY] = {BODY(msg_umad_agent), 0}},
	[MSG_UMAD_UNREGISTER] =
		{[MSG_REQUEST] = {BODY(msg_umad_agent), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_UMAD_PKEY] = {[MSG_REQUEST] = {BODY(msg_umad_file), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_UMAD_FETCH] = {[MSG_REQUEST] = {BODY(msg_umad_fetch), 0},
			    [MSG_REPLY] = {BODY(msg_umad_fetch_reply), 1}},
	[MSG_UMAD_IN_FLIGHT] =
		{[MSG_REQUEST] = {BODY(msg_umad_in_flight), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_UMAD_ADOPT] = {[MSG_REQUEST] = {BODY(msg_umad_adopt), 0},
			    [MSG_REPLY] = {BODY(msg_umad_adopt_reply), 1}},
	[MSG_CM_OPEN] = {[MSG_REQUEST] = {BODY(msg_cm_open), 0},
			 [MSG_REPLY] = {BODY(msg_cm_open_reply), 1}},
	[MSG_CM_IS_FILE] = {[MSG_REQUEST] = {BODY(msg_cm_is_file), 0}, [MSG_REPLY] = {EMPTY, 0}},
	[MSG_CM_CALL] = {[MSG_REQUEST] = {BODY(msg_cm_call), 0},
			 [MSG_REPLY] = {BODY(msg_cm_call_reply), 0}},
	[MSG_CM_ID] =
		{[MSG_REQUEST] = {BODY(msg_cm_id), 0}, [MSG_REPLY] = {BODY(msg_cm_id_reply), 0}},
};

enum msg_kind msg_kind(const struct msg *m)
{
	if (m->head.reply)
		return MSG_REPLY;
	return m->head.seq ? MSG_REQUEST : MSG_NOTE;
}

static uint32_t shape_length(const struct shape *s, int status)
{
	return (uint32_t)sizeof(struct msg_head) + (status ? 0 : (uint32_t)s->body - 1);
}

const char *msg_type_name(enum msg_type type)
{
	static const char *const names[MSG_TYPES] = {
		[MSG_HELLO] = "HELLO",
		[MSG_LEASE] = "LEASE",
		[MSG_NUMBERS] = "NUMBERS",
		[MSG_CHANNEL] = "CHANNEL",
		[MSG_FUNCTION] = "FUNCTION",
		[MSG_GONE] = "GONE",
		[MSG_PORT] = "PORT",
		[MSG_VIOLATED] = "VIOLATED",
		[MSG_GSI] = "GSI",
		[MSG_GROUP] = "GROUP",
		[MSG_ATTR] = "ATTR",
		[MSG_DESCRIBE] = "DESCRIBE",
		[MSG_INFO] = "INFO",
		[MSG_HOST] = "HOST",
		[MSG_SLOT] = "SLOT",
		[MSG_COUNTERS] = "COUNTERS",
		[MSG_SENT] = "SENT",
		[MSG_STAY] = "STAY",
		[MSG_SHUTDOWN] = "SHUTDOWN",
		[MSG_SET_PORT] = "SET_PORT",
		[MSG_LINK] = "LINK",
		[MSG_NODE] = "NODE",
		[MSG_IMPAIR] = "IMPAIR",
		[MSG_FAULT] = "FAULT",
		[MSG_TIE] = "TIE",
		[MSG_UNTIE] = "UNTIE",
		[MSG_TIED] = "TIED",
		[MSG_CAPTURE] = "CAPTURE",
		[MSG_CAPTURE_END] = "CAPTURE_END",
		[MSG_UMAD_OPEN] = "UMAD_OPEN",
		[MSG_ISSM_OPEN] = "ISSM_OPEN",
		[MSG_UMAD_REGISTER] = "UMAD_REGISTER",
		[MSG_UMAD_UNREGISTER] = "UMAD_UNREGISTER",
		[MSG_UMAD_PKEY] = "UMAD_PKEY",
		[MSG_UMAD_FETCH] = "UMAD_FETCH",
		[MSG_UMAD_IN_FLIGHT] = "UMAD_IN_FLIGHT",
		[MSG_UMAD_ADOPT] = "UMAD_ADOPT",
		[MSG_CM_OPEN] = "CM_OPEN",
		[MSG_CM_IS_FILE] = "CM_IS_FILE",
		[MSG_CM_CALL] = "CM_CALL",
		[MSG_CM_ID] = "CM_ID",
	};

	return (unsigned)type < MSG_TYPES ? names[type] : "unknown";
}

void msg_prepare(struct msg *m, enum msg_type type, enum msg_kind kind, uint32_t seq, int status)
{
	m->head = (struct msg_head){
		.magic = MSG_MAGIC,
		.version = MSG_VERSION,
		.type = (uint16_t)type,
		.length = shape_length(&shapes[type][kind], status),
		.seq = seq,
		.reply = kind == MSG_REPLY,
		.status = status,
	};
}

int msg_send(int sock, const struct msg *m, const int *fds, unsigned nfds, int flags)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MSG_MAX_FDS * sizeof(int))];
	} control = {0};
	struct msg copy = *m; /* sendmsg only reads, but struct iovec cannot say so */
	struct iovec iov = {&copy, m->head.length};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds > MSG_MAX_FDS)
		return -EINVAL;
	if (nfds) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	/* A peer that has left must not kill the application by SIGPIPE. */
	do {
		n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return 0;
}

void msg_close_fds(int fds[MSG_MAX_FDS])
{
	for (unsigned i = 0; i < MSG_MAX_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Collects the descriptors.  The kernel closes those that do not fit and sets a flag. */
static unsigned take_fds(struct msghdr *mh, int fds[MSG_MAX_FDS])
{
	unsigned nfds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (nfds < MSG_MAX_FDS)
				fds[nfds++] = fd;
			else
				close(fd);
		}
	}
	return nfds;
}

/* lost: descriptors that could not be taken came with the message. */
static int msg_check(const struct msg *m, size_t bytes, unsigned nfds, bool lost, unsigned allowed)
{
	const struct shape *s;
	enum msg_kind kind;
	unsigned want;

	if (bytes < sizeof(m->head) || m->head.magic != MSG_MAGIC)
		return -EBADMSG;
	if (m->head.version != MSG_VERSION)
		return -EPROTO;
	kind = msg_kind(m);
	if (m->head.type >= MSG_TYPES || m->head.reply > 1 || !(allowed & 1u << kind))
		return -EBADMSG;
	if (m->head.status > 0 || (m->head.status && kind != MSG_REPLY))
		return -EBADMSG;
	s = &shapes[m->head.type][kind];
	if (s->body == ABSENT || m->head.length != bytes ||
	    bytes != shape_length(s, m->head.status))
		return -EBADMSG;
	want = m->head.status ? 0 : s->fds;
	if (lost && nfds < want)
		return -EMFILE;
	return lost || nfds != want ? -EBADMSG : 0;
}

int msg_recv(int sock, struct msg *m, int fds[MSG_MAX_FDS], unsigned allowed, int flags)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MSG_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};
	unsigned nfds;
	ssize_t n;
	int ret;

	for (unsigned i = 0; i < MSG_MAX_FDS; i++)
		fds[i] = -1;
	do {
		n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOBUFS ? -ENOMEM : -errno;
	if (n == 0)
		return -ECONNRESET;
	nfds = take_fds(&mh, fds);
	ret = mh.msg_flags & MSG_TRUNC
		      ? -EBADMSG
		      : msg_check(m, (size_t)n, nfds, mh.msg_flags & MSG_CTRUNC, allowed);
	if (ret)
		msg_close_fds(fds);
	return ret;
}

bool fabric_name_ok(const char *name)
{
	size_t n = strnlen(name, FABRIC_NAME_BYTES);

	if (!n || n == FABRIC_NAME_BYTES || name[0] == '.' || name[0] == '-')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
	       n;
}
