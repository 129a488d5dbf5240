// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline completion`: its scripts in the real bash and the real zsh, and their options against
 * what the commands' help says.
 */
#include "tests/unit/barline_says.h"

#include <ctype.h>

#include "tests/command.h"

/*
 * Runs a script of bash in which the completion is loaded and barline cannot be run. `offers WORD
 * ...` prints what is offered at the end of the last word, one per line, and =end.
 */
static char *in_bash(const char *options, const char *program, const char *script)
{
	char name[] = "/tmp/barline-completion-XXXXXX", self[PATH_MAX], *text;
	int fd = mkstemp(name), status;
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	barline_command(self, sizeof(self));
	fprintf(f,
		"source <(%s completion bash %s)\n"
		"barline() { echo ran barline; }\nbarlined() { echo ran barlined; }\n"
		"offers() {\n"
		"COMP_WORDS=(%s \"$@\"); COMP_CWORD=$#; _%s\n"
		"printf \"%%s\\n\" \"${COMPREPLY[@]}\" =end\n"
		"}\n%s",
		self, options, program, program, script);
	fclose(f);
	text = command_output(&status, "bash --norc %s 2>&1", name);
	unlink(name);
	assert_non_null(text);
	assert_int_equal(status, 0);
	return text;
}

/* Whether @text has the line @line. */
static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);
	const char *p = text;

	for (; (p = strstr(p, line)); p++)
		if ((p == text || p[-1] == '\n') && (p[n] == '\n' || !p[n]))
			return true;
	return false;
}

static void bash__offers(void **state)
{
	static const struct {
		const char *program, *words, *has, *lacks;
	} cases[] = {
		{ "barline", "sho", "show", "status" },
		{ "barline", "show po", "ports", "nodes" },
		{ "barline", "show \"\"", "barriers", "show" },
		{ "barline", "lab run f", "fct", "incast" },
		{ "barline", "lab run leaf", "leaf-spine", "three-tier" },
		{ "barline", "help \"\"", "show", "ports" },
		{ "barline", "help show po", "ports", NULL },
		/* options before a command, and values of theirs that are no words of it */
		{ "barline", "--for", "--force", NULL },
		{ "barline", "-j show po", "ports", NULL },
		{ "barline", "-n show wat", "watch", NULL },
		{ "barline", "--netns = x show po", "ports", NULL },
		/* options of a command, and of no other */
		{ "barline", "top --int", "--interval", NULL },
		{ "barline", "top -", "--batch", "--reason" },
		{ "barline", "show drops -", "--reason", "--batch" },
		{ "barline", "lab run fct -", "--seeds", NULL },
		{ "barline", "lab run -", "--hosts", "--seeds" },
		{ "barline", "admission set --all", "--allocator", NULL },
		{ "barline", "host up --beac", "--beacon-us", NULL },
		/* values that the tables know */
		{ "barline", "show drops --reason ring", "ring_full", "spoofed" },
		{ "barline", "show drops --reason = ring", "ring_full", "spoofed" },
		{ "barline", "show drops --reason =", "ring_full", NULL },
		{ "barline", "capture --opcode data,be", "data,beacon", "beacon" },
		{ "barline", "capture --direction \"\"", "out", "both" },
		{ "barline", "admission set --allocator \"\"", "two-counter", "pl2" },
		{ "barline", "admission set p", "pl2", "none" },
		{ "barline", "completion \"\"", "zsh", NULL },
		{ "barline", "events --event daemon_s", "daemon_started", "voided" },
		{ "barline", "pki issue --role c", "controller", "node" },
		{ "barline", "host up --clock-source \"\"", "kernel", NULL },
		/* what is on the machine */
		{ "barline", "host up --interface l", "lo", NULL },
		{ "barline", "config diff /etc/hostn", "/etc/hostname", NULL },
		{ "barline", "-b /etc/hostn", "/etc/hostname", NULL },
		/* a command of the shell */
		{ "barline", "lab exec x h1 -- bas", "bash", NULL },
		{ "barlined", "ho", "host", "switch" },
		{ "barlined", "--prep", "--prepare", NULL },
		{ "barlined", "host --clock-source \"\"", "ptp4l", NULL },
		{ "barlined", "-c /etc/hostn", "/etc/hostname", NULL },
	};
	static const char *const programs[] = { "barline", "barlined" };
	char script[8192], *text, *offers, *save;
	size_t at, p, i;

	(void)state;
	/* one shell for all cases of a program, each of which ends with a line of its own */
	for (p = 0; p < ARRAY_SIZE(programs); p++) {
		for (i = at = 0; i < ARRAY_SIZE(cases); i++)
			if (!strcmp(cases[i].program, programs[p]))
				at += (size_t)snprintf(script + at, sizeof(script) - at,
						       "offers %s\n", cases[i].words);
		assert_true(at < sizeof(script));
		text = in_bash(p ? "--daemon" : "", programs[p], script);
		offers = text;
		for (i = 0; i < ARRAY_SIZE(cases); i++) {
			if (strcmp(cases[i].program, programs[p]) != 0)
				continue;
			save = strstr(offers, "=end\n");
			assert_non_null(save);
			*save = '\0';
			if (!has_line(offers, cases[i].has) ||
			    (cases[i].lacks && has_line(offers, cases[i].lacks)) ||
			    strstr(offers, "ran "))
				fail_msg("%s %s: %s", cases[i].program, cases[i].words, offers);
			offers = save + 5;
		}
		free(text);
	}
}

/* The next line that defines an option, "  -i, --interval=S  ..." or "      --name", in @help. */
static char *next_option(char **help, char *name, size_t size)
{
	char *line, *p;

	while ((line = strsep(help, "\n"))) {
		p = line + strspn(line, " ");
		if (p[0] == '-' && p[1] != '-' && p[2] == ',')
			p += 4;
		if (p == line || strncmp(p, "--", 2) != 0 || p - line > 8)
			continue;
		snprintf(name, size, "%.*s", (int)strcspn(p, "=[, "), p);
		return name;
	}
	return NULL;
}

/* Whether the words in @options are those that @help defines, but for what each help has. */
static void compare_options(const char *command, char *options, char *help)
{
	static const char *const own[] = { "--help", "--usage", "--version" };
	char name[64], *word, *save;
	char spaced[8192];
	size_t k;

	snprintf(spaced, sizeof(spaced), " %s ", options);
	while (next_option(&help, name, sizeof(name))) {
		char quoted[70];
		char *at;

		snprintf(quoted, sizeof(quoted), " %s ", name);
		for (k = 0; k < ARRAY_SIZE(own) && strcmp(own[k], name) != 0; k++)
			;
		if (k < ARRAY_SIZE(own))
			continue;
		at = strstr(spaced, quoted);
		if (!at)
			fail_msg("%s has %s, which is not completed", command, name);
		memset(at + 1, '.', strlen(name));
	}
	for (word = strtok_r(spaced, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (*word != '.' && strcmp(word, "--help") != 0 && strncmp(word, "--", 2) == 0)
			fail_msg("%s has no %s, which is completed", command, word);
}

/* Every command's options are completed, and no others. All help comes from one batch. */
static void bash__options_are_those_of_the_help(void **state)
{
	char *lists, *list, *save, *helps, *help, *batch = NULL, self[PATH_MAX];
	char name[] = "/tmp/barline-completion-XXXXXX";
	int fd = mkstemp(name), status, commands = 0;
	size_t size;
	FILE *f;

	(void)state;
	lists = in_bash("", "barline",
			"while read -r c; do prev= options=; _barline_table \"$c\"\n"
			"echo \"$c:$options\"; done <<< \"$_barline_commands\"");
	f = open_memstream(&batch, &size);
	for (list = lists; *list; list = strchr(list, '\n') + 1)
		fprintf(f, "%.*s --help\n", (int)strcspn(list, ":"), list);
	fclose(f);
	assert_int_equal(write(fd, batch, size), size);
	close(fd);
	free(batch);
	barline_command(self, sizeof(self));
	helps = command_output(&status, "%s -b %s", self, name);
	unlink(name);
	assert_int_equal(status, 0);
	help = strstr(helps, "Usage: ");
	for (list = strtok_r(lists, "\n", &save); list; list = strtok_r(NULL, "\n", &save)) {
		char *colon = strchr(list, ':'), *next;

		assert_non_null(colon);
		*colon = '\0';
		if (!help)
			fail_msg("no help of %s", list);
		next = strstr(help + 1, "\nUsage: ");
		if (next)
			*next++ = '\0';
		compare_options(list, colon + 1, help);
		help = next;
		commands++;
	}
	assert_null(help);
	assert_true(commands > 70);
	free(lists);
	free(helps);
}

/*
 * Keys into a zsh that has the completion. Each line that is completed is run, and a function in
 * the place of the command prints its arguments. Arguments: keys and what is to be run, in turn.
 */
static const char zsh_script[] = "zmodload zsh/zpty zsh/zselect\n"
				 "zpty z zsh -f -i\n"
				 "wait_for() {\n"
				 "  local all= part\n"
				 "  integer n=0\n"
				 "  while ((n++ < 2000)); do\n"
				 "    if zpty -rt z part 2> /dev/null; then\n"
				 "      all+=$part\n"
				 "      [[ $all == *$1* ]] && return 0\n"
				 "    else\n"
				 "      zselect -t 2\n"
				 "    fi\n"
				 "  done\n"
				 "  print -r -- \"no $1 in $all\"\n"
				 "  return 1\n"
				 "}\n"
				 "zpty -w z 'PS1=; unsetopt prompt_cr; autoload -U compinit; "
				 "compinit -D -u'\n"
				 "zpty -w z \"source <($SELF completion zsh); source <($SELF "
				 "completion zsh -d)\"\n"
				 "zpty -w z 'barline() { print -r -- RAN:\"$*\": }; barlined() { "
				 "print -r -- RAN:\"$*\": }'\n"
				 "zpty -w z 'print RE\"\"ADY'\n"
				 "wait_for READY || exit 1\n"
				 "for keys want in \"$@\"; do\n"
				 "  zpty -w -n z \"$keys\"$'\\t\\n'\n"
				 "  wait_for \"RAN:$want\": || exit 1\n"
				 "done\n";

static void zsh__completes(void **state)
{
	static const char *const cases[][2] = {
		{ "barline sta", "status" },
		{ "barline show barri", "show barriers" },
		{ "barline -j show barri", "-j show barriers" },
		{ "barline top --interv", "top --interval" },
		{ "barline show drops --reason ring_f", "show drops --reason ring_full" },
		{ "barline admission set --allocator tw", "admission set --allocator two-counter" },
		{ "barline lab run inca", "lab run incast" },
		{ "barline lab run fct --bucke", "lab run fct --buckets" },
		{ "barlined --prep", "--prepare" },
		{ "barlined swi", "switch" },
	};
	char self[PATH_MAX], name[] = "/tmp/barline-zsh-XXXXXX", args[1024], *text;
	int fd = mkstemp(name), status;
	size_t i, at = 0;

	(void)state;
	assert_int_equal(write(fd, zsh_script, sizeof(zsh_script) - 1), sizeof(zsh_script) - 1);
	close(fd);
	barline_command(self, sizeof(self));
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		at += (size_t)snprintf(args + at, sizeof(args) - at, " '%s' '%s'", cases[i][0],
				       cases[i][1]);
	text = command_output(&status, "SELF=%s zsh -f %s %s 2>&1", self, name, args);
	unlink(name);
	if (status)
		fail_msg("%s", text);
	free(text);
}

/* Both shells accept the scripts of both programs. */
static void scripts__are_valid(void **state)
{
	static const char *const shells[] = { "bash", "zsh" };
	static const char *const daemon[] = { "", "--daemon" };
	char self[PATH_MAX], *text;
	int status;
	size_t s, d;

	(void)state;
	barline_command(self, sizeof(self));
	for (s = 0; s < ARRAY_SIZE(shells); s++)
		for (d = 0; d < ARRAY_SIZE(daemon); d++) {
			text = command_output(&status, "%s completion %s %s | %s -n 2>&1", self,
					      shells[s], daemon[d], shells[s]);
			if (status || *text)
				fail_msg("%s %s: %d, %s", shells[s], daemon[d], status, text);
			free(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bash__offers),
		cmocka_unit_test(bash__options_are_those_of_the_help),
		cmocka_unit_test(zsh__completes),
		cmocka_unit_test(scripts__are_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
