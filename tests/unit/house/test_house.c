// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compares the code with the rules that docs/architecture.md states as data:
 *
 *   floors     a folder includes only what is below it
 *   circles    no two sources use each other's functions, directly or through others, except those
 *              that the page names
 *   private    a *_priv.h is included only in its own folder and by the unit tests of that folder
 *   includes   are at the top of a file, and no file includes a .c file
 *   lines      have at most 100 columns, and every file has its SPDX line
 *   mutants    of tests/mutants quote lines that are in the tree
 *
 * Example: with "base maps" below "core", base/log.h that includes "core/core.h" is reported as
 * "base/log.h:7: base includes core, which does not stand below it".
 *
 * Circles are found in the objects of the build: an edge leads from a source to the one that
 * defines a symbol that it needs. A callback that is passed in a struct makes no edge, so it is the
 * way to break a circle.
 */
#include <ctype.h>
#include <unistd.h>

#include "tests/unit/house/house.h"

#define FLOORS_MAX 32
#define COLUMNS    100

static unsigned int wrong;

#define COMPLAIN(...)                     \
	do {                              \
		print_error(__VA_ARGS__); \
		print_error("\n");        \
		wrong++;                  \
	} while (0)

/* ---- floors ---- */

struct floors {
	struct names folder;
	unsigned int floor[FLOORS_MAX];
	unsigned int n;
};

static struct floors plan;

static void add_floor(const char *line, void *ctx)
{
	struct floors *p = ctx;
	char copy[256], *save, *word;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		unsigned int i = names_add(&p->folder, word);

		assert_true(i < FLOORS_MAX);
		p->floor[i] = p->n;
	}
	p->n++;
}

/* Returns the folder of the plan that contains @path, the longest that matches; -1: none. */
static int folder_of(const struct floors *p, const char *path)
{
	size_t best = 0;
	unsigned int i;
	int found = -1;

	for (i = 0; i < p->folder.n; i++) {
		size_t n = strlen(p->folder.v[i]);

		if (n > best && !strncmp(path, p->folder.v[i], n) && path[n] == '/') {
			best = n;
			found = (int)i;
		}
	}
	return found;
}

/* Returns what is wrong if @path includes @target, or NULL. */
static const char *floor_fault(const struct floors *p, const char *path, const char *target)
{
	int from = folder_of(p, path), to = folder_of(p, target);

	if (from < 0 || from == to)
		return NULL;
	if (to < 0)
		return strncmp(target, "tests/", 6) ? NULL : "includes a test";
	return p->floor[to] < p->floor[from] ? NULL
					     : "includes a folder that does not stand below it";
}

/* Writes the top-level folder of @path to @top. */
static void top_folder(const char *path, char *top, size_t size)
{
	snprintf(top, size, "%.*s", (int)strcspn(path, "/"), path);
}

static const char *private_fault(const char *path, const char *target)
{
	char of[PATH_SIZE], in[PATH_SIZE], test[PATH_SIZE + 16];

	if (!has_suffix(target, "_priv.h"))
		return NULL;
	top_folder(target, of, sizeof(of));
	top_folder(path, in, sizeof(in));
	if (!strcmp(of, in))
		return NULL;
	snprintf(test, sizeof(test), "tests/unit/%s/", of);
	/* fuzzers test parts, too, and are in one folder */
	return strncmp(path, test, strlen(test)) && strncmp(path, "tests/fuzz/", 11)
		       ? "includes a private header of another folder"
		       : NULL;
}

/*
 * Calls @fn for each #include "..." of @text, with its line and with whether code precedes it.
 * Comments, blank lines and preprocessor lines are not code.
 */
static void each_include(const char *text,
			 void (*fn)(const char *target, unsigned int line, bool late, void *ctx),
			 void *ctx)
{
	bool comment = false, code = false, directive = false;
	unsigned int number = 1;
	const char *line = text;

	for (; *line; number++) {
		const char *end = strchrnul(line, '\n'), *p = line;
		char target[PATH_SIZE];

		while (p < end) {
			if (comment) {
				const char *q = memmem(p, (size_t)(end - p), "*/", 2);

				comment = !q;
				p = q ? q + 2 : end;
			} else if (isspace((unsigned char)*p)) {
				p++;
			} else if (!strncmp(p, "/*", 2)) {
				comment = true;
				p += 2;
			} else if (!strncmp(p, "//", 2)) {
				p = end;
			} else if (directive || *p == '#') {
				if (!directive && sscanf(p, "#include \"%255[^\"]\"", target) == 1)
					fn(target, number, code, ctx);
				directive = end > p && end[-1] == '\\';
				/* A comment that begins in a directive continues after it. */
				p = memmem(p, (size_t)(end - p), "/*", 2);
				if (!p)
					p = end;
			} else {
				code = true;
				p = end;
			}
		}
		line = *end ? end + 1 : end;
	}
}

struct including {
	const char *path;
	const struct floors *plan;
};

static void check_include(const char *written, unsigned int line, bool late, void *ctx)
{
	const struct including *i = ctx;
	char target[2 * PATH_SIZE];
	const char *fault;
	int folder = 0;

	/* A file without a slash is beside the file that includes it, or is generated. */
	if (!strchr(written, '/') && strrchr(i->path, '/') && !strstr(written, ".skel.h"))
		folder = (int)(strrchr(i->path, '/') + 1 - i->path);
	snprintf(target, sizeof(target), "%.*s%s", folder, i->path, written);
	fault = floor_fault(i->plan, i->path, target);

	if (fault)
		COMPLAIN("%s:%u: %s: %s", i->path, line, fault, target);
	fault = private_fault(i->path, target);
	if (fault)
		COMPLAIN("%s:%u: %s: %s", i->path, line, fault, target);
	if (late)
		COMPLAIN("%s:%u: an include in the middle of the file: %s", i->path, line, target);
	if (has_suffix(target, ".c") && !has_suffix(i->path, ".bpf.c"))
		COMPLAIN("%s:%u: includes a source: %s; link it", i->path, line, target);
}

static void house__includes(void **state)
{
	struct names files = {};
	unsigned int i;

	(void)state;
	wrong = 0;
	house_files(&files, "-name '*.[ch]'");
	assert_true(files.n > 300);
	for (i = 0; i < files.n; i++) {
		char *text = house_text(files.v[i]);
		struct including in = { .path = files.v[i], .plan = &plan };

		each_include(text, check_include, &in);
		free(text);
	}
	names_free(&files);
	assert_int_equal(wrong, 0);
}

static void count_late(const char *target, unsigned int line, bool late, void *ctx)
{
	unsigned int *n = ctx;

	(void)target;
	(void)line;
	n[late]++;
}

/* Violations of each rule are found. */
static void house__violations_are_found(void **state)
{
	static const struct {
		const char *path, *target;
		bool floor, private;
	} t[] = {
		{ "base/log.h", "core/core.h", true, false },
		{ "core/core.h", "maps/wire_abi.h", false, false },
		{ "bpf/host/run.h", "lib/barline.h", true, false },
		{ "lib/tx.c", "lib/internal.h", false, false },
		{ "arbiter/comm.c", "loader/node.h", true, false },
		{ "cli/show/show.c", "lab/lab.h", false, false },
		{ "lab/lab.c", "cli/util/cmd.h", false, false },
		{ "lab/lab.c", "cli/show/show.h", true, false },
		{ "lab/lab.c", "bench/rack/bench.h", true, false },
		{ "lib/tx.c", "tests/unit/unit.h", true, false },
		{ "cli/node.c", "loader/node_priv.h", false, true },
		{ "loader/order/clock.c", "loader/node_priv.h", false, false },
		{ "tests/unit/loader/order/test_clock.c", "loader/node_priv.h", false, false },
		{ "tests/unit/lib/test_lib_tx.c", "loader/node_priv.h", false, true },
		{ "tests/fuzz/fuzz_agent.c", "loader/order/agent_priv.h", false, false },
		{ "tests/net/loader/test_nic.c", "loader/node_priv.h", false, true },
	};
	unsigned int n[2] = {}, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (!!floor_fault(&plan, t[i].path, t[i].target) != t[i].floor ||
		    !!private_fault(t[i].path, t[i].target) != t[i].private)
			fail_msg("%s that includes %s is judged wrongly", t[i].path, t[i].target);
	}
	each_include("/* a */\n#include \"a.h\"\n#define X \\\n\t1\n/* b\n#include \"no.h\"\n*/\n"
		     "#include \"b.h\"\nint x;\n#include \"c.h\"\n",
		     count_late, n);
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1], 1);
}

/* ---- circles ---- */

struct graph {
	struct names source;
	unsigned char *edge; /* source.n squared */
};

struct symbol {
	char name[PATH_SIZE];
	unsigned int source;
};

static int compare_symbols(const void *a, const void *b)
{
	return strcmp(((const struct symbol *)a)->name, ((const struct symbol *)b)->name);
}

/* Returns the source "loader/node" of the object "build/loader/node.o". */
static unsigned int source_of(struct graph *g, const char *build, const char *object)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s", object + strlen(build) + 1);
	path[strcspn(path, ":[")] = '\0';
	assert_true(has_suffix(path, ".o"));
	path[strlen(path) - 2] = '\0';
	return names_add(&g->source, path);
}

/* Returns whether the source of @object exists: a build folder keeps objects of removed files. */
static bool has_source(const char *build, const char *object)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s", object + strlen(build) + 1);
	path[strcspn(path, ":[")] = '\0';
	assert_true(has_suffix(path, ".o"));
	path[strlen(path) - 1] = 'c';
	return !access(path, R_OK);
}

/* Appends the top folders of the plan to @command, each with @prefix before it. */
static void add_top_folders(char *command, size_t size, const char *prefix)
{
	unsigned int i;

	for (i = 0; i < plan.folder.n; i++)
		if (!strchr(plan.folder.v[i], '/'))
			snprintf(command + strlen(command), size - strlen(command), " %s%s", prefix,
				 plan.folder.v[i]);
}

/* Reads with nm(1) which of the product's objects in @build needs which other one. */
static void read_graph(struct graph *g, const char *build)
{
	struct {
		struct symbol *v;
		unsigned int n, room;
	} defined = {}, needed = {};
	char command[1024] = "", line[4096], object[PATH_SIZE], name[PATH_SIZE], type;
	unsigned int i;
	FILE *p;

	snprintf(command, sizeof(command), "find");
	snprintf(name, sizeof(name), "%s/", build);
	add_top_folders(command, sizeof(command), name);
	snprintf(command + strlen(command), sizeof(command) - strlen(command),
		 " -name '*.o' ! -name '*.bpf.o' ! -name '*.pb-c.o' 2>/dev/null | "
		 "xargs nm -A -P -g");
	p = popen(command, "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		struct symbol **v;
		unsigned int *n, *room;

		if (sscanf(line, "%255s %255s %c", object, name, &type) != 3 ||
		    !has_source(build, object))
			continue;
		v = type == 'U' ? &needed.v : &defined.v;
		n = type == 'U' ? &needed.n : &defined.n;
		room = type == 'U' ? &needed.room : &defined.room;
		if (*n == *room) {
			*room = *room ? 2 * *room : 1024;
			*v = realloc(*v, *room * sizeof(**v));
			assert_non_null(*v);
		}
		snprintf((*v)[*n].name, PATH_SIZE, "%s", name);
		(*v)[(*n)++].source = source_of(g, build, object);
	}
	assert_int_equal(pclose(p), 0);
	assert_true(defined.n > 500 && g->source.n > 100);
	qsort(defined.v, defined.n, sizeof(*defined.v), compare_symbols);
	g->edge = calloc(g->source.n, g->source.n);
	assert_non_null(g->edge);
	for (i = 0; i < needed.n; i++) {
		const struct symbol *d = bsearch(&needed.v[i], defined.v, defined.n,
						 sizeof(*defined.v), compare_symbols);

		if (d && d->source != needed.v[i].source)
			g->edge[needed.v[i].source * g->source.n + d->source] = 1;
	}
	free(defined.v);
	free(needed.v);
}

static void reach_from(const struct graph *g, unsigned int from, unsigned char *seen)
{
	unsigned int to;

	for (to = 0; to < g->source.n; to++)
		if (g->edge[from * g->source.n + to] && !seen[to]) {
			seen[to] = 1;
			reach_from(g, to, seen);
		}
}

/* Appends one line to @out for each circle: its sources in the order of their names. */
static void find_circles(const struct graph *g, struct names *out)
{
	unsigned int n = g->source.n, a, b;
	unsigned char *reach = calloc(n, n), *done = calloc(n, 1);

	assert_non_null(reach);
	assert_non_null(done);
	for (a = 0; a < n; a++)
		reach_from(g, a, reach + a * n);
	for (a = 0; a < n; a++) {
		char line[PATH_SIZE] = "";
		struct names in = {};

		if (done[a] || !reach[a * n + a])
			continue;
		for (b = 0; b < n; b++)
			if (reach[a * n + b] && reach[b * n + a]) {
				done[b] = 1;
				names_add(&in, g->source.v[b]);
			}
		qsort(in.v, in.n, sizeof(*in.v), (int (*)(const void *, const void *))strcmp);
		for (b = 0; b < in.n; b++)
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s",
				 b ? " " : "", in.v[b]);
		names_add(out, line);
		names_free(&in);
	}
	free(reach);
	free(done);
}

static void add_circle(const char *line, void *ctx)
{
	if (strcmp(line, "none"))
		names_add(ctx, line);
}

static void house__circles(void **state)
{
	struct names found = {}, named = {};
	char build[PATH_SIZE];
	struct graph g = {};
	unsigned int i;

	(void)state;
	wrong = 0;
	build_folder(build, sizeof(build));
	read_graph(&g, build);
	find_circles(&g, &found);
	block_lines("circles", add_circle, &named);
	for (i = 0; i < found.n; i++)
		if (names_find(&named, found.v[i]) == named.n)
			COMPLAIN("a circle that " HOUSE_PAGE " does not name: %s", found.v[i]);
	for (i = 0; i < named.n; i++)
		if (names_find(&found, named.v[i]) == found.n)
			COMPLAIN(HOUSE_PAGE " names a circle that is not there: %s", named.v[i]);
	names_free(&found);
	names_free(&named);
	names_free(&g.source);
	free(g.edge);
	assert_int_equal(wrong, 0);
}

/* a uses b, b uses c, c uses b and d: one circle, "b c". */
static void house__a_circle_is_found(void **state)
{
	unsigned char edge[16] = {
		[0 * 4 + 1] = 1, [1 * 4 + 2] = 1, [2 * 4 + 1] = 1, [2 * 4 + 3] = 1
	};
	struct graph g = { .edge = edge };
	struct names found = {};

	(void)state;
	names_add(&g.source, "a");
	names_add(&g.source, "c");
	names_add(&g.source, "b");
	names_add(&g.source, "d");
	find_circles(&g, &found);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0], "b c");
	names_free(&found);
	names_free(&g.source);
}

/* ---- lines ---- */

/*
 * Returns the columns of the @n bytes at @line: tabs go to the next multiple of 8, UTF-8 counts
 * once.
 */
static unsigned int columns_of(const char *line, size_t n)
{
	unsigned int columns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (line[i] == '\t')
			columns += 8 - columns % 8;
		else if (((unsigned char)line[i] & 0xc0) != 0x80)
			columns++;
	}
	return columns;
}

static void check_lines(const char *path, const char *text)
{
	const char *line = text, *end;
	unsigned int number = 1;

	for (; *line; line = *end ? end + 1 : end, number++) {
		end = strchrnul(line, '\n');
		/* A row of a table in a page cannot be folded. */
		if (*line == '|' && has_suffix(path, ".md"))
			continue;
		if (columns_of(line, (size_t)(end - line)) > COLUMNS)
			COMPLAIN("%s:%u: a line of %u columns", path, number,
				 columns_of(line, (size_t)(end - line)));
		if (end > line && isspace((unsigned char)end[-1]))
			COMPLAIN("%s:%u: white space at the end of the line", path, number);
	}
	if (!strstr(text, "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"))
		COMPLAIN("%s: no SPDX line", path);
}

/*
 * Files that are exempt from the rules for lines: texts of licences, lists that quote code, inputs
 * of fuzzers, and files of packages in whose format there are no comments.
 */
static bool lines_exempt(const char *path)
{
	return !strncmp(path, "LICENSES/", 9) || !strncmp(path, "tests/fuzz/corpus/", 18) ||
	       !strcmp(path, "debian/changelog") || !strcmp(path, "debian/copyright") ||
	       !strcmp(path, "debian/source/format") || has_suffix(path, ".mut") ||
	       has_suffix(path, ".png") || has_suffix(path, ".svg") || has_suffix(path, ".json") ||
	       !strcmp(path, ".gitignore");
}

static void house__lines(void **state)
{
	struct names files = {};
	unsigned int i;

	(void)state;
	wrong = 0;
	house_files(&files, "-name '*'");
	for (i = 0; i < files.n; i++) {
		char *text;

		if (lines_exempt(files.v[i]))
			continue;
		text = house_text(files.v[i]);
		check_lines(files.v[i], text);
		free(text);
	}
	names_free(&files);
	assert_int_equal(wrong, 0);
}

static void house__columns(void **state)
{
	static const struct {
		const char *line;
		unsigned int columns;
	} t[] = { { "", 0 },          { "a", 1 },           { "\t", 8 },      { "a\tb", 9 },
		  { "1234567\t", 8 }, { "12345678\t", 16 }, { "\xc3\xa4", 1 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(columns_of(t[i].line, strlen(t[i].line)), t[i].columns);
}

/* ---- mutants ---- */

/* Returns how often the lines of @lines occur in @text as whole lines. */
static unsigned int count_lines(const char *text, const char *lines)
{
	size_t n = strlen(lines);
	const char *p = text;
	unsigned int count = 0;

	for (; (p = strstr(p, lines)); p += n)
		count += p == text || p[-1] == '\n';
	return count;
}

/*
 * Checks one list: the "- " lines of each mutant, which it replaces, must occur in its file exactly
 * once. Otherwise the mutant is stale, and its defect is no longer tried.
 */
static void check_mutants(const char *path)
{
	char *text = house_text(path), *save, *line, *source = NULL, *from = NULL;
	char file[PATH_SIZE] = "";
	unsigned int number = 0;
	size_t size = 0;
	FILE *f = NULL;

	for (line = text; line; line = save ? save + 1 : NULL) {
		save = strchr(line, '\n');
		if (save)
			*save = '\0';
		number++;
		if (!strncmp(line, "- ", 2)) {
			if (!f)
				f = open_memstream(&from, &size);
			assert_non_null(f);
			fprintf(f, "%s\n", line + 2);
			continue;
		}
		if (f) {
			fclose(f);
			f = NULL;
			if (!source || count_lines(source, from) != 1)
				COMPLAIN("%s:%u: a stale mutant: its lines are not in %s once",
					 path, number - 1, file);
			free(from);
			from = NULL;
		}
		if (sscanf(line, "file %255s", file) == 1) {
			free(source);
			source = access(file, R_OK) ? NULL : house_text(file);
		}
	}
	free(source);
	free(text);
}

static void house__mutants_quote_lines(void **state)
{
	struct names lists = {};
	unsigned int i;

	(void)state;
	wrong = 0;
	house_files(&lists, "-name '*.mut'");
	assert_true(lists.n >= 9);
	for (i = 0; i < lists.n; i++)
		check_mutants(lists.v[i]);
	names_free(&lists);
	assert_int_equal(wrong, 0);
	assert_int_equal(count_lines("a\nb\na\nb\n", "a\nb\n"), 2);
	assert_int_equal(count_lines("xa\nb\n", "a\nb\n"), 0);
}

static int read_plan(void **state)
{
	(void)state;
	block_lines("floors", add_floor, &plan);
	return plan.n < 5;
}

static int free_plan(void **state)
{
	(void)state;
	names_free(&plan.folder);
	return 0;
}

/*
 * Functions that a test has its own of (WRAP_ in the Makefile) are called somewhere: a wrapper of a
 * function that was renamed replaces nothing, and the test calls the product's.
 */
static void house__wrappers_replace_something(void **state)
{
	char command[1024], name[PATH_SIZE];
	unsigned int n = 0;
	FILE *p;

	(void)state;
	wrong = 0;
	p = popen("awk '/^WRAP_/ { on = 1; sub(/^[^=]*=/, \"\") } on { print } "
		  "on && !/\\\\$/ { on = 0 }' Makefile | tr -s ' \\t\\\\' '\\n' | "
		  "grep -xE '[a-z0-9_]+' | sort -u",
		  "r");
	assert_non_null(p);
	while (fscanf(p, "%255s", name) == 1) {
		n++;
		snprintf(command, sizeof(command), "grep -rqE '\\b%s\\(' --include='*.[ch]'", name);
		add_top_folders(command, sizeof(command), "");
		if (system(command))
			COMPLAIN("nothing calls %s, which a test wraps (WRAP_ in the Makefile)",
				 name);
	}
	assert_int_equal(pclose(p), 0);
	assert_true(n > 30);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(house__includes),
		cmocka_unit_test(house__violations_are_found),
		cmocka_unit_test(house__circles),
		cmocka_unit_test(house__a_circle_is_found),
		cmocka_unit_test(house__lines),
		cmocka_unit_test(house__columns),
		cmocka_unit_test(house__mutants_quote_lines),
		cmocka_unit_test(house__wrappers_replace_something),
	};

	return cmocka_run_group_tests(tests, read_plan, free_plan);
}
