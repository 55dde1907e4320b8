// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dpa/door.h"
#include "registry.h"

#define MOST 64

struct entry {
	flexio_func_t *stub;
	flexio_func_arg_pack_fn_t *pack;
	char name[600];
	char unpack[600];
	size_t bytes;
};

struct flexio_app {
	char name[300];
	const unsigned char *elf;
	unsigned char *base; /* where the image lies, once it was called */
	struct entry entries[MOST];
	unsigned int count;
};

static void refuse(const char *why)
{
	fprintf(stderr, "registry: %s\n", why);
	exit(3);
}

static const Elf64_Shdr *section_of(const unsigned char *elf, unsigned int type)
{
	const Elf64_Ehdr *head = (const void *)elf;
	const Elf64_Shdr *sections = (const void *)(elf + head->e_shoff);

	for (int i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	refuse("the image has no such section");
	return NULL;
}

static void *symbol_of(const struct flexio_app *app, const char *name)
{
	const Elf64_Ehdr *head = (const void *)app->elf;
	const Elf64_Shdr *sections = (const void *)(app->elf + head->e_shoff);
	const Elf64_Shdr *table = section_of(app->elf, SHT_SYMTAB);
	const Elf64_Sym *symbols = (const void *)(app->elf + table->sh_offset);
	const char *names = (const char *)app->elf + sections[table->sh_link].sh_offset;

	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++)
		if (!strcmp(names + symbols[i].st_name, name) && symbols[i].st_shndx)
			return app->base + symbols[i].st_value;
	refuse(name);
	return NULL;
}

static void image_relocate(const struct flexio_app *app)
{
	const Elf64_Ehdr *head = (const void *)app->elf;
	const Elf64_Shdr *sections = (const void *)(app->elf + head->e_shoff);

	for (int i = 0; i < head->e_shnum; i++) {
		const Elf64_Rela *relas = (const void *)(app->elf + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_RELA)
			continue;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*relas); k++)
			*(uint64_t *)(app->base + relas[k].r_offset) =
				(uint64_t)app->base + (uint64_t)relas[k].r_addend;
	}
}

static void image_load(struct flexio_app *app)
{
	const Elf64_Ehdr *head = (const void *)app->elf;
	const Elf64_Phdr *segments = (const void *)(app->elf + head->e_phoff);
	struct dpa_image_info *info;

	if (head->e_type != ET_DYN)
		refuse("the image is not to be moved");
	app->base = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (app->base == MAP_FAILED)
		refuse("no memory");
	for (int i = 0; i < head->e_phnum; i++) {
		if (segments[i].p_type == PT_INTERP || segments[i].p_type == PT_TLS)
			refuse("the image has an interpreter or thread-local data");
		if (segments[i].p_type == PT_LOAD)
			memcpy(app->base + segments[i].p_vaddr, app->elf + segments[i].p_offset,
			       segments[i].p_filesz);
	}
	image_relocate(app);
	/* Checked code may touch what it likes here. */
	info = symbol_of(app, "__dpa_image_info");
	info->region_begin = 0;
	info->region_bytes = UINT64_MAX;
}

flexio_status flexio_app_create(struct flexio_app_attr *fattr, struct flexio_app **app)
{
	struct flexio_app *made;

	if (memcmp(fattr->app_ptr, ELFMAG, SELFMAG) != 0)
		return FLEXIO_STATUS_FAILED;
	made = calloc(1, sizeof(*made));
	if (!made)
		return FLEXIO_STATUS_FAILED;
	snprintf(made->name, sizeof(made->name), "%s", fattr->app_name);
	made->elf = fattr->app_ptr;
	*app = made;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_app_destroy(struct flexio_app *app)
{
	printf("destroyed %s\n", app->name);
	free(app);
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_func_pup_register(struct flexio_app *app, const char *dev_func_name,
				       const char *dev_unpack_func_name,
				       flexio_func_t *host_stub_func_addr, size_t argbuf_size,
				       flexio_func_arg_pack_fn_t *host_pack_func)
{
	struct entry *entry = &app->entries[app->count];

	if (app->count == MOST || strlen(dev_func_name) > FLEXIO_MAX_NAME_LEN ||
	    strlen(dev_unpack_func_name) > FLEXIO_MAX_NAME_LEN)
		return FLEXIO_STATUS_FAILED;
	entry->stub = host_stub_func_addr;
	entry->pack = host_pack_func;
	entry->bytes = argbuf_size;
	snprintf(entry->name, sizeof(entry->name), "%s", dev_func_name);
	snprintf(entry->unpack, sizeof(entry->unpack), "%s", dev_unpack_func_name);
	app->count++;
	return FLEXIO_STATUS_SUCCESS;
}

static struct entry *entry_of(struct flexio_app *app, flexio_func_t *stub)
{
	for (unsigned int i = 0; app && i < app->count; i++)
		if (app->entries[i].stub == stub)
			return &app->entries[i];
	return NULL;
}

uint64_t registry_call(struct flexio_app *app, flexio_func_t *stub, ...)
{
	const struct entry *entry = entry_of(app, stub);
	uint64_t (*unpack)(void *argbuf, void *func);
	uint64_t buffer[256] __attribute__((aligned(16)));
	va_list args;

	if (!entry || entry->bytes > sizeof(buffer))
		refuse("no such function is registered");
	if (!app->base)
		image_load(app);
	memset(buffer, 0xee, sizeof(buffer));
	va_start(args, stub);
	entry->pack(buffer, args);
	va_end(args);
	*(void **)&unpack = symbol_of(app, entry->unpack);
	return unpack(buffer, symbol_of(app, entry->name));
}

const char *registry_text(struct flexio_app *app, flexio_func_t *stub)
{
	static char text[1400];
	const struct entry *entry = entry_of(app, stub);

	if (!entry)
		return "none";
	snprintf(text, sizeof(text), "%s %s %zu", entry->name, entry->unpack, entry->bytes);
	return text;
}

unsigned int registry_count(struct flexio_app *app)
{
	return app ? app->count : 0;
}
