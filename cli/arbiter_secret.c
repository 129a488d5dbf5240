// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline arbiter secret FILE: makes the secret that arbiters and hosts of a network share. */
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "proto/fastpass_file.h"

static error_t parse_file(int key, char *arg, struct argp_state *state)
{
	const char **file = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*file)
			return ARGP_ERR_UNKNOWN;
		*file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!*file)
			argp_error(state, "which file? It is made, and must not be there");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_arbiter_secret(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_file,
					  .args_doc = "FILE",
					  .children = cmd_globals,
					  .doc = "barline arbiter secret - write a new random "
						 "secret "
						 "to FILE, which only its owner can read\v"
						 "Copy FILE to all arbiters and hosts of the "
						 "network, and name it in their file as "
						 "secret_file: FILE." };
	const char *file = NULL;
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &file);
	if (bl_fp_secret_make(file, &err))
		return cli_fail("%s", err.text);
	if (cli.json)
		cli_json(json_pack("{s:s}", "secret_file", file));
	return 0;
}
