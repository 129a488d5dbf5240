// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See run.h. A setup reads the machine, plans, and does the steps, each of which is written into
 * the journal first. If one fails, those before it are taken back, in reverse. --undo takes back
 * all steps of the journal by the same function.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/netns.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/setup/run.h"
#include "cli/setup/setup.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "loader/config.h"
#include "loader/node_cfg.h"

#define COMMAND_SIZE (SETUP_ARG + 96)

/** struct report - what is said at the end with --json. */
struct report {
	json_t *steps;
	unsigned int done, left;
};

/* Says what became of a step, at once unless JSON is wanted. */
static void say_step(struct report *r, const struct setup_step *s, bool back, const char *state,
		     const char *why)
{
	char command[COMMAND_SIZE];

	setup_command(s, back, command, sizeof(command));
	r->left += !strcmp(state, "left");
	r->done += !strcmp(state, "done") || !strcmp(state, "planned");
	json_array_append_new(r->steps,
			      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "kind",
					setup_kind_name(s->kind), "dev", s->dev, "arg", s->arg,
					"command", command, "state", state, "why", why));
	if (cli.json)
		return;
	if (!strcmp(state, "left"))
		printf("left: `%s`: %s\n", command, why);
	else
		puts(command);
	fflush(stdout);
}

/* ---- taking back ---- */

/* A bridge that somebody removed and made again under the same name is not that of setup. */
static bool is_replaced(const struct setup_step *s)
{
	return s->kind == SETUP_BRIDGE && s->ifindex && if_nametoindex(s->dev) &&
	       if_nametoindex(s->dev) != s->ifindex;
}

/*
 * Takes back the steps of the journal from the last one to @first.
 * @dry: says what would be done only
 * Returns 0 or -errno.
 */
static int take_back(const struct setup_want *w, struct setup_journal *j, size_t first, bool dry,
		     struct report *report, struct bl_err *err)
{
	struct setup_facts f;
	struct nl nl = { .fd = -1 };
	char why[400];
	size_t k;
	int rc = setup_read(w, &j->steps, &f, err);

	if (!rc && nl_open(&nl))
		rc = bl_fail(err, errno, "netlink: %s", strerror(errno));
	for (k = j->steps.n; !rc && k-- > first;) {
		struct setup_step *s = &j->steps.v[k];
		enum setup_undo what = setup_undo_judge(&f, &j->steps, k, why, sizeof(why));

		if (what == SETUP_UNDO_DO && is_replaced(s)) {
			what = SETUP_UNDO_LEFT;
			snprintf(why, sizeof(why), "somebody has made another bridge of this name");
		}
		if (what == SETUP_UNDO_DO && !dry) {
			rc = setup_do(&nl, s, true, err);
			if (rc == -ENOTEMPTY || (rc == -EBUSY && s->kind == SETUP_DIR)) {
				rc = 0;
				what = SETUP_UNDO_LEFT;
				snprintf(why, sizeof(why), "other files are in it");
			}
		}
		if (!rc && what == SETUP_UNDO_DO)
			setup_set(&f, s->kind, s->dev, s->arg, s->before);
		if (!rc && what != SETUP_UNDO_NOTHING)
			say_step(report, s, true,
				 what == SETUP_UNDO_LEFT ? "left"
				 : dry                   ? "planned"
							 : "done",
				 why);
	}
	nl_close(&nl);
	setup_facts_free(&f);
	return rc;
}

/* Refuses while a node works on what would be taken away. Returns 0, or 1 after a message. */
static int check_no_node(const struct setup_opts *o)
{
	const char *role = role_name(o->w.role);
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i, rc = 0;

	if (n < 0)
		rc = cli_fail("%s", err.text);
	for (i = 0; i < n && !rc && !o->w.force && !o->dry; i++)
		if (refs[i].role == o->w.role)
			rc = cli_fail("the %s %s is attached here; stop its daemon and run "
				      "`barline %s detach` first, or give --force",
				      role, refs[i].meta.name, role);
	free(refs);
	return rc;
}

int setup_back(struct setup_opts *o)
{
	struct report report = { .steps = json_array() };
	struct setup_journal j;
	struct bl_err err;
	int rc = setup_journal_read(&j, &o->w, o->state, o->dry ? SETUP_LOOK : SETUP_BACK, &err);
	bool none = !rc && !j.begin;

	if (rc)
		cli_fail("%s", err.text);
	else if (none)
		rc = cli_fail("nothing was set up under the name %s (there is no %s); give the "
			      "name with --file, or with --name",
			      o->w.file, j.path);
	else
		rc = check_no_node(o);
	if (!rc) {
		rc = take_back(&o->w, &j, 0, o->dry, &report, &err);
		if (rc)
			cli_fail("%s; what is above was taken back, and --undo goes on from here",
				 err.text);
		else if (!o->dry)
			setup_journal_remove(&j);
	}
	setup_journal_close(&j);
	if (!rc && cli.json)
		cli_json(json_pack("{s:s, s:b, s:b, s:O, s:i, s:i}", "file", o->w.file, "undo",
				   true, "dry_run", o->dry, "steps", report.steps, "done",
				   (int)report.done, "left", (int)report.left));
	else if (!rc)
		printf("%u step%s %staken back, %u left\n", report.done,
		       report.done == 1 ? "" : "s", o->dry ? "would be " : "", report.left);
	json_decref(report.steps);
	return rc != 0;
}

/* ---- setting up ---- */

/*
 * Says which line of the text is wrong by quoting it, since the file that @said names is not there
 * for the operator to read.
 */
static int refuse_yaml(const char *yaml, const char *path, const char *said, int rc,
		       struct bl_err *err)
{
	size_t n = strlen(path);
	unsigned int line;
	int end = 0;

	if (strncmp(said, path, n) || sscanf(said + n, ":%u: %n", &line, &end) != 1 || !end)
		return bl_fail(err, rc, "the configuration would not be valid: %.400s", said);
	while (line-- > 1 && strchr(yaml, '\n'))
		yaml = strchr(yaml, '\n') + 1;
	yaml += strspn(yaml, " -");
	return bl_fail(err, rc, "the configuration would not be valid, at \"%.*s\": %.300s",
		       (int)(strcspn(yaml, "\n") < 120 ? strcspn(yaml, "\n") : 120), yaml,
		       said + n + end);
}

/* Reads the text as the daemon will read the file. */
static int check_yaml(const char *yaml, struct bl_err *err)
{
	int fd = memfd_create("barline-setup", MFD_CLOEXEC), rc;
	struct bl_node_cfg cfg = { 0 };
	size_t size = strlen(yaml);
	char path[40];

	if (fd < 0 || write(fd, yaml, size) != (ssize_t)size)
		return bl_fail(err, errno, "memfd_create: %s", strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = bl_config_load(&cfg, path, err);
	bl_config_free(&cfg);
	close(fd);
	if (rc) {
		struct bl_err inner = *err;

		rc = refuse_yaml(yaml, path, inner.text, -rc, err);
	}
	return rc;
}

static void die_at(const struct setup_opts *o, uint32_t n)
{
	if (o->kill_at == n)
		raise(SIGKILL);
}

static int do_steps(struct setup_opts *o, const struct setup_steps *plan, struct setup_journal *j,
		    struct report *report, struct bl_err *err)
{
	struct nl nl;
	size_t k;
	uint32_t n = 0;
	int rc = nl_open(&nl);

	if (rc)
		return bl_fail(err, -rc, "netlink: %s", strerror(-rc));
	for (k = 0; k < plan->n && !rc; k++) {
		const struct setup_step *s = &plan->v[k];

		rc = setup_journal_add(j, s, err);
		if (rc || setup_is_kept(s))
			continue;
		die_at(o, ++n);
		rc = setup_do(&nl, s, false, err);
		if (rc)
			break;
		die_at(o, ++n);
		if (s->kind == SETUP_BRIDGE)
			rc = setup_journal_made(j, s->dev, if_nametoindex(s->dev), err);
		if (!rc)
			say_step(report, s, false, "done", "");
	}
	nl_close(&nl);
	return rc;
}

/* Does the plan, or takes back what was done of it. Returns the exit status. */
static int carry_out(struct setup_opts *o, const struct setup_steps *plan, struct setup_journal *j,
		     struct report *report)
{
	struct report back = { .steps = json_array() };
	struct bl_err err, second;
	int rc = setup_journal_begin(j, &o->w, o->state, &err);

	if (!rc)
		rc = do_steps(o, plan, j, report, &err);
	if (!rc) {
		json_decref(back.steps);
		return 0;
	}
	if (!cli.json && j->steps.n > j->first)
		puts("a step failed; taking back what was done:");
	if (take_back(&o->w, j, j->first, false, &back, &second)) {
		cli_fail("%s; and taking back failed, too: %s; try --undo", err.text, second.text);
	} else {
		if (j->fd >= 0)
			setup_journal_forget(j);
		cli_fail("%s; nothing is left of this setup%s", err.text,
			 back.left ? " but what is said above" : "");
	}
	json_decref(back.steps);
	return 1;
}

/* Whether frames from behind @dev are checked for their source. */
static bool is_host_port(const struct setup_want *w, const char *dev)
{
	unsigned int k;

	for (k = 0; k < w->nports; k++)
		if (!strcmp(w->ports[k].dev, dev))
			return w->ports[k].role == BL_PORT_HOST;
	return false;
}

static void show_hosts(const struct setup_want *w, unsigned int first)
{
	unsigned int k, i;

	for (k = first; k < w->nhosts; k++) {
		fprintf(stderr, "learnt: %s=%s", w->hosts[k].dev, w->hosts[k].mac);
		for (i = 0; i < w->hosts[k].nip; i++)
			fprintf(stderr, ",%s", w->hosts[k].ip[i]);
		fputc('\n', stderr);
		if (w->hosts[k].ncut)
			fprintf(stderr,
				"note: %s has %u more IP addresses, which are left out: a host "
				"has at most %d\n",
				w->hosts[k].mac, w->hosts[k].ncut, SETUP_HOST_IPS);
		if (!w->hosts[k].nip && is_host_port(w, w->hosts[k].dev))
			fprintf(stderr,
				"note: no IP address of %s is known, so that %s learns its "
				"addresses from ordered frames; give the bridge an address and "
				"ping the host, or name it with --host, to have them listed\n",
				w->hosts[k].mac, w->hosts[k].dev);
	}
}

/* Finds hosts. Returns how many, or -errno. */
static int find_hosts(struct setup_opts *o, struct bl_err *err)
{
	struct setup_facts f = { 0 };
	int rc = setup_read(&o->w, NULL, &f, err);

	rc = rc ? rc : setup_plan_ports(&o->w, &f, err);
	setup_facts_free(&f);
	return rc ? rc : setup_learn(&o->w, err);
}

/* Learns hosts and asks whether they are right. Returns 0, or 1 after a message. */
static int learn(struct setup_opts *o)
{
	unsigned int given = o->w.nhosts;
	struct bl_err err;
	char answer[8];
	int n = find_hosts(o, &err);

	if (n < 0)
		return cli_fail("%s", err.text);
	show_hosts(&o->w, given);
	if (!n)
		return cli_fail("no host is known behind the ports%s; let each host send something "
				"(ping), or name them with --host",
				o->w.forward == BL_FWD_L2 ? " of the bridge" : "");
	if (o->dry || o->yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return cli_fail("the hosts above were learnt, and anybody may have sent as them; "
				"give --yes if they are right");
	fputs("Are these the hosts? (y/n) ", stderr);
	if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
		return cli_fail("nothing was changed; name the hosts with --host");
	return 0;
}

/* Prints the new configuration, or what differs from the present one. */
static void show_file(const struct setup_steps *plan)
{
	size_t k;

	for (k = 0; k < plan->n && !cli.json; k++)
		if (plan->v[k].kind == SETUP_FILE)
			setup_diff(plan->v[k].before ? plan->v[k].before : "", plan->v[k].after,
				   stdout);
}

static void add_note(void *ctx, const struct finding *f)
{
	if (f->level == FOUND_OK)
		return;
	if (!cli.json)
		printf("note: %s: %s; %s\n", f->what, f->cause, f->cure);
	json_array_append_new(ctx, json_pack("{s:s, s:s, s:s}", "what", f->what, "cause", f->cause,
					     "cure", f->cure));
}

/* Notes what the daemon refuses unless its operator accepts it. */
static void note_doubt(const struct finder *to, const char *dev, const char *text)
{
	const char *cure = strstr(text, "; ");

	if (cure)
		found(to, FOUND_WARN, dev, cure + 2, "%.*s", (int)(cure - text), text);
}

/* What a node needs and setup does not do. The caller releases it. */
static json_t *show_notes(const struct setup_want *w, const struct setup_facts *f)
{
	json_t *notes = json_array();
	const struct finder to = { .fn = add_note, .ctx = notes };
	unsigned int k;

	for (k = 0; k < w->nports; k++) {
		const char *doubt = setup_get(f, SETUP_DOUBT, w->ports[k].dev, "");

		if (doubt)
			note_doubt(&to, w->ports[k].dev, doubt);
	}
	doctor_time(&to);
	return notes;
}

static void show_result(const struct setup_opts *o, const struct setup_facts *f,
			const struct report *r)
{
	const char *role = role_name(o->w.role);
	json_t *notes = show_notes(&o->w, f);
	char path[SETUP_ARG];

	setup_path(&o->w, path, sizeof(path));
	if (cli.json)
		cli_json(json_pack("{s:s, s:s, s:s, s:b, s:b, s:O, s:i, s:O}", "name", o->w.name,
				   "role", role, "config", path, "undo", false, "dry_run", o->dry,
				   "steps", r->steps, "done", (int)r->done, "notes", notes));
	else if (!r->done)
		printf("nothing is left to do for %s\n", path);
	else if (o->dry)
		printf("%u step%s would be done\n", r->done, r->done == 1 ? "" : "s");
	else
		printf("%u step%s done, which `barline %s setup --file %s --undo` takes back. "
		       "Next: "
		       "`systemctl enable --now barlined@%s`, and `barline doctor`\n",
		       r->done, r->done == 1 ? "" : "s", role, o->w.file, o->w.file);
	json_decref(notes);
}

/* The configuration as the last setup wrote it; NULL: none. */
static const char *written(const struct setup_journal *j, const char *path)
{
	size_t k = j->steps.n;

	while (k--)
		if (j->steps.v[k].kind == SETUP_FILE && !strcmp(j->steps.v[k].arg, path))
			return j->steps.v[k].after;
	return NULL;
}

/* @f receives the machine as it will be. */
static int plan(struct setup_opts *o, struct setup_journal *j, struct setup_steps *steps,
		struct setup_facts *f)
{
	char *yaml = setup_yaml(&o->w), path[SETUP_ARG];
	struct bl_err err;
	int rc;

	setup_path(&o->w, path, sizeof(path));
	o->w.ours = written(j, path);
	rc = yaml ? check_yaml(yaml, &err) : bl_fail(&err, ENOMEM, "no memory");
	if (!rc)
		rc = setup_read(&o->w, NULL, f, &err);
	if (!rc) {
		char *now = setup_file_text(path, SETUP_FILE_MAX, NULL);

		rc = setup_plan(&o->w, yaml, f, steps, &err);
		if (rc == -EEXIST && now && !cli.json)
			setup_diff(now, yaml, stderr);
		free(now);
	}
	if (rc)
		cli_fail("%s", err.text);
	free(yaml);
	return rc != 0;
}

int setup_run(struct setup_opts *o)
{
	struct report report = { .steps = json_array() };
	bool changes = !o->dry && !o->print;
	struct setup_steps steps = { 0 };
	struct setup_facts f = { 0 };
	struct setup_journal j;
	struct bl_err err;
	size_t k;
	int rc = setup_journal_read(&j, &o->w, o->state, changes ? SETUP_CHANGE : SETUP_LOOK, &err);

	if (rc)
		cli_fail("%s", err.text);
	if (!rc && o->learn)
		rc = learn(o);
	if (!rc)
		rc = plan(o, &j, &steps, &f);
	if (!rc && o->print) {
		const struct setup_output output = { .w = &o->w,
						     .f = &f,
						     .plan = &steps,
						     .j = &j,
						     .how = o->print,
						     .dir = o->print_to };

		rc = setup_print(&output);
	} else if (!rc) {
		for (k = 0; k < steps.n && o->dry; k++)
			if (!setup_is_kept(&steps.v[k]))
				say_step(&report, &steps.v[k], false, "planned", "");
		if (steps.n && !o->dry)
			rc = carry_out(o, &steps, &j, &report);
		if (!rc)
			show_file(&steps);
		if (!rc)
			show_result(o, &f, &report);
	}
	setup_facts_free(&f);
	setup_steps_free(&steps);
	setup_journal_close(&j);
	json_decref(report.steps);
	return rc != 0;
}
