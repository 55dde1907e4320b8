// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which instructions are taken for stores, and how long they are: by bytes, and by executing them
 * on a page that refuses.
 */
#include "driver/doorbell/store.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#if defined(__x86_64__)

#define PAGE 4096u

struct sample {
	const char *what;
	uint8_t length; /* 0: not a store alone */
	uint8_t code[STORE_INSN_MAX];
};

/* As an assembler encodes them. */
static const struct sample samples[] = {
	{"mov %al,(%rdx)", 2, {0x88, 0x02}},
	{"mov %eax,(%rdx)", 2, {0x89, 0x02}},
	{"mov %ax,(%rdx)", 3, {0x66, 0x89, 0x02}},
	{"mov %rax,(%rdx)", 3, {0x48, 0x89, 0x02}},
	{"mov %r9,0x800(%r12)", 8, {0x4d, 0x89, 0x8c, 0x24, 0x00, 0x08, 0x00, 0x00}},
	{"mov %rax,0x20(%rsp)", 5, {0x48, 0x89, 0x44, 0x24, 0x20}},
	{"mov %rax,0(%rbp)", 4, {0x48, 0x89, 0x45, 0x00}},
	{"mov %rax,(%rdx,%rcx,8)", 4, {0x48, 0x89, 0x04, 0xca}},
	{"mov %rax,0x10(,%rcx,8)", 8, {0x48, 0x89, 0x04, 0xcd, 0x10, 0x00, 0x00, 0x00}},
	{"mov %rax,0x10(%rip)", 7, {0x48, 0x89, 0x05, 0x10, 0x00, 0x00, 0x00}},
	{"mov %rax,%fs:(%rdx)", 4, {0x64, 0x48, 0x89, 0x02}},
	{"movb $1,(%rdx)", 3, {0xc6, 0x02, 0x01}},
	{"movl $1,(%rdx)", 6, {0xc7, 0x02, 0x01, 0x00, 0x00, 0x00}},
	{"movw $1,(%rdx)", 5, {0x66, 0xc7, 0x02, 0x01, 0x00}},
	{"movq $1,8(%rdx)", 8, {0x48, 0xc7, 0x42, 0x08, 0x01, 0x00, 0x00, 0x00}},
	{"movups %xmm0,(%rdx)", 3, {0x0f, 0x11, 0x02}},
	{"movaps %xmm9,0x40(%rdx)", 5, {0x44, 0x0f, 0x29, 0x4a, 0x40}},
	{"movdqu %xmm0,(%rdx)", 4, {0xf3, 0x0f, 0x7f, 0x02}},
	{"movq %xmm0,(%rdx)", 4, {0x66, 0x0f, 0xd6, 0x02}},
	{"movntdq %xmm0,(%rdx)", 4, {0x66, 0x0f, 0xe7, 0x02}},
	{"movnti %rax,(%rdx)", 4, {0x48, 0x0f, 0xc3, 0x02}},
	{"movdiri %rax,(%rdx)", 5, {0x48, 0x0f, 0x38, 0xf9, 0x02}},
	{"movdir64b (%rdx),%rax", 5, {0x66, 0x0f, 0x38, 0xf8, 0x02}},
	{"vmovdqu %ymm0,(%rdx)", 4, {0xc5, 0xfe, 0x7f, 0x02}},
	{"vmovups %ymm9,0x40(%r12)", 7, {0xc4, 0x41, 0x7c, 0x11, 0x4c, 0x24, 0x40}},
	{"vmovdqu64 %zmm0,0x40(%rdx)", 7, {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x42, 0x01}},

	{"mov %rax,%rdx", 0, {0x48, 0x89, 0xc2}},
	{"mov (%rdx),%rax", 0, {0x48, 0x8b, 0x02}},
	{"movdqu (%rdx),%xmm0", 0, {0xf3, 0x0f, 0x6f, 0x02}},
	{"movq (%rdx),%xmm0", 0, {0xf3, 0x0f, 0x7e, 0x02}},
	{"vmovq (%rdx),%xmm0", 0, {0xc5, 0xfa, 0x7e, 0x02}},
	{"vpaddb (%rdx),%ymm0,%ymm0", 0, {0xc5, 0xfd, 0xfc, 0x02}},
	{"xchg %rax,(%rdx)", 0, {0x48, 0x87, 0x02}},
	{"lock xadd %rax,(%rdx)", 0, {0xf0, 0x48, 0x0f, 0xc1, 0x02}},
	{"lock mov", 0, {0xf0, 0x48, 0x89, 0x02}},
	{"add %rax,(%rdx)", 0, {0x48, 0x01, 0x02}},
	{"push (%rdx)", 0, {0xff, 0x32}},
	{"rep movsb", 0, {0xf3, 0xa4}},
	{"rep stosq", 0, {0xf3, 0x48, 0xab}},
	{"xabort $1", 0, {0xc6, 0xf8, 0x01}},
	{"movnti, with a prefix that it has not", 0, {0x66, 0x0f, 0xc3, 0x02}},
	{"an opcode of another map", 0, {0xc4, 0xe2, 0x7d, 0x11, 0x02}},
	{"nothing", 0, {0}},
};

static void test_lengths(void)
{
	for (size_t i = 0; i < array_size(samples); i++) {
		const struct sample *s = &samples[i];
		struct store store;
		size_t n = store_decode(s->code, sizeof(s->code), &store);

		if (n != s->length)
			fprintf(stderr, "%s: length %zu\n", s->what, n);
		CHECK(n == s->length);
		/* cut short it is nothing */
		for (size_t len = 0; len < s->length; len++)
			CHECK(store_decode(s->code, len, &store) == 0);
	}
}

struct place_sample {
	const char *what;
	struct store_target to;
	uint8_t code[STORE_INSN_MAX];
};

#define NONE STORE_NO_REGISTER

/* As an assembler encodes them. */
static const struct place_sample place_samples[] = {
	{"mov %al,(%rdx)", {true, 2, NONE, 0, 0}, {0x88, 0x02}},
	{"mov %r9,0x800(%r12)",
	 {true, 12, NONE, 0, 0x800},
	 {0x4d, 0x89, 0x8c, 0x24, 0x00, 0x08, 0x00, 0x00}},
	{"mov %rax,0x20(%rsp)", {true, 4, NONE, 0, 0x20}, {0x48, 0x89, 0x44, 0x24, 0x20}},
	{"mov %rax,0(%rbp)", {true, 5, NONE, 0, 0}, {0x48, 0x89, 0x45, 0x00}},
	{"mov %rax,(%rdx,%rcx,8)", {true, 2, 1, 3, 0}, {0x48, 0x89, 0x04, 0xca}},
	{"mov %rax,(%rdx,%r12)", {true, 2, 12, 0, 0}, {0x4a, 0x89, 0x04, 0x22}},
	{"mov %rax,-0x10(,%rcx,8)",
	 {true, NONE, 1, 3, -0x10},
	 {0x48, 0x89, 0x04, 0xcd, 0xf0, 0xff, 0xff, 0xff}},
	{"mov %rax,0x10(%rip)", {.known = false}, {0x48, 0x89, 0x05, 0x10, 0x00, 0x00, 0x00}},
	{"mov %rax,%fs:(%rdx)", {.known = false}, {0x64, 0x48, 0x89, 0x02}},
	{"mov %eax,(%edx)", {.known = false}, {0x67, 0x89, 0x02}},
	{"movups %xmm3,-0x20(%rdi,%rdx)", {true, 7, 2, 0, -0x20}, {0x0f, 0x11, 0x5c, 0x17, 0xe0}},
	{"movdir64b (%rdx),%rax", {.known = false}, {0x66, 0x0f, 0x38, 0xf8, 0x02}},
	{"vmovups %ymm9,0x40(%r12)",
	 {true, 12, NONE, 0, 0x40},
	 {0xc4, 0x41, 0x7c, 0x11, 0x4c, 0x24, 0x40}},
	{"vmovdqu %ymm1,-0x20(%rdi,%rdx)",
	 {true, 7, 2, 0, -0x20},
	 {0xc5, 0xfe, 0x7f, 0x4c, 0x17, 0xe0}},
	{"vmovdqu %ymm1,(%rdi,%r10)", {true, 7, 10, 0, 0}, {0xc4, 0xa1, 0x7e, 0x7f, 0x0c, 0x17}},
	{"vmovdqu64 %zmm0,0x40(%rdx)",
	 {true, 2, NONE, 0, 0x40},
	 {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x42, 0x01}},
	{"vmovdqu64 %ymm17,-0x20(%rdi,%rdx)",
	 {true, 7, 2, 0, -0x20},
	 {0x62, 0xe1, 0xfe, 0x28, 0x7f, 0x4c, 0x17, 0xff}},
	{"vmovdqu64 %ymm17,0x20(%r8)",
	 {true, 8, NONE, 0, 0x20},
	 {0x62, 0xc1, 0xfe, 0x28, 0x7f, 0x48, 0x01}},
	{"vmovq %xmm17,8(%rdx)", {.known = false}, {0x62, 0xe1, 0xfd, 0x08, 0xd6, 0x4a, 0x01}},
};

static void test_places(void)
{
	for (size_t i = 0; i < array_size(place_samples); i++) {
		const struct place_sample *s = &place_samples[i];
		struct store store = {0};
		struct store_target to;

		CHECK(store_decode(s->code, sizeof(s->code), &store));
		to = store.to;
		if (to.known != s->to.known || (to.known && to.offset != s->to.offset))
			fprintf(stderr, "%s: offset %d\n", s->what, to.offset);
		CHECK(to.known == s->to.known);
		if (!to.known)
			continue;
		CHECK(to.base == s->to.base && to.index == s->to.index && to.scale == s->to.scale);
		CHECK(to.offset == s->to.offset);
	}
}

struct source_sample {
	const char *what;
	enum store_source source;
	uint8_t reg;
	int32_t constant;
	uint8_t code[STORE_INSN_MAX];
};

/* As an assembler encodes them. */
static const struct source_sample source_samples[] = {
	{"mov %al,(%rdx)", STORE_OF_OTHER, 0, 0, {0x88, 0x02}},
	{"rex.W mov %al,(%rdx)", STORE_OF_OTHER, 0, 0, {0x48, 0x88, 0x02}},
	{"mov %eax,(%rdx)", STORE_OF_OTHER, 0, 0, {0x89, 0x02}},
	{"mov %rcx,(%rdx)", STORE_OF_GENERAL, 1, 0, {0x48, 0x89, 0x0a}},
	{"mov %r9,(%rdx)", STORE_OF_GENERAL, 9, 0, {0x4c, 0x89, 0x0a}},
	{"data16 mov %rcx,(%rdx)", STORE_OF_GENERAL, 1, 0, {0x66, 0x48, 0x89, 0x0a}},
	{"movnti %rax,(%rdx)", STORE_OF_GENERAL, 0, 0, {0x48, 0x0f, 0xc3, 0x02}},
	{"movnti %eax,(%rdx)", STORE_OF_OTHER, 0, 0, {0x0f, 0xc3, 0x02}},
	{"movdiri %rax,(%rdx)", STORE_OF_GENERAL, 0, 0, {0x48, 0x0f, 0x38, 0xf9, 0x02}},
	{"movdir64b (%rdx),%rax", STORE_OF_MEMORY, 0, 0, {0x66, 0x0f, 0x38, 0xf8, 0x02}},
	{"movl $1,(%rdx)", STORE_OF_OTHER, 0, 1, {0xc7, 0x02, 0x01}},
	{"movq $-2,8(%rdx)",
	 STORE_OF_CONSTANT,
	 0,
	 -2,
	 {0x48, 0xc7, 0x42, 0x08, 0xfe, 0xff, 0xff, 0xff}},
	{"movups %xmm3,(%rdx)", STORE_OF_VECTOR, 3, 0, {0x0f, 0x11, 0x1a}},
	{"movss %xmm3,(%rdx)", STORE_OF_OTHER, 3, 0, {0xf3, 0x0f, 0x11, 0x1a}},
	{"movsd %xmm3,(%rdx)", STORE_OF_VECTOR, 3, 0, {0xf2, 0x0f, 0x11, 0x1a}},
	{"movhps %xmm3,(%rdx)", STORE_OF_OTHER, 3, 0, {0x0f, 0x17, 0x1a}},
	{"movaps %xmm9,(%rdx)", STORE_OF_VECTOR, 9, 0, {0x44, 0x0f, 0x29, 0x0a}},
	{"movd %xmm0,(%rdx)", STORE_OF_OTHER, 0, 0, {0x66, 0x0f, 0x7e, 0x02}},
	{"rex.W movq %xmm0,(%rdx)", STORE_OF_VECTOR, 0, 0, {0x66, 0x48, 0x0f, 0x7e, 0x02}},
	{"vmovdqu %ymm1,(%rdx)", STORE_OF_VECTOR, 1, 0, {0xc5, 0xfe, 0x7f, 0x0a}},
	{"vmovdqu %ymm9,(%rdx)", STORE_OF_VECTOR, 9, 0, {0xc5, 0x7e, 0x7f, 0x0a}},
	{"vmovups %ymm9,(%r12)", STORE_OF_VECTOR, 9, 0, {0xc4, 0x41, 0x7c, 0x11, 0x0c, 0x24}},
	{"vmovss %xmm1,(%rdx)", STORE_OF_OTHER, 1, 0, {0xc5, 0xfa, 0x11, 0x0a}},
	{"vmovdqu64 %zmm0,(%rdx)", STORE_OF_VECTOR, 0, 0, {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x02}},
	{"vmovdqu64 %ymm17,(%rdx)", STORE_OF_VECTOR, 17, 0, {0x62, 0xe1, 0xfe, 0x28, 0x7f, 0x0a}},
	{"vmovdqu64 %ymm17,(%rdx){%k1}",
	 STORE_OF_OTHER,
	 17,
	 0,
	 {0x62, 0xe1, 0xfe, 0x29, 0x7f, 0x0a}},
	{"vmovdqu64 %zmm0,(%rdx){%k1}", STORE_OF_OTHER, 0, 0, {0x62, 0xf1, 0xfe, 0x49, 0x7f, 0x02}},
};

/* Which register or constant the first 8 bytes come from. */
static void test_sources(void)
{
	for (size_t i = 0; i < array_size(source_samples); i++) {
		const struct source_sample *s = &source_samples[i];
		struct store store = {0};

		CHECK(store_decode(s->code, sizeof(s->code), &store));
		if (store.source != s->source || store.reg != s->reg ||
		    store.constant != s->constant)
			fprintf(stderr, "%s: source %d, register %u, constant %d\n", s->what,
				store.source, store.reg, store.constant);
		CHECK(store.source == s->source && store.reg == s->reg &&
		      store.constant == s->constant);
	}
}

/* Any bytes, at the end of what can be read. */
static void test_any_bytes(void)
{
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rng rng = {99};

	CHECK(pages != MAP_FAILED && !mprotect(pages + PAGE, PAGE, PROT_NONE));
	for (unsigned i = 0; i < 1000000; i++) {
		size_t len = rng_below(&rng, STORE_INSN_MAX + 1);
		uint8_t *code = pages + PAGE - len;
		struct store store;

		for (size_t k = 0; k < len; k++)
			code[k] = (uint8_t)rng_next(&rng);
		if (len && rng_below(&rng, 2))
			code[0] =
				(uint8_t[]){0x66, 0x0f, 0xc5, 0xc4, 0x62, 0x48}[rng_below(&rng, 6)];
		CHECK(store_decode(code, len, &store) <= len);
	}
	munmap(pages, 2 * PAGE);
}

static uint8_t *refuses;
static unsigned skipped, repeated;
static uint64_t *wanted; /* not NULL: where to put what is stored */

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	(void)signum;
	CHECK((uint8_t *)info->si_addr >= refuses && (uint8_t *)info->si_addr < refuses + PAGE);
	if (store_skip(ucontext, (uintptr_t)info->si_addr, wanted)) {
		skipped++;
	} else {
		repeated++;
		CHECK(!mprotect(refuses, PAGE, PROT_READ | PROT_WRITE));
	}
}

#define REGISTER (refuses + 0x800)

/* A copy to a register is one fault: the stores behind the first one are skipped with it. */
static void test_copies(void)
{
	unsigned before = skipped;
	uint64_t value = 5, seen = 0;

	__asm__ volatile("movups %%xmm0, (%1)\n\t"
			 "movups %%xmm1, 0x10(%1)\n\t"
			 "movups %%xmm2, -0x10(%1, %2)\n\t"
			 "movups %%xmm3, -0x20(%1, %2)\n\t"
			 "mov %3, %0"
			 : "=r"(seen)
			 : "r"(REGISTER), "r"(64ul), "r"(value)
			 : "memory");
	CHECK(seen == value && skipped == before + 1);
	/* not what goes to another block, nor what another instruction parts from the first */
	__asm__ volatile("mov %1, (%0)\n\t"
			 "mov %1, 0x40(%0)\n\t"
			 "nop\n\t"
			 "mov %1, 0x48(%0)"
			 :
			 : "r"(REGISTER), "r"(value)
			 : "memory");
	CHECK(skipped == before + 4);
	/* what goes elsewhere is executed */
	__asm__ volatile("mov %2, (%1)\n\t"
			 "mov %3, %0"
			 : "=m"(seen)
			 : "r"(REGISTER), "r"(value), "r"(value + 1)
			 : "memory");
	CHECK(seen == value + 1 && skipped == before + 5);
}

static bool cpu_has_movdir64b(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_MOVDIR64B;
}

/* A work request that is copied in one instruction. */
static void test_direct_copy(void)
{
	uint64_t request[8] = {0x8877665544332211};
	uint64_t seen = 0;

	if (!cpu_has_movdir64b())
		return;
	wanted = &seen;
	/* movdir64b -8(%rdx),%rax */
	__asm__ volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x42, 0xf8"
			 :
			 : "a"(REGISTER), "d"(request + 1)
			 : "memory");
	CHECK(seen == request[0] && !repeated);
	wanted = NULL;
}

/* A copy by one of the registers that glibc's memcpy takes on processors with AVX-512. */
static void test_upper_vector(void)
{
	uint64_t request[8] = {0x8877665544332211};
	uint64_t seen = 0;

	if (!__builtin_cpu_supports("avx512f"))
		return;
	wanted = &seen;
	/* vmovdqu64 (%rdx),%zmm16; vmovdqu64 %zmm16,(%rax); vpxord %zmm16,%zmm16,%zmm16 */
	__asm__ volatile(".byte 0x62, 0xe1, 0xfe, 0x48, 0x6f, 0x02\n\t"
			 ".byte 0x62, 0xe1, 0xfe, 0x48, 0x7f, 0x00\n\t"
			 ".byte 0x62, 0xa1, 0x7d, 0x40, 0xef, 0xc0"
			 :
			 : "a"(REGISTER), "d"(request)
			 : "memory");
	CHECK(seen == request[0] && !repeated);
	/* the last of them: vmovdqu64 (%rdx),%zmm31; vmovdqu64 %zmm31,(%rax) */
	request[0]++;
	__asm__ volatile(".byte 0x62, 0x61, 0xfe, 0x48, 0x6f, 0x3a\n\t"
			 ".byte 0x62, 0x61, 0xfe, 0x48, 0x7f, 0x38"
			 :
			 : "a"(REGISTER), "d"(request)
			 : "memory");
	CHECK(seen == request[0] && !repeated);
	wanted = NULL;
}

/* What the instruction stores; one that does not show 8 bytes is executed. */
static void test_values(void)
{
	const uint64_t value = 0x1122334455667788;
	unsigned before = skipped;
	uint64_t seen = 0;

	wanted = &seen;
	__asm__ volatile("mov %1, (%0)" : : "r"(REGISTER), "r"(value) : "memory");
	CHECK(seen == value);
	__asm__ volatile("mov %1, %%r11\n\tmov %%r11, (%0)"
			 :
			 : "r"(REGISTER), "r"(value + 1)
			 : "memory", "r11");
	CHECK(seen == value + 1);
	__asm__ volatile("movq $-5, (%0)" : : "r"(REGISTER) : "memory");
	CHECK(seen == (uint64_t)-5);
	__asm__ volatile("movq %1, %%xmm12\n\tmovups %%xmm12, (%0)"
			 :
			 : "r"(REGISTER), "r"(value)
			 : "memory", "xmm12");
	CHECK(seen == value && skipped == before + 4 && !repeated);
	__asm__ volatile("movl $7, (%0)" : : "r"(REGISTER) : "memory");
	CHECK(skipped == before + 4 && repeated == 1 && *(uint32_t *)(void *)REGISTER == 7);
	*(uint32_t *)(void *)REGISTER = 0;
	CHECK(!mprotect(refuses, PAGE, PROT_READ));
	repeated = 0;
	skipped = before;
	wanted = NULL;
}

/* What follows each store is executed, with the registers as they were. */
static void test_skip(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	uint64_t value = 0x1122334455667788, after = 0;
	uint8_t zeros[PAGE] = {0};

	refuses = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(refuses != MAP_FAILED && !sigaction(SIGSEGV, &act, NULL));

	__asm__ volatile("mov %1, (%2)\n\t"
			 "movl $7, 0x800(%2)\n\t"
			 "movb %b1, 5(%2)\n\t"
			 "movnti %1, 0x88(%2)\n\t"
			 "movq %1, %%xmm5\n\t"
			 "movups %%xmm5, 64(%2)\n\t"
			 "movq %%xmm5, 0xff8(%2)\n\t"
			 "mov %1, %0"
			 : "=r"(after)
			 : "r"(value), "r"(refuses)
			 : "memory", "xmm5");
	CHECK(after == value && skipped == 6 && !repeated);
	CHECK(!memcmp(refuses, zeros, PAGE));

	test_copies();
	test_direct_copy();
	test_upper_vector();
	skipped = 6;
	test_values();
	CHECK(!memcmp(refuses, zeros, PAGE));

	/* one that also loads has to be executed */
	__asm__ volatile("xchg %0, (%1)" : "+r"(value) : "r"(refuses) : "memory");
	CHECK(!value && repeated == 1 && skipped == 6);
	CHECK(!memcmp(refuses, &after, sizeof(after)));
}

int main(void)
{
	test_lengths();
	test_places();
	test_sources();
	test_any_bytes();
	test_skip();
	return 0;
}

#else

int main(void)
{
	SKIP("store instructions are known of x86-64 only");
}

#endif
