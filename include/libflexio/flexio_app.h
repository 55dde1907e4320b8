/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications and the functions in them.  Included by flexio.h, which says what holds for every
 * function.
 *
 * A program that dpacc built needs only the variable of type struct flexio_app * that has the name
 * of the application: the constructor and destructor that dpacc makes call these functions before
 * main and at exit.
 */
#ifndef _FLEXIO_APP_H_
#define _FLEXIO_APP_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * flexio_app_create() - make an application of a device program.
 * @fattr: its name and its ELF file, which is copied: the caller may free it
 * @app: receives the application
 *
 * Fails if the name is empty, longer than FLEXIO_MAX_NAME_LEN, or if the file is no ELF file.  One
 * that is no device program for this machine is refused by flexio_process_create().  It is called
 * by the constructor that dpacc makes, and may be called with a file that the program read by
 * itself.
 */
flexio_status flexio_app_create(struct flexio_app_attr *fattr, struct flexio_app **app);

/**
 * flexio_app_destroy() - free an application, its registered functions and the copy of the file.
 * @app: the application
 *
 * Its processes stay until they are destroyed, and calls that are under way end as usual.  Nobody
 * finds its functions any more: calls, tasks, event handlers and error handlers that name one fail.
 * The destructor that dpacc makes calls this at exit, whether processes are left or not.
 */
flexio_status flexio_app_destroy(struct flexio_app *app);

/**
 * flexio_app_get_list() - list the applications of this program.
 * @app_list: receives an array, to be freed by flexio_app_list_free()
 * @num_apps: receives the number of its entries
 */
flexio_status flexio_app_get_list(struct flexio_app ***app_list, uint32_t *num_apps);

/**
 * flexio_app_list_free() - free what flexio_app_get_list() made; the applications stay.
 * @apps_list: the array
 */
flexio_status flexio_app_list_free(struct flexio_app **apps_list);

/**
 * flexio_app_get_name() - the name of an application.
 * @app: the application
 *
 * Returns a string that is valid until flexio_app_destroy(), or NULL on error.
 */
const char *flexio_app_get_name(struct flexio_app *app);

/**
 * flexio_app_get_elf_size() - the size of an application's ELF file.
 * @app: the application
 *
 * Returns bytes, or 0 on error.
 */
size_t flexio_app_get_elf_size(struct flexio_app *app);

/**
 * flexio_app_get_elf() - copy an application's ELF file.
 * @app: the application
 * @bin_buff: receives the file
 * @bin_size: bytes of the buffer; fails if they are fewer than flexio_app_get_elf_size()
 *
 * The manual describes another function under this name.
 */
flexio_status flexio_app_get_elf(struct flexio_app *app, uint64_t *bin_buff, size_t bin_size);

/**
 * flexio_app_extract_symbol() - copy what a variable of the device code begins with.
 * @app: the application
 * @symbol_name: the variable's name
 * @symbol_data: receives its bytes, as the device's ELF file has them: a pointer in them is not one
 *	of a process
 * @sym_data_size: bytes of the buffer; receives the bytes of the variable, or 0 if the application
 *	has none of that name
 *
 * Succeeds without a copy if there is no such variable.  Fails if the buffer is too small.
 */
flexio_status flexio_app_extract_symbol(struct flexio_app *app, const char *symbol_name,
					void *symbol_data, size_t *sym_data_size);

/**
 * flexio_func_pup_register() - register a device function that has pack and unpack functions.
 * @app: the application
 * @dev_func_name: name of the device function, up to FLEXIO_MAX_NAME_LEN bytes
 * @dev_unpack_func_name: name of the device function that takes the arguments out of the buffer and
 *	calls it, up to FLEXIO_MAX_NAME_LEN bytes
 * @host_stub_func_addr: the key by which the program names the function: any pointer that is not
 *	the key of another function of this program
 * @argbuf_size: bytes of the argument buffer
 * @host_pack_func: stores the arguments in the buffer
 *
 * Fails if the key is registered already or if the file has no such functions.  It is called by the
 * constructor that dpacc makes, for each annotated function.
 */
flexio_status flexio_func_pup_register(struct flexio_app *app, const char *dev_func_name,
				       const char *dev_unpack_func_name,
				       flexio_func_t *host_stub_func_addr, size_t argbuf_size,
				       flexio_func_arg_pack_fn_t *host_pack_func);

/**
 * flexio_func_register() - register a device function by its name.
 * @app: the application
 * @dev_func_name: name of the device function, up to FLEXIO_MAX_NAME_LEN bytes
 * @out_func: receives a handle for flexio_process_call(), flexio_event_handler_create() and so on;
 *	it is no function and is valid until flexio_app_destroy()
 *
 * The function takes one argument of type uint64_t.  The library does not check that the function
 * has the annotation that its use asks for.  Fails if the file has no function of that name.
 */
flexio_status flexio_func_register(struct flexio_app *app, const char *dev_func_name,
				   flexio_func_t **out_func);

/**
 * flexio_func_get_register_info() - what is known of a registered function.
 * @app: the application
 * @host_stub_func_addr: the key, or the handle of flexio_func_register()
 * @pup: receives 1 if the function has pack and unpack functions, otherwise 0
 * @dev_func_name: receives its name and a terminator
 * @dev_unpack_func_name: receives the name of its unpack function; not written if *pup is 0
 * @func_name_size: bytes of each of both buffers; FLEXIO_MAX_NAME_LEN + 1 are always enough, and it
 *	fails if a name does not fit
 * @argbuf_size: receives the bytes of the argument buffer; not written if *pup is 0
 * @host_pack_func: receives the pack function; not written if *pup is 0
 * @dev_func_addr: receives the function's address in a process of the application; 0: there is none
 * @dev_unpack_func_addr: receives that of the unpack function; not written if *pup is 0
 *
 * The function is for libraries above this one.  If *pup is 0, the pointers that it does not write
 * through may be NULL.
 */
flexio_status flexio_func_get_register_info(struct flexio_app *app,
					    flexio_func_t *host_stub_func_addr, uint32_t *pup,
					    char *dev_func_name, char *dev_unpack_func_name,
					    size_t func_name_size, size_t *argbuf_size,
					    flexio_func_arg_pack_fn_t **host_pack_func,
					    flexio_uintptr_t *dev_func_addr,
					    flexio_uintptr_t *dev_unpack_func_addr);

#ifdef __cplusplus
}
#endif

#endif
