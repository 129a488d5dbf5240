/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcurl, loaded when it is first used: see library.h.
 */
#ifndef BARLINE_BASE_LIBRARY_CURL_H
#define BARLINE_BASE_LIBRARY_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/library/library.h"

#ifndef BL_LIBRARIES_LINKED
/* Macros of the header, which only check types or the number of arguments. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

/* clang-format off */
#define curl_easy_cleanup BL_LOADED(BL_LIBRARY_CURL, curl_easy_cleanup)
#define curl_easy_getinfo BL_LOADED(BL_LIBRARY_CURL, curl_easy_getinfo)
#define curl_easy_init BL_LOADED(BL_LIBRARY_CURL, curl_easy_init)
#define curl_easy_perform BL_LOADED(BL_LIBRARY_CURL, curl_easy_perform)
#define curl_easy_setopt BL_LOADED(BL_LIBRARY_CURL, curl_easy_setopt)
#define curl_easy_strerror BL_LOADED(BL_LIBRARY_CURL, curl_easy_strerror)
#define curl_global_init BL_LOADED(BL_LIBRARY_CURL, curl_global_init)
#define curl_multi_add_handle BL_LOADED(BL_LIBRARY_CURL, curl_multi_add_handle)
#define curl_multi_assign BL_LOADED(BL_LIBRARY_CURL, curl_multi_assign)
#define curl_multi_cleanup BL_LOADED(BL_LIBRARY_CURL, curl_multi_cleanup)
#define curl_multi_info_read BL_LOADED(BL_LIBRARY_CURL, curl_multi_info_read)
#define curl_multi_init BL_LOADED(BL_LIBRARY_CURL, curl_multi_init)
#define curl_multi_remove_handle BL_LOADED(BL_LIBRARY_CURL, curl_multi_remove_handle)
#define curl_multi_setopt BL_LOADED(BL_LIBRARY_CURL, curl_multi_setopt)
#define curl_multi_socket_action BL_LOADED(BL_LIBRARY_CURL, curl_multi_socket_action)
#define curl_slist_append BL_LOADED(BL_LIBRARY_CURL, curl_slist_append)
#define curl_slist_free_all BL_LOADED(BL_LIBRARY_CURL, curl_slist_free_all)
/* clang-format on */
#endif

#endif
