/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libmicrohttpd, loaded when it is first used: see library.h.
 */
#ifndef BARLINE_BASE_LIBRARY_MICROHTTPD_H
#define BARLINE_BASE_LIBRARY_MICROHTTPD_H

#include <microhttpd.h>

#include "base/library/library.h"

#ifndef BL_LIBRARIES_LINKED
/* clang-format off */
#define MHD_add_response_header BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_add_response_header)
#define MHD_create_response_from_buffer \
	BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_create_response_from_buffer)
#define MHD_destroy_response BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_destroy_response)
#define MHD_get_connection_info BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_get_connection_info)
#define MHD_lookup_connection_value BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_lookup_connection_value)
#define MHD_queue_response BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_queue_response)
#define MHD_resume_connection BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_resume_connection)
#define MHD_start_daemon BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_start_daemon)
#define MHD_stop_daemon BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_stop_daemon)
#define MHD_suspend_connection BL_LOADED(BL_LIBRARY_MICROHTTPD, MHD_suspend_connection)
/* clang-format on */
#endif

#endif
