// SPDX-License-Identifier: BSD-2-Clause
/* Which paths lead into the device tree, where they lead, and the way back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"
#include "driver/cdev.h"
#include "preload/tree.h"

static char dir[] = "/tmp/tree_test.XXXXXX"; /* SOFTHCA_DIR */
static char root[sizeof(dir) + 32];
static unsigned asked; /* for the daemon */

/* The driver's part: the tree is there. */
int cdev_ensure_tree(void)
{
	asked++;
	return 0;
}

static void make_pattern(const char *below, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, below);
	for (char *slash = path + sizeof(dir); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		CHECK(!mkdir(path, 0700) || errno == EEXIST);
		*slash = '/';
	}
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

/* The environment is read before main: this program begins again with another one. */
static void begin_again(char **argv)
{
	CHECK(mkdtemp(dir));
	CHECK(!setenv("SOFTHCA_DIR", dir, 1) && !setenv("SOFTHCA_HOST", "host1", 1));
	CHECK(!tree_active());
	execv("/proc/self/exe", argv);
	CHECK(false);
}

static void tree_up(void)
{
	const char *given = getenv("SOFTHCA_DIR");

	CHECK(given && strlen(given) == strlen(dir));
	memcpy(dir, given, sizeof(dir));
	snprintf(root, sizeof(root), "%s/hosts/host1", dir);
	make_pattern("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	make_pattern("sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
	make_pattern("sys/class/infiniband_verbs/uverbs1/dev", "nonsense\n");
	make_pattern("dev/infiniband/uverbs0", "");
	make_pattern("sys/bus/pci/devices/0000:ff:1f.0/uevent", "");
	make_pattern("sys/bus/pci/drivers/mlx5_core/0000:ff:1f.0", "");
	make_pattern("sys/class/net/soft0/device/vendor", "0x15b3\n");
}

static void tree_down(void)
{
	char command[sizeof(dir) + 16];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
}

/* below NULL: the path is not one of the tree's, and stays. */
static void expect_map(const char *path, const char *below)
{
	struct tree_path t;
	char expected[PATH_MAX];
	const char *mapped;

	errno = 77;
	mapped = tree_map(AT_FDCWD, path, &t);
	CHECK(errno == 77);
	if (!below) {
		CHECK(!t.below && !strcmp(mapped, path));
		return;
	}
	snprintf(expected, sizeof(expected), "%s/%s", root, below);
	CHECK(!strcmp(mapped, expected) && t.below && !strcmp(t.below, below));
}

static void test_map(void)
{
	struct tree_path t;

	expect_map("/sys/class/infiniband", "sys/class/infiniband");
	expect_map("/sys/class/infiniband/mlx5_0", "sys/class/infiniband/mlx5_0");
	expect_map("//sys/./class//infiniband/", "sys/class/infiniband");
	expect_map("/sys/bus/../class/infiniband_verbs", "sys/class/infiniband_verbs");
	expect_map("/dev/infiniband/uverbs0", "dev/infiniband/uverbs0");
	/* below a prefix ".." stays: a step before it may be a link */
	expect_map("/sys/class/infiniband/mlx5_0/device/../x",
		   "sys/class/infiniband/mlx5_0/device/../x");
	CHECK(asked);

	expect_map("/sys/class/infiniband_other", NULL);
	expect_map("/sys/class/net", NULL);
	expect_map("/home/infiniband/sys/class", NULL);
	expect_map("/dev/infinibandx", NULL);
	expect_map("/dev/null", NULL);
	expect_map("", NULL);
	CHECK(!tree_map(AT_FDCWD, NULL, &t));
	/* the kernel would look for the first part in vain */
	CHECK(!strcmp(tree_map(AT_FDCWD, "/dev/infiniband/../null", &t), "/dev/null") && !t.below);
	CHECK(!strcmp(tree_map(AT_FDCWD, "/dev/infiniband/../..", &t), "/") && !t.below);
}

/* What the tree does not have is the machine's. */
static void test_shared(void)
{
	expect_map("/sys/bus/pci/devices", "sys/bus/pci/devices");
	expect_map("/sys/bus/pci/devices/0000:ff:1f.0/uevent",
		   "sys/bus/pci/devices/0000:ff:1f.0/uevent");
	expect_map("/sys/bus/pci/devices/0000:ff:1f.1/uevent", NULL);
	expect_map("/sys/bus/pci/drivers/mlx5_core", "sys/bus/pci/drivers/mlx5_core");
	expect_map("/sys/bus/pci/drivers/mlx5_core/bind", NULL);
	expect_map("/sys/bus/pci/drivers/nvme/bind", NULL);
	expect_map("/sys/bus/pci/drivers", NULL);
	expect_map("/sys/bus/pci", NULL);
	expect_map("/sys/class/net/soft0/device/vendor", "sys/class/net/soft0/device/vendor");
	expect_map("/sys/class/net/lo/address", NULL);
	/* a device has no other files than the tree's, an interface has */
	expect_map("/sys/class/net/soft0/device/x", "sys/class/net/soft0/device/x");
	expect_map("/sys/class/net/soft0/device/x/y", "sys/class/net/soft0/device/x/y");
	expect_map("/sys/class/net/soft0/deviceful/x", NULL);
	expect_map("/sys/class/net/soft0/statistics/x", NULL);
	expect_map("/sys/class/net/soft1/device/x", NULL);
	expect_map("/sys/bus/pci/devices/0000:ff:1f.0/x", "sys/bus/pci/devices/0000:ff:1f.0/x");
	expect_map("/sys/class/net/", NULL);
}

static void test_long_paths(void)
{
	static char path[PATH_MAX + 100];
	struct tree_path t;
	size_t n = (size_t)sprintf(path, "/dev/infiniband/");

	/* with the host's directory in front it would not fit */
	memset(path + n, 'x', PATH_MAX - 20 - n);
	CHECK(tree_map(AT_FDCWD, path, &t) == path && !t.below);
	memset(path + n, 'x', sizeof(path) - 1 - n);
	CHECK(tree_map(AT_FDCWD, path, &t) == path && !t.below);
}

/* Through the machine's own directories, and through ours. */
static void test_relative(void)
{
	char path[300];
	struct tree_path t;
	int at = open("/sys", O_PATH | O_DIRECTORY);

	CHECK(at >= 0);
	CHECK(!strcmp(tree_map(at, "class/infiniband/mlx5_0", &t) + strlen(root),
		      "/sys/class/infiniband/mlx5_0"));
	close(at);
	snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
	at = open(path, O_PATH | O_DIRECTORY);
	CHECK(at >= 0);
	CHECK(!strcmp(tree_map_live(at, "mlx5_0/ports/1/state", &t), "mlx5_0/ports/1/state"));
	CHECK(t.below && !strcmp(t.below, "sys/class/infiniband/mlx5_0/ports/1/state"));
	CHECK(!strcmp(tree_map_live(at, "mlx5_0/ports/1/no", &t), "mlx5_0/ports/1/no") && !t.below);
	CHECK(!strcmp(tree_map(-1, "infiniband/x", &t), "infiniband/x") && !t.below);
	close(at);
}

static void test_unmap(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sys/class/infiniband/mlx5_0", root);
	tree_unmap(path);
	CHECK(!strcmp(path, "/sys/class/infiniband/mlx5_0"));
	tree_unmap(path);
	CHECK(!strcmp(path, "/sys/class/infiniband/mlx5_0"));
	snprintf(path, sizeof(path), "%s/sys/devices/pci0000:00/x", root);
	tree_unmap(path);
	CHECK(!strcmp(path, "/sys/devices/pci0000:00/x"));
	snprintf(path, sizeof(path), "%s/sys/bus/pci", root);
	tree_unmap(path);
	CHECK(!strcmp(path, "/sys/bus/pci"));
	/* not one of the paths that lead there */
	snprintf(path, sizeof(path), "%s/etc/passwd", root);
	tree_unmap(path);
	CHECK(!strncmp(path, root, strlen(root)));
	snprintf(path, sizeof(path), "%sx/sys/class/infiniband", root);
	tree_unmap(path);
	CHECK(!strncmp(path, root, strlen(root)));
}

static void expect_live(const char *below, const char *expected)
{
	char name[PATH_MAX] = "";

	CHECK(tree_live(below, name, sizeof(name)) == !!expected);
	CHECK(!expected || !strcmp(name, expected));
}

static void test_live(void)
{
	char name[16];

	expect_live("sys/class/infiniband/mlx5_0/ports/1/state",
		    "sys/class/infiniband/mlx5_0/ports/1/state");
	expect_live("sys/class/infiniband/mlx5_0/ports/1/gids/3",
		    "sys/class/infiniband/mlx5_0/ports/1/gids/3");
	/* where the links of the class lead */
	expect_live("sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0/ports/1/lid",
		    "sys/class/infiniband/mlx5_0/ports/1/lid");
	expect_live("sys/class/infiniband/mlx5_0/ports/1/gids", NULL);
	expect_live("sys/class/infiniband/mlx5_0/fw_ver", NULL);
	expect_live("sys/class/infiniband_verbs/uverbs0/state", NULL);
	expect_live("dev/infiniband/state", NULL);
	CHECK(!tree_live("sys/class/infiniband/mlx5_0/ports/1/state", name, sizeof(name)));
}

static void test_devices(void)
{
	dev_t number = 0;

	CHECK(!strcmp(tree_device("dev/infiniband/uverbs0"), "uverbs0"));
	CHECK(!tree_device("dev/infiniband/") && !tree_device("dev/infiniband/x/uverbs0"));
	CHECK(!tree_device("sys/class/infiniband_verbs/uverbs0"));
	errno = 77;
	CHECK(tree_device_number("uverbs0", &number) && number == makedev(231, 192));
	CHECK(!tree_device_number("uverbs1", &number) && !tree_device_number("none", &number));
	CHECK(errno == 77);
}

int main(int argc, char **argv)
{
	const char *given = getenv("SOFTHCA_DIR");

	(void)argc;
	if (!given || strncmp(given, dir, sizeof(dir) - 7) != 0)
		begin_again(argv);
	tree_up();
	CHECK(tree_active());
	test_map();
	test_shared();
	test_long_paths();
	test_relative();
	test_unmap();
	test_live();
	test_devices();
	tree_down();
	return 0;
}
