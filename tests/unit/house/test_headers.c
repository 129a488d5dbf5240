// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every header compiles by itself: those of bpf/ and the definitions of maps with clang for BPF,
 * all others with the compiler of the build. BL_CC and BL_CLANG name other compilers.
 *
 * A header that does not compile is reported with the first lines of its compiler's output.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/house/house.h"

static bool is_bpf(const char *path)
{
	return !strncmp(path, "bpf/", 4) || (!strncmp(path, "maps/", 5) && has_suffix(path, "_maps."
											    "h"));
}

/* Headers that one call of the compiler is given: it compiles each by itself, and starts once. */
#define AT_ONCE 16

/*
 * Compiles the @n headers @path, which are all of bpf/ or all not. Returns whether that succeeded.
 * @say: report the one header, and the compiler's output
 */
static bool compile(char *const *path, unsigned int n, const char *build, bool say)
{
	const char *cc = getenv("BL_CC"), *clang = getenv("BL_CLANG");
	char command[1024 + AT_ONCE * PATH_SIZE], line[512];
	bool good = true;
	unsigned int k;
	size_t len;
	FILE *p;

	if (is_bpf(path[0]))
		snprintf(command, sizeof(command),
			 "%s -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter "
			 "-Wno-unused-function "
			 "-target bpf -mcpu=v3 -I. -I/usr/include/$(gcc -print-multiarch) "
			 "-fsyntax-only -x c",
			 clang ? clang : "clang-16");
	else
		snprintf(command, sizeof(command),
			 "%s -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-unused-parameter "
			 "-Wno-unused-function -Wno-unused-variable "
			 "-Wno-missing-field-initializers -D_GNU_SOURCE "
			 "-DBARLINE_VERSION='\"0\"' -I. -I%s -fsyntax-only -x c",
			 cc ? cc : "gcc", build);
	for (k = 0; k < n; k++) {
		len = strlen(command);
		snprintf(command + len, sizeof(command) - len, " %s", path[k]);
	}
	len = strlen(command);
	snprintf(command + len, sizeof(command) - len, " 2>&1 | head -n 8");
	p = popen(command, "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		if (good && say)
			print_error("%s does not compile by itself:\n", path[0]);
		if (say)
			print_error("  %s", line);
		good = false;
	}
	pclose(p);
	return good;
}

/* As compile(). If one of several does not compile, each is compiled again, and reported. */
static unsigned int failures(char *const *path, unsigned int n, const char *build)
{
	unsigned int k, bad = 0;

	if (n > 1 && compile(path, n, build, false))
		return 0;
	for (k = 0; k < n; k++)
		bad += !compile(path + k, 1, build, true);
	if (n > 1 && !bad) {
		print_error("%u headers compile by themselves, but not in one call: %s ...\n", n,
			    path[0]);
		bad = 1;
	}
	return bad;
}

/* Compiles every @n-th of @files from @first on. Returns how many of them do not compile. */
static unsigned int compile_share(const struct names *files, unsigned int first, unsigned int n,
				  const char *build)
{
	char *set[2][AT_ONCE];
	unsigned int size[2] = {}, i, bpf, bad = 0;

	for (i = first; i < files->n; i += n) {
		bpf = is_bpf(files->v[i]);
		set[bpf][size[bpf]++] = files->v[i];
		if (size[bpf] == AT_ONCE) {
			bad += failures(set[bpf], AT_ONCE, build);
			size[bpf] = 0;
		}
	}
	for (bpf = 0; bpf < 2; bpf++)
		if (size[bpf])
			bad += failures(set[bpf], size[bpf], build);
	return bad;
}

/* Runs as many processes as there are CPUs; each one compiles every n-th header. */
static void headers__compile_alone(void **state)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int n = cpus > 1 ? (unsigned int)cpus : 1, k, failed = 0;
	struct names files = {};
	char build[PATH_SIZE];

	(void)state;
	build_folder(build, sizeof(build));
	house_files(&files, "-name '*.h' ! -path './tests/*'");
	assert_true(files.n > 100);
	fflush(NULL);
	for (k = 0; k < n; k++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			unsigned int bad = compile_share(&files, k, n, build);

			fflush(NULL);
			_exit(bad > 100 ? 100 : (int)bad);
		}
	}
	for (k = 0; k < n; k++) {
		int status;

		assert_true(wait(&status) > 0 && WIFEXITED(status));
		failed += (unsigned int)WEXITSTATUS(status);
	}
	names_free(&files);
	assert_int_equal(failed, 0);
}

/* A header that needs another one and does not include it is found. */
static void headers__one_that_does_not_is_found(void **state)
{
	char path[] = "/tmp/barline-header-XXXXXX", other[] = "maps/wire_abi.h";
	char *const among[] = { path, other };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_true(write(fd, "struct bl_hdr unknown;\n", 23) == 23);
	close(fd);
	/* alone, and among others, where it is the only one that is reported */
	assert_int_equal(failures(among, 1, "build"), 1);
	assert_int_equal(failures(among, 2, "build"), 1);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers__compile_alone),
		cmocka_unit_test(headers__one_that_does_not_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
