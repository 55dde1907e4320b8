// SPDX-License-Identifier: BSD-2-Clause
/* Commands of programs: their structures, and the checks of the kernel's ucma.c in its order. */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

struct call {
	struct cm *cm;
	struct cm_file *file;
	const struct msg_cm_call *m;
	struct msg_cm_call_reply *reply;
};

/* A copy of the command, whose end is zero if the program gave less. */
#define COMMAND_OF(call, type)                                                               \
	({                                                                                   \
		struct type command_ = {0};                                                  \
		memcpy(&command_, (call)->m->bytes,                                          \
		       (call)->m->in < sizeof(command_) ? (call)->m->in : sizeof(command_)); \
		command_;                                                                    \
	})

static int answer_give(const struct call *call, const void *answer, uint32_t length)
{
	memcpy(call->reply->bytes, answer, length);
	call->reply->length = length;
	return 0;
}

/* The id of that number in the caller's file.  0; -ENOENT: there never was one; -EINVAL: it is another
 * file's. */
static int id_get(const struct call *call, uint32_t number, struct cm_id **id)
{
	*id = cm_id_find(call->file, number);
	if (!*id)
		return -ENOENT;
	return (*id)->file == call->file ? 0 : -EINVAL;
}

/* The same for commands that need a device. */
static int id_get_bound(const struct call *call, uint32_t number, struct cm_id **id)
{
	int ret = id_get(call, number, id);

	return ret || (*id)->row != SUBNET_NONE ? ret : -EINVAL;
}

/* ---- ids ---- */

static int qp_type_of(uint16_t ps, uint8_t asked)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return IB_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IB_QPT_UD;
	case RDMA_PS_IB:
		return asked;
	default:
		return -EINVAL;
	}
}

static int call_create_id(const struct call *call)
{
	const struct rdma_ucm_create_id c = COMMAND_OF(call, rdma_ucm_create_id);
	const int type = qp_type_of(c.ps, c.qp_type);
	struct rdma_ucm_create_id_resp r;
	struct cm_id *id;

	if (type < 0)
		return type;
	id = cm_id_make(call->file);
	if (!id)
		return -ENOMEM;
	id->uid = c.uid;
	id->ps = c.ps;
	id->qp_type = (uint8_t)type;
	r.id = id->number;
	return answer_give(call, &r, sizeof(r));
}

static int call_destroy_id(const struct call *call)
{
	const struct rdma_ucm_destroy_id c = COMMAND_OF(call, rdma_ucm_destroy_id);
	struct rdma_ucm_destroy_id_resp r;
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	if (ret)
		return ret;
	r.events_reported = id->events_taken;
	cm_file_untell(id->file, cm_events_drop(id, cm_id_end));
	cm_id_end(id);
	return answer_give(call, &r, sizeof(r));
}

static int call_migrate_id(const struct call *call)
{
	const struct rdma_ucm_migrate_id c = COMMAND_OF(call, rdma_ucm_migrate_id);
	struct cm_file *from = cm_file_find(call->cm, call->m->other);
	struct rdma_ucm_migrate_resp r;
	struct cm_id *id = cm_id_find(call->file, c.id);

	if (!id)
		return -ENOENT;
	if (!from || id->file != from)
		return -EINVAL;
	r.events_reported = id->events_taken;
	if (from != call->file)
		cm_file_untell(from, cm_events_move(id, call->file));
	return answer_give(call, &r, sizeof(r));
}

/* ---- addresses ---- */

static int call_bind_ip(const struct call *call)
{
	const struct rdma_ucm_bind_ip c = COMMAND_OF(call, rdma_ucm_bind_ip);
	struct cm_address a;
	struct cm_id *id;
	int ret;

	if (cm_address_read(&c.addr, sizeof(c.addr), &a) < 0)
		return -EINVAL;
	ret = id_get(call, c.id, &id);
	return ret ? ret : cm_bind(id, &a, call->m->privileged);
}

static int call_bind(const struct call *call)
{
	const struct rdma_ucm_bind c = COMMAND_OF(call, rdma_ucm_bind);
	struct cm_address a;
	struct cm_id *id;
	int ret;

	if (c.reserved || cm_address_read(&c.addr, sizeof(c.addr), &a) != c.addr_size)
		return -EINVAL;
	ret = id_get(call, c.id, &id);
	return ret ? ret : cm_bind(id, &a, call->m->privileged);
}

static int address_resolve(const struct call *call, struct cm_id *id, const struct cm_address *src,
			   const struct cm_address *dst)
{
	const int ret = cm_resolve(id, src, dst, call->m->privileged);

	if (!ret && call->m->explain)
		cm_resolve_explain(id, dst, call->reply->why);
	return ret;
}

static int call_resolve_ip(const struct call *call)
{
	const struct rdma_ucm_resolve_ip c = COMMAND_OF(call, rdma_ucm_resolve_ip);
	struct cm_address src = {0}, dst;
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	if (ret)
		return ret;
	if ((c.src_addr.sin6_family &&
	     cm_address_read(&c.src_addr, sizeof(c.src_addr), &src) < 0) ||
	    cm_address_read(&c.dst_addr, sizeof(c.dst_addr), &dst) < 0)
		return -EINVAL;
	return address_resolve(call, id, &src, &dst);
}

static int call_resolve_addr(const struct call *call)
{
	const struct rdma_ucm_resolve_addr c = COMMAND_OF(call, rdma_ucm_resolve_addr);
	struct cm_address src = {0}, dst;
	struct cm_id *id;
	int ret;

	if (c.reserved ||
	    (c.src_size && cm_address_read(&c.src_addr, sizeof(c.src_addr), &src) != c.src_size) ||
	    cm_address_read(&c.dst_addr, sizeof(c.dst_addr), &dst) != c.dst_size)
		return -EINVAL;
	ret = id_get(call, c.id, &id);
	return ret ? ret : address_resolve(call, id, &src, &dst);
}

static int call_resolve_route(const struct call *call)
{
	const struct rdma_ucm_resolve_route c = COMMAND_OF(call, rdma_ucm_resolve_route);
	struct cm_id *id;
	int ret = id_get_bound(call, c.id, &id);

	return ret ? ret : cm_route_resolve(id, c.timeout_ms);
}

static int call_query_route(const struct call *call)
{
	const struct rdma_ucm_query c = COMMAND_OF(call, rdma_ucm_query);
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	return ret ? ret : cm_query_route(id, call->m->out, call->reply);
}

static int call_query(const struct call *call)
{
	const struct rdma_ucm_query c = COMMAND_OF(call, rdma_ucm_query);
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	return ret ? ret : cm_query(id, c.option, call->m->out, call->reply);
}

/* ---- connections ---- */

static int call_connect(const struct call *call)
{
	const struct rdma_ucm_connect c = COMMAND_OF(call, rdma_ucm_connect);
	struct cm_id *id;
	int ret;

	if (call->m->in < offsetof(struct rdma_ucm_connect, ece) || !c.conn_param.valid)
		return -EINVAL;
	ret = id_get_bound(call, c.id, &id);
	if (ret)
		return ret;
	id->ece = c.ece;
	return cm_connect(id, &c.conn_param);
}

static int call_listen(const struct call *call)
{
	const struct rdma_ucm_listen c = COMMAND_OF(call, rdma_ucm_listen);
	const struct cm_address any = {.family = AF_INET};
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	if (!ret && id->state == CM_IDLE)
		ret = cm_bind(id, &any, true);
	if (ret)
		return ret;
	if (id->state != CM_ADDR_BOUND)
		return -EINVAL;
	if (id->reuse) {
		ret = cm_port_check(id, false);
		if (ret)
			return ret;
	}
	id->backlog = (int32_t)c.backlog > 0 && (int32_t)c.backlog < CM_MAX_BACKLOG
			      ? (int32_t)c.backlog
			      : CM_MAX_BACKLOG;
	id->listens = true;
	id->state = CM_LISTEN;
	cm_early_retry(call->cm);
	return 0;
}

static int call_accept(const struct call *call)
{
	const struct rdma_ucm_accept c = COMMAND_OF(call, rdma_ucm_accept);
	struct cm_id *id;
	uint64_t uid;
	int ret;

	if (call->m->in < offsetof(struct rdma_ucm_accept, ece))
		return -EINVAL;
	ret = id_get_bound(call, c.id, &id);
	if (ret)
		return ret;
	if (!c.conn_param.valid)
		return cm_accept(id, NULL);
	/* From now on the program hears of the id. */
	uid = id->uid;
	id->uid = c.uid;
	id->ece = c.ece;
	ret = cm_accept(id, &c.conn_param);
	if (ret) {
		id->uid = uid;
		cm_request_refuse(id);
	}
	return ret;
}

static int call_reject(const struct call *call)
{
	const struct rdma_ucm_reject c = COMMAND_OF(call, rdma_ucm_reject);
	const uint16_t reason = c.reason ? c.reason : CM_REJECT_CONSUMER;
	struct cm_id *id;
	int ret;

	if (reason != CM_REJECT_CONSUMER && reason != CM_REJECT_VENDOR_OPTION)
		return -EINVAL;
	ret = id_get_bound(call, c.id, &id);
	return ret ? ret : cm_reject(id, c.private_data, c.private_data_len, reason);
}

static int call_disconnect(const struct call *call)
{
	const struct rdma_ucm_disconnect c = COMMAND_OF(call, rdma_ucm_disconnect);
	struct cm_id *id;
	int ret = id_get_bound(call, c.id, &id);

	return ret ? ret : cm_disconnect(id);
}

static int call_init_qp_attr(const struct call *call)
{
	const struct rdma_ucm_init_qp_attr c = COMMAND_OF(call, rdma_ucm_init_qp_attr);
	struct ib_uverbs_qp_attr r;
	struct cm_id *id;
	int ret;

	if (c.qp_state > IB_QPS_ERR)
		return -EINVAL;
	ret = id_get_bound(call, c.id, &id);
	if (!ret)
		ret = cm_qp_attr(id, c.qp_state, &r);
	return ret ? ret : answer_give(call, &r, sizeof(r));
}

static int call_notify(const struct call *call)
{
	const struct rdma_ucm_notify c = COMMAND_OF(call, rdma_ucm_notify);
	struct cm_id *id;
	int ret = id_get_bound(call, c.id, &id);

	return ret ? ret : cm_notify(id, c.event);
}

/* ---- groups ---- */

static int group_join(const struct call *call, uint32_t number, const struct cm_address *a,
		      uint64_t uid, bool sends_only)
{
	struct rdma_ucm_create_id_resp r;
	struct cm_id *id;
	int ret = id_get_bound(call, number, &id);

	if (!ret)
		ret = cm_join(id, a, uid, sends_only, &r.id);
	return ret ? ret : answer_give(call, &r, sizeof(r));
}

static int call_join_ip(const struct call *call)
{
	const struct rdma_ucm_join_ip_mcast c = COMMAND_OF(call, rdma_ucm_join_ip_mcast);
	struct cm_address a;

	if (cm_address_read(&c.addr, sizeof(c.addr), &a) < 0)
		return -EINVAL;
	return group_join(call, c.id, &a, c.uid, false);
}

static int call_join(const struct call *call)
{
	const struct rdma_ucm_join_mcast c = COMMAND_OF(call, rdma_ucm_join_mcast);
	struct cm_address a;

	if (c.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED ||
	    cm_address_read(&c.addr, sizeof(c.addr), &a) != c.addr_size)
		return -EINVAL;
	return group_join(call, c.id, &a, c.uid,
			  c.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
}

static int call_leave(const struct call *call)
{
	const struct rdma_ucm_destroy_id c = COMMAND_OF(call, rdma_ucm_destroy_id);
	struct cm_group *g = cm_group_find(call->cm, c.id);
	struct rdma_ucm_destroy_id_resp r;

	if (!g)
		return -ENOENT;
	if (g->id->file != call->file)
		return -EINVAL;
	cm_file_untell(call->file, cm_events_drop_group(g));
	r.events_reported = g->events_taken;
	cm_leave(g);
	return answer_give(call, &r, sizeof(r));
}

/* ---- events, options ---- */

static int call_get_event(const struct call *call)
{
	struct rdma_ucm_event_resp r;
	int ret = cm_event_take(call->file, &r);

	if (ret)
		return ret;
	return answer_give(call, &r, call->m->out < sizeof(r) ? call->m->out : sizeof(r));
}

static int call_write_event(const struct call *call)
{
	const struct cm_write_event c = COMMAND_OF(call, cm_write_event);
	struct cm_event *e;
	struct cm_id *id;
	int ret;

	if (c.event != CM_USER && c.event != CM_INTERNAL)
		return -EINVAL;
	ret = id_get(call, c.id, &id);
	if (ret)
		return ret;
	e = cm_event_make(id, (enum cm_event_type)c.event, (int)c.status);
	if (!e)
		return -ENOMEM;
	memcpy(&e->body.param, &c.arg, sizeof(c.arg));
	return cm_event_queue(e) ? 0 : -ENOMEM;
}

/* The driver has put the option's value behind the command. */
static int option_read(const struct call *call, const struct rdma_ucm_set_option *c, uint32_t bytes,
		       uint32_t *value)
{
	*value = 0;
	if (c->optlen != bytes || call->m->in < sizeof(*c) + bytes)
		return -EINVAL;
	memcpy(value, call->m->bytes + sizeof(*c), bytes);
	return 0;
}

static int option_of_id(const struct call *call, struct cm_id *id,
			const struct rdma_ucm_set_option *c)
{
	uint32_t value;
	int ret = -ENOSYS;

	switch (c->optname) {
	case RDMA_OPTION_ID_TOS:
		ret = option_read(call, c, 1, &value);
		if (!ret)
			id->tos = (uint8_t)value;
		break;
	case RDMA_OPTION_ID_REUSEADDR:
		ret = option_read(call, c, 4, &value);
		if (!ret && id->state != CM_IDLE && id->state != CM_ADDR_BOUND)
			ret = -EINVAL;
		if (!ret)
			id->reuse = value != 0;
		break;
	case RDMA_OPTION_ID_AFONLY:
		ret = option_read(call, c, 4, &value);
		if (!ret && id->state != CM_IDLE && id->state != CM_ADDR_BOUND)
			ret = -EINVAL;
		if (!ret) {
			id->afonly = value != 0;
			id->afonly_given = true;
		}
		break;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		ret = option_read(call, c, 1, &value);
		if (!ret) {
			id->ack_timeout = (uint8_t)(value & 31);
			id->ack_timeout_given = true;
		}
		break;
	default:
		break;
	}
	return ret;
}

/* Of the paths that the program knows (by ibacm), the one for all purposes. */
static int option_path(const struct call *call, struct cm_id *id,
		       const struct rdma_ucm_set_option *c)
{
	struct ib_path_rec_data path;

	if (!c->optlen || c->optlen % sizeof(path) || call->m->in < sizeof(*c) + c->optlen)
		return -EINVAL;
	for (uint32_t at = 0; at < c->optlen; at += sizeof(path)) {
		memcpy(&path, call->m->bytes + sizeof(*c) + at, sizeof(path));
		if (path.flags != CM_PATH_FLAGS)
			continue;
		return id->row == SUBNET_NONE ? -EINVAL
					      : cm_path_set(id, (const uint8_t *)path.path_rec);
	}
	return -EINVAL;
}

static int call_set_option(const struct call *call)
{
	const struct rdma_ucm_set_option c = COMMAND_OF(call, rdma_ucm_set_option);
	struct cm_id *id;
	int ret = id_get(call, c.id, &id);

	if (ret)
		return ret;
	switch (c.level) {
	case RDMA_OPTION_ID:
		return option_of_id(call, id, &c);
	case RDMA_OPTION_IB:
		return c.optname == RDMA_OPTION_IB_PATH ? option_path(call, id, &c) : -ENOSYS;
	default:
		return -ENOSYS;
	}
}

/* ---- the table ---- */

static int (*const calls[])(const struct call *call) = {
	[RDMA_USER_CM_CMD_CREATE_ID] = call_create_id,
	[RDMA_USER_CM_CMD_DESTROY_ID] = call_destroy_id,
	[RDMA_USER_CM_CMD_BIND_IP] = call_bind_ip,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = call_resolve_ip,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = call_resolve_route,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = call_query_route,
	[RDMA_USER_CM_CMD_CONNECT] = call_connect,
	[RDMA_USER_CM_CMD_LISTEN] = call_listen,
	[RDMA_USER_CM_CMD_ACCEPT] = call_accept,
	[RDMA_USER_CM_CMD_REJECT] = call_reject,
	[RDMA_USER_CM_CMD_DISCONNECT] = call_disconnect,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = call_init_qp_attr,
	[RDMA_USER_CM_CMD_GET_EVENT] = call_get_event,
	[RDMA_USER_CM_CMD_SET_OPTION] = call_set_option,
	[RDMA_USER_CM_CMD_NOTIFY] = call_notify,
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = call_join_ip,
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = call_leave,
	[RDMA_USER_CM_CMD_MIGRATE_ID] = call_migrate_id,
	[RDMA_USER_CM_CMD_QUERY] = call_query,
	[RDMA_USER_CM_CMD_BIND] = call_bind,
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = call_resolve_addr,
	[RDMA_USER_CM_CMD_JOIN_MCAST] = call_join,
	[CM_COMMAND_WRITE_EVENT] = call_write_event,
};

int cm_call(struct cm *c, const struct msg_cm_call *m, struct msg_cm_call_reply *reply)
{
	struct call call = {.cm = c, .file = cm_file_find(c, m->token), .m = m, .reply = reply};

	*reply = (struct msg_cm_call_reply){0};
	if (!call.file)
		return -EIO;
	if (m->command >= array_size(calls) || !calls[m->command] || m->in > sizeof(m->bytes))
		return -ENOSYS;
	return calls[m->command](&call);
}
