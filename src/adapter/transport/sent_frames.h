/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that have gone are retired together: each lock waits for what has been stored before it, for
 * lines that the receiver looks at.  With qp->sq held.
 */
#pragma once

#include "adapter/qp/qp.h"

/* The current request's frames have gone. */
void sent_frames_add(struct qp *qp);
/* Retires those that have been added, if any.  Comes before the end of each run of the requester. */
void sent_frames_retire(struct qp *qp);
