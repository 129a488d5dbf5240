// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See reload.h. */
#include "cli/util/reload.h"

#include <stdio.h>
#include <string.h>

#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/status.h"

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static const char *value_of(const json_t *row, const char *key)
{
	const char *text = text_of(row, key);

	return *text ? text : "the default";
}

void reload_print(const char *who, const json_t *row)
{
	if (cli.json)
		return;
	if (!strcmp(text_of(row, "what"), "changed"))
		printf("%s: %s is %s now, was %s (%s)\n", who, text_of(row, "setting"),
		       value_of(row, "now"), value_of(row, "was"), text_of(row, "why"));
	else
		printf("%s: %s takes a %s: %s\n", who, text_of(row, "setting"),
		       text_of(row, "change"), text_of(row, "why"));
}

/* Returns the exit status, after messages. */
static int print_answer(const char *name, const json_t *one)
{
	const json_t *rows = json_object_get(one, "changes"), *row;
	bool ok = json_is_true(json_object_get(one, "reloaded"));
	char who[128];
	size_t i;

	snprintf(who, sizeof(who), "%s %s", name, text_of(one, "addr"));
	json_array_foreach(rows, i, row) reload_print(who, row);
	if (ok && !json_array_size(rows) && !cli.json)
		printf("%s: nothing is different\n", who);
	if (!ok && !cli.json)
		cli_fail("%s: %s", who,
			 *text_of(one, "error") ? text_of(one, "error")
						: "it does not know the order; is it of an older "
						  "version?");
	return ok ? 0 : 1;
}

static error_t refuse_args(int key, char *arg, struct argp_state *state)
{
	(void)arg, (void)state;
	return key == ARGP_KEY_ARG ? ARGP_ERR_UNKNOWN : 0;
}

int reload_command(int argc, char **argv, const char *doc, const char *name, const char *none)
{
	const struct argp argp = { .parser = refuse_args, .children = cmd_globals, .doc = doc };
	json_t *all, *one;
	unsigned int silent;
	char key[32];
	size_t i;
	int rc;

	cmd_parse(&argp, argc, argv, NULL);
	all = status_ask_all(name, "reload\n", &silent);
	rc = silent ? 1 : 0;
	if (!json_array_size(all)) {
		json_decref(all);
		return status_none(name, name, none);
	}
	json_array_foreach(all, i, one) rc |= print_answer(name, one);
	snprintf(key, sizeof(key), "%ss", name);
	if (cli.json)
		cli_json(json_pack("{s:O}", key, all));
	json_decref(all);
	return rc;
}
