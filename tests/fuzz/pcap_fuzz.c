// SPDX-License-Identifier: BSD-2-Clause
/*
 * pcap files with any bytes.  One that is taken has as many frames as it says, in every pass, and what is read
 * stays in its room; written anew it says the same.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "tie/pcap.h"

#define ROOM 200u /* smaller than some frames */

static int file = -1;
static char path[32];

void target_init(void)
{
	file = memfd_create("pcap", MFD_CLOEXEC);
	MUST(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void copy_must_agree(struct pcap_reader *r)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *copy = open_memstream(&bytes, &size);
	uint8_t *room = malloc(ROOM);
	struct pcap_frame frame;
	uint64_t n = 0, data = 0;

	MUST(copy && room && !pcap_begin(copy));
	for (pcap_rewind(r); pcap_next(r, &frame, room, ROOM); n++) {
		uint32_t kept = frame.bytes < ROOM ? frame.bytes : ROOM;

		MUST(frame.bytes <= PCAP_RECORD_MAX);
		MUST(pcap_append(copy, frame.ns, room, kept));
		data += kept;
	}
	MUST(n == r->frames && !fclose(copy) && size == 24 + 16 * n + data);
	free(bytes);
	free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[PCAP_ERROR_BYTES] = "";
	struct pcap_reader r;

	MUST(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
	if (!pcap_open(&r, path, error)) {
		MUST(error[0] && memchr(error, '\0', sizeof(error)));
		return 0;
	}
	MUST(!error[0] && r.frames);
	copy_must_agree(&r);
	copy_must_agree(&r);
	pcap_close(&r);
	return 0;
}

static void put_number(struct seed *s, uint32_t v, unsigned bytes, bool big)
{
	for (unsigned i = 0; i < bytes; i++)
		put_u8(s, (uint8_t)(v >> 8 * (big ? bytes - 1 - i : i)));
}

/* Of both byte orders and both units of time. */
void target_seeds(struct seed *s)
{
	for (unsigned form = 0; form < 4; form++) {
		bool big = form & 1;
		char name[16];

		put_number(s, form & 2 ? 0xa1b23c4d : 0xa1b2c3d4, 4, big);
		put_number(s, 2, 2, big);
		put_number(s, 4, 2, big);
		put_number(s, 0, 4, big);
		put_number(s, 0, 4, big);
		put_number(s, 65535, 4, big);
		put_number(s, 1, 4, big);
		for (uint32_t n = 14; n < 300; n *= 4) {
			put_number(s, n, 4, big);
			put_number(s, 999, 4, big);
			put_number(s, n, 4, big);
			put_number(s, n, 4, big);
			for (uint32_t i = 0; i < n; i++)
				put_u8(s, (uint8_t)i);
		}
		snprintf(name, sizeof(name), "form%u", form);
		put_end(s, name);
	}
}
