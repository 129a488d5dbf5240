// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See library.h. The log needs libsystemd, so that this file does not use the log. */
#include "base/library/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/program.h"

static const struct {
	const char *file, *package, *use;
} libraries[BL_LIBRARIES_N] = {
#define X(name, file, package, use) [BL_LIBRARY_##name] = { file, package, use },
	BL_LIBRARIES(X)
#undef X
};

/* Of dlopen(3). Two threads that load the same library at once get, and store, the same handle. */
static void *handles[BL_LIBRARIES_N];

int bl_library_load(enum bl_library lib, struct bl_err *err)
{
	void *h = __atomic_load_n(&handles[lib], __ATOMIC_ACQUIRE);
	const char *why;

	if (h)
		return 0;
	/* lazily, as programs are linked by default: most of libcurl's tail is never called */
	h = dlopen(libraries[lib].file, RTLD_LAZY | RTLD_LOCAL);
	if (h) {
		__atomic_store_n(&handles[lib], h, __ATOMIC_RELEASE);
		return 0;
	}
	why = dlerror();
	if (err)
		snprintf(err->text, sizeof(err->text),
			 "cannot load the library %s, which is needed for %s: %s; Debian's package "
			 "%s has it",
			 libraries[lib].file, libraries[lib].use, why ? why : "unknown error",
			 libraries[lib].package);
	return -ELIBACC;
}

void *bl_library_symbol(enum bl_library lib, const char *name)
{
	struct bl_err err;
	void *at;

	if (bl_library_load(lib, &err)) {
		fprintf(stderr, "%s: error: %s\n", bl_program(), err.text);
		exit(EXIT_FAILURE);
	}
	at = dlsym(__atomic_load_n(&handles[lib], __ATOMIC_ACQUIRE), name);
	if (at)
		return at;
	fprintf(stderr,
		"%s: error: the library %s has no %s: it is another version than the one that this "
		"program was built for; Debian's package %s has that\n",
		bl_program(), libraries[lib].file, name, libraries[lib].package);
	exit(EXIT_FAILURE);
}
