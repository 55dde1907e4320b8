// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code that sends what lines of standard input say, which are those of the verbs program (peer.c):
 * so both can be given the same script, and what they send be compared.
 */
#include <string.h>

#include "host.h"

#define WORDS	  8u
#define FRAME_MAX 9000u
#define CHECKSUMS 0xc000u /* of IP and TCP */

/* template OFFSET BYTES SEED */
static void script_template(struct end *e, const uint64_t *w)
{
	uint8_t made[FRAME_MAX];

	CHECK(w[1] >= FRAME_HEADERS && w[1] <= sizeof(made));
	frame_template(made, (uint32_t)w[1], (unsigned)w[2]);
	OK(flexio_host2dev_memcpy(e->p, made, w[1], e->data + w[0]));
}

/* frame OFFSET BYTES CHECKSUMS HEADER MSS PIECES INLINED */
static void script_frame(struct end *e, const uint64_t *w)
{
	e->post.header = e->data + w[0];
	e->post.header_bytes = w[3];
	e->post.data = e->data + w[0] + w[3];
	e->post.bytes = w[1] - w[3];
	e->post.checksums = w[2] ? CHECKSUMS : 0;
	e->post.mss = w[4];
	e->post.pieces = w[5];
	e->post.inlined = w[6];
	end_post(e, w[3] ? POST_SEGMENTS : POST_FRAME);
	e->post.inlined = 0;
}

/* row OFFSET BYTES CHECKSUMS COUNT: in one request */
static void script_row(struct end *e, const uint64_t *w)
{
	e->post.header_bytes = e->post.mss = 0;
	e->post.data = e->data + w[0];
	e->post.bytes = w[1];
	e->post.checksums = w[2] ? CHECKSUMS : 0;
	e->post.frames = w[3];
	end_post(e, POST_FRAMES);
}

/* done COUNT: a request has one completion here, however many frames it has */
static void script_done(struct end *e, const uint64_t *w)
{
	(void)w;
	end_take(e, &e->sent);
	CHECK_SAY(e->last.opcode == DONE_REQUEST, "syndrome 0x%llx",
		  (unsigned long long)e->last.syndrome);
}

static const struct {
	const char *name;
	void (*run)(struct end *e, const uint64_t *w);
} orders[] = {
	{"template", script_template},
	{"frame", script_frame},
	{"row", script_row},
	{"done", script_done},
};

static void script_obey(struct end *e, char *line)
{
	char *rest, *name = strtok_r(line, " \n", &rest), *word;
	uint64_t w[WORDS] = {0};
	unsigned n = 0;

	while ((word = strtok_r(NULL, " \n", &rest))) {
		CHECK(n < WORDS);
		w[n++] = strtoull(word, NULL, 0);
	}
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (!strcmp(orders[i].name, name)) {
			orders[i].run(e, w);
			return;
		}
	CHECK_SAY(false, "no order %s", name);
}

static void script_frames(void)
{
	struct flexio_sq *sq;
	char line[256];
	struct end e;

	end_open(&e, true, 0);
	sq = frames_open(&e, &e.sent, true);
	while (fgets(line, sizeof(line), stdin))
		script_obey(&e, line);
	OK(flexio_sq_destroy(sq));
	end_close(&e);
}

const struct host_case script_cases[] = {
	{"script_frames", script_frames},
	{NULL, NULL},
};
