// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is installed, and what the Debian packages say of it: debian/ repeats facts of the Makefile,
 * of NEWS.md and of the library, and this compares them. `make test-deb` tests the packages
 * themselves.
 */
#include <unistd.h>

#include "base/library/library.h"
#include "tests/command.h"
#include "tests/unit/house/house.h"

/* Returns the words between the first @begin and the next @end of a file. */
static void words_of(struct names *l, const char *path, const char *begin, const char *end)
{
	char *text = house_text(path), *from = strstr(text, begin), *to, *save, *word;

	if (!from)
		fail_msg("%s: no \"%s\"", path, begin);
	from += strlen(begin);
	to = strstr(from, end);
	assert_non_null(to);
	*to = '\0';
	for (word = strtok_r(from, " \t\n\\,", &save); word;
	     word = strtok_r(NULL, " \t\n\\,", &save))
		names_add(l, word);
	free(text);
}

static void has_each(const struct names *in, const char *where, const struct names *of,
		     const char *const *except)
{
	unsigned int i, k;

	assert_true(of->n > 0);
	for (i = 0; i < of->n; i++) {
		/* versions and restrictions are not names of packages */
		if (!strchr("abcdefghijklmnopqrstuvwxyz", of->v[i][0]))
			continue;
		for (k = 0; except[k] && strcmp(of->v[i], except[k]); k++)
			;
		if (!except[k] && names_find(in, of->v[i]) == in->n)
			fail_msg("%s lacks %s", where, of->v[i]);
	}
}

/* What a build needs is in the Makefile, too. */
static void packages__build_depends(void **state)
{
	/* part of build-essential, which Debian takes for granted */
	static const char *const essential[] = { "gcc", "make", "linux-libc-dev", NULL };
	static const char *const debian[] = { "debhelper-compat", "dh-sequence-installsysusers",
					      "dh-sequence-python3", "libcmocka-dev", NULL };
	struct names make = { 0 }, control = { 0 };

	(void)state;
	words_of(&make, "Makefile", "PKGS_BUILD := ", "\nPKGS_RUN");
	words_of(&control, "debian/control", "\nBuild-Depends:", "\n\n");
	has_each(&control, "Build-Depends in debian/control", &make, essential);
	has_each(&make, "PKGS_BUILD in the Makefile", &control, debian);
	names_free(&make);
	names_free(&control);
}

/* dpkg-shlibdeps(1) does not see what a program loads when it uses it. */
static void packages__loaded_libraries(void **state)
{
#define X(name, file, package, use) package,
	static const char *const packages[] = { BL_LIBRARIES(X) };
#undef X
	struct names control = { 0 };
	unsigned int k;

	(void)state;
	words_of(&control, "debian/control", "\nPackage: barline\n", "\nDescription:");
	for (k = 0; k < BL_LIBRARIES_N; k++)
		if (names_find(&control, packages[k]) == control.n)
			fail_msg("debian/control: barline does not depend on %s", packages[k]);
	names_free(&control);
}

/* Each version of NEWS.md is in debian/changelog, with its date, in the same order. */
static void packages__changelog(void **state)
{
	char *news = house_text("NEWS.md"), *log = house_text("debian/changelog"), *at = log, *p;
	unsigned int n = 0;

	(void)state;
	for (p = news; (p = strstr(p, "\n## ")); n++) {
		int a, b, c, year = 0, month = 0, day = 0, made;
		char head[64], month_name[4], date[64];
		char *end;

		p += strlen("\n## ");
		assert_int_equal(
			sscanf(p, "%d.%d.%d (%d-%d-%d)", &a, &b, &c, &year, &month, &day) > 2, 1);
		/* a version that is not released yet is before its release: 0.3.0~pre1 */
		snprintf(head, sizeof(head), "barline (%d.%d.%d%s", a, b, c, day ? ")" : "~");
		at = strstr(at, head);
		if (!at)
			fail_msg("debian/changelog has no \"%s\", or in another order", head);
		end = strstr(at, "\n -- ");
		assert_non_null(end);
		made = sscanf(end, "\n -- The barline authors <%*[^>]> %*[^,], %63[^:]", date);
		assert_int_equal(made, 1);
		if (day) {
			int d, y;

			assert_int_equal(sscanf(date, "%d %3s %d", &d, month_name, &y), 3);
			assert_int_equal(d, day);
			assert_int_equal(y, year);
			assert_int_equal(
				(strstr("JanFebMarAprMayJunJulAugSepOctNovDec", month_name) -
				 "JanFebMarAprMayJunJulAugSepOctNovDec") /
						3 +
					1,
				month);
		}
	}
	assert_true(n >= 3);
	free(news);
	free(log);
}

/* Fails unless @command, run in the folder of the build, prints @want. */
static void says(const char *command, const char *want)
{
	char build[PATH_SIZE], *said;
	int status;

	build_folder(build, sizeof(build));
	said = command_output(&status, "cd %s && %s", build, command);
	assert_non_null(said);
	said[strcspn(said, "\n")] = '\0';
	if (status || strcmp(said, want))
		fail_msg("%s: \"%s\", debian/changelog: \"%s\"", command, said, want);
	free(said);
}

/* Programs, library, pages and crate have the version that debian/changelog begins with. */
static void packages__one_version(void **state)
{
	char *log = house_text("debian/changelog"), *version = log + strlen("barline ("), *tilde;
	char *symbols = house_text("debian/libbarline0.symbols");
	char next[64], want[96];

	(void)state;
	assert_memory_equal(log, "barline (", strlen("barline ("));
	*strchrnul(version, ')') = '\0';
	says("./barline --version | cut -d ' ' -f 2", version);
	says("./barlined --version | cut -d ' ' -f 2", version);
	says("sed -n 's/^Version: //p' barline.pc", version);
	says("sed -n 's/^.TH BL_SEND 3 .* \"barline \\(.*\\)\"/\\1/p' man/bl_send.3", version);
	/* what is installed by an upgrade in tests */
	snprintf(next, sizeof(next), "%s-next", version);
	says("next/barlined --version | cut -d ' ' -f 2", next);
	/* Cargo knows no tilde; a hyphen says the same there */
	tilde = strchr(version, '~');
	snprintf(next, sizeof(next), "%s", version);
	if (tilde)
		next[tilde - version] = '-';
	says("sed -n 's/^version = \"\\(.*\\)\"/\\1/p' \"$OLDPWD\"/bindings/rust/Cargo.toml", next);
	/* interfaces that a release added are in all of its versions before the release, too */
	if (tilde) {
		*tilde = '\0';
		snprintf(want, sizeof(want), "(symver)BARLINE_0 %s~\n", version);
		assert_non_null(strstr(symbols, want));
	}
	free(log);
	free(symbols);
}

/* Returns whether the list has an entry that ends so. */
static bool installed(const struct names *l, const char *end)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (has_suffix(l->v[i], end))
			return true;
	return false;
}

/* Nothing is compiled, because others use the folder of the build. */
static void make_in(const char *target, const char *destdir)
{
	char command[PATH_SIZE], build[PATH_SIZE / 2];

	build_folder(build, sizeof(build));
	snprintf(command, sizeof(command), "make -s -o all B='%s' DESTDIR=%s %s", build, destdir,
		 target);
	if (system(command))
		fail_msg("%s", command);
}

static char dir[] = "/tmp/barline-install-XXXXXX";

static int remove_dir(void **state)
{
	char command[PATH_SIZE];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/*
 * The manual pages point at documents, and debian/NAME.install at files: all of them are installed.
 * An uninstallation removes everything but folders that are others', too.
 */
static void packages__install_and_uninstall(void **state)
{
	char command[PATH_SIZE];
	struct names files = { 0 }, left = { 0 }, refs = { 0 }, lists = { 0 };
	unsigned int i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	make_in("install", dir);
	snprintf(command, sizeof(command), "find %s ! -type d", dir);
	names_of(&files, command);
	assert_true(installed(&files, "/usr/local/bin/barline"));
	assert_true(installed(&files, "/usr/local/sbin/barlined"));
	names_of(&refs, "grep -oh 'docs/[A-Za-z0-9_-][A-Za-z0-9_-]*\\.[a-z]*' docs/*.[138] | sort "
			"-u");
	assert_true(refs.n > 10);
	for (i = 0; i < refs.n; i++) {
		char end[PATH_SIZE + 32];

		snprintf(end, sizeof(end), "/share/doc/barline/%s", refs.v[i]);
		if (!installed(&files, end))
			fail_msg("a manual page names %s, which is not installed", refs.v[i]);
	}
	/* by the last component of each line, which is a file or a folder */
	names_of(&lists, "grep -hv '^#' debian/*.install");
	for (i = 0; i < lists.n; i++) {
		const char *last = strrchr(lists.v[i], '/');
		char pattern[PATH_SIZE + 64];

		assert_non_null(last);
		snprintf(pattern, sizeof(pattern), "find %s -path '*%s' | grep -q .", dir, last);
		if (system(pattern))
			fail_msg("debian/*.install: nothing is installed for %s", lists.v[i]);
	}
	make_in("uninstall", dir);
	names_of(&left, command);
	if (left.n)
		fail_msg("%s stays after an uninstallation", left.v[0]);
	snprintf(command, sizeof(command), "find %s -name '*barline*' ! -path %s", dir, dir);
	names_of(&left, command);
	if (left.n)
		fail_msg("%s stays after an uninstallation", left.v[0]);
	names_free(&files);
	names_free(&left);
	names_free(&refs);
	names_free(&lists);
}

/* Scripts that only a removal or an upgrade runs must at least be scripts. */
static void packages__scripts(void **state)
{
	(void)state;
	assert_int_equal(system("for f in debian/*.p*inst debian/*.p*rm; do dash -n $f && "
				"grep -q '^#DEBHELPER#$' $f || exit 1; done"),
			 0);
	assert_int_equal(system("for f in debian/tests/[a-z]*; do [ $f = debian/tests/control ] || "
				"{ bash -n $f && [ -x $f ] && "
				"grep -qx \"Tests: ${f##*/}\" debian/tests/control; } || exit 1; "
				"done"),
			 0);
	assert_int_equal(system("bash -n tests/deb/run.sh && bash -n tests/deb/guest.sh"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packages__build_depends),
		cmocka_unit_test(packages__loaded_libraries),
		cmocka_unit_test(packages__changelog),
		cmocka_unit_test(packages__one_version),
		cmocka_unit_test_teardown(packages__install_and_uninstall, remove_dir),
		cmocka_unit_test(packages__scripts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
