/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of a file by the numbers that commands of DEVX name them by.  Kinds count separately,
 * so a number may be that of an object of each kind.  Under the file's lock.
 */
#pragma once

#include "driver/uverbs/core/object.h"

/* obj has its class.  Does nothing if the class has no numbers.  -ENOMEM. */
int uobj_number_add(struct uobj_table *t, struct uobj *obj) must_check;
void uobj_number_remove(struct uobj_table *t, struct uobj *obj);
/* The first object that has the number, in the order in which they were published; the others
 * follow by their alike_next.  NULL: none has it. */
struct uobj *uobj_numbered(struct uobj_table *t, uint32_t number);
