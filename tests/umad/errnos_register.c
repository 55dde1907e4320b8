// SPDX-License-Identifier: BSD-2-Clause
/* REGISTER_AGENT, REGISTER_AGENT2, UNREGISTER_AGENT, ENABLE_PKEY. */
#include "errnos.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct row {
	const char *what;
	uint32_t qpn, class, version, oui, rmpp, flags;
	int error;
};

/* What both calls check.  Some have two mistakes. */
static const struct row both[] = {
	{"QP 2", 2, 0x0c, 1, 0, 0, 0, EINVAL},
	{"RMPP 2", 1, 0x31, 1, OUR_OUI, 2, 0, EINVAL},
	{"class version 0x83", 1, 0x0c, 0x83, 0, 0, 0, EINVAL},
	{"class version 0x82", 1, 0x0c, 0x82, 0, 0, 0, 0},
	{"class 0x50", 1, 0x50, 1, 0, 0, 0, EINVAL},
	{"class 0x80", 1, 0x80, 1, 0, 0, 0, EINVAL},
	{"class 0x4f", 1, 0x4f, 1, OUR_OUI, 0, 0, 0},
	{"class 0x4f without OUI", 1, 0x4f, 1, 0, 0, 0, EINVAL},
	{"class 0x30 without OUI", 1, 0x30, 1, 0, 0, 0, EINVAL},
	{"class 0x2f without OUI", 1, 0x2f, 1, 0, 0, 0, 0},
	{"RMPP in class 4", 1, 0x04, 1, 0, 1, 0, EINVAL},
	{"RMPP in SA's class", 1, 0x03, 2, 0, 1, 0, 0},
	{"RMPP in class 6", 1, 0x06, 1, 0, 1, 0, 0},
	{"RMPP in class 0x10", 1, 0x10, 1, 0, 1, 0, 0},
	{"RMPP in class 0x11", 1, 0x11, 1, 0, 1, 0, EINVAL},
	{"RMPP in class 0x12", 1, 0x12, 1, 0, 1, 0, 0},
	{"QP 0 in class 4", 0, 0x04, 1, 0, 0, 0, EINVAL},
	{"QP 1 in class 1", 1, 0x01, 1, 0, 0, 0, EINVAL},
	{"QP 1 in class 0x81", 1, 0x81, 1, 0, 0, 0, EINVAL},
	{"QP 0 in class 0x81", 0, 0x81, 1, 0, 0, 0, 0},
	{"class 0 on QP 0", 0, 0, 0, 0, 0, 0, 0},
	{"class 0 on QP 1", 1, 0, 0xff, 0, 0, 0, 0},
	{"class 0 with RMPP", 1, 0, 0, 0, 1, 0, 0},
};

static const struct row second[] = {
	{"OUI above 24 bits", 1, 0x31, 1, 0x1000000, 0, 0, EINVAL},
	{"OUI above 24 bits, class 0", 1, 0, 1, 0x1000000, 0, 0, 0},
	{"RMPP by the user", 1, 0x31, 1, OUR_OUI, 1, 1, 0},
	{"RMPP by the user, class 0", 1, 0, 1, 0, 1, 1, EINVAL},
	{"flag 2", 1, 0x31, 1, OUR_OUI, 1, 2, EINVAL},
	{"flag 0x80000001", 1, 0x31, 1, OUR_OUI, 1, 0x80000001, EINVAL},
	{"flag 2 on QP 2", 2, 0x31, 1, OUR_OUI, 1, 2, EINVAL},
};

static void row_by_first(const struct row *row)
{
	struct ib_user_mad_reg_req r = {
		.qpn = (uint8_t)row->qpn,
		.mgmt_class = (uint8_t)row->class,
		.mgmt_class_version = (uint8_t)row->version,
		.oui = {(uint8_t)(row->oui >> 16), (uint8_t)(row->oui >> 8), (uint8_t)row->oui},
		.rmpp_version = (uint8_t)row->rmpp,
	};
	int fd = umad_file(1);

	call_gave(row->what, ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), row->error);
	/* A registration that failed leaves the file as it was. */
	call_gave("ENABLE_PKEY after it", ioctl(fd, IB_USER_MAD_ENABLE_PKEY),
		  row->error ? 0 : EINVAL);
	close(fd);
}

static void row_by_second(const struct row *row)
{
	struct ib_user_mad_reg_req2 r = {
		.qpn = row->qpn,
		.mgmt_class = (uint8_t)row->class,
		.mgmt_class_version = (uint8_t)row->version,
		.flags = row->flags,
		.oui = row->oui,
		.rmpp_version = (uint8_t)row->rmpp,
	};
	int fd = umad_file(1);

	call_gave(row->what, ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r), row->error);
	if (row->flags & ~1u && row->qpn < 2)
		call_gave("flags that are known", r.flags == 1 ? 0 : -1, 0);
	close(fd);
}

static void errnos_of_pointers(void)
{
	int fd = umad_file(1);
	uint32_t id = 32;

	call_gave("REGISTER_AGENT from nowhere", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, nowhere),
		  EFAULT);
	call_gave("REGISTER_AGENT from the edge",
		  ioctl(fd, IB_USER_MAD_REGISTER_AGENT, nowhere - 20), EFAULT);
	call_gave("REGISTER_AGENT2 from nowhere", ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, nowhere),
		  EFAULT);
	call_gave("UNREGISTER_AGENT from nowhere", ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, nowhere),
		  EFAULT);
	call_gave("UNREGISTER_AGENT of 32", ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), EINVAL);
	id = 0;
	call_gave("UNREGISTER_AGENT of none", ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), EINVAL);
	call_gave("another call", ioctl(fd, _IO(0x1b, 9)), ENOTTY);
	call_gave("a call of terminals", ioctl(fd, 0x5401, nowhere - 256), ENOTTY);
	close(fd);
}

static int method_register(int fd, unsigned class, unsigned version, uint32_t oui, unsigned method)
{
	struct ib_user_mad_reg_req r = {
		.qpn = class != 0x81 && class != 0x01,
		.mgmt_class = (uint8_t) class,
		.mgmt_class_version = (uint8_t)version,
		.oui = {(uint8_t)(oui >> 16), (uint8_t)(oui >> 8), (uint8_t)oui},
	};

	r.method_mask[method / 64] = 1ul << method % 64;
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r);
}

static void errnos_of_methods(void)
{
	int fd = umad_file(1), other = umad_file(1);

	call_gave("a method", method_register(fd, 0x0c, 1, 0, 3), 0);
	call_gave("the same again", method_register(fd, 0x0c, 1, 0, 3), EINVAL);
	call_gave("the same, another file", method_register(other, 0x0c, 1, 0, 3), EINVAL);
	call_gave("another method", method_register(other, 0x0c, 1, 0, 4), 0);
	call_gave("method 127", method_register(other, 0x0c, 1, 0, 127), 0);
	call_gave("another class version", method_register(other, 0x0c, 2, 0, 3), 0);
	call_gave("another class", method_register(other, 0x0d, 1, 0, 3), 0);
	call_gave("a vendor's method", method_register(fd, 0x31, 1, 1, 3), 0);
	call_gave("another vendor's", method_register(other, 0x31, 1, 2, 3), 0);
	call_gave("the same vendor's", method_register(other, 0x31, 1, 1, 3), EINVAL);
	for (uint32_t oui = 3; oui <= 8; oui++)
		call_gave("up to 8 vendors", method_register(other, 0x31, 1, oui, 3), 0);
	call_gave("a ninth vendor", method_register(other, 0x31, 1, 9, 3), ENOMEM);
	call_gave("of another class", method_register(other, 0x32, 1, 9, 3), 0);
	call_gave("the kernel's method", method_register(fd, 0x07, 2, 0, 3), EINVAL);
	call_gave("its class, another method", method_register(fd, 0x07, 2, 0, 4), 0);
	call_gave("its class, another version", method_register(fd, 0x07, 1, 0, 3), 0);
	close(other);
	close(fd);
}

static void errnos_of_slots(void)
{
	int fd = umad_file(1);
	struct ib_user_mad_reg_req r = {.qpn = 1, .mgmt_class = 0x0c, .mgmt_class_version = 1};
	uint32_t id = 17;

	for (int i = 0; i < 32; i++)
		call_gave("32 agents", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	call_gave("a 33rd agent", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), ENOMEM);
	r.rmpp_version = 2;
	call_gave("a 33rd with a mistake", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), ENOMEM);
	r.qpn = 2;
	call_gave("a 33rd on QP 2", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), EINVAL);
	r = (struct ib_user_mad_reg_req){.qpn = 1, .mgmt_class = 0x0c, .mgmt_class_version = 1};
	call_gave("UNREGISTER_AGENT", ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), 0);
	call_gave("the free place", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	call_gave("its number", r.id == 17 ? 0 : -1, 0);
	close(fd);
}

void errnos_of_register(void)
{
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		row_by_first(&both[i]);
		row_by_second(&both[i]);
	}
	for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++)
		row_by_second(&second[i]);
	errnos_of_pointers();
	errnos_of_methods();
	errnos_of_slots();
}

/* The second port's file is an Ethernet device's: it has no QP 0. */
void errnos_of_ethernet(void)
{
	struct ib_user_mad_reg_req r = {.qpn = 0, .mgmt_class = 0x81, .mgmt_class_version = 1};
	int fd = open("/dev/infiniband/umad1", O_RDWR | O_CLOEXEC);

	call_gave("its file", fd, 0);
	call_gave("QP 0", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), EPROTONOSUPPORT);
	r.rmpp_version = 2;
	call_gave("QP 0 with another mistake", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r),
		  EPROTONOSUPPORT);
	r = (struct ib_user_mad_reg_req){.qpn = 1, .mgmt_class = 0x0c, .mgmt_class_version = 1};
	call_gave("QP 1", ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	call_gave("issm", open("/dev/infiniband/issm1", O_RDONLY | O_NONBLOCK), ENOENT);
	close(fd);
}
