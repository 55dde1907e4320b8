// SPDX-License-Identifier: BSD-2-Clause
/* Files of frames: what is written is read, and no bytes of a file make the reader do more than it should. */
#include "tie/pcap.h"

#include <string.h>
#include <unistd.h>

#include "check.h"

#define FRAMES	  20u
#define MUTATIONS 3000u
#define ROOM	  512u
#define GUARD	  0x5a

static char path[] = "/tmp/softhca-pcap.XXXXXX";
static uint8_t file[65536];
static size_t file_bytes;

static void file_put(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
}

static void written_is_read(void)
{
	struct pcap_reader r;
	struct pcap_frame frame;
	char error[PCAP_ERROR_BYTES];
	uint8_t data[ROOM], back[ROOM];
	FILE *f = fopen(path, "w+");

	CHECK(f && !pcap_begin(f));
	for (unsigned i = 0; i < FRAMES; i++) {
		memset(data, (int)i, sizeof(data));
		CHECK(pcap_append(f, 1000000000ull * i + 5000, data, 14 + 20 * i));
	}
	rewind(f);
	file_bytes = fread(file, 1, sizeof(file), f);
	CHECK(!fclose(f) && pcap_open(&r, path, error) && r.frames == FRAMES);
	for (unsigned pass = 0; pass < 2; pass++, pcap_rewind(&r)) {
		for (unsigned i = 0; i < FRAMES; i++) {
			memset(data, (int)i, sizeof(data));
			CHECK(pcap_next(&r, &frame, back, sizeof(back)));
			CHECK(frame.bytes == 14 + 20 * i && frame.whole == frame.bytes);
			CHECK(frame.ns == 1000000000ull * i + 5000);
			CHECK(!memcmp(data, back, frame.bytes));
		}
		CHECK(!pcap_next(&r, &frame, back, sizeof(back)));
	}
	/* More than there is room for is passed over. */
	for (unsigned i = 0; i < FRAMES; i++)
		CHECK(pcap_next(&r, &frame, back, 14) && frame.bytes == 14 + 20 * i);
	pcap_close(&r);
}

/* Reads whatever it is to its end. */
static void read_all(void)
{
	uint8_t room[ROOM + 1] = {[ROOM] = GUARD};
	char error[PCAP_ERROR_BYTES];
	struct pcap_frame frame;
	struct pcap_reader r;
	uint64_t n = 0;

	memset(error, 0, sizeof(error));
	if (!pcap_open(&r, path, error)) {
		CHECK(error[0] && !r.file);
		return;
	}
	while (pcap_next(&r, &frame, room, ROOM))
		n++;
	CHECK_SAY(n == r.frames && n, "%llu frames", (unsigned long long)n);
	CHECK(room[ROOM] == GUARD);
	pcap_close(&r);
}

static void any_bytes(void)
{
	struct rng rng = {7};
	uint8_t copy[sizeof(file)];

	for (unsigned i = 0; i < MUTATIONS; i++) {
		size_t n = file_bytes;

		memcpy(copy, file, n);
		for (uint64_t k = 1 + rng_below(&rng, 4); k; k--)
			copy[rng_below(&rng, 2) ? rng_below(&rng, 64) : rng_below(&rng, n)] =
				(uint8_t)rng_next(&rng);
		if (!rng_below(&rng, 3))
			n = rng_below(&rng, n);
		file_put(copy, n);
		read_all();
	}
}

/* A file that gets shorter after it was looked at ends early, and that is all. */
static void shortened(void)
{
	uint8_t room[ROOM];
	char error[PCAP_ERROR_BYTES];
	struct pcap_frame frame;
	struct pcap_reader r;
	uint64_t n = 0;

	file_put(file, file_bytes);
	CHECK(pcap_open(&r, path, error) && !truncate(path, (off_t)file_bytes / 2));
	pcap_rewind(&r);
	while (n <= FRAMES && pcap_next(&r, &frame, room, sizeof(room)))
		n++;
	CHECK(n && n <= r.frames);
	pcap_close(&r);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	written_is_read();
	any_bytes();
	shortened();
	unlink(path);
	return 0;
}
