/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SQLite, loaded when it is first used: see library.h.
 */
#ifndef BARLINE_BASE_LIBRARY_SQLITE_H
#define BARLINE_BASE_LIBRARY_SQLITE_H

#include <sqlite3.h>

#include "base/library/library.h"

#ifndef BL_LIBRARIES_LINKED
/* clang-format off */
#define sqlite3_bind_blob BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_bind_blob)
#define sqlite3_bind_int64 BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_bind_int64)
#define sqlite3_bind_text BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_bind_text)
#define sqlite3_busy_timeout BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_busy_timeout)
#define sqlite3_close BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_close)
#define sqlite3_column_blob BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_column_blob)
#define sqlite3_column_bytes BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_column_bytes)
#define sqlite3_column_int64 BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_column_int64)
#define sqlite3_column_text BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_column_text)
#define sqlite3_errmsg BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_errmsg)
#define sqlite3_errstr BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_errstr)
#define sqlite3_exec BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_exec)
#define sqlite3_finalize BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_finalize)
#define sqlite3_get_autocommit BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_get_autocommit)
#define sqlite3_open_v2 BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_open_v2)
#define sqlite3_prepare_v2 BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_prepare_v2)
#define sqlite3_step BL_LOADED(BL_LIBRARY_SQLITE, sqlite3_step)
/* clang-format on */
#endif

#endif
