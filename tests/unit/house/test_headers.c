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

/* Compiles one header. Returns whether that succeeded. */
static bool compile(const char *path, const char *build)
{
	const char *cc = getenv("BL_CC"), *clang = getenv("BL_CLANG");
	char command[1024];

	if (is_bpf(path))
		snprintf(command, sizeof(command),
			 "%s -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter "
			 "-Wno-unused-function "
			 "-target bpf -mcpu=v3 -I. -I/usr/include/$(gcc -print-multiarch) "
			 "-fsyntax-only -x c %s 2>&1 | head -n 8",
			 clang ? clang : "clang-16", path);
	else
		snprintf(command, sizeof(command),
			 "%s -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-unused-parameter "
			 "-Wno-unused-function -Wno-unused-variable "
			 "-Wno-missing-field-initializers -D_GNU_SOURCE "
			 "-DBARLINE_VERSION='\"0\"' -I. -I%s -fsyntax-only -x c %s 2>&1 | head -n "
			 "8",
			 cc ? cc : "gcc", build, path);
	{
		FILE *p = popen(command, "r");
		bool good = true;
		char line[512];

		assert_non_null(p);
		while (fgets(line, sizeof(line), p)) {
			if (good)
				print_error("%s does not compile by itself:\n", path);
			print_error("  %s", line);
			good = false;
		}
		pclose(p);
		return good;
	}
}

/* Runs as many processes as there are CPUs; each one compiles every n-th header. */
static void headers__compile_alone(void **state)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int n = cpus > 1 ? (unsigned int)cpus : 1, i, k, failed = 0;
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
			unsigned int bad = 0;

			for (i = k; i < files.n; i += n)
				bad += !compile(files.v[i], build);
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
	char path[] = "/tmp/barline-header-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_true(write(fd, "struct bl_hdr unknown;\n", 23) == 23);
	close(fd);
	assert_false(compile(path, "build"));
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
