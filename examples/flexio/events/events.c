// SPDX-License-Identifier: BSD-2-Clause
/*
 * An event handler that messages start.
 *
 * The DPA has all that takes part in receiving: a completion queue, the receive queue of an RC queue pair, and the
 * memory that messages arrive in.  The other end is a program of plain verbs.  Each completion starts a
 * thread of the DPA, which sums up the bytes of what has come and posts the receives again; the host only
 * sets it up, and asks for the result.
 *
 *	make && softhca run -- ./events
 *
 * Without an argument the other end is a thread of this program.  With one it is another program, on this host
 * or on another one of the network; the argument is the TCP port at which both meet, 0 for any:
 *
 *	softhca run -- ./events 4711 &
 *	softhca run --host host2 -- ./send 127.0.0.1 4711
 *
 * Its end is 0 if the DPA has counted what the other end has sent, to the byte.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "receiver.h"
#include "sender.h"

#define MESSAGES 2000u
#define PATIENCE 60 /* seconds */

extern struct flexio_app *events_app;
extern flexio_func_t on_message, read_word;

/* What the host has made; inbox is the address of what the DPA knows of it. */
struct setup {
	struct ibv_context *context;
	struct flexio_process *process;
	struct flexio_event_handler *handler;
	struct flexio_cq *cq;
	struct flexio_mkey *key;
	struct receiver receiver;
	struct inbox in;
	flexio_uintptr_t receives, inbox;
};

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static flexio_uintptr_t device_memory(const struct setup *s, size_t bytes, int value)
{
	flexio_uintptr_t address;

	check(flexio_buf_dev_alloc(s->process, bytes, &address), "flexio_buf_dev_alloc");
	check(flexio_buf_dev_memset(s->process, value, bytes, address), "flexio_buf_dev_memset");
	return address;
}

/* A handler, and a queue whose completions start it. */
static void make_queue(struct setup *s)
{
	struct flexio_event_handler_attr handler = {.host_stub_func = &on_message};
	struct flexio_cq_attr attr = {.log_cq_depth = LOG_ENTRIES,
				      .element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD};

	check(flexio_event_handler_create(s->process, &handler, &s->handler),
	      "flexio_event_handler_create");
	/* An entry whose owner bit is 1 is new in the second round only. */
	s->in.ring = device_memory(s, ENTRIES * sizeof(struct mlx5_cqe64), 0xff);
	s->in.record = device_memory(s, 2 * sizeof(uint32_t), 0);
	attr.thread = flexio_event_handler_get_thread(s->handler);
	attr.uar_id = flexio_uar_get_id(flexio_process_get_uar(s->process));
	attr.cq_ring_qmem =
		(struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_DPA, .daddr = s->in.ring};
	attr.cq_dbr_daddr = s->in.record;
	check(flexio_cq_create(s->process, NULL, &attr, &s->cq), "flexio_cq_create");
	s->in.cqn = flexio_cq_get_cq_num(s->cq);
}

/* Receives of MESSAGE_BYTES each, one beside the other. */
static void make_receives(struct setup *s)
{
	struct flexio_mkey_attr attr = {.pd = flexio_process_get_pd(s->process),
					.len = ENTRIES * MESSAGE_BYTES,
					.access = IBV_ACCESS_LOCAL_WRITE};
	struct mlx5_wqe_data_seg receives[ENTRIES];

	attr.daddr = s->in.data = device_memory(s, attr.len, 0);
	check(flexio_device_mkey_create(s->process, &attr, &s->key), "flexio_device_mkey_create");
	for (unsigned int i = 0; i < ENTRIES; i++)
		mlx5dv_set_data_seg(&receives[i], MESSAGE_BYTES, flexio_mkey_get_id(s->key),
				    s->in.data + i * MESSAGE_BYTES);
	check(flexio_copy_from_host(s->process, receives, sizeof(receives), &s->receives),
	      "flexio_copy_from_host");
	s->in.receive_record = device_memory(s, 2 * sizeof(uint32_t), 0);
	receiver_make(&s->receiver, s->context, s->process, flexio_cq_get_cq_num(s->cq),
		      s->receives, LOG_ENTRIES, s->in.receive_record);
}

static void set_up(struct setup *s, struct ibv_context *context)
{
	*s = (struct setup){.context = context};
	check(flexio_process_create(context, events_app, NULL, &s->process),
	      "flexio_process_create");
	make_queue(s);
	make_receives(s);
	check(flexio_copy_from_host(s->process, &s->in, sizeof(s->in), &s->inbox),
	      "flexio_copy_from_host");
	check(flexio_event_handler_run(s->handler, s->inbox), "flexio_event_handler_run");
}

static void tear_down(struct setup *s)
{
	receiver_free(&s->receiver);
	check(flexio_cq_destroy(s->cq), "flexio_cq_destroy");
	check(flexio_event_handler_destroy(s->handler), "flexio_event_handler_destroy");
	check(flexio_device_mkey_destroy(s->key), "flexio_device_mkey_destroy");
	check(flexio_process_destroy(s->process), "flexio_process_destroy");
	ibv_close_device(s->context);
}

/* The receives are posted by the number of them in the record. */
static void connect_receiver(struct setup *s, int fd, uint16_t lid)
{
	struct place here = {htonl(s->receiver.number), htonl(lid)}, there;
	uint32_t posted = htobe32(ENTRIES);

	hear(fd, &there, sizeof(there));
	receiver_connect(&s->receiver, ntohl(there.qpn), (uint16_t)ntohl(there.lid));
	check(flexio_host2dev_memcpy(s->process, &posted, sizeof(posted), s->in.receive_record),
	      "flexio_host2dev_memcpy");
	say(fd, &here, sizeof(here));
}

static uint64_t result(const struct setup *s, size_t place)
{
	uint64_t value;

	check(flexio_process_call(s->process, read_word, &value, s->inbox + place),
	      "flexio_process_call");
	return value;
}

#define RESULT(s, name) result(s, offsetof(struct inbox, name))

/* All has arrived; the handler may still be at it. */
static int compare(const struct setup *s, const struct account *sent)
{
	uint64_t messages, bytes, sum, errors;
	struct timespec nap = {.tv_nsec = 1000000};
	time_t end = time(NULL) + PATIENCE;

	while (RESULT(s, messages) + RESULT(s, errors) < sent->messages && time(NULL) < end)
		nanosleep(&nap, NULL);
	messages = RESULT(s, messages);
	bytes = RESULT(s, bytes);
	sum = RESULT(s, sum);
	errors = RESULT(s, errors);
	printf("the other end has sent %" PRIu64 " messages, %" PRIu64 " bytes of the sum %" PRIu64
	       "\n",
	       sent->messages, sent->bytes, sent->sum);
	printf("the DPA has taken      %" PRIu64 " messages, %" PRIu64 " bytes of the sum %" PRIu64
	       "\n",
	       messages, bytes, sum);
	printf("it was activated %s and met %" PRIu64 " errors\n",
	       RESULT(s, activations) ? "by events" : "never", errors);
	return !errors && messages && messages == sent->messages && bytes == sent->bytes &&
	       sum == sent->sum;
}

static void *sender_main(void *arg)
{
	send_messages(*(int *)arg, MESSAGES);
	return NULL;
}

/* The other end is a thread of this program, and fds[1] its end of a pair of sockets. */
static pthread_t start_sender(int fds[2])
{
	pthread_t thread;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ||
	    pthread_create(&thread, NULL, sender_main, &fds[1])) {
		perror("the sender");
		exit(1);
	}
	return thread;
}

/* The other end is another program, which comes by TCP. */
static int await_sender(const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_ANY),
				 .sin_port = htons((uint16_t)atoi(port))};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, on = 1;
	socklen_t length = sizeof(at);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &length)) {
		perror(port);
		exit(1);
	}
	printf("waiting for: send ADDRESS %u\n", ntohs(at.sin_port));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0) {
		perror("accept");
		exit(1);
	}
	close(listener);
	return fd;
}

int main(int argc, char **argv)
{
	uint16_t lid;
	struct account sent;
	int fds[2] = {-1, -1}, right;
	pthread_t thread = 0;
	struct setup s;

	set_up(&s, open_infiniband(&lid));
	if (argc > 1)
		fds[0] = await_sender(argv[1]);
	else
		thread = start_sender(fds);
	connect_receiver(&s, fds[0], lid);
	hear(fds[0], &sent, sizeof(sent));
	sent = (struct account){be64toh(sent.messages), be64toh(sent.bytes), be64toh(sent.sum)};
	right = compare(&s, &sent);
	if (argc == 1) {
		pthread_join(thread, NULL);
		close(fds[1]);
	}
	close(fds[0]);
	tear_down(&s);
	return right ? 0 : 1;
}
