// SPDX-License-Identifier: BSD-2-Clause
/* Applications, functions and processes. */
#include <string.h>

#include "host.h"

static void app_names(void)
{
	struct flexio_app **list;
	uint64_t *elf;
	uint32_t n;
	size_t bytes;

	CHECK(calls_app && !strcmp(flexio_app_get_name(calls_app), "calls_app"));
	CHECK(!flexio_app_get_name(NULL) && !flexio_app_get_elf_size(NULL));
	bytes = flexio_app_get_elf_size(calls_app);
	elf = malloc(bytes);
	CHECK(bytes > 64 && elf);
	OK(flexio_app_get_elf(calls_app, elf, bytes));
	CHECK(!memcmp(elf, "\177ELF", 4));
	FAILS(flexio_app_get_elf(calls_app, elf, bytes - 1));
	OK(flexio_app_get_list(&list, &n));
	CHECK(n == 1 && list[0] == calls_app);
	OK(flexio_app_list_free(list));
	CHECK(!strcmp(flexio_app_get_name(calls_app), "calls_app"));
	free(elf);
}

/* An application from a buffer of the program's own, which goes afterwards. */
static void app_own(void)
{
	size_t bytes = flexio_app_get_elf_size(calls_app);
	uint64_t *elf = malloc(bytes), value;
	char name[300];
	struct flexio_app_attr attr = {.app_name = name, .app_ptr = elf, .app_bsize = bytes};
	struct flexio_app *app, **list;
	struct flexio_process *p;
	flexio_func_t *f;
	uint32_t n;

	OK(flexio_app_get_elf(calls_app, elf, bytes));
	memset(name, 'n', sizeof(name));
	name[257] = 0;
	FAILS(flexio_app_create(&attr, &app));
	CHECK(!app);
	name[256] = 0;
	OK(flexio_app_create(&attr, &app));
	memset(elf, 0, bytes);
	FAILS(flexio_app_create(&attr, &app)); /* no ELF file any more */
	free(elf);
	OK(flexio_app_get_list(&list, &n));
	CHECK(n == 2);
	app = list[0] == calls_app ? list[1] : list[0];
	OK(flexio_app_list_free(list));
	OK(flexio_func_register(app, "count", &f));
	OK(flexio_process_create(host_device(), app, NULL, &p));
	OK(flexio_process_call(p, f, &value, (uint64_t)2));
	CHECK(value == 42);
	/* A stub of another application. */
	FAILS(flexio_process_call(p, &count, &value, (uint64_t)2));
	OK(flexio_app_destroy(app));
	FAILS(flexio_app_destroy(app));
	/* Its functions went with it. */
	FAILS(flexio_process_call(p, f, &value, (uint64_t)2));
	FAILS(flexio_func_register(app, "count", &f));
	OK(flexio_process_destroy(p));
	OK(flexio_app_get_list(&list, &n));
	CHECK(n == 1 && list[0] == calls_app);
	OK(flexio_app_list_free(list));
}

/* What device.c says that its variables begin with. */
static void app_symbols(void)
{
	uint64_t numbers[4] = {1, 1, 1, 1};
	size_t bytes = sizeof(numbers);

	OK(flexio_app_extract_symbol(calls_app, "symbol_numbers", numbers, &bytes));
	CHECK(bytes == 24 && numbers[0] == 11 && numbers[1] == 22 && numbers[2] == 33 &&
	      numbers[3] == 1);
	bytes = sizeof(numbers);
	OK(flexio_app_extract_symbol(calls_app, "symbol_zeros", numbers, &bytes));
	CHECK(bytes == 16 && numbers[0] == 0 && numbers[1] == 0 && numbers[2] == 33);
	/* There is no such variable, and a function is none. */
	bytes = sizeof(numbers);
	OK(flexio_app_extract_symbol(calls_app, "no such symbol", numbers, &bytes));
	CHECK(bytes == 0 && numbers[2] == 33);
	bytes = sizeof(numbers);
	OK(flexio_app_extract_symbol(calls_app, "add", numbers, &bytes));
	CHECK(bytes == 0);
	bytes = 23;
	FAILS(flexio_app_extract_symbol(calls_app, "symbol_numbers", numbers, &bytes));
	CHECK(bytes == 0 && numbers[2] == 33);
	bytes = 24;
	FAILS(flexio_app_extract_symbol(NULL, "symbol_numbers", numbers, &bytes));
	FAILS(flexio_app_extract_symbol(calls_app, NULL, numbers, &bytes));
	FAILS(flexio_app_extract_symbol(calls_app, "symbol_numbers", NULL, &bytes));
	FAILS(flexio_app_extract_symbol(calls_app, "symbol_numbers", numbers, NULL));
}

static void app_bad(void)
{
	char text[64] = "not an ELF file";
	struct flexio_app_attr attr = {.app_name = "x", .app_ptr = text, .app_bsize = sizeof(text)};
	struct flexio_app *app;

	FAILS(flexio_app_create(NULL, &app));
	FAILS(flexio_app_create(&attr, NULL));
	FAILS(flexio_app_create(&attr, &app));
	attr.app_ptr = NULL;
	FAILS(flexio_app_create(&attr, &app));
	attr = (struct flexio_app_attr){.app_name = NULL, .app_ptr = text, .app_bsize = 64};
	FAILS(flexio_app_create(&attr, &app));
	attr.app_name = "x";
	memcpy(text, "\177ELF", 4);
	attr.app_bsize = 0;
	FAILS(flexio_app_create(&attr, &app));
	attr.app_bsize = 4;
	FAILS(flexio_app_create(&attr, &app));
	CHECK(!app);
	FAILS(flexio_app_destroy(NULL));
	FAILS(flexio_app_get_list(NULL, NULL));
	FAILS(flexio_app_list_free(NULL));
}

/* What is known of a function; room: of each name. */
struct known {
	char name[FLEXIO_MAX_NAME_LEN + 1], unpack[FLEXIO_MAX_NAME_LEN + 1];
	flexio_uintptr_t addr, unpack_addr;
	flexio_func_arg_pack_fn_t *pack;
	uint32_t pup;
	size_t bytes;
};

static flexio_status known_get(struct known *k, flexio_func_t *f, size_t room)
{
	return flexio_func_get_register_info(calls_app, f, &k->pup, k->name, k->unpack, room,
					     &k->bytes, &k->pack, &k->addr, &k->unpack_addr);
}

static void known_is_complete(void)
{
	struct known k;

	OK(known_get(&k, &add, sizeof(k.name)));
	CHECK(k.pup == 1 && !strcmp(k.name, "add") && strlen(k.unpack) > 3 && k.bytes == 16 &&
	      k.pack && k.addr && k.unpack_addr && k.addr != k.unpack_addr);
	/* Both names and their ends must have room: the longer one is the unpack function's. */
	FAILS(known_get(&k, &add, 3));
	FAILS(known_get(&k, &add, strlen(k.unpack)));
	OK(known_get(&k, &add, strlen(k.unpack) + 1));
	FAILS(known_get(&k, NULL, sizeof(k.name)));
	FAILS(known_get(&k, (flexio_func_t *)(uintptr_t)&k, sizeof(k.name)));
}

/* The device code has a function with the longest name.  Stubs are addresses that no other function
 * has. */
static void names_have_lengths(struct flexio_process *p)
{
	static char stubs[3];
	char longest[300];
	flexio_func_t *f, *other[3];
	struct known k;

	for (unsigned i = 0; i < 3; i++)
		other[i] = (flexio_func_t *)(uintptr_t)&stubs[i];
	OK(known_get(&k, &add, sizeof(k.name)));
	memset(longest, 'f', sizeof(longest));
	longest[257] = 0;
	FAILS(flexio_func_register(calls_app, longest, &f));
	FAILS(flexio_func_pup_register(calls_app, longest, k.unpack, other[2], 16, k.pack));
	FAILS(flexio_func_pup_register(calls_app, k.name, longest, other[2], 16, k.pack));
	longest[256] = 0;
	OK(flexio_func_register(calls_app, longest, &f));
	CHECK(RESULT(p, f, (uint64_t)1) == 256);
	OK(flexio_func_pup_register(calls_app, longest, k.unpack, other[0], 16, k.pack));
	OK(flexio_func_pup_register(calls_app, k.name, longest, other[1], 16, k.pack));
}

/* A wrong name is refused when it is registered, and the stub stays free. */
static void names_are_there(flexio_func_t *stub)
{
	flexio_func_t *f = stub;
	struct known k;

	OK(known_get(&k, &add, sizeof(k.name)));
	FAILS(flexio_func_register(calls_app, "no_such_function", &f));
	CHECK(!f);
	/* A variable, and a function that other files do not see. */
	FAILS(flexio_func_register(calls_app, "visible", &f));
	FAILS(flexio_func_register(calls_app, "hidden", &f));
	FAILS(flexio_func_pup_register(calls_app, "ad", k.unpack, stub, k.bytes, k.pack));
	FAILS(flexio_func_pup_register(calls_app, k.name, "add_", stub, k.bytes, k.pack));
	FAILS(known_get(&k, stub, sizeof(k.name)));
}

static void registration(void)
{
	static char stub;
	flexio_func_t *f, *other, *mine = (flexio_func_t *)(uintptr_t)&stub;
	struct flexio_process *p = host_process();
	struct known k;

	known_is_complete();
	OK(flexio_func_register(calls_app, "count", &f));
	OK(known_get(&k, f, sizeof(k.name)));
	CHECK(k.pup == 0 && !strcmp(k.name, "count"));
	/* The rest is for functions with a pack function. */
	k.pup = 1;
	k.addr = 0;
	OK(flexio_func_get_register_info(calls_app, f, &k.pup, k.name, NULL, sizeof(k.name), NULL,
					 NULL, &k.addr, NULL));
	CHECK(k.pup == 0 && k.addr);
	FAILS(flexio_func_get_register_info(calls_app, &add, &k.pup, k.name, NULL, sizeof(k.name),
					    &k.bytes, &k.pack, &k.addr, &k.unpack_addr));
	CHECK(RESULT(p, f, (uint64_t)1) == 41);
	names_are_there(mine);
	/* Under a stub of the program's own, once. */
	OK(known_get(&k, &add, sizeof(k.name)));
	OK(flexio_func_pup_register(calls_app, k.name, k.unpack, mine, k.bytes, k.pack));
	CHECK(RESULT(p, mine, (uint64_t)20, (uint64_t)3) == 23);
	FAILS(flexio_func_pup_register(calls_app, k.name, k.unpack, mine, k.bytes, k.pack));
	FAILS(flexio_func_pup_register(calls_app, k.name, k.unpack, &add, k.bytes, k.pack));
	names_have_lengths(p);
	FAILS(flexio_func_register(calls_app, NULL, &other));
	FAILS(flexio_func_register(NULL, "add", &other));
	OK(flexio_process_destroy(p));
}

static void processes(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(host_device());
	struct flexio_process_attr attr = {.pd = pd};
	struct flexio_process *p, *other;

	OK(flexio_process_create(host_device(), calls_app, &attr, &p));
	CHECK(flexio_process_get_pd(p) == pd);
	other = host_process();
	CHECK(flexio_process_get_pd(other) && flexio_process_get_pd(other) != pd);
	CHECK(flexio_process_get_dumem_id(p) != UINT32_MAX &&
	      flexio_process_get_dumem_id(p) != flexio_process_get_dumem_id(other));
	CHECK(flexio_process_get_dumem_id(NULL) == UINT32_MAX && !flexio_process_get_pd(NULL));
	/* 0 says that no debugger of the device is let in: there is none. */
	CHECK(!flexio_process_udbg_token_get(p) && !flexio_process_udbg_token_get(NULL));
	/* What one counts the other does not see. */
	CHECK(RESULT(p, &count, (uint64_t)2) == 42 && RESULT(p, &count, (uint64_t)0) == 42);
	CHECK(RESULT(other, &count, (uint64_t)1) == 41);
	OK(flexio_process_destroy(p));
	OK(flexio_process_destroy(other));
	FAILS(flexio_process_destroy(other));
	OK(flexio_process_destroy(NULL));
	CHECK(ibv_dealloc_pd(pd) == 0);
	FAILS(flexio_process_create(NULL, calls_app, NULL, &p));
	CHECK(!p);
	FAILS(flexio_process_create(host_device(), NULL, NULL, &p));
	FAILS(flexio_process_create(host_device(), (struct flexio_app *)&attr, NULL, &p));
	FAILS(flexio_process_create(host_device(), calls_app, NULL, NULL));
	for (unsigned i = 0; i < 100; i++)
		OK(flexio_process_destroy(host_process()));
}

/* On a device without a DPA. */
static void no_dpa(void)
{
	struct flexio_process *p;

	FAILS(flexio_process_create(host_device(), calls_app, NULL, &p));
	CHECK(!p);
}

const struct host_case app_cases[] = {
	{"app_names", app_names},
	{"app_own", app_own},
	{"app_bad", app_bad},
	{"app_symbols", app_symbols},
	{"registration", registration},
	{"processes", processes},
	{"no_dpa", no_dpa},
	{NULL, NULL},
};
