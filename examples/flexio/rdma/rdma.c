// SPDX-License-Identifier: BSD-2-Clause
/*
 * The DPA writes into the memory of another program.
 *
 * Device code has a queue pair: it fills in work requests, rings the doorbell, and looks for completions,
 * all without the host, which only makes the connection.  The other end is a program of plain verbs.
 *
 *	make && softhca run -- ./rdma
 *
 * Without an argument the other end is a thread of this program.  With one it is another program, on this host
 * or on another one of the network; the argument is the TCP port at which both meet, 0 for any:
 *
 *	softhca run -- ./rdma 4711 &
 *	softhca run --host host2 -- ./take 127.0.0.1 4711
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma.h"
#include "target.h"

extern struct flexio_app *rdma_app;
extern flexio_func_t write_primes;

struct setup {
	struct ibv_context *context;
	struct flexio_process *process;
	struct flexio_cq *cq;
	struct flexio_qp *qp;
	struct flexio_mkey *key;
	struct writer writer;
};

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

/* Memory of the DPA, each byte of that value. */
static uint64_t memory(struct setup *s, size_t bytes, int value)
{
	flexio_uintptr_t at;

	check(flexio_buf_dev_alloc(s->process, bytes, &at), "flexio_buf_dev_alloc");
	check(flexio_buf_dev_memset(s->process, value, bytes, at), "flexio_buf_dev_memset");
	return at;
}

/* A queue that device code looks at; entries that were never written have an owner of the other pass. */
static void make_cq(struct setup *s, uint32_t uar)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = uar,
	};

	attr.cq_ring_qmem.daddr = s->writer.cq_ring = memory(s, 64 * DEPTH, 0xff);
	attr.cq_dbr_daddr = s->writer.cq_record = memory(s, 8, 0);
	check(flexio_cq_create(s->process, NULL, &attr, &s->cq), "flexio_cq_create");
}

static void make_qp(struct setup *s, uint32_t uar)
{
	struct flexio_qp_attr attr = {
		.transport_type = FLEXIO_QPC_ST_RC,
		.uar_id = uar,
		.log_sq_depth = LOG_DEPTH,
		.sq_cqn = flexio_cq_get_cq_num(s->cq),
		.rq_cqn = flexio_cq_get_cq_num(s->cq),
		.rq_type = FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ,
	};

	attr.qp_wq_buff_qmem.daddr = s->writer.ring = memory(s, 64 * DEPTH, 0);
	attr.qp_wq_dbr_qmem.daddr = memory(s, 8, 0);
	check(flexio_qp_create(s->process, NULL, &attr, &s->qp), "flexio_qp_create");
	s->writer.qpn = flexio_qp_get_qp_num(s->qp);
}

static void make_all(struct setup *s)
{
	struct flexio_mkey_attr key = {.len = (NUMBERS + 1) * 8, .access = IBV_ACCESS_LOCAL_WRITE};
	uint32_t uar;

	s->context = open_first_device();
	check(flexio_process_create(s->context, rdma_app, NULL, &s->process),
	      "flexio_process_create");
	uar = flexio_uar_get_id(flexio_process_get_uar(s->process));
	make_cq(s, uar);
	make_qp(s, uar);
	key.pd = flexio_process_get_pd(s->process);
	key.daddr = s->writer.numbers = memory(s, key.len, 0);
	check(flexio_device_mkey_create(s->process, &key, &s->key), "flexio_device_mkey_create");
	s->writer.lkey = flexio_mkey_get_id(s->key);
}

static void connect_qp(struct setup *s, const struct address *peer)
{
	struct flexio_qp_attr attr = {
		.remote_qp_num = peer->qpn,
		.rlid = (uint16_t)peer->lid,
		.min_rnr_nak_timer = 12,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.retry_count = 7,
		.vhca_port_num = 1,
	};

	for (int state = FLEXIO_QP_STATE_INIT; state <= FLEXIO_QP_STATE_RTS; state++) {
		attr.next_state = (enum flexio_qp_state)state;
		check(flexio_qp_modify(s->qp, &attr, NULL), "flexio_qp_modify");
	}
}

static int listen_at(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(*port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t bytes = sizeof(at);

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (s < 0 || bind(s, (struct sockaddr *)&at, bytes) || listen(s, 1) ||
	    getsockname(s, (struct sockaddr *)&at, &bytes)) {
		perror("no port to listen at");
		exit(1);
	}
	*port = ntohs(at.sin_port);
	return s;
}

static void *other_end(void *port)
{
	return (void *)(intptr_t)target_run("127.0.0.1", *(uint16_t *)port);
}

static int write_to_peer(struct setup *s, int socket)
{
	struct ibv_port_attr port;
	struct address ours = {.qpn = (uint32_t)s->writer.qpn}, theirs;
	flexio_uintptr_t writer;
	uint64_t written;

	ibv_query_port(s->context, 1, &port);
	ours.lid = port.lid;
	exchange(socket, &ours, &theirs);
	connect_qp(s, &theirs);
	s->writer.remote = theirs.memory;
	s->writer.rkey = theirs.rkey;
	check(flexio_copy_from_host(s->process, &s->writer, sizeof(s->writer), &writer),
	      "flexio_copy_from_host");
	exchange(socket, &ours, &theirs);
	check(flexio_process_call(s->process, write_primes, &written, writer),
	      "flexio_process_call");
	printf("the DPA has written %" PRIu64 " numbers\n", written);
	return written != NUMBERS;
}

int main(int argc, char **argv)
{
	uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 0;
	int listener = listen_at(&port), socket, wrong;
	struct setup s = {0};
	pthread_t thread;
	void *result = NULL;

	make_all(&s);
	if (argc > 1) {
		printf("waiting for: take ADDRESS %u\n", port);
		fflush(stdout);
	} else if (pthread_create(&thread, NULL, other_end, &port)) {
		return 1;
	}
	socket = accept(listener, NULL, NULL);
	wrong = write_to_peer(&s, socket);
	if (argc == 1)
		pthread_join(thread, &result);
	close(socket);
	close(listener);
	check(flexio_qp_destroy(s.qp), "flexio_qp_destroy");
	check(flexio_cq_destroy(s.cq), "flexio_cq_destroy");
	check(flexio_device_mkey_destroy(s.key), "flexio_device_mkey_destroy");
	check(flexio_process_destroy(s.process), "flexio_process_destroy");
	ibv_close_device(s.context);
	return wrong || result;
}
