// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of admission's options (loader/admission/options.c) against everything that is derived
 * from it: keys of files, flags at start and of `barline admission set`, completion, and manual
 * pages. Every option is there, and nothing else is.
 *
 *  build/tests/unit/test_options --man file|start|set
 *
 * prints the part of docs/barlined.8 (file) or docs/barline.1 (start, set) that is between the line
 * `.\" options: ...` and the line `.\" end of options` there.
 */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "loader/admission/admission_argp.h"
#include "loader/admission/options.h"
#include "loader/config.h"
#include "loader/node_cfg.h"
#include "tests/unit/barline_says.h"
#include "tests/unit/loader/config_wraps.h"

/* ---- the table ---- */

static void table__complete(void **state)
{
	unsigned int k, n;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (!o->key || !o->text || !o->roles || (!o->unit && o->kind != BL_OPTION_TRUTH))
			fail_msg("option %u (%s) has no key, text, role or unit", k, o->key);
		if (!o->size != (o->kind == BL_OPTION_BLOCK))
			fail_msg("%s: member of %zu bytes", o->key, o->size);
		if (o->kind == BL_OPTION_NUMBER &&
		    (o->least > o->greatest || (o->dflt && o->dflt < o->least) ||
		     o->dflt > o->greatest))
			fail_msg("%s: default out of range", o->key);
		for (n = 0; o->kind == BL_OPTION_NAME && n <= o->greatest; n++)
			if (!o->names || !o->names[n])
				fail_msg("%s: value %u has no name", o->key, n);
		/* t is shown as a time, and the share for others as part of the reserved rate. */
		if (o->set && !o->show && k != BL_AO_T_SLOTS && k != BL_AO_OUTSIDE_PERCENT)
			fail_msg("%s can be set and is not shown", o->key);
		if (o->column && !o->show)
			fail_msg("%s has a column and no key in JSON", o->key);
		assert_true(islower((unsigned char)*o->text) || !strncmp(o->text, "K:", 2) ||
			    !strncmp(o->text, "T:", 2) || !strncmp(o->text, "T ", 2) ||
			    isdigit((unsigned char)*o->text) || !strncmp(o->text, "a SYNC", 2));
		assert_int_not_equal(o->text[strlen(o->text) - 1], '.');
	}
	assert_null(bl_option(BL_AO_COUNT));
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static void table__names_once(void **state)
{
	unsigned int k, j;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++)
		for (j = 0; j < k; j++) {
			const struct bl_option *a = bl_option(j), *b = bl_option(k);

			if (same_text(a->key, b->key) && (j < BL_AO_TOP) == (k < BL_AO_TOP))
				fail_msg("%s is twice there", a->key);
			if (same_text(a->set, b->set))
				fail_msg("admission set has --%s twice", a->set);
			/* Limits of queues have two keys and one flag for the same member. */
			if (same_text(a->start, b->start) && (a->at != b->at || a->size != b->size))
				fail_msg("--%s is of %s and of %s", a->start, a->key, b->key);
		}
}

/* ---- at start ---- */

static const struct argp_option *start_flag(const char *name)
{
	const struct argp_option *f;

	for (f = bl_admission_argp.options; f->name || f->doc; f++)
		if (same_text(f->name, name))
			return f;
	return NULL;
}

static void start__flags(void **state)
{
	const struct argp_option *f;
	unsigned int k;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (!o->start)
			continue;
		f = start_flag(o->start);
		if (!f)
			fail_msg("no flag --%s", o->start);
		assert_int_equal(!f->arg, o->kind == BL_OPTION_TRUTH);
		assert_non_null(strstr(f->doc, o->text));
	}
	for (f = bl_admission_argp.options; f->name || f->doc; f++) {
		for (k = 0; f->name && k < BL_AO_COUNT && !same_text(bl_option(k)->start, f->name);
		     k++)
			;
		if (f->name && k == BL_AO_COUNT)
			fail_msg("--%s is not in the table", f->name);
	}
}

/* Gives one flag and returns the value of its member afterwards. */
static uint64_t parse_start_flag(const struct bl_option *o, const char *value)
{
	struct bl_admission_cfg a = { .on = true };
	char flag[128], *argv[] = { "test", flag, NULL };

	snprintf(flag, sizeof(flag), "--%s%s%s", o->start, value ? "=" : "", value ? value : "");
	argp_parse(&bl_admission_argp, 2, argv, ARGP_SILENT, NULL, &a);
	if (o->kind == BL_OPTION_TEXT)
		return !strcmp((const char *)&a + o->at, value);
	return bl_option_load(o, &a);
}

static uint64_t parse_start_number(const struct bl_option *o, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return parse_start_flag(o, text);
}

static void start__values(void **state)
{
	uint64_t least, v;
	unsigned int k;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (!o->start)
			continue;
		print_message("--%s\n", o->start);
		switch (o->kind) {
		case BL_OPTION_NUMBER:
			least = bl_option_start_least(o);
			assert_int_equal(parse_start_number(o, least), least + o->add);
			assert_int_equal(parse_start_number(o, o->greatest), o->greatest + o->add);
			assert_int_equal(parse_start_number(o, o->greatest + 1), 0);
			if (least)
				assert_int_equal(parse_start_number(o, least - 1), 0);
			assert_int_equal(parse_start_flag(o, "1x"), 0);
			assert_int_equal(parse_start_flag(o, ""), 0);
			break;
		case BL_OPTION_NAME:
			for (v = 0; v <= o->greatest; v++)
				assert_int_equal(parse_start_flag(o, o->names[v]), v + o->add);
			assert_int_equal(parse_start_flag(o, "best"), 0);
			break;
		case BL_OPTION_RATE:
			assert_int_equal(parse_start_flag(o, "2mbit"), 2000000);
			assert_int_equal(parse_start_flag(o, "1mbit"), 0);
			break;
		case BL_OPTION_TRUTH:
			assert_int_equal(parse_start_flag(o, NULL), 1);
			break;
		case BL_OPTION_TEXT:
			assert_true(parse_start_flag(o, "/a/file"));
			break;
		case BL_OPTION_BLOCK: {
			struct bl_admission_cfg a = { .on = true };
			char *argv[] = { "test", "--top=levels=1", "--top=hops=17", NULL };

			assert_string_equal(o->start, "top");
			argp_parse(&bl_admission_argp, 3, argv, ARGP_SILENT, NULL, &a);
			assert_int_equal(a.top.v[BL_TOP_O_LEVELS], 2);
			assert_int_equal(a.top.v[BL_TOP_O_HOPS], 0);
			break;
		}
		}
	}
}

/* ---- files ---- */

static char path[] = "/tmp/barline-options-XXXXXX";

static int load_file(enum bl_role role, const char *text, struct bl_node_cfg *c, struct bl_err *err)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "%sadmission:\n  policy: none\n%s",
		role == BL_ROLE_HOST ? "role: host\ninterface: e\n"
				     : "role: switch\nports: [ { interface: a, role: host } ]\n",
		text);
	fclose(f);
	memset(c, 0, sizeof(*c));
	return bl_config_load(c, path, err);
}

/*
 * Writes a line of the file with a value that is not the default, and returns the value that the
 * member must have afterwards.
 */
static uint64_t write_file_line(unsigned int id, char *text, size_t size)
{
	const struct bl_option *o = bl_option(id);
	const char *before = id < BL_AO_TOP ? "  " : "  top:\n    ";

	switch (o->kind) {
	case BL_OPTION_NUMBER:
		snprintf(text, size, "%s%s: %llu\n", before, o->key,
			 (unsigned long long)o->greatest);
		return o->greatest + o->add;
	case BL_OPTION_NAME:
		snprintf(text, size, "%s%s: %s\n", before, o->key, o->names[o->greatest]);
		return o->greatest + o->add;
	case BL_OPTION_RATE:
		snprintf(text, size, "%s%s: 3gbit\n", before, o->key);
		return 3000000000;
	case BL_OPTION_TRUTH:
		snprintf(text, size, "%s%s: true\n", before, o->key);
		return 1;
	case BL_OPTION_TEXT:
		snprintf(text, size, "%s%s: name\n", before, o->key);
		return 0;
	default:
		snprintf(text, size, "  %s: %s\n", o->key,
			 id == BL_AO_TOP_MAP ? "{ levels: 1 }" : "[ { class: data, frames: 9 } ]");
		return 0;
	}
}

static void file__each_key(void **state)
{
	struct bl_node_cfg c;
	struct bl_err err;
	char text[512];
	unsigned int k;
	uint64_t want;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);
		enum bl_role own = o->roles & BL_OPTION_HOSTS ? BL_ROLE_HOST : BL_ROLE_SWITCH;

		want = write_file_line(k, text, sizeof(text));
		if (load_file(own, text, &c, &err))
			fail_msg("%s: %s", o->key, err.text);
		if (bl_option_load(o, &c.admission) != want)
			fail_msg("%s: not %llu", text, (unsigned long long)want);
		if (o->kind == BL_OPTION_TEXT)
			assert_string_equal((const char *)&c.admission + o->at, "name");
		bl_config_free(&c);
		if (o->roles == (BL_OPTION_HOSTS | BL_OPTION_SWITCHES))
			continue;
		own = own == BL_ROLE_HOST ? BL_ROLE_SWITCH : BL_ROLE_HOST;
		assert_int_equal(load_file(own, text, &c, &err), -EINVAL);
		assert_non_null(strstr(err.text, "is a key of"));
	}
	assert_int_equal(load_file(BL_ROLE_HOST, "  speed: 3\n", &c, &err), -EINVAL);
	assert_int_equal(load_file(BL_ROLE_HOST, "  top: { speed: 3 }\n", &c, &err), -EINVAL);
}

/* ---- admission set, completion ---- */

/* Returns whether @text contains the word --@flag, not merely as the beginning of a longer one. */
static bool has_flag(const char *text, const char *flag)
{
	char word[64];
	const char *p;

	snprintf(word, sizeof(word), "--%s", flag);
	for (p = text; (p = strstr(p, word)); p += strlen(word))
		if (!isalnum((unsigned char)p[strlen(word)]) && p[strlen(word)] != '-')
			return true;
	return false;
}

static void set__flags(void **state)
{
	static const char *const others[] = { "rack",  "json",    "netns",   "verbose", "help",
					      "usage", "version", "replace", "pretty" };
	char *text = barline_says("admission set --help"), *p, flag[64];
	unsigned int k, n;

	(void)state;
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (o->set && *o->set && !has_flag(text, o->set))
			fail_msg("admission set has no --%s", o->set);
	}
	for (p = text; (p = strstr(p, " --")); p += n) {
		p += 3;
		n = (unsigned int)strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789-");
		snprintf(flag, sizeof(flag), "%.*s", (int)n, p);
		for (k = 0; k < sizeof(others) / sizeof(others[0]) && strcmp(others[k], flag); k++)
			;
		if (k < sizeof(others) / sizeof(others[0]))
			continue;
		for (k = 0; k < BL_AO_COUNT && !same_text(bl_option(k)->set, flag); k++)
			;
		if (k == BL_AO_COUNT)
			fail_msg("admission set has --%s, which is not in the table", flag);
	}
	free(text);
}

static void completion__has_each(void **state)
{
	static const char *const shells[] = { "completion bash", "completion zsh" };
	unsigned int k, s, v;

	(void)state;
	for (s = 0; s < 2; s++) {
		char *text = barline_says(shells[s]);

		for (k = 0; k < BL_AO_COUNT; k++) {
			const struct bl_option *o = bl_option(k);

			if (o->set && *o->set && !has_flag(text, o->set))
				fail_msg("%s: no --%s of admission set", shells[s], o->set);
			if (o->start && !has_flag(text, o->start))
				fail_msg("%s: no --%s", shells[s], o->start);
			for (v = 0; o->kind == BL_OPTION_NAME && v <= o->greatest; v++)
				assert_non_null(strstr(text, o->names[v]));
		}
		free(text);
	}
}

/* ---- manual pages ---- */

enum man { MAN_FILE, MAN_START, MAN_SET };

static const struct {
	const char *name, *page;
} pages[] = { [MAN_FILE] = { "file", "docs/barlined.8" },
	      [MAN_START] = { "start", "docs/barline.1" },
	      [MAN_SET] = { "set", "docs/barline.1" } };

/* Writes @text with each sentence on a line of its own. @capital: capitalise the first letter. */
static void put_sentences(FILE *f, const char *text, bool capital)
{
	fputc(capital ? toupper((unsigned char)*text) : *text, f);
	for (text++; *text; text++) {
		fputc(*text, f);
		if (*text == '.' && text[1] == ' ' && !islower((unsigned char)text[2])) {
			fputc('\n', f);
			text++;
		}
	}
}

static void put_argument(FILE *f, const struct bl_option *o, enum man man)
{
	unsigned int k;

	if (o->kind == BL_OPTION_TRUTH && man == MAN_START)
		return;
	fputs(man == MAN_FILE ? " :" : "", f);
	if (o->kind == BL_OPTION_TRUTH)
		fputs(man == MAN_FILE ? " true | false" : " Cm yes | no", f);
	else if (o->kind == BL_OPTION_NAME)
		for (k = 0; k <= o->greatest; k++)
			fprintf(f, "%s%s", k ? " | " : man == MAN_FILE ? " " : " Cm ", o->names[k]);
	else
		fprintf(f, " Ar %s", o->unit);
}

static void put_range(FILE *f, const struct bl_option *o, enum man man)
{
	const uint64_t least = man == MAN_SET ? o->least : bl_option_start_least(o);
	char value[32] = "";
	bool range = true;

	if (o->kind == BL_OPTION_NUMBER)
		fprintf(f, "From %llu to %llu", (unsigned long long)least,
			(unsigned long long)o->greatest);
	else if (o->kind == BL_OPTION_RATE)
		fputs("From 2mbit to 1000gbit", f);
	else
		range = false;
	if (man != MAN_SET && o->dflt_text)
		snprintf(value, sizeof(value), "x");
	else if (man != MAN_SET && o->kind == BL_OPTION_TRUTH && man == MAN_FILE)
		snprintf(value, sizeof(value), "false");
	else if (man != MAN_SET && (o->kind == BL_OPTION_NUMBER || o->kind == BL_OPTION_NAME))
		bl_option_value(o, o->dflt, value, sizeof(value));
	if (*value && o->needed)
		put_sentences(f, o->dflt_text, true);
	else if (*value)
		fprintf(f, "%s: %s", range ? "; default" : "Default",
			o->dflt_text ? o->dflt_text : value);
	if (*value || range)
		fputs(".\n", f);
}

static unsigned int man_roles(unsigned int id, enum man man)
{
	unsigned int k, roles = bl_option(id)->roles;

	for (k = 0; man == MAN_START && k < BL_AO_COUNT; k++)
		if (same_text(bl_option(k)->start, bl_option(id)->start))
			roles |= bl_option(k)->roles;
	return roles;
}

static void put_entry(FILE *f, unsigned int id, enum man man)
{
	const struct bl_option *o = bl_option(id);
	const unsigned int roles = man_roles(id, man);
	char before[64] = "";

	if (man == MAN_FILE)
		fprintf(f, ".It Cm %s", o->key);
	else
		fprintf(f, ".It Fl -%s", man == MAN_START ? o->start : o->set);
	if (o->kind != BL_OPTION_BLOCK || man != MAN_FILE)
		put_argument(f, o, man);
	fputc('\n', f);
	if (man == MAN_START && roles != (BL_OPTION_HOSTS | BL_OPTION_SWITCHES))
		snprintf(before, sizeof(before),
			 "%s%s%s: ", roles == BL_OPTION_HOSTS ? "Host" : "Switch",
			 o->policies ? ", " : "", o->policies ? o->policies : "");
	else if (o->policies && id < BL_AO_TOP)
		snprintf(before, sizeof(before), "%s: ", o->policies);
	fputs(before, f);
	put_sentences(f, o->text, !*before);
	fputs(".\n", f);
	put_range(f, o, man);
	if (o->more && man != MAN_START) {
		put_sentences(f, o->more, false);
		fputc('\n', f);
	}
}

static bool has_entry(unsigned int id, enum man man)
{
	const struct bl_option *o = bl_option(id);
	unsigned int k;

	if (man == MAN_FILE)
		return true;
	if (man == MAN_SET)
		return o->set && *o->set;
	for (k = 0; o->start && k < id; k++)
		if (same_text(bl_option(k)->start, o->start))
			return false;
	return o->start;
}

static void put_group(FILE *f, const char *title, unsigned int first, unsigned int end,
		      unsigned int roles, enum man man)
{
	unsigned int k, n = 0;

	for (k = first; k < end; k++)
		if (has_entry(k, man) && (!roles || bl_option(k)->roles == roles)) {
			if (!n++)
				fprintf(f, "%s%s%s.Bl -tag -width Ds\n", *title ? ".Pp\n" : "",
					title, *title ? "\n" : "");
			put_entry(f, k, man);
		}
	if (n)
		fputs(".El\n", f);
}

static void put_parts(FILE *f, enum man man)
{
	if (man == MAN_START) {
		put_group(f, "", 0, BL_AO_COUNT, 0, man);
		return;
	}
	put_group(f, man == MAN_SET ? "Hosts and switches:" : "", 0, BL_AO_TOP,
		  BL_OPTION_HOSTS | BL_OPTION_SWITCHES, man);
	put_group(f, "Hosts:", 0, BL_AO_TOP, BL_OPTION_HOSTS, man);
	put_group(f, man == MAN_SET ? "Hosts, top:" : "Settings under top:", BL_AO_TOP, BL_AO_COUNT,
		  BL_OPTION_HOSTS, man);
	put_group(f, "Switches:", 0, BL_AO_TOP, BL_OPTION_SWITCHES, man);
}

/* Folds the lines of @text that are not requests at 98 columns. */
static void put_folded(FILE *f, const char *text)
{
	const char *line, *end, *cut;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		while (*line != '.' && end - line > 98) {
			for (cut = line + 98; cut > line && *cut != ' '; cut--)
				;
			if (cut == line)
				break;
			fprintf(f, "%.*s\n", (int)(cut - line), line);
			line = cut + 1;
		}
		fprintf(f, "%.*s%s", (int)(end - line), line, *end ? "\n" : "");
	}
}

static void put_man(FILE *f, enum man man)
{
	char *text = NULL;
	size_t size;
	FILE *parts = open_memstream(&text, &size);

	assert_non_null(parts);
	put_parts(parts, man);
	fclose(parts);
	put_folded(f, text);
	free(text);
}

/* Returns the part of the page between the marks, or NULL. */
static char *page_part(enum man man)
{
	FILE *f = fopen(pages[man].page, "r");
	char *text = NULL, mark[64], *begin, *end, *part;
	size_t room = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &room, '\0', f) > 0);
	fclose(f);
	snprintf(mark, sizeof(mark), ".\\\" options: %s\n", pages[man].name);
	begin = strstr(text, mark);
	end = begin ? strstr(begin, ".\\\" end of options\n") : NULL;
	part = end ? strndup(begin + strlen(mark), (size_t)(end - begin) - strlen(mark)) : NULL;
	free(text);
	return part;
}

static void man__is_the_table(void **state)
{
	unsigned int man;

	(void)state;
	for (man = MAN_FILE; man <= MAN_SET; man++) {
		char *is = page_part(man), *want = NULL;
		size_t size, k;
		FILE *f = open_memstream(&want, &size);

		put_man(f, man);
		fclose(f);
		if (!is)
			fail_msg("%s has no line .\\\" options: %s", pages[man].page,
				 pages[man].name);
		for (k = 0; want[k] && want[k] == is[k]; k++)
			;
		if (want[k] || is[k])
			fail_msg("%s differs from the table at \"%.60s\"; the table has "
				 "\"%.60s\": build/tests/unit/test_options --man %s",
				 pages[man].page, is + k, want + k, pages[man].name);
		free(is);
		free(want);
	}
}

/* ---- main ---- */

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__complete),      cmocka_unit_test(table__names_once),
		cmocka_unit_test(start__flags),         cmocka_unit_test(start__values),
		cmocka_unit_test(file__each_key),       cmocka_unit_test(set__flags),
		cmocka_unit_test(completion__has_each), cmocka_unit_test(man__is_the_table),
	};
	unsigned int man;

	for (man = MAN_FILE; argc == 3 && !strcmp(argv[1], "--man") && man <= MAN_SET; man++)
		if (!strcmp(argv[2], pages[man].name)) {
			put_man(stdout, man);
			return 0;
		}
	return cmocka_run_group_tests(tests, setup, teardown);
}
