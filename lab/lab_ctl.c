// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Failure controllers of a lab, and the members of etcd in which they store their decisions. All of
 * them are children of the driver, or with `lab up` of the keeper. They run in the lab's own
 * network namespace, where the daemons are ("mgmt" for `lab exec`). Its loopback stands for a
 * management network, which does not fail when links of the rack fail.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/time.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/status.h"
#include "controller/server.h"
#include "lab/lab.h"
#include "lab/lab_etcd.h"
#include "maps/meta_abi.h"

#define START_S 60 /* limit for each step of the start */

struct lab_ctl {
	unsigned int n;  /* controllers that were started */
	const char *log; /* file for their output; NULL: that of this process */
	pid_t pid[LAB_CONTROLLERS_MAX], etcd[LAB_ETCD_MEMBERS]; /* 0: killed, or not started */
	struct bl_ctl_cfg cfg;     /* of all controllers, but for the address */
	struct bl_ctl_node *nodes; /* of the lab, in @cfg */
};

static void redirect_output(const char *log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC),
	    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	dup2(null, STDIN_FILENO);
	dup2(fd < 0 ? null : fd, STDOUT_FILENO);
	dup2(fd < 0 ? null : fd, STDERR_FILENO);
}

static pid_t fork_child(const struct lab_ctl *c)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		cli_fail("cannot fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		if (c->log)
			redirect_output(c->log);
	}
	return pid;
}

/* ---- etcd ---- */

static pid_t start_member(const struct lab_ctl *c, unsigned int i)
{
	pid_t pid = fork_child(c);

	if (!pid)
		lab_etcd_exec(i);
	return pid;
}

/* Returns the status of member @i of etcd, or NULL if it does not answer. */
static json_t *member_status(unsigned int i)
{
	char answer[LAB_ETCD_ANSWER];

	return lab_etcd_post(i, "/v3/maintenance/status", "{}", 2000, answer) == 200
		       ? json_loads(answer, 0, NULL)
		       : NULL;
}

/* returns the index of the leading member, or -1 if none says that it leads */
static int etcd_leader(const struct lab_ctl *c)
{
	int i, leads = -1;

	for (i = 0; i < LAB_ETCD_MEMBERS && leads < 0; i++) {
		json_t *v = c->etcd[i] > 0 ? member_status((unsigned int)i) : NULL;
		const char *leader = json_string_value(json_object_get(v, "leader")),
			   *self = json_string_value(
				   json_object_get(json_object_get(v, "header"), "member_id"));

		if (leader && self && !strcmp(leader, self))
			leads = i;
		json_decref(v);
	}
	return leads;
}

/* ---- controllers ---- */

/* The controllers of a lab know its nodes from the beginning. */
static int list_nodes(const struct lab *lab, struct lab_ctl *c)
{
	unsigned int i;

	c->nodes = calloc(lab->nnodes, sizeof(*c->nodes));
	if (!c->nodes)
		return cli_fail("out of memory");
	for (i = 0; i < lab->nnodes; i++) {
		c->nodes[i].id = lab_node_id(&lab->nodes[i]);
		snprintf(c->nodes[i].name, sizeof(c->nodes[i].name), "%s", lab->nodes[i].name);
	}
	c->cfg.nodes = c->nodes;
	c->cfg.nnodes = lab->nnodes;
	return 0;
}

static pid_t start_controller(struct lab_ctl *c, unsigned int i)
{
	struct bl_ctl_cfg cfg = c->cfg;
	struct bl_ctl *ctl;
	struct bl_err err;
	pid_t pid = fork_child(c);

	if (pid)
		return pid;
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_NAME, "barline-ctl");
	lab_controller_addr(i, cfg.listen, sizeof(cfg.listen));
	if (!cli.verbose)
		bl_log_level = 3; /* errors; the loss of a controller is expected in a lab */
	if (bl_ctl_new(&ctl, &cfg, &err) || bl_ctl_run(ctl, &err))
		_exit(cli_fail("controller %u: %s", i + 1, err.text));
	bl_ctl_free(ctl);
	_exit(0);
}

static json_t *ask_controller(pid_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), BL_RUN_DIR BL_CTL_STATUS, (unsigned long long)bl_netns_ino(),
		 pid);
	return pid > 0 && !access(path, F_OK) ? status_ask(path, NULL) : NULL;
}

/* Returns the index of the leading controller and its state in *@said, or -1 if none leads. */
static int find_leader(struct lab_ctl *c, json_t **said)
{
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		json_t *v = ask_controller(c->pid[i]);
		const char *state = json_string_value(json_object_get(v, "state"));

		if (state && !strcmp(state, "leader")) {
			*said = v;
			return (int)i;
		}
		json_decref(v);
	}
	return -1;
}

json_t *lab_ctl_ask(struct lab_ctl *c)
{
	json_t *v;

	return find_leader(c, &v) < 0 ? NULL : v;
}

static int kill_and_reap(pid_t *pid, const char *what)
{
	if (kill(*pid, SIGKILL) || waitpid(*pid, NULL, 0) != *pid)
		return cli_fail("cannot kill %s (pid %d): %s", what, *pid, strerror(errno));
	*pid = 0;
	return 0;
}

int lab_ctl_kill(struct lab_ctl *c)
{
	json_t *v;
	int i = find_leader(c, &v);

	if (i < 0)
		return cli_fail("no controller leads, so none can be killed");
	json_decref(v);
	return kill_and_reap(&c->pid[i], "the controller that leads");
}

int lab_ctl_kill_etcd(struct lab_ctl *c)
{
	int i = etcd_leader(c);

	return i < 0 ? cli_fail("no member of etcd leads, so none can be killed")
		     : kill_and_reap(&c->etcd[i], "etcd's leader");
}

static int wait_for_leader(struct lab_ctl *c, bool etcd)
{
	uint64_t until = bl_mono_ns() + START_S * 1000000000ULL;

	for (;;) {
		json_t *v = etcd ? NULL : lab_ctl_ask(c);

		if (v || (etcd && etcd_leader(c) >= 0)) {
			json_decref(v);
			return 0;
		}
		if (bl_mono_ns() > until)
			return cli_fail(etcd ? "etcd does not come up within %d s; is it installed "
					       "(etcd-server)?"
					     : "no controller leads after %d s",
					START_S);
		if (etcd && waitpid(c->etcd[0], NULL, WNOHANG) > 0) {
			c->etcd[0] = 0;
			return cli_fail("etcd does not start; is it installed (etcd-server)?");
		}
		nap_ns(5000000);
	}
}

/* Waits until the leader knows all nodes; it cannot announce the failure of others. */
static int wait_known(const struct lab *lab, struct lab_ctl *c)
{
	uint64_t until = bl_mono_ns() + START_S * 1000000000ULL;
	unsigned int want = 0, i;

	for (i = 0; i < lab->nnodes; i++)
		want += lab->nodes[i].kind != LAB_ARBITER;
	for (;;) {
		json_t *v = lab_ctl_ask(c), *n;
		unsigned int ok = 0;
		char who[256] = "";
		size_t k;

		json_array_foreach(json_object_get(v, "nodes"), k, n)
		{
			const char *state = json_string_value(json_object_get(n, "state"));

			if (!strcmp(state, "ok"))
				ok++;
			else if (strlen(who) < sizeof(who) - 64)
				sprintf(who + strlen(who), ", %s: %s",
					json_string_value(json_object_get(n, "name")), state);
		}
		json_decref(v);
		if (ok == want)
			return 0;
		if (bl_mono_ns() > until)
			return cli_fail("only %u of %u nodes have a session with the controller "
					"after %d s%s",
					ok, want, START_S, who);
		nap_ns(5000000);
	}
}

struct lab_ctl *lab_ctl_start(const struct lab *lab, const char *log)
{
	struct lab_ctl *c = calloc(1, sizeof(*c));
	struct bl_err err;
	unsigned int i;

	if (!c) {
		cli_fail("out of memory");
		return NULL;
	}
	c->n = lab->spec.controllers;
	c->log = log;
	if (bl_iface_up("lo", &err)) {
		cli_fail("%s", err.text);
		goto fail;
	}
	if (lab->spec.etcd) {
		for (i = 0; i < LAB_ETCD_MEMBERS; i++)
			if ((c->etcd[i] = start_member(c, i)) < 0)
				goto fail;
		if (wait_for_leader(c, true))
			goto fail;
		for (i = 0; i < LAB_ETCD_MEMBERS; i++)
			lab_etcd_url(i, c->cfg.etcd[i], sizeof(c->cfg.etcd[i]));
		c->cfg.netcd = LAB_ETCD_MEMBERS;
	} else {
		snprintf(c->cfg.sqlite, sizeof(c->cfg.sqlite), BL_RUN_DIR "/controller.db");
	}
	if (list_nodes(lab, c))
		goto fail;
	for (i = 0; i < c->n; i++)
		if ((c->pid[i] = start_controller(c, i)) < 0)
			goto fail;
	if (!wait_for_leader(c, false) && !wait_known(lab, c))
		return c;
fail:
	lab_ctl_end(c);
	return NULL;
}

void lab_ctl_end(struct lab_ctl *c)
{
	unsigned int i;

	for (i = 0; c && i < LAB_CONTROLLERS_MAX; i++)
		kill_child(&c->pid[i]);
	for (i = 0; c && i < LAB_ETCD_MEMBERS; i++)
		kill_child(&c->etcd[i]);
	if (c)
		free(c->nodes);
	free(c);
}
