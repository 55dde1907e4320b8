// SPDX-License-Identifier: BSD-2-Clause
/* Frames that send queues send, to a raw packet queue of a verbs program: the same that another verbs
 * program sends. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define FRAME_MAX  2000u
#define OFFSET	   65536u /* in the peer's memory */
#define STREAM	   1500u  /* frames of each queue */
#define STREAMED   1504u /* their bytes: in all more than there is room for between two processes */
#define REST_US	   2000	 /* of who takes them, each time */
#define MANY	   13u
#define MANY_BYTES 200u
#define WAIT_EQUAL 1u

static const char to_us[] = "02427e7feb0200000000000000000000";

struct flexio_sq *frames_open(struct end *e, struct line *line, bool many)
{
	struct flexio_wq_attr attr = {.log_wq_depth = LOG_DEPTH,
				      .user_index = USER_INDEX,
				      .sq.allow_multi_pkt_send_wqe = many};
	struct flexio_sq *sq;

	attr.uar_id = flexio_uar_get_id(flexio_process_get_uar(e->p));
	attr.wq_ring_qmem.daddr = end_heap(e, 64u << LOG_DEPTH, 0);
	OK(flexio_sq_create(e->p, NULL, flexio_cq_get_cq_num(line->cq), &attr, &sq));
	e->qpn = flexio_sq_get_wq_num(sq);
	e->post = (struct post){.qpn = e->qpn,
				.ring = attr.wq_ring_qmem.daddr,
				.ce = 2,
				.data = e->data,
				.key = e->key};
	return sq;
}

/* Ones' complement sum of an even number of bytes. */
static uint32_t sum16(const uint8_t *at, uint32_t bytes, uint32_t sum)
{
	for (uint32_t i = 0; i < bytes; i += 2)
		sum += (uint32_t)at[i] << 8 | (i + 1 < bytes ? at[i + 1] : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void checksums_right(const uint8_t *frame, uint32_t bytes)
{
	uint32_t pseudo = sum16(frame + 26, 8, 6 + (bytes - 34));

	CHECK(sum16(frame + 14, 20, 0) == 0xffff);
	CHECK(sum16(frame + 34, bytes - 34, pseudo) == 0xffff);
}

/* So many frames may come. */
static void frames_expect(struct peer *p, unsigned n)
{
	peer_do(p, "recv %u %u %u %u", n, OFFSET, FRAME_MAX, FRAME_MAX);
}

/* They have come. */
static void frames_take(struct peer *p, unsigned n, uint8_t (*frames)[FRAME_MAX], uint32_t *bytes)
{
	for (unsigned i = 0; i < n; i++) {
		struct heard h = peer_wait(p);

		CHECK(!h.status && h.opcode == IBV_WC_RECV && h.bytes <= FRAME_MAX);
		bytes[i] = h.bytes;
		peer_bytes(p, OFFSET + i * FRAME_MAX, h.bytes, frames[i]);
	}
}

static void frame_compare(struct end *e, struct peer *taker, struct peer *sender, uint32_t bytes,
			  bool checksums)
{
	static uint8_t frames[2][FRAME_MAX];
	uint8_t made[FRAME_MAX];
	uint32_t length[2];

	frame_template(made, bytes, bytes);
	OK(flexio_host2dev_memcpy(e->p, made, bytes, e->data));
	e->post.bytes = bytes;
	e->post.header_bytes = e->post.mss = 0;
	e->post.checksums = checksums ? 0xc000 : 0;
	frames_expect(taker, 1);
	end_done(e, POST_FRAME);
	frames_take(taker, 1, &frames[0], &length[0]);
	peer_do(sender, "template 0 %u %u", bytes, bytes);
	frames_expect(taker, 1);
	peer_do(sender, "frame 0 %u %d", bytes, checksums);
	CHECK(!peer_wait(sender).status);
	frames_take(taker, 1, &frames[1], &length[1]);
	CHECK(length[0] == bytes && length[1] == bytes && !memcmp(frames[0], frames[1], bytes));
	if (checksums)
		checksums_right(frames[0], bytes);
	else
		CHECK(!memcmp(frames[0], made, bytes));
}

/* A large send: each segment has the headers, with its own length and number, and checksums. */
static void segments_compare(struct end *e, struct peer *taker, struct peer *sender, unsigned n,
			     uint32_t mss, uint32_t last)
{
	static uint8_t frames[2][8][FRAME_MAX], made[8 * FRAME_MAX];
	uint32_t length[2][8], bytes = FRAME_HEADERS + (n - 1) * mss + last;

	frame_template(made, bytes, bytes);
	OK(flexio_host2dev_memcpy(e->p, made, bytes, e->data));
	e->post.header = e->data;
	e->post.header_bytes = FRAME_HEADERS;
	e->post.data = e->data + FRAME_HEADERS;
	e->post.bytes = bytes - FRAME_HEADERS;
	e->post.mss = mss;
	e->post.checksums = 0xc000;
	frames_expect(taker, n);
	end_done(e, POST_SEGMENTS);
	e->post.data = e->data;
	frames_take(taker, n, frames[0], length[0]);
	peer_do(sender, "template 0 %u %u", bytes, bytes);
	frames_expect(taker, n);
	peer_do(sender, "frame 0 %u 1 %u %u", bytes, FRAME_HEADERS, mss);
	CHECK(!peer_wait(sender).status);
	frames_take(taker, n, frames[1], length[1]);
	for (unsigned i = 0; i < n; i++) {
		uint32_t payload = i + 1 < n ? mss : last;

		CHECK(length[0][i] == FRAME_HEADERS + payload && length[1][i] == length[0][i]);
		CHECK(!memcmp(frames[0][i], frames[1][i], length[0][i]));
		checksums_right(frames[0][i], length[0][i]);
		CHECK(!memcmp(frames[0][i] + FRAME_HEADERS, made + FRAME_HEADERS + i * mss,
			      payload));
		CHECK(!memcmp(frames[0][i], made, 14));
	}
}

static void frames(void)
{
	struct peer taker, sender;
	struct flexio_sq *sq;
	struct end e;

	end_open(&e, true, 0);
	sq = frames_open(&e, &e.sent, false);
	peer_up(&taker, true, "raw", NULL);
	peer_do(&taker, "frames %s", to_us);
	peer_up(&sender, true, "raw", NULL);
	peer_do(&sender, "frames %s", "02ffffffffff00000000000000000000");
	for (unsigned checksums = 0; checksums < 2; checksums++) {
		frame_compare(&e, &taker, &sender, 60, checksums);
		frame_compare(&e, &taker, &sender, 61, checksums);
		frame_compare(&e, &taker, &sender, 1514, checksums);
	}
	segments_compare(&e, &taker, &sender, 1, 1000, 1000);
	segments_compare(&e, &taker, &sender, 3, 1000, 1);
	segments_compare(&e, &taker, &sender, 6, 1460, 777);
	OK(flexio_sq_destroy(sq));
	peer_down(&taker);
	peer_down(&sender);
	end_close(&e);
}

/* Many frames of one request, several times around the ring; a queue without the right to it has none. */
static void many_frames(void)
{
	static uint8_t taken[MANY][FRAME_MAX], made[MANY][MANY_BYTES];
	uint32_t length[MANY];
	struct flexio_sq *sq;
	struct peer taker;
	struct end e;

	end_open(&e, true, 0);
	sq = frames_open(&e, &e.sent, true);
	peer_up(&taker, true, "raw", NULL);
	peer_do(&taker, "frames %s", to_us);
	e.post.bytes = MANY_BYTES;
	e.post.checksums = 0xc000;
	for (unsigned round = 0; round < 40; round++) {
		e.post.frames = 1 + round % MANY;
		for (unsigned i = 0; i < e.post.frames; i++)
			frame_template(made[i], MANY_BYTES, round + i);
		OK(flexio_host2dev_memcpy(e.p, made, sizeof(made), e.data));
		frames_expect(&taker, (unsigned)e.post.frames);
		end_done(&e, POST_FRAMES);
		frames_take(&taker, (unsigned)e.post.frames, taken, length);
		for (unsigned i = 0; i < e.post.frames; i++) {
			CHECK(length[i] == MANY_BYTES);
			CHECK(!memcmp(taken[i] + FRAME_HEADERS, made[i] + FRAME_HEADERS,
				      MANY_BYTES - FRAME_HEADERS));
			checksums_right(taken[i], MANY_BYTES);
		}
	}
	OK(flexio_sq_destroy(sq));
	sq = frames_open(&e, &e.sent, false);
	e.post.bytes = MANY_BYTES;
	e.post.frames = 2;
	end_fails(&e, POST_FRAMES, SYNDROME_QP_OPERATION);
	OK(flexio_sq_destroy(sq));
	peer_down(&taker);
	end_close(&e);
}

/* What a queue pair does without a peer, a send queue does, too: it copies, and waits for completions and for
 * memory, where the frame behind waits with it. */
static void waiting_frames(void)
{
	static uint8_t taken[1][FRAME_MAX], made[MANY_BYTES];
	uint64_t word;
	uint32_t length;
	struct flexio_sq *sq;
	struct peer taker;
	struct end e;

	end_open(&e, true, 0);
	sq = frames_open(&e, &e.sent, false);
	peer_up(&taker, true, "raw", NULL);
	peer_do(&taker, "frames %s", to_us);
	frame_template(made, MANY_BYTES, 1);
	OK(flexio_host2dev_memcpy(e.p, made, MANY_BYTES, e.data));
	word = e.data + 4096;
	end_call(&e, &poke, word, 0, 0);
	e.post.bytes = MANY_BYTES;
	e.post.rkey = e.key;
	e.post.remote = word + 8;
	end_done(&e, POST_COPY);
	/* its own, which has come */
	e.post.columns = flexio_cq_get_cq_num(e.sent.cq);
	e.post.rows = 1;
	end_done(&e, POST_WAIT);
	e.post.element = WAIT_EQUAL;
	e.post.compare = 7;
	e.post.swap_add = UINT64_MAX;
	e.post.remote = word;
	end_post(&e, POST_WAIT_WORD);
	e.post.data = word + 8;
	frames_expect(&taker, 1);
	end_post(&e, POST_FRAME);
	CHECK(end_quiet(&e, &e.sent));
	end_call(&e, &poke, word, __builtin_bswap64(7), 0);
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
	frames_take(&taker, 1, taken, &length);
	CHECK(length == MANY_BYTES && !memcmp(taken[0], made, MANY_BYTES));
	OK(flexio_sq_destroy(sq));
	peer_down(&taker);
	end_close(&e);
}

/* What is inlined is what comes, whatever the order of bytes in which it was handed over. */
static void inlined(void)
{
	struct peer p;
	struct end e;

	end_open(&e, false, FLEXIO_QPC_ST_RC);
	end_make(&e);
	peer_up(&p, false, "rc", NULL);
	end_meet(&e, &p);
	e.post.inlined = 1;
	for (uint32_t bytes = 1; bytes <= 60; bytes += 11) {
		end_call(&e, &fill, e.data, bytes, bytes);
		peer_do(&p, "recv 1 0 64");
		e.post.bytes = bytes;
		end_done(&e, POST_SEND);
		CHECK(peer_wait(&p).bytes == bytes);
		CHECK(peer_ask(&p, "same 0 %u %u", bytes, bytes) == bytes);
	}
	peer_down(&p);
	end_close(&e);
}

/* ---- two threads at a time ---- */

struct sender {
	struct end e; /* of the same process */
	struct flexio_sq *sq;
	pthread_t thread;
	atomic_bool done;
};

static void *sender_run(void *arg)
{
	struct sender *s = arg;

	CHECK(end_call(&s->e, &stream, s->e.post_at, s->e.sent.reader, STREAM) == STREAM);
	s->done = true;
	return NULL;
}

/*
 * While whoever takes the frames rests, there is no room for more.  Requests then wait behind their bells, and are
 * sent by whichever thread finds room first, while others are being written.
 */
static void senders_run(struct sender *s, const struct peer *taker)
{
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&s[i].thread, NULL, sender_run, &s[i]));
	while (!s[0].done || !s[1].done) {
		CHECK(!kill(taker->pid, SIGSTOP));
		usleep(REST_US);
		CHECK(!kill(taker->pid, SIGCONT));
		usleep(REST_US);
	}
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_join(s[i].thread, NULL));
}

static void sender_up(struct sender *s, const struct end *e, unsigned n)
{
	uint8_t made[DEPTH][STREAMED];

	s->e = *e;
	s->done = false;
	line_up(&s->e, &s->e.sent);
	s->e.data = e->data + sizeof(made) * n;
	s->sq = frames_open(&s->e, &s->e.sent, false);
	for (unsigned i = 0; i < DEPTH; i++) {
		frame_template(made[i], STREAMED, 0);
		/* no headers that anybody looks at: an address, a type, and who it is */
		made[i][12] = 0x88;
		made[i][13] = 0xb5;
		made[i][14] = (uint8_t)n;
	}
	OK(flexio_host2dev_memcpy(s->e.p, made, sizeof(made), s->e.data));
	s->e.post.bytes = STREAMED;
	s->e.post.kind = POST_FRAME;
	s->e.post_at = end_heap(&s->e, sizeof(s->e.post), 0);
	OK(flexio_host2dev_memcpy(s->e.p, &s->e.post, sizeof(s->e.post), s->e.post_at));
}

/* Each frame has one word again and again; those of a queue come in order, each once. */
static void stream_take(struct peer *taker)
{
	uint64_t next[2] = {0};

	for (unsigned i = 0; i < 2 * STREAM; i++) {
		uint32_t at = OFFSET + i * STREAMED, words = STREAMED / 8 - 2;
		uint8_t who;
		uint64_t number;

		CHECK(peer_wait(taker).bytes == STREAMED);
		peer_bytes(taker, at + 14, 1, &who);
		CHECK(who < 2);
		number = peer_ask(taker, "get %u", at + 16);
		CHECK_SAY(number == next[who], "frame %llu of queue %u, not %llu",
			  (unsigned long long)number, who, (unsigned long long)next[who]);
		CHECK_SAY(peer_ask(taker, "alike %u %u", at + 16, words) == words,
			  "frame %llu of queue %u is not whole", (unsigned long long)number, who);
		next[who]++;
	}
	CHECK(!peer_ask(taker, "none"));
}

static void two_queues(void)
{
	struct sender s[2];
	struct peer taker;
	struct end e;

	end_open(&e, true, 0);
	peer_up(&taker, true, "raw", NULL);
	peer_do(&taker, "frames %s", to_us);
	/* one more, for a frame that comes twice */
	peer_do(&taker, "recv %u %u %u %u", 2 * STREAM + 1, OFFSET, STREAMED, STREAMED);
	for (unsigned i = 0; i < 2; i++)
		sender_up(&s[i], &e, i);
	senders_run(s, &taker);
	stream_take(&taker);
	peer_down(&taker);
	for (unsigned i = 0; i < 2; i++) {
		OK(flexio_sq_destroy(s[i].sq));
		OK(flexio_cq_destroy(s[i].e.sent.cq));
	}
	end_close(&e);
}

const struct host_case frame_cases[] = {
	{"frames", frames},   {"many_frames", many_frames}, {"waiting_frames", waiting_frames},
	{"inlined", inlined}, {"two_queues", two_queues},   {NULL, NULL},
};
