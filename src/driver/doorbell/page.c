// SPDX-License-Identifier: BSD-2-Clause
/* Pages of registers join and leave the set. */
#include "driver/doorbell/page.h"

#include <errno.h>
#include <stdlib.h>

int doorbell_page_create(const struct doorbell_page_attr *attr, struct doorbell_page **out)
{
	struct doorbell_page *page = calloc(1, sizeof(*page));
	bool fresh;

	if (!page)
		return -ENOMEM;
	page->attr = *attr;
	page->refs = 1;
	if (attr->look)
		atomic_init(&page->state, DOORBELL_DIRECT);
	spin_lock(&doorbell_set.lock);
	page->next = doorbell_set.pages;
	doorbell_set.pages = page;
	doorbell_mappings_join(page);
	fresh = doorbell_page_changed(page);
	spin_unlock(&doorbell_set.lock);
	if (fresh)
		doorbell_tell_engine();
	*out = page;
	return 0;
}

void doorbell_page_destroy(struct doorbell_page *page)
{
	struct doorbell_page **at = &doorbell_set.pages;

	spin_lock(&doorbell_set.lock);
	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	page->gone = true;
	doorbell_mappings_leave(page);
	doorbell_page_changed(page);
	/* Rings what was stored since the last look. */
	if (page->attr.look)
		(void)page->attr.look(page->attr.user);
	doorbell_page_put(page);
	spin_unlock(&doorbell_set.lock);
}
