/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside daemon/cm: files, ids, events. */
#pragma once

#include <netinet/in.h>
#include <rdma/ib_user_sa.h>
#include <rdma/rdma_user_cm.h>

#include "fabric/daemon/cm/cm.h"
#include "prm/cm.h"
#include "prm/sa.h"

/* Events as librdmacm knows them. */
enum cm_event_type {
	CM_ADDR_RESOLVED,
	CM_ADDR_ERROR,
	CM_ROUTE_RESOLVED,
	CM_ROUTE_ERROR,
	CM_CONNECT_REQUEST,
	CM_CONNECT_RESPONSE,
	CM_CONNECT_ERROR,
	CM_UNREACHABLE,
	CM_REJECTED,
	CM_ESTABLISHED,
	CM_DISCONNECTED,
	CM_DEVICE_REMOVAL,
	CM_MULTICAST_JOIN,
	CM_MULTICAST_ERROR,
	CM_ADDR_CHANGE,
	CM_TIMEWAIT_EXIT,
	CM_ADDRINFO_RESOLVED,
	CM_ADDRINFO_ERROR,
	/* Written by programs. */
	CM_USER,
	CM_INTERNAL, /* by librdmacm */
};

/* What an id is about, numbered as the kernel's states, which `rdma res show cm_id` shows. */
enum cm_state {
	CM_IDLE,
	CM_ADDR_QUERY,
	CM_ADDR_IS_RESOLVED,
	CM_ROUTE_QUERY,
	CM_ROUTE_IS_RESOLVED,
	CM_CONNECT,
	CM_DISCONNECT,
	CM_ADDR_BOUND,
	CM_LISTEN,
};

/* How far its connection is (IBTA volume 1, 12.9.7). */
enum cm_connection {
	CONN_NONE,
	CONN_REQ_SENT,
	CONN_REQ_WAITS, /* the peer has asked for time */
	CONN_REQ_RECEIVED,
	CONN_REP_SENT,
	CONN_REP_WAITS,
	CONN_REP_RECEIVED,
	CONN_ESTABLISHED,
	CONN_DREQ_SENT,
	CONN_DREQ_RECEIVED,
	CONN_TIME_WAIT,
};

#define CM_AF_IB	    27u		/* in no header of libc's */
#define CM_PORT_MASK	    0xffffu	/* of a service ID: its port */
#define CM_RESPONSE_TIMEOUT 20u		/* of 4.096 us << n: 4.3 s */
#define CM_UDP_QKEY	    0x01234567u /* RDMA_UDP_QKEY: the Q_Key of datagrams */

struct cm_address {
	sa_family_t family; /* AF_UNSPEC: none */
	uint16_t port;
	uint8_t ip[16]; /* of IPv4 the last four; of InfiniBand the GID */
	uint32_t flow;
	uint64_t scope;
	/* InfiniBand: the service, of which the port is the last 16 bits. */
	uint64_t sid, sid_mask;
	uint16_t pkey;
};

/* A question to the subnet administration. */
struct cm_sa_request {
	struct cm_sa_request *next;
	uint32_t number; /* 0: none is under way */
	/* Hears the answer once: 0 with the record, -ETIMEDOUT, or -EINVAL: it was refused. */
	void (*done)(struct cm_sa_request *r, int status, const uint8_t *record);
};

/* A group that an id has joined. */
struct cm_group {
	struct cm_group *next;
	struct cm_id *id; /* NULL: the program has left before the answer to the request */
	struct cm *cm;
	uint32_t row;
	uint32_t number;
	uint64_t uid;
	uint32_t events_taken;
	/* InfiniBand. */
	struct cm_sa_request request;
	uint8_t record[MCM_BYTES]; /* of the membership that is wanted */
	uint64_t mask;
	bool member; /* the subnet administration has been asked to add the port */
	bool lost;   /* the port's link or its subnet manager has changed since */
	bool told_lost;
};

struct cm_event {
	struct cm_event *next;
	struct cm_id *id;
	struct cm_group *group; /* that it is about; NULL: none */
	struct cm_id *fresh;	/* of a CONNECT_REQUEST: the id of the request */
	struct rdma_ucm_event_resp body;
};

struct cm_file {
	struct source pipe; /* its writing end */
	uint64_t inode;	    /* of the pipe */
	struct loop_grave grave;
	struct cm *cm;
	struct cm_file *next, **prev;
	uint64_t token;
	uint32_t host;
	int32_t pid; /* the process that opened it */
	struct cm_event *events, **events_end;
	uint32_t nevents;
	uint32_t owed; /* bytes for the program's pipe that found no room */
};

/* A path to the peer, as far as connections need it. */
struct cm_path {
	bool there;
	bool group; /* it leads to a group, whose packets have a GRH */
	union ib_gid sgid, dgid;
	uint16_t slid, dlid, pkey;
	uint8_t mtu, rate, life, sl, hop_limit, traffic_class;
	uint32_t flow_label;
};

/* What ids are looked for by. */
enum cm_table {
	CM_BY_PORT, /* those that are bound, but not those of requests */
	CM_BY_LOCAL_ID,
	CM_BY_REMOTE_ID,  /* those of requests */
	CM_BY_REMOTE_QPN, /* those with a connection */
	CM_TABLES,
};

#define CM_CHAINS 4096u /* of a table, each for keys with the same remainder */

struct cm_id {
	struct cm *cm;
	struct cm_file *file;
	struct cm_ids *ids; /* of its host */
	uint32_t number;    /* among them */
	uint64_t uid;	    /* 0: the program does not know the id yet */
	uint16_t ps;
	uint16_t space; /* the port space that its port is of */
	uint8_t qp_type;
	enum cm_state state;
	uint32_t events_taken;
	struct cm_address src, dst;
	uint32_t row;	   /* the port that it is bound to; SUBNET_NONE: none */
	uint32_t peer_row; /* where its target is; SUBNET_NONE: not in the fabric */
	bool reuse, afonly, afonly_given, listens;
	bool requested;	 /* a request made it, and its port is its listener's */
	int32_t backlog; /* how many more requests may wait */
	struct cm_path path;
	struct cm_sa_request path_request;
	struct cm_group *groups;
	struct rdma_ucm_ece ece; /* options of an enhanced connection that the program offers */
	uint8_t tos, ack_timeout;
	bool ack_timeout_given;

	/* The connection. */
	enum cm_connection connection;
	struct cm_id
		*listener; /* of a request that its program has not taken; counts in its backlog */
	uint32_t local_id, remote_id;
	uint64_t remote_guid;
	uint32_t qpn, remote_qpn, psn, remote_psn, qkey;
	uint8_t responder_resources, initiator_depth, retries, rnr_retries, srq, flow_control;
	/* The message whose answer is awaited. */
	struct loop_timer timer;
	uint8_t message[MAD_BYTES];
	uint64_t repeat_ns;
	uint32_t repeats; /* how many are left */
	struct {
		struct cm_id *next, **prev; /* prev NULL: it is not in the table */
	} chain[CM_TABLES];
};

/* The ids of a host.  A program's numbers are those of its host, as a kernel gives them. */
struct cm_ids {
	struct cm_ids *next; /* of a host with a larger number */
	uint32_t host;
	struct cm_id *by_number[CM_IDS];
	uint64_t used[CM_IDS / 64]; /* a bit for each number */
};

struct cm_chains {
	struct cm_id *of[CM_TABLES][CM_CHAINS];
};

static inline const struct subnet *cm_subnet(const struct cm *c)
{
	return c->mad->net->subnet;
}

/* ---- id.c ---- */

struct cm_file *cm_file_find(const struct cm *c, uint64_t token);
/* NULL: no memory, or no number is free. */
struct cm_id *cm_id_make(struct cm_file *f);
/* Forgets an id that nobody has heard of. */
void cm_id_free(struct cm_id *id);
/* The id of that number on the file's host; NULL: there is none. */
struct cm_id *cm_id_find(const struct cm_file *f, uint32_t number);
/* The id that messages of a connection name so; NULL: there is none. */
struct cm_id *cm_id_of_message(const struct cm *c, uint32_t local_id);
/* The first id of all, and the one after another; NULL: there is no further one. */
struct cm_id *cm_id_first(const struct cm *c);
struct cm_id *cm_id_after(const struct cm_id *id);
/* The first from that number of that host on. */
struct cm_id *cm_id_next(const struct cm *c, uint32_t host, uint32_t from);
void cm_ids_free(struct cm *c);
/* Puts the id into a table under its key, and takes it from where it was there. */
void cm_id_key(struct cm_id *id, enum cm_table table, uint32_t key);
/* Ids of the table, among them all with that key; the next of each is chain[table].next. */
struct cm_id *cm_id_chain(const struct cm *c, enum cm_table table, uint32_t key);
uint32_t cm_random(struct cm *c);

/* ---- file.c ---- */

/* Ends the id as rdma_destroy_id does, and its connection as that is. */
void cm_id_end(struct cm_id *id);

/* ---- event.c ---- */

/* A new event of the id, not queued yet; NULL: there is no memory. */
struct cm_event *cm_event_make(struct cm_id *id, enum cm_event_type type, int status);
/* Queues it.  False: the program does not know its id, or too many wait; then it is gone. */
bool cm_event_queue(struct cm_event *e);
/* Both, for an event without parameters. */
void cm_event_tell(struct cm_id *id, enum cm_event_type type, int status);
/* Gives the oldest event to the program.  -EAGAIN: there is none. */
int cm_event_take(struct cm_file *f, struct rdma_ucm_event_resp *out) must_check;
/* Drops the events of a group; returns how many. */
uint32_t cm_events_drop_group(struct cm_group *g);
/* Drops the id's events; returns how many.  Calls unheard for each id of a request that the program has
 * not taken. */
uint32_t cm_events_drop(struct cm_id *id, void (*unheard)(struct cm_id *fresh));
/* Moves the id with its events to another file; returns how many events. */
uint32_t cm_events_move(struct cm_id *id, struct cm_file *to);
/* Tells the program of events that it could not be told of before. */
void cm_file_tell(struct cm_file *f);
/* Takes back the bytes of n events that are gone. */
void cm_file_untell(struct cm_file *f, uint32_t n);

/* ---- address.c ---- */

#define CM_SOCKADDR_BYTES 128u

/* Reads a socket address that has at most so many bytes.  Returns how many it has, or -EINVAL. */
int cm_address_read(const void *sockaddr, size_t room, struct cm_address *out) must_check;
/* Writes it; returns how many bytes it has. */
uint16_t cm_address_write(const struct cm_address *a, uint8_t out[CM_SOCKADDR_BYTES]);
bool cm_address_is_any(const struct cm_address *a);
bool cm_address_is_multicast(const struct cm_address *a);
/* Are both of one family, and the same but for their ports? */
bool cm_address_equal(const struct cm_address *a, const struct cm_address *b);
/* The port of the fabric that an address of a program of that host means; SUBNET_NONE: there is none.
 * *machine: it is one of the machine's own addresses. */
uint32_t cm_address_port(const struct cm *c, uint32_t host, const struct cm_address *a,
			 bool *machine);
/* Sets the address of that family that the port has. */
void cm_address_of_port(const struct cm *c, uint32_t row, sa_family_t family,
			struct cm_address *out);
/* Gives the id a port of its host's, as bind does.  0 or a negative errno. */
int cm_port_take(struct cm_id *id, bool privileged) must_check;
/* Is the port still free for an id that was bound with REUSEADDR and now listens? */
int cm_port_check(const struct cm_id *id, bool reuse) must_check;
/* Binds to an address, as rdma_bind_addr does. */
int cm_bind(struct cm_id *id, const struct cm_address *a, bool privileged) must_check;
/* Finds where dst is and where from it can be reached; src AF_UNSPEC: from anywhere.  The id hears the
 * result by an event.  0 or a negative errno. */
int cm_resolve(struct cm_id *id, const struct cm_address *src, const struct cm_address *dst,
	       bool privileged) must_check;
/* Says what became of the address that cm_resolve was asked for, and why. */
void cm_resolve_explain(const struct cm_id *id, const struct cm_address *asked,
			char why[CM_WHY_BYTES]);
/* The GID of version 2 of a port of RoCE that matches an address of it; else its first that is an IPv4 address
 * as that is, or none; else its first. */
union ib_gid cm_gid_of_address(const struct cm *c, uint32_t row, const struct cm_address *a);
/* The same for the other end of a path: where it can be, the GIDs of both are IPv4 addresses, or both are
 * none, without which no queue pair takes the path. */
union ib_gid cm_gid_of_peer(const struct cm *c, uint32_t row, const struct cm_address *a,
			    const union ib_gid *own);
/* The GID that an address is, as those of ports outside of the fabric are. */
union ib_gid cm_gid_outside(const struct cm_address *a);
/* The GID of the id's port that matches its address. */
union ib_gid cm_port_gid(const struct cm_id *id);

/* ---- route.c ---- */

/* What a path says that is for MADs and data of both directions. */
#define CM_PATH_FLAGS (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)

/* Finds the path, as rdma_resolve_route does: an event says what came of it.  0 or a negative errno. */
int cm_route_resolve(struct cm_id *id, uint32_t timeout_ms) must_check;
/* Takes the path record of a program. */
int cm_path_set(struct cm_id *id, const uint8_t *record) must_check;
/* Writes the id's path as a path record. */
void cm_path_write(const struct cm_id *id, uint8_t record[PR_BYTES]);

/* ---- sa_client.c ---- */

struct cm_sa_ask {
	uint8_t method; /* MAD_GET, MAD_SET or MAD_DELETE */
	uint16_t attribute;
	uint64_t mask;
	const uint8_t *record;
	uint32_t bytes;
	uint32_t timeout_ms, retries;
};

/*
 * Asks the subnet administration of that port.  r->done hears the answer; r NULL: nobody wants it.
 * 0; -EAGAIN: the port has no subnet manager; -ENOMEM.
 */
int cm_sa_send(struct cm *c, struct cm_sa_request *r, uint32_t row,
	       const struct cm_sa_ask *ask) must_check;
/* Is its answer awaited? */
bool cm_sa_waits(const struct cm_sa_request *r);
/* r->done hears nothing more; does nothing if nothing is under way. */
void cm_sa_forget(struct cm *c, struct cm_sa_request *r);
void cm_sa_close(struct cm *c);

/* ---- multicast.c ---- */

struct cm_group *cm_group_find(const struct cm *c, uint32_t number);
/* Joins, as rdma_join_multicast does: an event says what came of it.  0 or a negative errno. */
int cm_join(struct cm_id *id, const struct cm_address *a, uint64_t uid, bool sends_only,
	    uint32_t *number) must_check;
/* The caller has dropped the events of the group. */
void cm_leave(struct cm_group *g);
void cm_groups_open(struct cm *c);
void cm_groups_close(struct cm *c);

/* ---- message.c ---- */

/* Begins a message of the id. */
void cm_message_begin(struct cm_id *id, uint8_t mad[MAD_BYTES], enum cm_attribute attribute);
/* Sends a message of the id to its peer, once. */
void cm_message_send(const struct cm_id *id, const uint8_t mad[MAD_BYTES]);
/* Answers a message of which no id knows. */
void cm_message_answer(struct cm *c, const struct mad_packet *to, const uint8_t mad[MAD_BYTES]);

/* Copies private data of the program to a place that has so much room.  0 or -EINVAL. */
int cm_private_put(uint8_t *at, uint32_t room, const uint8_t *data, uint32_t length) must_check;
uint64_t cm_service_of(const struct cm_id *id, uint16_t port);
/* How much of the private data is the head that names the ends; they are GIDs for ids of InfiniBand. */
uint32_t cm_head_bytes(const struct cm_id *id);
void cm_head_put(const struct cm_id *id, uint8_t *at);
/* What the head of the private data says of the two ends; false: it says nothing that we know. */
bool cm_head_read(const uint8_t *at, uint16_t port, struct cm_address *src,
		  struct cm_address *dst) must_check;

/* ---- listen.c ---- */

/* Finds who listens; *service: somebody does, if not to that address. */
struct cm_id *cm_listener_find(const struct cm *c, const struct mad_packet *p, uint64_t wanted,
			       const struct cm_address *to, bool *service);
/* The id of a request that has come before. */
struct cm_id *cm_id_of_request(const struct cm *c, uint64_t guid, uint32_t remote_id);
/* An id of that port's host whose connection is with that queue pair of that adapter; NULL: there is none.
 * A peer that makes a connection with it again has forgotten that one. */
struct cm_id *cm_id_stale(const struct cm *c, uint32_t row, uint64_t guid, uint32_t qpn);
/* Fills an id with what it has by any request to the listener. */
void cm_requested_begin(struct cm_id *id, const struct mad_packet *p, const struct cm_id *listener,
			uint64_t guid);
/* Sets the addresses of a request's id: what the request says, or the GIDs of its path. */
void cm_ends_set(struct cm_id *id, const struct cm_id *listener, const struct cm_address *own,
		 const struct cm_address *peer);
/* The listener's program gets the new id with the event. */
void cm_request_tell(struct cm_event *e, struct cm_id *listener, struct cm_id *id);
/* Keeps a request for a service that nobody offers yet.  False: no memory, or too many wait. */
bool cm_early_keep(struct cm *c, const struct mad_packet *p) must_check;
/* Somebody listens now: looks again at requests that came too early. */
void cm_early_retry(struct cm *c);
void cm_early_drop(struct cm *c);

/* ---- sidr.c ---- */

/* Asks for a service of datagrams. */
int cm_sidr_connect(struct cm_id *id, const struct rdma_ucm_conn_param *p) must_check;
/* The answer of a program to a request for one; p NULL: it has nothing to say. */
int cm_sidr_answer(struct cm_id *id, enum cm_sidr_status status,
		   const struct rdma_ucm_conn_param *p) must_check;
/* early: a request that nobody serves may wait. */
void cm_take_sidr_req(struct cm *c, const struct mad_packet *p, bool early);
void cm_take_sidr_rep(struct cm *c, const struct mad_packet *p);

/* ---- connect.c ---- */

int cm_connect(struct cm_id *id, const struct rdma_ucm_conn_param *p) must_check;
int cm_accept(struct cm_id *id, const struct rdma_ucm_conn_param *p) must_check;
int cm_reject(struct cm_id *id, const uint8_t *data, uint8_t length, uint16_t reason) must_check;
/* Refuses a request that an accept has failed for; does nothing without a request. */
void cm_request_refuse(struct cm_id *id);
int cm_disconnect(struct cm_id *id) must_check;
int cm_notify(struct cm_id *id, uint32_t event) must_check;
/* Ends the connection because its id ends. */
void cm_connection_end(struct cm_id *id);
/* Sends the id's message, a request whose private data, of so many bytes, is there. */
int cm_request_send(struct cm_id *id, size_t at, uint32_t room,
		    const struct rdma_ucm_conn_param *p) must_check;
/* The answer that the id's message waits for is there. */
void cm_repeat_stop(struct cm_id *id);
void cm_take_req(struct cm *c, const struct mad_packet *p, bool early);
/* Takes a message that has come to a port. */
void cm_take(struct cm *c, const struct mad_packet *p);

/* ---- query.c: what programs ask of an id ---- */

/* The address vector of a path from the id's port. */
void cm_ah_attr(const struct cm_id *id, const struct cm_path *p, struct ib_uverbs_ah_attr *out);
/* The entry of the port's table that has the P_Key of that partition; 0: none has. */
uint16_t cm_pkey_index(const struct subnet_port *p, uint16_t pkey);

int cm_query(struct cm_id *id, uint32_t option, uint32_t room,
	     struct msg_cm_call_reply *reply) must_check;
int cm_query_route(struct cm_id *id, uint32_t room, struct msg_cm_call_reply *reply) must_check;
int cm_qp_attr(struct cm_id *id, uint32_t state, struct ib_uverbs_qp_attr *out) must_check;
