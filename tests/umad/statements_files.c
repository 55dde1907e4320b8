// SPDX-License-Identifier: BSD-2-Clause
/* Statements 1 to 4 and 63 to 68: which files there are, and what their attributes say. */
#include "checklist.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define CLASS_FOLDER "/sys/class/infiniband_mad"

/* Entries of the folder whose names begin so. */
static unsigned files_named(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	must(dir != NULL, "%s cannot be opened", folder);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return n;
}

static unsigned ports_count(void)
{
	DIR *dir = opendir("/sys/class/infiniband/mlx5_0/ports");
	unsigned n = 0;

	must(dir != NULL, "no ports");
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* How many files of that kind say that they are of this port. */
static unsigned files_of_port(const char *kind, const char *device, unsigned port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 64; i++) {
		char wanted[16];

		if (strcmp(text_of(CLASS_FOLDER "/%s%u/ibdev", kind, i), device) != 0)
			continue;
		snprintf(wanted, sizeof(wanted), "%u", port);
		n += strcmp(text_of(CLASS_FOLDER "/%s%u/port", kind, i), wanted) == 0;
	}
	return n;
}

static void each_port_has(const char *kind)
{
	unsigned ports = ports_count();

	must(ports > 0, "no port");
	for (unsigned port = 1; port <= ports; port++)
		must(files_of_port(kind, "mlx5_0", port) == 1, "port %u has %u", port,
		     files_of_port(kind, "mlx5_0", port));
	must(files_named(CLASS_FOLDER, kind) == ports, "%u in all",
	     files_named(CLASS_FOLDER, kind));
}

static void s1_each_port_has_a_umad(void)
{
	each_port_has("umad");
	for (unsigned port = 1; port <= ports_count(); port++)
		must(port_close(port_file(port)) == 0, "close");
}

static void s2_each_port_has_an_issm(void)
{
	each_port_has("issm");
}

static void s3_two_ports_two_files_each(void)
{
	must(ports_count() == 2, "%u ports", ports_count());
	must(files_named("/dev/infiniband", "umad") == 2, "umad files");
	must(files_named("/dev/infiniband", "issm") == 2, "issm files");
}

/* On a switch. */
static void s4_a_switch_has_one_of_each(void)
{
	must(files_named(CLASS_FOLDER, "umad") == 1, "umad files");
	must(files_named(CLASS_FOLDER, "issm") == 1, "issm files");
	must(strcmp(text_of(CLASS_FOLDER "/umad0/port"), "0") == 0, "port of umad0");
	must(strcmp(text_of(CLASS_FOLDER "/issm0/port"), "0") == 0, "port of issm0");
	must(strcmp(text_of("/sys/class/infiniband/%s/node_type", "switch0"), "2: switch") == 0,
	     "node_type");
}

static void device_is_there(const char *name)
{
	char path[64], number[16];
	struct stat st;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", name);
	must(stat(path, &st) == 0 && S_ISCHR(st.st_mode), "%s is no device", path);
	snprintf(number, sizeof(number), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
	must(strcmp(text_of(CLASS_FOLDER "/%s/dev", name), number) == 0, "%s: number %s", name,
	     number);
}

static void s63_names_below_dev_infiniband(void)
{
	device_is_there("umad0");
	device_is_there("umad1");
	device_is_there("issm0");
	device_is_there("issm1");
}

static void s64_numbers_follow_ports(void)
{
	must(strcmp(text_of(CLASS_FOLDER "/umad0/port"), "1") == 0, "umad0");
	must(strcmp(text_of(CLASS_FOLDER "/umad1/port"), "2") == 0, "umad1");
	must(strcmp(text_of(CLASS_FOLDER "/issm0/port"), "1") == 0, "issm0");
	must(strcmp(text_of(CLASS_FOLDER "/issm1/port"), "2") == 0, "issm1");
}

static void attribute_says(const char *file, const char *attribute, const char *wanted)
{
	const char *text = text_of(CLASS_FOLDER "/%s/%s", file, attribute);

	must(strcmp(text, wanted) == 0, "%s/%s says '%s'", file, attribute, text);
}

static void s65_umad_names_its_device(void)
{
	attribute_says("umad0", "ibdev", "mlx5_0");
}

static void s66_umad_names_its_port(void)
{
	attribute_says("umad0", "port", "1");
	attribute_says("umad1", "port", "2");
}

static void s67_issm_names_its_device(void)
{
	attribute_says("issm0", "ibdev", "mlx5_0");
}

static void s68_issm_names_its_port(void)
{
	attribute_says("issm0", "port", "1");
	attribute_says("issm1", "port", "2");
}

const struct statement statements_of_files[] = {
	{1, s1_each_port_has_a_umad},
	{2, s2_each_port_has_an_issm},
	{3, s3_two_ports_two_files_each},
	{4, s4_a_switch_has_one_of_each},
	{63, s63_names_below_dev_infiniband},
	{64, s64_numbers_follow_ports},
	{65, s65_umad_names_its_device},
	{66, s66_umad_names_its_port},
	{67, s67_issm_names_its_device},
	{68, s68_issm_names_its_port},
	{0, NULL},
};
