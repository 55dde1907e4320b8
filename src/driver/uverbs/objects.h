/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object families: their records, and the methods and commands each family implements
 * (uverbs_<family>.c), which the tables of uverbs/methods.c and uverbs/write.c name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/port.h"
#include "driver/uverbs/core/request.h"

struct ib_uverbs_ah_attr;

/* Each record begins with its uobj, so that free(uobj) frees the record. */
struct upd {
	struct uobj uobj;
	uint32_t pdn;
};

/* A ring that peers may see (uverbs/objects/share.c), with its doorbell record. */
struct ushared_ring {
	uint64_t buf, dbrec;
	struct share *pages[2]; /* where they are in the arena, or NULL */
};

struct umr {
	struct uobj uobj;
	struct upd *pd;
	struct mkey *mkey;
	struct mkey_attr attr;
	uint32_t dm_handle;  /* the device memory that it lies on, or 0 */
	struct share *share; /* its pages in the arena, or NULL */
};

struct umw {
	struct uobj uobj;
	struct upd *pd;
	struct window *window;
};

struct uxrcd {
	struct uobj uobj;
	struct xrc_domain *domain;
};

struct ucq {
	struct uobj uobj;
	struct cq *cq;
	struct doorbell_user bell;
	struct uchannel *comp; /* or NULL */
	uint32_t comp_events;  /* the channel's lock */
	uint32_t entries;
	uint32_t cqe_bytes;
	struct ushared_ring shared;
};

struct usrq {
	struct uobj uobj;
	struct upd *pd;
	struct uxrcd *xrcd; /* XRC, with its CQ; otherwise NULL */
	struct ucq *cq;
	struct srq *srq;
	uint32_t max_wr;
	uint32_t max_sge;
};

struct uqp {
	struct uobj uobj;
	/* NULL where the type has none */
	struct upd *pd;
	struct ucq *send_cq;
	struct ucq *recv_cq;
	struct usrq *srq;
	struct uxrcd *xrcd;
	struct uind_table *ind_table; /* RSS */
	uint32_t groups;	      /* multicast groups that it is attached to */
	struct xrc_target *target;    /* shares qp with other handles */
	struct uqp *next_handle;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	uint32_t max_recv_wr; /* of the ring as it is, which query reports */
	uint32_t max_recv_sge;
	bool sq_sig_all;
	struct ushared_ring shared; /* of receives */
};

extern const struct uobj_class uqp_class;

struct uah {
	struct uobj uobj;
	struct upd *pd;
};

struct uuar {
	struct uobj uobj;
	uint32_t page;
	struct doorbell_page *bell;
};

/* The device's number of the domain. */
uint32_t uxrcd_number(const struct uxrcd *xrcd);

/* The queue's doorbells come by that page of the file, if it has one.  Before it is published. */
void uqp_bell(struct uqp *qp, struct ufile *f, uint32_t uar_page);
void ucq_bell(struct ucq *cq, struct ufile *f, uint32_t uar_page);
/* Registers of a page that the program names, or NULL. */
uint8_t *uuar_regs(struct ufile *f, uint32_t page);
/* The program has mapped a part of the file; and no mapping of its pages counts any more. */
void uuar_mapped(struct ufile *f, uintptr_t addr, size_t len, off_t offset);
void uuar_forget(struct ufile *f);
/* The program asks for an event of the CQ, or may have. */
void ucq_ring(struct ucq *cq);

/*
 * Checks address handle attributes against the port and decodes them; resolves the destination MAC
 * on Ethernet.  Negative errno as ib_core.
 */
int uah_decode(const struct ufile *f, const struct ib_uverbs_ah_attr *in,
	       struct ib_ah *out) must_check;

/*
 * Is the memory of the program there, and writable if asked?  Makes it resident, as pinning would.
 * -EFAULT if not, -EINVAL for an empty or wrapping range.
 */
int umem_populate(uint64_t start, uint64_t length, bool write) must_check;

/* Which rights may be asked for together; -EINVAL. */
int umr_check_access(uint32_t access) must_check;
/* A region with a handle; its rights and memory have been checked. */
int umr_create(struct ufile *f, struct upd *pd, const struct mkey_attr *attr,
	       struct umr **out) must_check;

/* ---- ioctl methods ---- */

int method_invoke_write(struct ureq *req);
int method_get_context(struct ureq *req);
int method_query_context(struct ureq *req);
int method_query_port(struct ureq *req);
int method_query_port_mlx5(struct ureq *req);
int method_query_gid_table(struct ureq *req);
int method_query_gid_entry(struct ureq *req);
int method_info_handles(struct ureq *req);
int method_pd_query(struct ureq *req);
int method_query_mr(struct ureq *req);
int method_advise_mr(struct ureq *req);
int method_dm_alloc(struct ureq *req);
int method_dm_free(struct ureq *req);
int method_dm_query(struct ureq *req);
int method_dm_map_op(struct ureq *req);
int method_dm_mr_reg(struct ureq *req);
int method_matcher_create(struct ureq *req);
int method_flow_create_mlx5(struct ureq *req);
int method_cq_create(struct ureq *req);
int method_cq_destroy(struct ureq *req);
int method_qp_create(struct ureq *req);
int method_qp_destroy(struct ureq *req);
int method_srq_create(struct ureq *req);
int method_srq_destroy(struct ureq *req);
int method_async_alloc(struct ureq *req);
int method_uar_alloc(struct ureq *req);
int method_uar_destroy(struct ureq *req);
int method_wq_create(struct ureq *req);
int method_wq_destroy(struct ureq *req);
int method_counters_create(struct ureq *req);
int method_counters_read(struct ureq *req);
int method_devx_other(struct ureq *req);
int method_devx_query_eqn(struct ureq *req);
int method_devx_query_uar(struct ureq *req);
int method_devx_subscribe(struct ureq *req);
int method_devx_obj_create(struct ureq *req);
int method_devx_obj_destroy(struct ureq *req);
int method_devx_obj_modify(struct ureq *req);
int method_devx_obj_query(struct ureq *req);
int method_devx_obj_query_async(struct ureq *req);
int method_devx_umem_reg(struct ureq *req);
int method_devx_umem_dereg(struct ureq *req);
int method_devx_async_alloc(struct ureq *req);
int method_devx_event_alloc(struct ureq *req);

/* ---- commands ---- */

int cmd_get_context(struct ureq *req);
int cmd_query_device(struct ureq *req);
int cmd_query_device_ex(struct ureq *req);
int cmd_query_port(struct ureq *req);
int cmd_alloc_pd(struct ureq *req);
int cmd_dealloc_pd(struct ureq *req);
int cmd_reg_mr(struct ureq *req);
int cmd_rereg_mr(struct ureq *req);
int cmd_dereg_mr(struct ureq *req);
int cmd_alloc_mw(struct ureq *req);
int cmd_dealloc_mw(struct ureq *req);
int cmd_open_xrcd(struct ureq *req);
int cmd_close_xrcd(struct ureq *req);
int cmd_create_comp_channel(struct ureq *req);
int cmd_create_cq(struct ureq *req);
int cmd_create_cq_ex(struct ureq *req);
int cmd_resize_cq(struct ureq *req);
int cmd_modify_cq(struct ureq *req);
int cmd_destroy_cq(struct ureq *req);
int cmd_create_qp(struct ureq *req);
int cmd_create_qp_ex(struct ureq *req);
int cmd_open_qp(struct ureq *req);
int cmd_modify_qp(struct ureq *req);
int cmd_modify_qp_ex(struct ureq *req);
int cmd_query_qp(struct ureq *req);
int cmd_destroy_qp(struct ureq *req);
int cmd_create_srq(struct ureq *req);
int cmd_create_xsrq(struct ureq *req);
int cmd_modify_srq(struct ureq *req);
int cmd_query_srq(struct ureq *req);
int cmd_destroy_srq(struct ureq *req);
int cmd_create_ah(struct ureq *req);
int cmd_destroy_ah(struct ureq *req);
int cmd_attach_mcast(struct ureq *req);
int cmd_detach_mcast(struct ureq *req);
int cmd_create_flow_ex(struct ureq *req);
int cmd_destroy_flow_ex(struct ureq *req);
int cmd_create_wq_ex(struct ureq *req);
int cmd_modify_wq_ex(struct ureq *req);
int cmd_destroy_wq_ex(struct ureq *req);
int cmd_create_rwq_ind_tbl_ex(struct ureq *req);
int cmd_destroy_rwq_ind_tbl_ex(struct ureq *req);
