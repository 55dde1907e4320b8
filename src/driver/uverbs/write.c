// SPDX-License-Identifier: BSD-2-Clause
/*
 * The numbered commands of the uverbs ABI, and the two ways in which they come.  Which errno
 * answers which mistake, and which of two mistakes is found first, are as in the kernel, because
 * libraries probe with them.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "driver/uverbs/core/inject.h"
#include "driver/uverbs/core/request.h"
#include "driver/uverbs/uverbs.h"
#include "usermem/usermem.h"

/* A command that the kernel knows and this device does not have. */
#define LACKS(num) [IB_USER_VERBS_CMD_##num] = {.name = #num}

static const struct command_spec lacking[] = {
	LACKS(MODIFY_AH),
	LACKS(QUERY_AH),
	LACKS(REG_SMR),
	LACKS(QUERY_MR),
	LACKS(BIND_MW),
	LACKS(POLL_CQ),
	LACKS(PEEK_CQ),
	LACKS(REQ_NOTIFY_CQ),
	LACKS(POST_SEND),
	LACKS(POST_RECV),
	LACKS(POST_SRQ_RECV),
	/* the last number of a legacy command */
	[IB_USER_VERBS_CMD_OPEN_QP] = {.name = "OPEN_QP"},
};
static const struct command_spec lacking_ex = {.name = "of an extended number"};

/* Every number among those of commands has a row, if only one without a function. */
static int command_find(uint32_t number, const struct command_spec **out)
{
	uint32_t index = number & IB_USER_VERBS_CMD_COMMAND_MASK;
	bool extended = number & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	if (number & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (index >= (extended ? IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1 : array_size(lacking)))
		return -EOPNOTSUPP;
	*out = uverbs_command(number);
	if (!*out)
		*out = extended ? &lacking_ex : &lacking[index];
	return 0;
}

static int command_refused(const struct command_spec *c, int err, const char *why)
{
	return uverbs_refused(c->name ? c->name : "unknown", err, why);
}

/* As long as the kernel waits for a neighbour (rdma_addr_find_l2_eth_by_grh). */
#define AWAIT_LOOKS   20
#define AWAIT_LOOK_NS 50000000

/* The file's lock is held, but for the pauses. */
static int command_await(struct ureq *req, const struct command_spec *c)
{
	const struct timespec pause = {.tv_nsec = AWAIT_LOOK_NS};
	int ret = c->run(req);

	for (unsigned i = 0; ret == UREQ_AWAITS && i < AWAIT_LOOKS; i++) {
		pthread_mutex_unlock(&req->file->lock);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		pthread_mutex_lock(&req->file->lock);
		/* the program may have closed the file */
		if (!c->before_context && !req->file->context)
			return -EINVAL;
		ret = c->run(req);
	}
	return ret == UREQ_AWAITS ? -ETIMEDOUT : ret;
}

static int command_run(struct ureq *req, const struct command_spec *c)
{
	int ret;

	if (!c->run) {
		log_info("uverbs: the command %s is not there",
			 c->name ? c->name : "of that number");
		return command_refused(c, -EOPNOTSUPP, "not-supported");
	}
	if (!c->before_context && !req->file->context)
		return command_refused(c, -EINVAL, "no-context");
	if (req->inherited && !c->inherited)
		return command_refused(c, -EIO, "inherited-by-fork");
	ret = c->name ? inject_call(req->file, c->name) : 0;
	if (ret < 0)
		return command_refused(c, ret, "injected");
	ret = command_await(req, c);
	return ret < 0 ? command_refused(c, ret, "handler") : ret;
}

static int command_run_checked(struct ureq *req, uint32_t number)
{
	const struct command_spec *c;
	int ret = command_find(number, &c);

	if (ret < 0)
		return ret;
	/* libibverbs asks with empty buffers whether INVOKE_WRITE exists; ENOSPC means yes. */
	if (req->core_in.len < c->in || req->core_out.len < c->out)
		return -ENOSPC;
	return command_run(req, c);
}

static int method_invoke_write(struct ureq *req)
{
	uint32_t number;
	int ret = ureq_const(req, UVERBS_ATTR_WRITE_CMD, &number);

	if (ret < 0)
		return ret;
	req->core_in = ureq_buf(req, UVERBS_ATTR_CORE_IN);
	req->core_out = ureq_buf(req, UVERBS_ATTR_CORE_OUT);
	ret = command_run_checked(req, number);
	return ret < 0 ? ret : ureq_put_done(req, UVERBS_ATTR_CORE_OUT);
}

static const struct attr_spec invoke_write_attrs[] = {
	{UVERBS_ATTR_CORE_IN, IN_MIN(4), OPT},
	{UVERBS_ATTR_CORE_OUT, OUT_MIN(0), OPT},
	{UVERBS_ATTR_WRITE_CMD, CONST_IN},
};

const struct method_spec uverbs_invoke_write = {
	.object = UVERBS_OBJECT_DEVICE,
	.method = UVERBS_METHOD_INVOKE_WRITE,
	.name = "UVERBS_METHOD_INVOKE_WRITE",
	.attrs = invoke_write_attrs,
	.nattrs = array_size(invoke_write_attrs),
	.run = method_invoke_write,
	.uhw = true,
	/* depends on the command */
	.before_context = true,
	.inherited = true,
};

/* ---- write(2): the same, with the buffers cut out of one block ---- */

/*
 * Cuts out the head, then the core struct, then the provider's part; the same for the response.
 * Where the provider has no part, all belongs to the core struct, which may be longer than we know
 * it.
 */
static int cut_legacy(struct ureq *req, const struct command_spec *c, uint8_t *body, size_t bytes,
		      size_t out_bytes)
{
	size_t core_in = c->uhw ? c->in : bytes, core_out = c->uhw ? c->out : out_bytes;
	uint64_t response = 0;

	if (bytes < c->in || out_bytes < c->out)
		return -ENOSPC;
	if (c->has_response && !usermem_copy(&response, body, sizeof(response)))
		return -EFAULT;
	req->core_in = (struct ubuf){body, core_in};
	req->uhw_in = (struct ubuf){uaddr_at(body, core_in), bytes - core_in};
	if (c->has_response) {
		uint8_t *out = (uint8_t *)(uintptr_t)response;

		req->core_out = (struct ubuf){out, core_out};
		req->uhw_out = (struct ubuf){uaddr_at(out, core_out), out_bytes - core_out};
	}
	return 0;
}

static int check_response(const struct ib_uverbs_ex_cmd_hdr *ex, size_t core_out, size_t need)
{
	if (!ex->response == (core_out || ex->provider_out_words))
		return -EINVAL;
	return ex->response && core_out < need ? -ENOSPC : 0;
}

static int cut_extended(struct ureq *req, const struct command_spec *c, uint8_t *body, size_t bytes,
			const struct ib_uverbs_cmd_hdr *hdr)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t core_in = hdr->in_words * 8u, core_out = hdr->out_words * 8u;
	uint8_t *out;
	int ret;

	if (bytes < sizeof(ex))
		return -EINVAL;
	if (!usermem_copy(&ex, body, sizeof(ex)))
		return -EFAULT;
	if (core_in + ex.provider_in_words * 8u != bytes - sizeof(ex))
		return -EINVAL;
	if (core_in < c->in)
		return -ENOSPC;
	if (ex.cmd_hdr_reserved)
		return -EINVAL;
	ret = check_response(&ex, core_out, c->out);
	if (ret < 0)
		return ret;
	out = (uint8_t *)(uintptr_t)ex.response;
	body += sizeof(ex);
	req->core_in = (struct ubuf){body, core_in};
	req->uhw_in = (struct ubuf){uaddr_at(body, core_in), ex.provider_in_words * 8u};
	req->core_out = (struct ubuf){out, core_out};
	req->uhw_out = (struct ubuf){uaddr_at(out, core_out), ex.provider_out_words * 8u};
	return 0;
}

/* A missing command has no extended form, so its number is answered after the length. */
static int cut_message(struct ureq *req, const struct command_spec *c, uint8_t *body, size_t bytes,
		       const struct ib_uverbs_cmd_hdr *hdr)
{
	if (c->run && hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return cut_extended(req, c, body, bytes, hdr);
	if (hdr->in_words * 4u != sizeof(*hdr) + bytes)
		return -EINVAL;
	return cut_legacy(req, c, body, bytes, hdr->out_words * 4u);
}

ssize_t uverbs_write(struct ufile *f, const void *buf, size_t count)
{
	struct ureq req = {.file = f};
	struct ib_uverbs_cmd_hdr hdr;
	const struct command_spec *c;
	int ret;

	if (count < sizeof(hdr))
		return -EINVAL;
	if (!usermem_copy(&hdr, buf, sizeof(hdr)))
		return -EFAULT;
	ret = command_find(hdr.command, &c);
	if (ret == 0)
		ret = cut_message(&req, c, uaddr_at(buf, sizeof(hdr)), count - sizeof(hdr), &hdr);
	if (ret < 0)
		return ret;

	pthread_mutex_lock(&f->lock);
	ret = command_run(&req, c);
	pthread_mutex_unlock(&f->lock);
	return ret < 0 ? ret : (ssize_t)count;
}
