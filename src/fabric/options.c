// SPDX-License-Identifier: BSD-2-Clause
/* See fabric/options.h. */
#include "fabric/options.h"

#include <stdio.h>

#include "base/text.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Files of /sys have the name, and lists of options, addresses (DEVICE:PORT) and rules of programs. */
static const char *name_wrong(const char *name)
{
	if (!*name)
		return "a name is empty";
	if (!strchr(LETTERS, *name) || name[strspn(name, LETTERS "0123456789_-.")])
		return "a name begins with a letter, and has letters, digits, '_', '-' and '.'";
	return NULL;
}

static bool names_have(const struct device_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

void device_name_of(const struct device_names *names, uint32_t device, char *out)
{
	if (names && device < names->n)
		text_copy(out, SUBNET_NAME_BYTES, names->name[device]);
	else
		(void)snprintf(out, SUBNET_NAME_BYTES, "mlx5_%u", device);
}

/* Reads the next name; returns what is wrong. */
static const char *name_read(const char *text, size_t n, struct device_names *out)
{
	char name[SUBNET_NAME_BYTES] = "";
	const char *wrong;

	if (n >= sizeof(name))
		return "a name has more than 63 characters";
	memcpy(name, text, n);
	wrong = name_wrong(name);
	if (wrong)
		return wrong;
	if (names_have(out, name))
		return "two devices have the same name";
	if (out->n == SLOT_PORTS)
		return "there are more names than devices";
	text_copy(out->name[out->n++], SUBNET_NAME_BYTES, name);
	return NULL;
}

const char *device_names_read(const char *text, uint32_t ndevices, struct device_names *out)
{
	char name[SUBNET_NAME_BYTES];

	static_assert(SUBNET_NAME_BYTES == 64, "the text above");
	*out = (struct device_names){0};
	for (;;) {
		size_t n = strcspn(text, ",");
		const char *wrong = name_read(text, n, out);

		if (wrong)
			return wrong;
		if (!text[n])
			break;
		text += n + 1;
	}
	if (ndevices && out->n > ndevices)
		return "there are more names than devices";
	for (uint32_t i = out->n; i < ndevices; i++) {
		device_name_of(NULL, i, name);
		if (names_have(out, name))
			return "a device that is not named has one of the names";
	}
	return NULL;
}
