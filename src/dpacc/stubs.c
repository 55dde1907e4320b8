// SPDX-License-Identifier: BSD-2-Clause
/* Generated code gives functions of the program their names by __asm__.  In C they have numbers, so
 * that a device function may have the name of a function of the C library or of its headers. */
#include <stdbool.h>

#include "dpacc/stubs.h"

static const char head[] = "/* Made by dpacc. */\n";

/* The declaration of a record, which both generated files of an application have. */
static const char record[] = "struct dpacc_function {\n"
			     "\tconst char *name, *unpack;\n"
			     "\tvoid (*stub)(void);\n"
			     "\tunsigned long bytes;\n"
			     "\tvoid (*pack)(void *argbuf, va_list ap);\n"
			     "};\n\n";

static void unpack_call(FILE *file, const struct function *function)
{
	fprintf(file, "((%s (*)(", function->result.text);
	for (size_t i = 0; i < function->count; i++)
		fprintf(file, "%s%s", i ? ", " : "", function->parameters[i].text);
	fprintf(file, "%s))func)(", function->count ? "" : "void");
	for (size_t i = 0; i < function->count; i++)
		fprintf(file, "%sa%zu", i ? ", " : "", i);
	fputs(");\n", file);
}

static void unpack_write(FILE *file, const struct function *function, size_t number)
{
	const struct type *result = &function->result;
	size_t at = 0;

	fprintf(file, "unsigned long dpacc_unpack_%zu(void *argbuf, void *func) __asm__(\"%s\");\n",
		number, function->unpack);
	fprintf(file,
		"__attribute__((visibility(\"default\")))\n"
		"unsigned long dpacc_unpack_%zu(void *argbuf, void *func)\n{\n"
		"\tconst unsigned char *from = argbuf;\n\tunsigned long word = 0;\n",
		number);
	for (size_t i = 0; i < function->count; i++) {
		fprintf(file, "\t%s a%zu;\n", function->parameters[i].text, i);
		fprintf(file, "\t__builtin_memcpy(&a%zu, from + %zu, sizeof(a%zu));\n", i, at, i);
		at += type_slot(&function->parameters[i]);
	}
	if (!at)
		fputs("\t(void)from;\n", file);
	if (result->kind == TYPE_VOID) {
		fputs("\t", file);
		unpack_call(file, function);
	} else if (result->kind == TYPE_FLOAT) {
		fprintf(file, "\t%s result = ", result->text);
		unpack_call(file, function);
		fputs("\t__builtin_memcpy(&word, &result, sizeof(result));\n", file);
	} else {
		fputs("\tword = (unsigned long)", file);
		unpack_call(file, function);
	}
	fputs("\treturn word;\n}\n\n", file);
}

void stubs_device(FILE *file, const struct interface *interface)
{
	fputs(head, file);
	fputs(interface->types.definitions ? interface->types.definitions : "", file);
	for (size_t i = 0; i < interface->count; i++)
		if (!interface->functions[i].has_unpack)
			unpack_write(file, &interface->functions[i], i);
	/* ISO C has no empty sources. */
	fputs("typedef int dpacc_end;\n", file);
}

static void pack_write(FILE *file, const struct function *function, size_t number)
{
	size_t at = 0;

	fprintf(file, "static void dpacc_pack_%zu(void *argbuf, va_list ap)\n{\n", number);
	if (!function->count)
		fputs("\t(void)argbuf;\n\t(void)ap;\n", file);
	else
		fprintf(file, "\tunsigned char *to = argbuf;\n\n\t__builtin_memset(to, 0, %zu);\n",
			function->bytes);
	for (size_t i = 0; i < function->count; i++) {
		const struct type *type = &function->parameters[i];
		const char *cast = type->kind == TYPE_AGGREGATE ? "" : type->text;

		fprintf(file, "\t{\n\t\t%s a = %s%s%sva_arg(ap, %s);\n\n", type->text,
			*cast ? "(" : "", cast, *cast ? ")" : "", type->promoted);
		fprintf(file, "\t\t__builtin_memcpy(to + %zu, &a, sizeof(a));\n\t}\n", at);
		at += type_slot(type);
	}
	fputs("}\n", file);
}

/* Each stub stores another number, so that no linker takes two of them for the same function. */
static void stub_write(FILE *file, const struct function *function, size_t number)
{
	fprintf(file, "void dpacc_stub_%zu(void) __asm__(\"%s\");\n", number, function->name);
	fprintf(file, "void dpacc_stub_%zu(void)\n{\n\tdpacc_called = %zu;\n}\n", number,
		number + 1);
	pack_write(file, function, number);
	fprintf(file,
		"extern const struct dpacc_function dpacc_function_%zu\n\t__asm__(\"%s\")"
		" __attribute__((visibility(\"hidden\")));\n",
		number, interface_record(function->name));
	fprintf(file,
		"const struct dpacc_function dpacc_function_%zu = {\n\t\"%s\",\n\t\"%s\",\n\t"
		"dpacc_stub_%zu, %zu, dpacc_pack_%zu,\n};\n\n",
		number, function->name, function->unpack, number, function->bytes, number);
}

void stubs_host(FILE *file, const struct interface *interface)
{
	fputs(head, file);
	fputs("#pragma GCC diagnostic ignored \"-Wpedantic\"\n#ifndef __clang__\n"
	      "#pragma GCC diagnostic ignored \"-Wpacked-not-aligned\"\n#endif\n"
	      "#include <stdarg.h>\n\n",
	      file);
	/* Scripts that compile this file themselves keep the device's object in the host's until
	 * they have linked it. */
	fputs("#ifdef __DPA_OBJ_STUB_FILE__\n"
	      "static const unsigned char dpacc_object[] __attribute__((used, "
	      "section(\".dpa_obj\"))) = {\n"
	      "#include __DPA_OBJ_STUB_FILE__\n};\n#endif\n\n",
	      file);
	fputs(record, file);
	fputs(interface->types.definitions ? interface->types.definitions : "", file);
	if (interface->count)
		fputs("static volatile unsigned long dpacc_called;\n\n", file);
	for (size_t i = 0; i < interface->count; i++)
		stub_write(file, &interface->functions[i], i);
}

static void app_records(FILE *file, const struct words *functions, const struct words *own)
{
	for (size_t i = 0; i < functions->count; i++) {
		bool weak = !words_have(own, functions->words[i]);

		fprintf(file,
			"extern const struct dpacc_function dpacc_function_%zu __asm__(\"%s\")\n"
			"\t__attribute__((visibility(\"hidden\")%s));\n",
			i, interface_record(functions->words[i]), weak ? ", weak" : "");
	}
	fputs("\nstatic const struct dpacc_function *const dpacc_functions[] = {\n", file);
	for (size_t i = 0; i < functions->count; i++)
		fprintf(file, "\t&dpacc_function_%zu,\n", i);
	fputs("\t0,\n};\n\n", file);
}

void stubs_app(FILE *file, const char *app, const struct words *functions, const struct words *own)
{
	fputs(head, file);
	fputs("#include <stdarg.h>\n#include <stdint.h>\n#include <stdio.h>\n"
	      "#include <libflexio/flexio.h>\n\n",
	      file);
	fputs(record, file);
	fprintf(file,
		"static const unsigned char dpacc_image[]\n\t__attribute__((aligned(64), "
		"section(\"" SECTION_IMAGE "%s\"))) = {\n#include __DPA_EXEC_STUB_FILE__\n};\n\n",
		app);
	app_records(file, functions, own);
	fprintf(file, "extern struct flexio_app *%s;\nstruct flexio_app *%s;\n\n", app, app);
	/* Before the constructors of the program, which may make processes of the application. */
	fprintf(file,
		"static void __attribute__((constructor(200))) dpacc_begin(void)\n{\n"
		"\tstruct flexio_app_attr attr;\n\tunsigned long i;\n\n"
		"\t__builtin_memset(&attr, 0, sizeof(attr));\n"
		"\tattr.app_name = \"%s\";\n"
		"\tattr.app_ptr = (void *)(uintptr_t)dpacc_image;\n"
		"\tattr.app_bsize = sizeof(dpacc_image);\n"
		"\tif (flexio_app_create(&attr, &%s) != FLEXIO_STATUS_SUCCESS) {\n"
		"\t\tfprintf(stderr, \"%s: the DPA application cannot be created\\n\");\n"
		"\t\t%s = NULL;\n\t\treturn;\n\t}\n",
		app, app, app, app);
	fprintf(file,
		"\tfor (i = 0; i + 1 < sizeof(dpacc_functions) / sizeof(dpacc_functions[0]); i++) "
		"{\n"
		"\t\tconst struct dpacc_function *f = dpacc_functions[i];\n\n"
		"\t\tif (f && flexio_func_pup_register(%s, f->name, f->unpack, f->stub, f->bytes,\n"
		"\t\t\t\t\t\t  f->pack) != FLEXIO_STATUS_SUCCESS)\n"
		"\t\t\tfprintf(stderr, \"%s: %%s cannot be registered\\n\", f->name);\n\t}\n}\n\n",
		app, app);
	fprintf(file,
		"static void __attribute__((destructor(200))) dpacc_end(void)\n{\n"
		"\tif (%s)\n\t\tflexio_app_destroy(%s);\n\t%s = NULL;\n}\n",
		app, app, app);
}
