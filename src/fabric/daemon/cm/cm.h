/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager: what the kernel's rdma_cm and ib_cm are to programs (drivers/infiniband/core/
 * ucma.c, cma.c and cm.c).  Files, ids and events are the programs'; connections are made by MADs of class
 * 7 between the ports, which the MAD layer carries like all others.
 */
#pragma once

#include "fabric/cm.h"
#include "fabric/daemon/mad/mad.h"

struct cm_chains;
struct cm_early;
struct cm_file;
struct cm_id;
struct cm_ids;
struct cm_sa_port;
struct cm_sa_request;

#define CM_IDS	       65536u /* of a host; librdmacm finds its ids by tables of so many */
#define CM_MAX_BACKLOG 1024   /* what a listener gets that asks for more; /proc/sys has it */

struct cm {
	struct mad_fabric *mad;
	struct port_agent agent; /* gets the messages of all ports */
	struct cm_file *files;
	uint32_t nfiles; /* they keep the daemon alive */
	uint64_t next_token;
	struct cm_ids *ids;	  /* of each host that has had one, by its number */
	struct cm_chains *chains; /* NULL until the first id */
	uint64_t next_tid;
	struct cm_early *early; /* requests for services that nobody offers yet */
	uint32_t nearly;
	struct cm_sa_port *sa_ports;
	struct cm_sa_request *sa_requests; /* those that are under way */
	uint32_t next_sa_number;
	struct net_listener listener;
	struct loop_work groups_lost;
	uint32_t next_group;
	uint32_t last_local_id;
	uint32_t random; /* state of a small generator: PSNs, ports */
};

void cm_open(struct cm *c, struct mad_fabric *mad);
void cm_close(struct cm *c);
/* Makes a file for a program, the process pid, on that host; the caller closes *fd after it has sent
 * it.  0 or a negative errno. */
int cm_file_open(struct cm *c, uint32_t host, int32_t pid, uint64_t *token, int *fd) must_check;
/* Is a pipe with that inode the descriptor of a file? */
bool cm_is_file(const struct cm *c, uint64_t inode);
/* Describes the first id from that number of that host on; those of later hosts follow. */
void cm_describe(const struct cm *c, uint32_t host, uint32_t number, struct msg_cm_id_reply *out);
/* Executes a command.  Returns 0 with an answer, or a negative errno as write(2) gives it. */
int cm_call(struct cm *c, const struct msg_cm_call *m, struct msg_cm_call_reply *reply) must_check;
