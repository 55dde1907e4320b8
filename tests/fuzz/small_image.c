// SPDX-License-Identifier: BSD-2-Clause
/* See small_image.h. */
#include "small_image.h"

#include <elf.h>
#include <string.h>

#include "base/compiler.h"
#include "dpa/door.h"

/* Offsets in the file; what is loaded comes from the front part. */
#define AT_SYMBOLS  0x180u
#define AT_NAMES    0x240u
#define AT_RELA	    0x2a0u
#define AT_DYNAMIC  0x2c0u
#define AT_CODE	    0x300u
#define AT_DATA	    0x380u
#define AT_SECTIONS 0x400u
#define AT_TITLES   0x5c0u
#define AT_LINES    0x640u
#define AT_FILES    0x6c0u

#define CODE_BYTES 0x80u
#define DATA_ADDR  0x2000u
#define DATA_BYTES ((sizeof(struct dpa_image_info) + 63) / 64 * 64)
#define WORD_ADDR  (DATA_ADDR + DATA_BYTES) /* that is relocated */
#define RELRO_ADDR 0x8000u

_Static_assert(WORD_ADDR + 64 < RELRO_ADDR, "the data end before what is protected");

const char *const small_names[SMALL_FUNCTIONS] = {"add", "nothing", "load_null", "nowhere", "say"};
const uint32_t small_offsets[SMALL_FUNCTIONS] = {0x00, 0x10, 0x20, 0x30, 0x40};

#define DOOR_AT ((uint32_t)(DATA_ADDR + offsetof(struct dpa_image_info, door)))

#if defined(__x86_64__)
#define MACHINE	 EM_X86_64
#define RELATIVE R_X86_64_RELATIVE
#define IDLE	 0xf4 /* no function begins there: a fault */

static void word_put(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void code_put(uint8_t *code)
{
	static const uint8_t add[] = {0x48, 0x8d, 0x04, 0x37, 0xc3};	    /* lea; ret */
	static const uint8_t load[] = {0x31, 0xc0, 0x48, 0x8b, 0x00, 0xc3}; /* xor; mov; ret */
	static const uint8_t nowhere[] = {0x0f, 0x0b};			    /* ud2 */
	static const uint8_t say[] = {
		0x55,			      /* push rbp */
		0xbf, 0xff, 0,	  0, 0,	      /* mov edi, all streams */
		0xbe, 0x02, 0,	  0, 0,	      /* mov esi, an error */
		0x48, 0x8d, 0x15, 0, 0, 0, 0, /* lea rdx, the code itself */
		0xb9, 0x10, 0,	  0, 0,	      /* mov ecx, 16 bytes */
		0x48, 0x8b, 0x05, 0, 0, 0, 0, /* mov rax, the door */
		0xff, 0x90, 0,	  0, 0, 0,    /* call what says */
		0x5d, 0xc3,		      /* pop; ret */
	};
	uint8_t *at = code + small_offsets[4];

	memcpy(code + small_offsets[0], add, sizeof(add));
	code[small_offsets[1]] = 0xc3;
	memcpy(code + small_offsets[2], load, sizeof(load));
	memcpy(code + small_offsets[3], nowhere, sizeof(nowhere));
	memcpy(at, say, sizeof(say));
	word_put(at + 14, 0u - (small_offsets[4] + 18));
	word_put(at + 26, DOOR_AT - (SMALL_CODE + small_offsets[4] + 30));
	word_put(at + 32, (uint32_t)offsetof(struct dpa_door, message));
}
#elif defined(__aarch64__)
#define MACHINE	 EM_AARCH64
#define RELATIVE R_AARCH64_RELATIVE
#define IDLE	 0 /* udf */

static void code_put(uint8_t *code)
{
	static const uint32_t words[SMALL_FUNCTIONS][3] = {
		{0x8b010000, 0xd65f03c0},	      /* add; ret */
		{0xd65f03c0},			      /* ret */
		{0xd2800000, 0xf9400000, 0xd65f03c0}, /* mov; ldr; ret */
		{0},				      /* udf */
		{0xd65f03c0},
	};

	for (unsigned i = 0; i < SMALL_FUNCTIONS; i++)
		memcpy(code + small_offsets[i], words[i], sizeof(words[i]));
}
#endif

/* ---- headers ---- */

static void segments_put(uint8_t *file)
{
	const Elf64_Phdr headers[] = {
		{PT_LOAD, PF_R, 0, 0, 0, AT_CODE, AT_CODE, 4096},
		{PT_LOAD, PF_R | PF_X, AT_CODE, SMALL_CODE, SMALL_CODE, CODE_BYTES, CODE_BYTES,
		 4096},
		{PT_LOAD, PF_R | PF_W, AT_DATA, DATA_ADDR, DATA_ADDR, 64, DATA_BYTES + 64, 4096},
		{PT_LOAD, PF_R | PF_W, AT_DATA, RELRO_ADDR, RELRO_ADDR, 16, 4096, 4096},
		{PT_DYNAMIC, PF_R, AT_DYNAMIC, AT_DYNAMIC, AT_DYNAMIC, 4 * sizeof(Elf64_Dyn),
		 4 * sizeof(Elf64_Dyn), 8},
	};
	const Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_shoff = AT_SECTIONS,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = array_size(headers),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 7,
		.e_shstrndx = 4,
	};

	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), headers, sizeof(headers));
}

static uint32_t title_put(uint8_t *titles, uint32_t *at, const char *title)
{
	uint32_t start = *at;

	strcpy((char *)titles + start, title);
	*at += (uint32_t)strlen(title) + 1;
	return start;
}

static void section_put(uint8_t *file, unsigned index, uint32_t title, Elf64_Shdr section)
{
	section.sh_name = title;
	memcpy(file + AT_SECTIONS + index * sizeof(section), &section, sizeof(section));
}

static void sections_put(uint8_t *file, uint32_t names_bytes, uint32_t line_bytes)
{
	const uint64_t symbols = (SMALL_FUNCTIONS + 2) * sizeof(Elf64_Sym);
	uint8_t *titles = file + AT_TITLES;
	uint32_t at = 1;

	section_put(file, 1, title_put(titles, &at, ".dynsym"),
		    (Elf64_Shdr){.sh_type = SHT_DYNSYM,
				 .sh_offset = AT_SYMBOLS,
				 .sh_link = 2,
				 .sh_size = symbols,
				 .sh_entsize = sizeof(Elf64_Sym)});
	section_put(
		file, 2, title_put(titles, &at, ".dynstr"),
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = AT_NAMES, .sh_size = names_bytes});
	section_put(file, 3, title_put(titles, &at, ".symtab"),
		    (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				 .sh_offset = AT_SYMBOLS,
				 .sh_link = 2,
				 .sh_size = symbols,
				 .sh_entsize = sizeof(Elf64_Sym)});
	section_put(file, 5, title_put(titles, &at, ".debug_line"),
		    (Elf64_Shdr){
			    .sh_type = SHT_PROGBITS, .sh_offset = AT_LINES, .sh_size = line_bytes});
	section_put(file, 6, title_put(titles, &at, ".debug_line_str"),
		    (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = AT_FILES, .sh_size = 16});
	section_put(file, 4, title_put(titles, &at, ".shstrtab"),
		    (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = AT_TITLES, .sh_size = at});
}

/* ---- content ---- */

static uint32_t symbols_put(uint8_t *file)
{
	uint8_t *names = file + AT_NAMES;
	uint32_t at = 1;
	Elf64_Sym sym;

	for (unsigned i = 0; i < SMALL_FUNCTIONS; i++) {
		sym = (Elf64_Sym){.st_name = title_put(names, &at, small_names[i]),
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 1,
				  .st_value = SMALL_CODE + small_offsets[i],
				  .st_size = 16};
		memcpy(file + AT_SYMBOLS + (i + 1) * sizeof(sym), &sym, sizeof(sym));
	}
	sym = (Elf64_Sym){.st_name = title_put(names, &at, "__dpa_image_info"),
			  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			  .st_shndx = 1,
			  .st_value = DATA_ADDR,
			  .st_size = sizeof(struct dpa_image_info)};
	memcpy(file + AT_SYMBOLS + (SMALL_FUNCTIONS + 1) * sizeof(sym), &sym, sizeof(sym));
	return at;
}

static void data_put(uint8_t *file)
{
	const Elf64_Rela rela = {WORD_ADDR, ELF64_R_INFO(0, RELATIVE), SMALL_CODE};
	const Elf64_Dyn dynamic[] = {
		{DT_RELA, {AT_RELA}},
		{DT_RELASZ, {sizeof(rela)}},
		{DT_RELAENT, {sizeof(rela)}},
		{DT_NULL, {0}},
	};
	const struct dpa_image_info info = {
		.magic = DPA_IMAGE_MAGIC,
		.version = DPA_DOOR_VERSION,
		.bytes = sizeof(info),
		.door_bytes = sizeof(struct dpa_door),
	};

	memcpy(file + AT_RELA, &rela, sizeof(rela));
	memcpy(file + AT_DYNAMIC, dynamic, sizeof(dynamic));
	memcpy(file + AT_DATA, &info, offsetof(struct dpa_image_info, door));
}

/* A unit of version 5: one directory, one file, a row for each function. */
static uint32_t lines_put(uint8_t *file)
{
	static const uint8_t front[] = {
		5, 0, 8,    0,	  38, 0,  0, 0, /* version; length of the rest */
		1, 1, 1,    0xfb, 14, 13,	/* instructions, rows, operands */
		0, 1, 1,    1,	  1,  0,  0, 0, 1, 0, 0, 1,
		1, 1, 0x1f, 1,	  0,  0,  0, 0,		    /* a directory */
		1, 1, 0x1f, 2,	  0,  0,  0, 0, 0, 0, 0, 0, /* two files */
	};
	static const uint8_t program[] = {
		0,    9,    2, 0, 0x10, 0, 0, 0,    0, 0, 0, /* the first address */
		0x13,					     /* special: a row */
		2,    0x10, 3, 4, 1,			     /* 16 bytes and 4 lines on */
		4,    1,    5, 1, 0x4b, 8, 9, 0x10, 0, /* file, column, special, constant, fixed */
		2,    0x20, 0, 1, 1,		       /* the end */
	};
	uint8_t *at = file + AT_LINES;
	uint32_t bytes = sizeof(front) + sizeof(program);

	memcpy(at, &bytes, sizeof(bytes));
	memcpy(at + 4, front, sizeof(front));
	memcpy(at + 4 + sizeof(front), program, sizeof(program));
	strcpy((char *)file + AT_FILES, "code.c");
	return bytes + 4;
}

void small_image_make(uint8_t file[SMALL_IMAGE_BYTES])
{
	memset(file, 0, SMALL_IMAGE_BYTES);
	segments_put(file);
	memset(file + AT_CODE, IDLE, CODE_BYTES);
	code_put(file + AT_CODE);
	data_put(file);
	sections_put(file, symbols_put(file), lines_put(file));
}
