// SPDX-License-Identifier: BSD-2-Clause
/* See fuzz.h. */
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "usermem/usermem.h"

void in_bytes(struct input *in, void *dst, size_t n)
{
	size_t have = n < in->left ? n : in->left;

	if (have)
		memcpy(dst, in->at, have);
	memset((uint8_t *)dst + have, 0, n - have);
	in->at += have;
	in->left -= have;
}

void put_bytes(struct seed *s, const void *src, size_t n)
{
	MUST(n <= sizeof(s->bytes) - s->n);
	if (n)
		memcpy(s->bytes + s->n, src, n);
	s->n += n;
}

void put_u8(struct seed *s, uint32_t v)
{
	uint8_t byte = (uint8_t)v;

	put_bytes(s, &byte, 1);
}

void put_u16(struct seed *s, uint32_t v)
{
	put_u8(s, v);
	put_u8(s, v >> 8);
}

void put_u32(struct seed *s, uint32_t v)
{
	put_u16(s, v);
	put_u16(s, v >> 16);
}

void put_u64(struct seed *s, uint64_t v)
{
	put_u32(s, (uint32_t)v);
	put_u32(s, (uint32_t)(v >> 32));
}

void put_end(struct seed *s, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "wb");
	MUST(f && fwrite(s->bytes, 1, s->n, f) == s->n);
	MUST(!fclose(f));
	s->n = 0;
}

#define FDS_LOOKED_AT 64

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* Each refused command would be a line; SOFTHCA_LOG=debug shows them when one input is
	 * looked into. */
	log_level = LOG_LEVEL_ERROR;
	log_init();
	if (*argc == 3 && !strcmp((*argv)[1], "--seeds")) {
		struct seed s = {.dir = (*argv)[2]};

		target_seeds(&s);
		exit(0);
	}
	target_init();
	return 0;
}

/* ---- faults ---- */

static struct sigaction before[NSIG];
static bool (*is_forbidden)(const void *addr);

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	if (is_forbidden && is_forbidden(info->si_addr)) {
		fprintf(stderr, "the device touched %p, where it has no business\n", info->si_addr);
		abort();
	}
	if (usermem_fault(ucontext, info->si_addr))
		return;
	/* A crash of ours: the sanitizer tells where. */
	before[signum].sa_sigaction(signum, info, ucontext);
}

void fuzz_catch_faults(bool (*forbidden)(const void *addr))
{
	struct sigaction act = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	is_forbidden = forbidden;
	sigemptyset(&act.sa_mask);
	MUST(!sigaction(SIGSEGV, &act, &before[SIGSEGV]));
	MUST(!sigaction(SIGBUS, &act, &before[SIGBUS]));
}

int fuzz_lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd;
}

/*
 * One system call for each: the engine looks for mappings in /proc/self/maps whenever it likes, and
 * a descriptor that it closes between two looks is not one that is left.
 */
void fuzz_no_fds_from(int first)
{
	char path[64], target[256];
	bool clean = true;

	for (int fd = first; fd < first + FDS_LOOKED_AT; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target));
		/* Files are the fuzzer's own, opened meanwhile, or the engine's. */
		if (n <= 0 || (target[0] == '/' && strncmp(target, "/memfd", 6)))
			continue;
		fprintf(stderr, "descriptor %d is left: %.*s\n", fd, (int)n, target);
		clean = false;
	}
	MUST(clean);
}
