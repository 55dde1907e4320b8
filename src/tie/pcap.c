// SPDX-License-Identifier: BSD-2-Clause
/* See pcap.h. */
#include "tie/pcap.h"

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

/* ---- the files ---- */

#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS  0xa1b23c4du
#define PCAPNG		  0x0a0d0d0au
#define PCAP_MAJOR	  2
#define PCAP_MINOR	  4
#define PCAP_ETHERNET	  1u /* LINKTYPE_ETHERNET */
#define PCAP_LINKTYPE	  0xffffu

struct pcap_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy;
	uint32_t snapshot;
	uint32_t linktype;
};

struct pcap_record {
	uint32_t seconds, fraction;
	uint32_t bytes, whole;
};

static uint32_t pcap_u32(const struct pcap_reader *r, uint32_t v)
{
	return r->swapped ? bswap_32(v) : v;
}

/* Reads the head of the file.  False: we do not read this kind of file. */
static bool head_read(struct pcap_reader *r, char error[PCAP_ERROR_BYTES])
{
	struct pcap_head head;
	uint32_t linktype;

	if (fread(&head, sizeof(head), 1, r->file) != 1) {
		snprintf(error, PCAP_ERROR_BYTES, "it is too short for a pcap file");
		return false;
	}
	r->swapped = head.magic == bswap_32(PCAP_MICROSECONDS) ||
		     head.magic == bswap_32(PCAP_NANOSECONDS);
	head.magic = pcap_u32(r, head.magic);
	r->nanoseconds = head.magic == PCAP_NANOSECONDS;
	linktype = pcap_u32(r, head.linktype) & PCAP_LINKTYPE;
	if (head.magic == PCAPNG)
		snprintf(error, PCAP_ERROR_BYTES,
			 "it is a pcapng file; 'tcpdump -r FILE -w NEW' makes a pcap file of it");
	else if (!r->nanoseconds && head.magic != PCAP_MICROSECONDS)
		snprintf(error, PCAP_ERROR_BYTES, "it is no pcap file");
	else if (linktype != PCAP_ETHERNET)
		snprintf(error, PCAP_ERROR_BYTES,
			 "its frames are not Ethernet (link type %u, Ethernet is 1)", linktype);
	else
		return true;
	return false;
}

/* Reads the head of a record.  1: there is one; 0: the end; -1: it is cut off or senseless. */
static int record_read(struct pcap_reader *r, struct pcap_frame *frame)
{
	uint64_t unit = r->nanoseconds ? 1 : 1000;
	struct pcap_record record;
	size_t n = fread(&record, 1, sizeof(record), r->file);

	if (!n && !ferror(r->file))
		return 0;
	if (n != sizeof(record))
		return -1;
	frame->ns = pcap_u32(r, record.seconds) * UINT64_C(1000000000) +
		    pcap_u32(r, record.fraction) * unit;
	frame->bytes = pcap_u32(r, record.bytes);
	frame->whole = pcap_u32(r, record.whole);
	return frame->bytes <= PCAP_RECORD_MAX ? 1 : -1;
}

static bool records_check(struct pcap_reader *r, char error[PCAP_ERROR_BYTES])
{
	struct pcap_frame frame;
	struct stat st;
	int ret;

	if (fstat(fileno(r->file), &st) || !S_ISREG(st.st_mode)) {
		snprintf(error, PCAP_ERROR_BYTES, "it is no regular file");
		return false;
	}
	while ((ret = record_read(r, &frame)) > 0) {
		if (fseeko(r->file, frame.bytes, SEEK_CUR) || ftello(r->file) > st.st_size) {
			ret = -1;
			break;
		}
		r->frames++;
	}
	if (ret)
		snprintf(error, PCAP_ERROR_BYTES, "its frame %" PRIu64 " is cut off or damaged",
			 r->frames + 1);
	else if (!r->frames)
		snprintf(error, PCAP_ERROR_BYTES, "it has no frame");
	return !ret && r->frames;
}

bool pcap_open(struct pcap_reader *r, const char *path, char error[PCAP_ERROR_BYTES])
{
	*r = (struct pcap_reader){.file = fopen(path, "re")};
	if (!r->file) {
		snprintf(error, PCAP_ERROR_BYTES, "%s", strerror(errno));
		return false;
	}
	if (head_read(r, error) && records_check(r, error)) {
		pcap_rewind(r);
		return true;
	}
	pcap_close(r);
	return false;
}

void pcap_close(struct pcap_reader *r)
{
	fclose(r->file);
	r->file = NULL;
}

bool pcap_next(struct pcap_reader *r, struct pcap_frame *frame, void *buf, uint32_t room)
{
	uint32_t n;

	if (record_read(r, frame) <= 0)
		return false;
	n = frame->bytes < room ? frame->bytes : room;
	return fread(buf, 1, n, r->file) == n && !fseeko(r->file, frame->bytes - n, SEEK_CUR);
}

void pcap_rewind(struct pcap_reader *r)
{
	clearerr(r->file);
	/* A file that cannot be read any more says so when the next frame is wanted. */
	if (fseeko(r->file, sizeof(struct pcap_head), SEEK_SET))
		clearerr(r->file);
}

int pcap_begin(FILE *file)
{
	const struct pcap_head head = {
		.magic = PCAP_MICROSECONDS,
		.major = PCAP_MAJOR,
		.minor = PCAP_MINOR,
		.snapshot = PCAP_RECORD_MAX,
		.linktype = PCAP_ETHERNET,
	};

	errno = EIO;
	return fwrite(&head, sizeof(head), 1, file) == 1 && !fflush(file) ? 0 : -errno;
}

bool pcap_append(FILE *file, uint64_t ns, const void *frame, uint32_t bytes)
{
	const struct pcap_record record = {
		.seconds = (uint32_t)(ns / 1000000000u),
		.fraction = (uint32_t)(ns % 1000000000u / 1000u),
		.bytes = bytes,
		.whole = bytes,
	};

	return fwrite(&record, sizeof(record), 1, file) == 1 &&
	       fwrite(frame, 1, bytes, file) == bytes;
}

/* ---- the end of a tie ---- */

/* How often it looks whether somebody listens by now. */
#define PCAP_HEARD_NS 10000000u

static struct end_pcap *end_pcap_of(struct tie_end *e)
{
	return container_of(e, struct end_pcap, end);
}

/* ---- out ---- */

static void end_pcap_is_full(struct end_pcap *p)
{
	char words[128];

	(void)snprintf(words, sizeof(words), "the file takes no more frames: %m");
	carrier_warn(p->end.carrier, words);
}

static bool end_pcap_put(struct tie_end *e, const uint8_t *frame, uint32_t bytes)
{
	struct end_pcap *p = end_pcap_of(e);

	/* A frame that is cut off would spoil all that follows it. */
	if (!p->out || p->full)
		return false;
	p->full = !pcap_append(p->out, clock_realtime_ns(), frame, bytes);
	if (p->full)
		end_pcap_is_full(p);
	return !p->full;
}

static void end_pcap_idle(struct tie_end *e)
{
	struct end_pcap *p = end_pcap_of(e);

	if (!p->out || p->full || !fflush(p->out))
		return;
	p->full = true;
	end_pcap_is_full(p);
}

static bool end_pcap_is_up(struct tie_end *e)
{
	(void)e;
	return true;
}

/* ---- in ---- */

/* The state of a pass through the file. */
struct pass {
	uint64_t begun_ns; /* when its first frame went in */
	uint64_t first_ns; /* when that frame was captured */
	uint64_t frames;
	bool heard; /* whether a frame has found a listener */
};

static uint64_t frame_due(const struct end_pcap *p, const struct pass *pass,
			  const struct pcap_frame *frame)
{
	switch (p->pace) {
	case PACE_ORIGINAL:
		return frame->ns > pass->first_ns ? pass->begun_ns + frame->ns - pass->first_ns
						  : pass->begun_ns;
	case PACE_RATE:
		return pass->begun_ns + pass->frames * UINT64_C(1000000000) / p->rate;
	case PACE_TOP:
		break;
	}
	return 0;
}

/* Waits in a loop for fractions of a millisecond instead of sleeping. */
static bool frame_wait(struct carrier *c, uint64_t due_ns)
{
	const uint64_t ms = 1000000;

	if (clock_ns() + ms < due_ns && !carrier_sleep(c, due_ns - ms, NULL, 0))
		return false;
	while (clock_ns() < due_ns)
		;
	return true;
}

static bool frame_is_whole(const struct pcap_frame *frame)
{
	return frame->bytes == frame->whole && frame->bytes >= CARRIER_FRAME_MIN &&
	       frame->bytes <= CARRIER_FRAME_MAX;
}

/* The first frame waits until somebody listens. */
static enum carrier_verdict frame_in(struct carrier *c, struct pass *pass, const uint8_t *data,
				     uint32_t bytes)
{
	enum carrier_verdict v = carrier_arrive(c, data, bytes);

	while (v == CARRIER_UNHEARD && !pass->heard) {
		if (!carrier_sleep(c, clock_ns() + PCAP_HEARD_NS, NULL, 0))
			return CARRIER_ENDS;
		pass->begun_ns = clock_ns();
		v = carrier_arrive(c, data, bytes);
	}
	pass->heard |= v != CARRIER_BAD;
	return v;
}

/* Goes once through the file.  False: the carrier has to end. */
static bool end_pcap_pass(struct end_pcap *p, struct carrier *c, struct pass *pass)
{
	uint8_t data[CARRIER_FRAME_MAX];
	struct pcap_frame frame;
	char words[128];

	pcap_rewind(&p->in);
	for (pass->frames = 0; pcap_next(&p->in, &frame, data, sizeof(data)); pass->frames++) {
		enum carrier_verdict v = CARRIER_UNHEARD;

		if (!pass->frames) {
			pass->begun_ns = clock_ns();
			pass->first_ns = frame.ns;
		}
		if (!frame_wait(c, frame_due(p, pass, &frame)))
			return false;
		if (frame_is_whole(&frame))
			v = frame_in(c, pass, data, frame.bytes);
		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
	}
	if (pass->frames == p->in.frames)
		return true;
	(void)snprintf(words, sizeof(words),
		       "the pcap file has been changed: its frame %llu cannot be read any more",
		       (unsigned long long)pass->frames + 1);
	carrier_warn(c, words);
	return false;
}

static void end_pcap_take(struct tie_end *e, struct carrier *c)
{
	struct end_pcap *p = end_pcap_of(e);
	struct pass pass = {0};

	if (!p->in.file)
		return;
	for (uint32_t i = 0; !p->loops || i < p->loops; i++)
		if (!carrier_sleep(c, 0, NULL, 0) || !end_pcap_pass(p, c, &pass))
			return;
	carrier_all_in(c);
}

static const struct tie_end_ops end_pcap_ops = {
	.put = end_pcap_put,
	.idle = end_pcap_idle,
	.take = end_pcap_take,
	.is_up = end_pcap_is_up,
};

void end_pcap_init(struct end_pcap *e)
{
	e->end.ops = &end_pcap_ops;
	e->full = false;
}
