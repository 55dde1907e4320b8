// SPDX-License-Identifier: BSD-2-Clause
/* Agents of a umad file come and go by ioctl; the order of the checks is the kernel's. */
#include <errno.h>
#include <rdma/ib_user_mad.h>
#include <string.h>

#include "driver/umad/device.h"

/* Reads the arguments of either request into the form of the newer one. */
static int agent_read(const void *arg, bool second, struct ib_user_mad_reg_req2 *out)
{
	struct ib_user_mad_reg_req old;

	if (second)
		return user_load(out, arg, sizeof(*out));
	if (user_load(&old, arg, sizeof(old)))
		return -EFAULT;
	*out = (struct ib_user_mad_reg_req2){
		.qpn = old.qpn,
		.mgmt_class = old.mgmt_class,
		.mgmt_class_version = old.mgmt_class_version,
		.oui = (uint32_t)old.oui[0] << 16 | (uint32_t)old.oui[1] << 8 | old.oui[2],
		.rmpp_version = old.rmpp_version,
	};
	memcpy(out->method_mask, old.method_mask, sizeof(out->method_mask));
	return 0;
}

static bool agents_full(const struct umad_page *page)
{
	for (unsigned i = 0; i < UMAD_AGENTS; i++)
		if (!atomic_load_explicit(&page->agents[i], memory_order_relaxed))
			return false;
	return true;
}

static int agent_flags_check(const struct ib_user_mad_reg_req2 *req,
			     struct ib_user_mad_reg_req2 *arg)
{
	const uint32_t known = IB_USER_MAD_REG_FLAGS_CAP;

	if (!(req->flags & ~known))
		return 0;
	return user_store(&arg->flags, &known, sizeof(known)) ? -EFAULT : -EINVAL;
}

static int agent_undo(struct umad_device *u, uint32_t id)
{
	struct msg m = {.umad_agent = {.token = u->token, .id = id, .undo = 1}};
	int ret = umad_ask(u, &m, MSG_UMAD_UNREGISTER, NULL);

	/* Whatever came of the store, the program must hear of its bad address. */
	(void)ret;
	return -EFAULT;
}

static int agent_register(struct umad_device *u, void *arg, bool second)
{
	void *id_at = second ? (void *)&((struct ib_user_mad_reg_req2 *)arg)->id
			     : (void *)&((struct ib_user_mad_reg_req *)arg)->id;
	struct ib_user_mad_reg_req2 req;
	struct msg m = {0};
	uint32_t id;
	int ret;

	if (umad_is_gone(u))
		return -EPIPE;
	if (agent_read(arg, second, &req))
		return -EFAULT;
	if (req.qpn > 1)
		return -EINVAL;
	ret = second ? agent_flags_check(&req, arg) : 0;
	if (ret)
		return ret;
	/* If there is no room, the daemon says so, and its error comes first. */
	if (req.mgmt_class && req.oui >> 24 && !agents_full(u->page))
		return -EINVAL;
	m.umad_register = (struct msg_umad_register){
		.token = u->token,
		.qpn = req.qpn,
		.oui = req.oui & 0xffffff,
		.flags = req.flags,
		.class = req.mgmt_class,
		.class_version = req.mgmt_class_version,
		.rmpp_version = req.rmpp_version,
		.second = second,
	};
	memcpy(m.umad_register.methods, req.method_mask, sizeof(m.umad_register.methods));
	ret = umad_ask(u, &m, MSG_UMAD_REGISTER, NULL);
	if (ret)
		return ret == -EIO && umad_is_gone(u) ? -EPIPE : ret;
	id = m.umad_agent.id;
	return user_store(id_at, &id, sizeof(id)) ? agent_undo(u, id) : 0;
}

static int agent_unregister(struct umad_device *u, const void *arg)
{
	struct msg m = {.umad_agent.token = u->token};
	int ret;

	if (user_load(&m.umad_agent.id, arg, sizeof(m.umad_agent.id)))
		return -EFAULT;
	if (m.umad_agent.id >= UMAD_AGENTS)
		return -EINVAL;
	ret = umad_ask(u, &m, MSG_UMAD_UNREGISTER, NULL);
	return ret == -EIO && umad_is_gone(u) ? -EINVAL : ret;
}

static int pkey_enable(struct umad_device *u)
{
	struct msg m = {.umad_file.token = u->token};

	return umad_ask(u, &m, MSG_UMAD_PKEY, NULL);
}

int umad_ioctl(struct cdev_file *f, unsigned long request, void *arg)
{
	struct umad_device *u = umad_device_of(f);

	switch ((uint32_t)request) {
	case IB_USER_MAD_REGISTER_AGENT:
		return agent_register(u, arg, false);
	case IB_USER_MAD_REGISTER_AGENT2:
		return agent_register(u, arg, true);
	case IB_USER_MAD_UNREGISTER_AGENT:
		return agent_unregister(u, arg);
	case IB_USER_MAD_ENABLE_PKEY:
		return pkey_enable(u);
	default:
		return -ENOTTY;
	}
}
