// SPDX-License-Identifier: BSD-2-Clause
/* From the agents to the socket: what the program reads, in the layout in which it reads it.  What
 * the socket has no room for waits in a queue with a bound: this file sets it for MADs, and for
 * reports of timeouts it is the number of sends that a program may have. */
#include "base/log.h"
#include "base/memory_file.h"
#include "fabric/daemon/umad/file.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Messages that are too long for the stream wait here until a reader with enough room comes. */

static struct umad_long **long_find(const struct umad_file *f, uint32_t id)
{
	struct umad_long **at = (struct umad_long **)(uintptr_t)&f->longs;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void longs_tell(const struct umad_file *f)
{
	atomic_store_explicit(&f->page->longs, f->nlongs, memory_order_release);
}

static void long_free(struct umad_file *f, struct umad_long **at)
{
	struct umad_long *l = *at;

	*at = l->next;
	umad_waiting_add(f, -(int64_t)l->length);
	f->nlongs--;
	longs_tell(f);
	free(l->mad);
	free(l);
}

/* Takes the message as it is, or a copy of it. */
static bool long_fill(struct umad_long *l, struct mad_message *m)
{
	l->mad = m->owned ? m->owned : malloc(m->length);
	if (!l->mad)
		return false;
	if (!m->owned)
		memcpy(l->mad, m->data, m->length);
	m->owned = NULL;
	return true;
}

/* Keeps a message for its reader and says what its marker is; takes m->owned.  False: no memory. */
static must_check bool umad_long_keep(struct umad_file *f, const uint8_t *header,
				      struct mad_message *m, struct umad_marker *marker)
{
	struct umad_long *l = calloc(1, sizeof(*l));

	if (!l)
		return false;
	l->header_bytes = f->header_bytes;
	memcpy(l->header, header, f->header_bytes);
	if (!long_fill(l, m)) {
		free(l);
		return false;
	}
	/* 0 and UMAD_RETURNED are no ids. */
	if (++f->next_long == UMAD_RETURNED)
		f->next_long = 1;
	l->next = f->longs;
	l->id = f->next_long;
	l->length = f->header_bytes + m->length;
	f->longs = l;
	umad_waiting_add(f, l->length);
	f->nlongs++;
	longs_tell(f);
	*marker = (struct umad_marker){UMAD_MAGIC, l->id, l->length};
	return true;
}

static must_check bool umad_long_is_kept(const struct umad_file *f, uint32_t id)
{
	return *long_find(f, id) != NULL;
}

static void umad_long_drop(struct umad_file *f, uint32_t id)
{
	struct umad_long **at = long_find(f, id);

	if (*at)
		long_free(f, at);
}

void umad_long_forget(struct umad_file *f)
{
	while (f->longs)
		long_free(f, &f->longs);
}

int umad_file_fetch(struct umad_file *f, const struct msg_umad_fetch *r,
		    struct msg_umad_fetch_reply *reply, int *fd)
{
	struct umad_long **at = long_find(f, r->id);
	struct umad_long *l = *at;
	uint32_t bytes;
	int ret;

	if (!l)
		return -ENOENT;
	*reply = (struct msg_umad_fetch_reply){.length = l->length, .kept = l->length > r->room};
	/* A reader whose buffer is too small learns from the beginning how much it needs. */
	bytes = reply->kept ? MAD_BYTES : l->length - l->header_bytes;
	ret = memory_file_pieces("softhca-umad", l->header, l->header_bytes, l->mad, bytes);
	if (ret < 0)
		return ret;
	*fd = ret;
	if (!reply->kept)
		long_free(f, at);
	return 0;
}

static struct ib_user_mad_hdr header_of(const struct umad_file *f, uint32_t agent,
					const struct mad_message *m)
{
	const struct mad_address *from = &m->from;
	struct ib_user_mad_hdr h = {
		.id = agent,
		.length = f->header_bytes + m->length,
		.qpn = htobe32(from->qpn),
		.lid = htobe16(from->lid),
		.sl = from->sl,
		.path_bits = from->path_bits,
		.grh_present = from->grh,
		.pkey_index = from->pkey_index,
	};

	if (!from->grh)
		return h;
	h.gid_index = from->gid_index;
	h.hop_limit = from->hop_limit;
	h.traffic_class = from->traffic_class;
	h.flow_label = htobe32(from->flow_label);
	memcpy(h.gid, from->gid.raw, sizeof(h.gid));
	return h;
}

/* ---- the queue ---- */

/* -EAGAIN: send it later, because the kernel will not be short of memory for ever. */
static int stream_send(const struct umad_file *f, const void *bytes, uint32_t n)
{
	if (send(f->sock.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
}

/* A report counts from before the end of its send until it is in the socket, in the batch or in the
 * queue.  So a program that sends at its limit hears of that, and no send that it was allowed is
 * left out. */
static void report_count(struct umad_file *f)
{
	f->reports++;
	umad_page_count_report(f->page);
}

static void report_uncount(struct umad_file *f)
{
	f->reports--;
	umad_page_uncount_report(f->page);
}

static void queue_pop(struct umad_file *f)
{
	struct umad_post *p = f->queue;

	f->queue = p->next;
	if (!f->queue)
		f->queue_end = &f->queue;
	f->received -= p->received;
	if (!p->received)
		report_uncount(f);
	umad_waiting_add(f, -(int64_t)(sizeof(*p) + p->length));
	free(p);
}

/* Logs one line for a file, because a program that does not read would fill the log. */
static void file_drop(struct umad_file *f)
{
	atomic_fetch_add_explicit(&f->page->dropped, 1, memory_order_relaxed);
	if (f->told)
		return;
	f->told = true;
	log_warn("umad file %lu: its program does not read: MADs for it are dropped",
		 (unsigned long)f->token);
}

static bool queue_has_room(const struct umad_file *f, uint32_t length)
{
	uint64_t own = f->waiting + length;

	if (f->received >= UMAD_MOST_RECEIVED || own > UMAD_MOST_OF_A_FILE)
		return false;
	return own <= UMAD_SURE_OF_A_FILE || f->umad->waiting + length <= UMAD_MOST_WAITING;
}

static bool queue_push(struct umad_file *f, const void *bytes, uint32_t n, bool received)
{
	struct umad_post *p = malloc(sizeof(*p) + n);
	bool first;

	if (!p)
		return false;
	*p = (struct umad_post){.length = n, .received = received};
	memcpy(p->bytes, bytes, n);
	first = !f->queue;
	*f->queue_end = p;
	f->queue_end = &p->next;
	if (first)
		(void)umad_file_watch(f);
	f->received += received;
	if (!received)
		report_count(f);
	umad_waiting_add(f, (int64_t)(sizeof(*p) + n));
	return true;
}

/* Posts at once. */
static bool stream_post(struct umad_file *f, const void *bytes, uint32_t n, bool received)
{
	int ret = f->queue ? -EAGAIN : stream_send(f, bytes, n);

	if (!ret)
		return true;
	/* Otherwise the program has gone, and the socket's end comes soon. */
	if (ret == -EAGAIN && (!received || queue_has_room(f, n)) &&
	    queue_push(f, bytes, n, received))
		return true;
	if (ret == -EAGAIN)
		file_drop(f);
	return false;
}

void umad_file_flush(struct umad_file *f)
{
	while (f->queue) {
		int ret = stream_send(f, f->queue->bytes, f->queue->length);

		if (ret == -EAGAIN)
			return;
		queue_pop(f);
	}
	(void)umad_file_watch(f);
}

/* ---- the batch ---- */

/* Empties the batch.  Reports that have come into the queue count there. */
static void batch_clear(struct umad_file *f)
{
	struct umad_batch *b = &f->batch;

	for (uint32_t i = 0; i < b->n; i++)
		if (!b->messages[i].received)
			report_uncount(f);
	b->n = 0;
}

/* Returns how many messages of the batch the socket takes. */
static uint32_t batch_try(struct umad_file *f)
{
	struct umad_batch *b = &f->batch;
	struct mmsghdr messages[UMAD_BATCH];
	struct iovec iov[UMAD_BATCH];
	int n;

	if (f->queue || b->n < 2)
		return 0;
	for (uint32_t i = 0; i < b->n; i++) {
		iov[i] = (struct iovec){b->messages[i].bytes, b->messages[i].length};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	n = sendmmsg(f->sock.fd, messages, b->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? 0 : (uint32_t)n;
}

static void batch_send(struct umad_file *f)
{
	struct umad_batch *b = &f->batch;

	for (uint32_t i = batch_try(f); i < b->n; i++)
		(void)stream_post(f, b->messages[i].bytes, b->messages[i].length,
				  b->messages[i].received);
	batch_clear(f);
}

static void batch_list(struct umad_file *f)
{
	if (f->batch.listed)
		return;
	f->batch.listed = true;
	f->batch.next = f->umad->batches;
	f->umad->batches = f;
	loop_queue(f->umad->fabric->loop, &f->umad->batches_work);
}

static void batch_drop(struct umad_file *f)
{
	struct umad_file **at = &f->umad->batches;

	batch_clear(f);
	if (!f->batch.listed)
		return;
	while (*at != f)
		at = &(*at)->batch.next;
	*at = f->batch.next;
	f->batch.listed = false;
}

static struct umad_outgoing *batch_add(struct umad_file *f)
{
	struct umad_batch *b = &f->batch;

	if (b->n == UMAD_BATCH)
		batch_send(f);
	batch_list(f);
	return &b->messages[b->n++];
}

void umad_batches_send(struct loop *l, struct loop_work *w)
{
	struct umad *u = container_of(w, struct umad, batches_work);

	(void)l;
	while (u->batches) {
		struct umad_file *f = u->batches;

		u->batches = f->batch.next;
		f->batch.listed = false;
		batch_send(f);
	}
}

void umad_file_forget(struct umad_file *f)
{
	batch_drop(f);
	while (f->queue)
		queue_pop(f);
}

/* ---- messages ---- */

static void message_post(struct umad_file *f, const uint8_t *header, struct mad_message *m)
{
	struct umad_marker marker;

	if (m->length <= MAD_BYTES) {
		struct umad_outgoing *out = batch_add(f);

		out->received = true;
		out->length = f->header_bytes + m->length;
		memcpy(out->bytes, header, f->header_bytes);
		memcpy(out->bytes + f->header_bytes, m->data, m->length);
		return;
	}
	/* The message counts with those that wait. */
	batch_send(f);
	if (!queue_has_room(f, m->length) || !umad_long_keep(f, header, m, &marker))
		file_drop(f);
	else if (!stream_post(f, &marker, sizeof(marker), true))
		umad_long_drop(f, marker.id);
}

void umad_file_receive(struct umad_file *f, uint32_t agent, struct mad_message *m)
{
	const struct ib_user_mad_hdr h = header_of(f, agent, m);

	message_post(f, (const uint8_t *)&h, m);
}

void umad_file_report(struct umad_file *f, uint32_t agent, const uint8_t note[64],
		      const uint8_t *header)
{
	struct umad_outgoing *out = batch_add(f);
	struct ib_user_mad_hdr h;

	memcpy(&h, note, sizeof(h));
	h.id = agent;
	h.status = ETIMEDOUT;
	out->received = false;
	report_count(f);
	out->length = f->header_bytes + MAD_HEADER_BYTES;
	memcpy(out->bytes, &h, f->header_bytes);
	memcpy(out->bytes + f->header_bytes, header, MAD_HEADER_BYTES);
}

void umad_file_post(struct umad_file *f, const uint8_t *bytes, uint32_t length)
{
	struct umad_marker m;

	memcpy(&m, bytes, min_u32(length, sizeof(m)));
	if (length == sizeof(m) && m.magic == UMAD_MAGIC) {
		batch_send(f);
		if (umad_long_is_kept(f, m.id))
			(void)stream_post(f, bytes, length, true);
	} else if (length >= f->header_bytes) {
		message_post(f, bytes,
			     &(struct mad_message){.length = length - f->header_bytes,
						   .data = bytes + f->header_bytes});
	}
}
