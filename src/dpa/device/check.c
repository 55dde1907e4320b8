// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checked mode: the functions that the compiler calls before each load and store of device code, and
 * instead of each call through a pointer, under the names that it gives them.  Image, heap and stacks
 * of a process lie in one range, so the usual access costs one compare; for an access outside of it
 * they ask at the door.
 *
 * The functions are in both variants of the library: an image that is not checked can have a
 * checked archive in it.
 */
#include "dpa/device/image.h"

__attribute__((noinline)) void dpa_check_outside(uint64_t addr, uint64_t bytes, uint32_t write)
{
	/* an empty range is no access: memcpy(NULL, NULL, 0) is common and harms nobody */
	if (bytes)
		image_door()->check(addr, bytes, write);
}

/*
 * With a constant size one compare is enough, because the region is never smaller than an access.
 * `used`: the compiler makes the calls after it has looked who uses what.
 */
#define ACCESS(name, size, write)                                                                 \
	void __asan_##name##_noabort(uintptr_t addr);                                             \
	__attribute__((used)) void __asan_##name##_noabort(uintptr_t addr)                        \
	{                                                                                         \
		const struct dpa_image_info *info = &__dpa_image_info;                            \
                                                                                                  \
		if (__builtin_expect(addr - info->region_begin > info->region_bytes - (size), 0)) \
			dpa_check_outside(addr, size, write);                                     \
	}

ACCESS(load1, 1, 0)
ACCESS(load2, 2, 0)
ACCESS(load4, 4, 0)
ACCESS(load8, 8, 0)
ACCESS(load16, 16, 0)
ACCESS(store1, 1, 1)
ACCESS(store2, 2, 1)
ACCESS(store4, 4, 1)
ACCESS(store8, 8, 1)
ACCESS(store16, 16, 1)

void __asan_loadN_noabort(uintptr_t addr, size_t bytes);
__attribute__((used)) void __asan_loadN_noabort(uintptr_t addr, size_t bytes)
{
	dpa_check_always(addr, bytes, 0);
}

void __asan_storeN_noabort(uintptr_t addr, size_t bytes);
__attribute__((used)) void __asan_storeN_noabort(uintptr_t addr, size_t bytes)
{
	dpa_check_always(addr, bytes, 1);
}

/* The compiler calls this before functions that do not return.  Nobody keeps books about stacks, so
 * there is nothing to do. */
void __asan_handle_no_return(void);
__attribute__((used)) void __asan_handle_no_return(void)
{
}

#ifdef __x86_64__
_Static_assert(DPA_CHECK_CALL == 2, "the function below says so to the assembler");

/*
 * Checked code calls and jumps through pointers by way of this function; the target is in r11, and
 * every other register is an argument or the caller's.  Without it a pointer to a function of the
 * host program would run that function.  The linker says where the image's code begins and ends.
 * For anything else the door ends the process at the caller's place, and does not return.
 */
void __x86_indirect_thunk_r11(void);
__attribute__((naked, used)) void __x86_indirect_thunk_r11(void)
{
	__asm__("pushq %rax\n\t"
		"leaq __executable_start(%rip), %rax\n\t"
		"cmpq %rax, %r11\n\t"
		"jb 1f\n\t"
		"leaq etext(%rip), %rax\n\t"
		"cmpq %rax, %r11\n\t"
		"jae 1f\n\t"
		"popq %rax\n\t"
		"jmpq *%r11\n"
		"1:\n\t"
		"popq %rax\n\t"
		"movq %r11, %rdi\n\t"
		"movl $1, %esi\n\t"
		"movl $2, %edx\n\t" /* DPA_CHECK_CALL */
		"jmp dpa_check_outside");
}
#endif
