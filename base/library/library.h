/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared libraries that are loaded when they are first used, and not when a program starts.
 *
 * A command that reads a few maps must not wait for libcurl and the twenty libraries behind it:
 * they cost a start of `barline` thirty of its forty milliseconds (2026-11-29). So `barline` and
 * `barlined` are not linked with the libraries of this list. curl.h, gnutls.h, microhttpd.h,
 * sqlite.h and systemd.h beside this file are included instead of the libraries' own headers, which
 * they include; each function that is used has one line there:
 *
 *	#define gnutls_init BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_init)
 *
 * so that gnutls_init(&session, GNUTLS_CLIENT) has the type that the header declares, and finds the
 * function at its first call. A function without such a line is an error of the linker. The name of
 * the macro cannot be the initialiser of a static variable.
 *
 * Code that is about to use a library and can report an error calls bl_library_load() first. A call
 * of a function whose library is missing ends the process, with the same sentence.
 *
 * The packages are in debian/control, too, because dpkg-shlibdeps(1) only sees what a program is
 * linked with; tests/unit/house/test_packages.c compares them.
 *
 * Thread rules: every function may be called from any thread.
 */
#ifndef BARLINE_BASE_LIBRARY_LIBRARY_H
#define BARLINE_BASE_LIBRARY_LIBRARY_H

#include "base/log.h"

/* The name, the file that is loaded, its Debian package, and what it is needed for. */
#define BL_LIBRARIES(X)                                                                  \
	X(CURL, "libcurl-gnutls.so.4", "libcurl3-gnutls", "etcd")                        \
	X(GNUTLS, "libgnutls.so.30", "libgnutls30", "TLS, certificates and keys")        \
	X(MICROHTTPD, "libmicrohttpd.so.12", "libmicrohttpd12", "metrics by HTTP")       \
	X(SQLITE, "libsqlite3.so.0", "libsqlite3-0", "a controller's store in one file") \
	X(SYSTEMD, "libsystemd.so.0", "libsystemd0", "event loops and the journal")

enum bl_library {
#define X(name, file, package, use) BL_LIBRARY_##name,
	BL_LIBRARIES(X)
#undef X
		BL_LIBRARIES_N
};

/**
 * bl_library_load - Loads @lib, unless that was done before.
 *
 * Returns 0, or -ELIBACC with a sentence that names the library and the package that has it.
 */
int bl_library_load(enum bl_library lib, struct bl_err *err);

/** bl_library_symbol - The address of @name, of @lib. Ends the process if there is none. */
void *bl_library_symbol(enum bl_library lib, const char *name);

/** BL_LOADED - The function or variable @name of @lib, which is looked up once at each place. */
#define BL_LOADED(lib, name)                                                 \
	(*({                                                                 \
		static void *bl_at_;                                         \
		void *bl_is_ = __atomic_load_n(&bl_at_, __ATOMIC_RELAXED);   \
		if (!bl_is_) {                                               \
			bl_is_ = bl_library_symbol(lib, #name);              \
			__atomic_store_n(&bl_at_, bl_is_, __ATOMIC_RELAXED); \
		}                                                            \
		(__typeof__(&name))bl_is_;                                   \
	}))

#endif
