// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Libraries that are loaded when they are first used (base/library/): `barline` and `barlined`
 * start without them, a command that only looks does not load them, and one that needs a library
 * which is missing says which, and which package has it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/library/curl.h"
#include "base/library/gnutls.h"
#include "base/library/microhttpd.h"
#include "base/library/sqlite.h"
#include "base/library/systemd.h"
#include "tests/unit/barline_says.h"

/*
 * How many shared objects a start may load, with libc, libm, the loader, and what libelf and libbpf
 * need. Each costs a start about a quarter of a millisecond, and many bring others.
 */
#define OBJECTS_MAX 12

static const char *const files[] = {
#define X(name, file, package, use) [BL_LIBRARY_##name] = file,
	BL_LIBRARIES(X)
#undef X
};

/* Returns what a command of the shell prints on both outputs; the caller frees it. */
static char *shell_says(const char *command)
{
	char *text = NULL;
	size_t room = 0;
	FILE *f = popen(command, "r");

	assert_non_null(f);
	assert_true(getdelim(&text, &room, '\0', f) > 0);
	pclose(f);
	return text;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); n++)
		text += strlen(what);
	return n;
}

static void has_none(const char *text, const char *who)
{
	unsigned int k;

	for (k = 0; k < BL_LIBRARIES_N; k++)
		if (strstr(text, files[k]))
			fail_msg("%s needs %s before it uses it", who, files[k]);
}

static void library__programs_are_not_linked_with_it(void **state)
{
	static const char *const programs[] = { "", "d" };
	char path[PATH_MAX], command[PATH_MAX + 64], *text;
	unsigned int k;

	(void)state;
	barline_command(path, sizeof(path));
	for (k = 0; k < ARRAY_SIZE(programs); k++) {
		snprintf(command, sizeof(command), "readelf -d %s%s", path, programs[k]);
		text = shell_says(command);
		assert_true(count(text, "(NEEDED)") > 2); /* it was read */
		has_none(text, command);
		free(text);
	}
}

/* What the loader says that it initialises, is loaded. */
static void library__looking_loads_none(void **state)
{
	static const char *const looks[] = { "barline status",     "barline show nodes",
					     "barline --version",  "barline help",
					     "barlined --version", "barline events" };
	char path[PATH_MAX], command[PATH_MAX + 128], *text;
	unsigned int k;

	(void)state;
	barline_command(path, sizeof(path));
	*strrchr(path, '/') = '\0';
	for (k = 0; k < ARRAY_SIZE(looks); k++) {
		snprintf(command, sizeof(command), "LD_DEBUG=files %s/%s 2>&1", path, looks[k]);
		text = shell_says(command);
		has_none(text, looks[k]);
		assert_in_range(count(text, "calling init: "), 3, OBJECTS_MAX);
		free(text);
	}
}

/* The file that is loaded is the one whose headers were included. */
static void library__is_the_one_of_the_headers(void **state)
{
	(void)state;
	assert_ptr_equal(bl_library_symbol(BL_LIBRARY_CURL, "curl_easy_init"),
			 (void *)curl_easy_init);
	assert_ptr_equal(bl_library_symbol(BL_LIBRARY_GNUTLS, "gnutls_init"), (void *)gnutls_init);
	assert_ptr_equal(bl_library_symbol(BL_LIBRARY_MICROHTTPD, "MHD_start_daemon"),
			 (void *)MHD_start_daemon);
	assert_ptr_equal(bl_library_symbol(BL_LIBRARY_SQLITE, "sqlite3_step"),
			 (void *)sqlite3_step);
	assert_ptr_equal(bl_library_symbol(BL_LIBRARY_SYSTEMD, "sd_event_new"),
			 (void *)sd_event_new);
}

/* An empty file is in the place of the library. */
static void library__missing_is_named(void **state)
{
	char dir[] = "/tmp/barline-library-XXXXXX", path[PATH_MAX], file[64],
	     command[PATH_MAX + 256], *text;
	FILE *f;

	(void)state;
	barline_command(path, sizeof(path));
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/libgnutls.so.30", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fclose(f);
	snprintf(command, sizeof(command),
		 "LD_LIBRARY_PATH=%s %s pki init --dir %s/pki --rack r 2>&1; echo status $?", dir,
		 path, dir);
	text = shell_says(command);
	assert_non_null(strstr(text, "cannot load the library libgnutls.so.30"));
	assert_non_null(strstr(text, "package libgnutls30 has it"));
	assert_non_null(strstr(text, "status 1\n"));
	free(text);
	/* The daemon says so by its own name. It has no interface, so that it would end anyway. */
	snprintf(command, sizeof(command),
		 "cp %s %s/libsystemd.so.0; LD_LIBRARY_PATH=%s %sd host 2>&1; echo status $?", file,
		 dir, dir, path);
	text = shell_says(command);
	assert_non_null(strstr(text, "barlined: error: cannot load the library libsystemd.so.0"));
	assert_non_null(strstr(text, "status 1\n"));
	free(text);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library__programs_are_not_linked_with_it),
		cmocka_unit_test(library__looking_loads_none),
		cmocka_unit_test(library__is_the_one_of_the_headers),
		cmocka_unit_test(library__missing_is_named),
	};

	return cmocka_run_group_tests_name("library", tests, NULL, NULL);
}
