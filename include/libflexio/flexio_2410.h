/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What generation 24.10 and later add to the host interface, as far as public programs use it.
 * Included by flexio.h for programs that ask for it.
 */
#ifndef _FLEXIO_2410_H_
#define _FLEXIO_2410_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The DPA chooses a thread's EUs and may change them, which FLEXIO_AFFINITY_NONE means here. */
#define FLEXIO_AFFINITY_FLEXIBLE FLEXIO_AFFINITY_NONE

/** Which image of an application: those of dpacc have one, for the machine. */
enum flexio_hw_model_id {
	/** The image that fits the device. */
	FLEXIO_HW_MODEL_DEF = 0,
};

/* Marks of functions in the SDK's headers, for programs that use them too. */
#define FLEXIO_STABLE __attribute__((__visibility__("default"), __used__))
#ifdef FLEXIO_ALLOW_EXPERIMENTAL_API
#define FLEXIO_EXPERIMENTAL FLEXIO_STABLE __attribute__((__section__(".text.experimental")))
#else
#define FLEXIO_EXPERIMENTAL                                             \
	FLEXIO_STABLE __attribute__((__section__(".text.experimental"), \
				     __deprecated__("this symbol is experimental")))
#endif

/** Which application flexio_app_get() looks for. */
struct flexio_app_select_attr {
	/** Its name. */
	const char *app_name;
	/** FLEXIO_HW_MODEL_DEF; an application has an image of no other number. */
	enum flexio_hw_model_id hw_model_id;
	/** The device on which it will run. */
	struct ibv_context *ibv_ctx;
};

/**
 * flexio_version_set() - say which generation the program is written against.
 * @version: FLEXIO_VER_USED
 *
 * Fails if these headers do not know it.
 */
static inline flexio_status flexio_version_set(uint64_t version)
{
	return version >= FLEXIO_LAST_SUPPORTED_VERSION && version <= FLEXIO_CURRENT_VERSION
		       ? FLEXIO_STATUS_SUCCESS
		       : FLEXIO_STATUS_FAILED;
}

/**
 * flexio_app_get() - find an application of this program.
 * @attr: its name
 * @app: receives the application, or NULL
 *
 * Fails if there is none of that name, or none for that model.
 */
static inline flexio_status flexio_app_get(const struct flexio_app_select_attr *attr,
					   struct flexio_app **app)
{
	struct flexio_app **list = NULL;
	uint32_t count = 0;
	uint32_t i;

	if (!app)
		return FLEXIO_STATUS_FAILED;
	*app = NULL;
	if (!attr || !attr->app_name || !attr->ibv_ctx ||
	    attr->hw_model_id != FLEXIO_HW_MODEL_DEF ||
	    flexio_app_get_list(&list, &count) != FLEXIO_STATUS_SUCCESS)
		return FLEXIO_STATUS_FAILED;
	for (i = 0; i < count && !*app; i++) {
		const char *name = flexio_app_get_name(list[i]);

		if (name && strcmp(name, attr->app_name) == 0)
			*app = list[i];
	}
	(void)flexio_app_list_free(list);
	return *app ? FLEXIO_STATUS_SUCCESS : FLEXIO_STATUS_FAILED;
}

#ifdef __cplusplus
}
#endif

#endif
