/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device library, compiled for the host with checks, and a door that remembers what came through it. Functions
 * that the host's libc has too are called dev_... here.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpa/door.h"

#define DEVICE_REGION_BYTES 8192u

/* What device code may touch; around it is memory that it may not. */
extern uint8_t *const device_region;
/* Memory that the door lets through besides. */
extern uint64_t device_window, device_window_bytes;
extern struct flexio_dev_thread_ctx *device_ctx; /* in the region */

void device_image_init(void);
/* All memory is the region: for tests of what is not a check. */
void device_image_opens(void);
uint64_t device_begin(void);

/* The last access that the door refused: it ended the call in DEVICE_TRY. */
extern bool device_refused, device_refused_write;
extern uint64_t device_refused_addr, device_refused_bytes;
extern jmp_buf device_fault;

#define DEVICE_TRY(call)                   \
	do {                               \
		device_refused = false;    \
		if (!setjmp(device_fault)) \
			(call);            \
	} while (0)

/* The last message, and how many there were. */
extern uint32_t device_messages, device_message_stream, device_message_level, device_message_bytes;
extern char device_message[DPA_MESSAGE_BYTES + 1];
/* The same of trace records. */
extern uint32_t device_traces, device_trace_sends, device_trace_stream, device_trace_level;
extern struct dpa_trace_record device_trace;
/* What else was called last: its name and its arguments. */
extern const char *device_called;
extern uint64_t device_args[4];
/* What calls with a status answer. */
extern uint32_t device_status;

void *dev_memcpy(void *to, const void *from, size_t n);
void *dev_memmove(void *to, const void *from, size_t n);
void *dev_memset(void *to, int value, size_t n);
int dev_memcmp(const void *a, const void *b, size_t n);
int dev_bcmp(const void *a, const void *b, size_t n);
void *dev_memchr(const void *s, int c, size_t n);
size_t dev_strlen(const char *s);
char *dev_strcpy(char *to, const char *from);
char *dev_strncpy(char *to, const char *from, size_t n);
char *dev_strcat(char *to, const char *from);
char *dev_strncat(char *to, const char *from, size_t n);
int dev_strcmp(const char *a, const char *b);
int dev_strncmp(const char *a, const char *b, size_t n);
size_t dev_strxfrm(char *to, const char *from, size_t n);
char *dev_strchr(const char *s, int c);
char *dev_strrchr(const char *s, int c);
size_t dev_strspn(const char *s, const char *set);
size_t dev_strcspn(const char *s, const char *set);
char *dev_strpbrk(const char *s, const char *set);
char *dev_strstr(const char *s, const char *part);

struct __file;
extern struct __file *const dev_stdout, *const dev_stderr;
int dev_printf(const char *format, ...);
int dev_fprintf(struct __file *file, const char *format, ...);
int dev_sprintf(char *text, const char *format, ...);
int dev_snprintf(char *text, size_t room, const char *format, ...);
int dev_puts(const char *text);
int dev_putchar(int c);
int dev_fputs(const char *text, struct __file *file);
int dev_ferror(struct __file *file);
int dev_fflush(struct __file *file);

/* By names of our own: gcc has opinions about those when it sanitizes, too. */
void dev_load1(uintptr_t addr) __asm__("__asan_load1_noabort");
void dev_load2(uintptr_t addr) __asm__("__asan_load2_noabort");
void dev_load4(uintptr_t addr) __asm__("__asan_load4_noabort");
void dev_load8(uintptr_t addr) __asm__("__asan_load8_noabort");
void dev_load16(uintptr_t addr) __asm__("__asan_load16_noabort");
void dev_store1(uintptr_t addr) __asm__("__asan_store1_noabort");
void dev_store2(uintptr_t addr) __asm__("__asan_store2_noabort");
void dev_store4(uintptr_t addr) __asm__("__asan_store4_noabort");
void dev_store8(uintptr_t addr) __asm__("__asan_store8_noabort");
void dev_store16(uintptr_t addr) __asm__("__asan_store16_noabort");
void dev_loadN(uintptr_t addr, size_t bytes) __asm__("__asan_loadN_noabort");
void dev_storeN(uintptr_t addr, size_t bytes) __asm__("__asan_storeN_noabort");
