/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touches application memory on x86-64 with the instructions of usermem_touch.h.  usermem_fault()
 * looks up the interrupted instruction and moves the saved instruction pointer.  It ignores the
 * faulting address, because a non-canonical pointer raises a signal without one.  A table cannot
 * list the instructions of foreign code; usermem_guarded runs that.
 *
 * Order: x86 keeps stores in program order, and the stores of a string instruction before those
 * that follow it (Intel SDM volume 3, "Fast-String Operation and Out-of-Order Stores"), so writing
 * something last is enough to make it visible last.
 */
#if defined(__x86_64__) && !defined(USERMEM_PORTABLE)

#include <string.h>
#include <ucontext.h>

#include "base/endian.h"
#include "base/word.h"
#include "usermem/usermem.h"
#include "usermem/usermem_touch.h"

struct extable_entry {
	int32_t insn; /* both relative to their own address: no relocation at load time */
	int32_t fixup;
};

/* The linker gives the bounds of the section.  The symbols are hidden, because each object that
 * links us has a section of its own. */
extern const struct extable_entry __start_softhca_extable[] __attribute__((visibility("hidden")));
extern const struct extable_entry __stop_softhca_extable[] __attribute__((visibility("hidden")));

/*
 * From this size on the string instruction is at least as fast as memcpy.  Below it, the
 * instruction's start-up counts and single moves win (measured on Sapphire Rapids: the crossing is
 * between 400 and 1000 bytes).
 */
#define STRING_COPY_MIN 576u

/* Copies n >= 16 bytes with 16-byte moves, which overlap at the end. */
static inline bool copy_vectors(void *dst, const void *src, size_t n)
{
	vec16 a, b, c, d;
	size_t off = 0;

	if (n <= 64) {
		/* No loop: the middle pair is needed only where the outer two leave a gap. */
		touch_load16(a, touch_at(const vec16, src, 0));
		touch_load16(d, touch_at(const vec16, src, n - 16));
		if (n > 32) {
			touch_load16(b, touch_at(const vec16, src, 16));
			touch_load16(c, touch_at(const vec16, src, n - 32));
			touch_store16(touch_at(vec16, dst, 16), b);
			touch_store16(touch_at(vec16, dst, n - 32), c);
		}
		touch_store16(touch_at(vec16, dst, 0), a);
		touch_store16(touch_at(vec16, dst, n - 16), d);
		return true;
	}
	for (; n - off >= 64; off += 64) {
		touch_load16(a, touch_at(const vec16, src, off));
		touch_load16(b, touch_at(const vec16, src, off + 16));
		touch_load16(c, touch_at(const vec16, src, off + 32));
		touch_load16(d, touch_at(const vec16, src, off + 48));
		touch_store16(touch_at(vec16, dst, off), a);
		touch_store16(touch_at(vec16, dst, off + 16), b);
		touch_store16(touch_at(vec16, dst, off + 32), c);
		touch_store16(touch_at(vec16, dst, off + 48), d);
	}
	for (; n - off >= 16; off += 16) {
		touch_load16(a, touch_at(const vec16, src, off));
		touch_store16(touch_at(vec16, dst, off), a);
	}
	if (n > off) {
		touch_load16(a, touch_at(const vec16, src, n - 16));
		touch_store16(touch_at(vec16, dst, n - 16), a);
	}
	return true;
fault:
	return false;
}

static bool copy_string(void *dst, const void *src, size_t n)
{
	__asm__ volatile goto("1: rep movsb\n\t" EXTABLE("1b")
			      : "+D"(dst), "+S"(src), "+c"(n)
			      :
			      : "memory"
			      : fault);
	__asm__ volatile("");
	return true;
fault:
	return false;
}

/* Copies 1, 2 or 4 bytes, or words.  It keeps words whole on whichever side they are aligned; the
 * string instruction keeps only the destination's words whole. */
static inline bool copy_piece(void *dst, const void *src, size_t n)
{
	uint64_t word;
	uint32_t v4;
	uint16_t v2;
	uint8_t v1;

	switch (n) {
	case 1:
		touch_load(v1, touch_at(const uint8_t, src, 0));
		touch_store(touch_at(uint8_t, dst, 0), v1);
		return true;
	case 2:
		touch_load(v2, touch_at(const una16, src, 0));
		touch_store(touch_at(una16, dst, 0), v2);
		return true;
	case 4:
		touch_load(v4, touch_at(const una32, src, 0));
		touch_store(touch_at(una32, dst, 0), v4);
		return true;
	case 16:
		touch_load(word, touch_at(const una64, src, 0));
		touch_store(touch_at(una64, dst, 0), word);
		break;
	case 8:
		break;
	default:
		if (!(n < STRING_COPY_MIN || words_alias(dst, src) ? copy_vectors(dst, src, n - 8)
								   : copy_string(dst, src, n - 8)))
			return false;
	}
	/* Copies the last word last. */
	touch_load(word, touch_at(const una64, src, n - 8));
	touch_store(touch_at(una64, dst, n - 8), word);
	return true;
fault:
	return false;
}

static bool copy_pieces(char *dst, const char *src, size_t n)
{
	while (n) {
		size_t part = word_piece((uintptr_t)dst, n, true);

		if (!copy_piece(dst, src, part))
			return false;
		dst += part;
		src += part;
		n -= part;
	}
	return true;
}

bool usermem_copy(void *dst, const void *src, size_t n)
{
	if (likely(!(((uintptr_t)dst | n) % WORD_BYTES) && n))
		return copy_piece(dst, src, n);
	return copy_pieces(dst, src, n);
}

bool usermem_read(void *dst, const void *src, size_t n)
{
	bool alike = ((uintptr_t)dst - (uintptr_t)src) % WORD_BYTES == 0;
	const char *from = src;
	char *to = dst;

	while (n) {
		size_t part = word_piece((uintptr_t)from, n, true);

		/* Otherwise the string instruction would read words in parts. */
		if (!alike)
			part = min_u64(part, STRING_COPY_MIN - WORD_BYTES);
		if (!copy_piece(to, from, part))
			return false;
		to += part;
		from += part;
		n -= part;
	}
	return true;
}

bool usermem_touch(void *at, bool write)
{
	uint8_t *byte = at, v;

	if (!write) {
		touch_load(v, byte);
		return true;
	}
	/* Changes nothing, whatever another thread writes there. */
	__asm__ volatile goto("1: lock orb $0, %0\n\t" EXTABLE("1b")
			      : "+m"(*byte)
			      :
			      : "memory", "cc"
			      : fault);
	__asm__ volatile("");
	return true;
fault:
	return false;
}

bool usermem_publish(void *dst, const void *src, size_t n)
{
	const uint64_t *from = src;

	/* Copies word by word: wider loads would wait for the stores that have just filled the
	 * source. */
#pragma GCC unroll 8
	for (size_t off = 0; off < n; off += sizeof(*from))
		touch_store(touch_at(una64, dst, off), from[off / sizeof(*from)]);
	return true;
fault:
	return false;
}

bool usermem_load_be32(const void *addr, uint32_t *out)
{
	return usermem_fetch_be32(addr, out);
}

bool usermem_store_be32(void *addr, uint32_t v)
{
	/* A plain store releases on x86. */
	touch_store(touch_at(una32, addr, 0), htobe32(v));
	return true;
fault:
	return false;
}

bool usermem_fetch_add(void *addr, uint64_t add, uint64_t *orig)
{
	uint64_t *word = addr;

	/* A locked access across cache lines stops the machine's memory traffic. */
	if ((uintptr_t)addr % sizeof(*word))
		return false;
	__asm__ volatile goto("1: lock xaddq %0, %1\n\t" EXTABLE("1b")
			      : "+r"(add), "+m"(*word)
			      :
			      : "memory", "cc"
			      : fault);
	__asm__ volatile("");
	*orig = add;
	return true;
fault:
	return false;
}

bool usermem_compare_swap(void *addr, uint64_t compare, uint64_t swap, uint64_t *orig)
{
	uint64_t *word = addr;

	if ((uintptr_t)addr % sizeof(*word))
		return false;
	__asm__ volatile goto("1: lock cmpxchgq %2, %1\n\t" EXTABLE("1b")
			      : "+a"(compare), "+m"(*word)
			      : "r"(swap)
			      : "memory", "cc"
			      : fault);
	__asm__ volatile("");
	*orig = compare;
	return true;
fault:
	return false;
}

static uintptr_t extable_target(const int32_t *relative)
{
	return (uintptr_t)relative + (uintptr_t)(intptr_t)*relative;
}

bool usermem_fault(void *ucontext, const void *addr)
{
	ucontext_t *uc = ucontext;
	uintptr_t insn = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];

	for (const struct extable_entry *e = __start_softhca_extable; e < __stop_softhca_extable;
	     e++) {
		if (extable_target(&e->insn) == insn) {
			uc->uc_mcontext.gregs[REG_RIP] = (greg_t)extable_target(&e->fixup);
			return true;
		}
	}
	usermem_guarded_fault(addr);
	return false;
}
#else
/* Without it the translation unit could be empty; see usermem_portable.c. */
typedef int usermem_x86_64_unused;
#endif
