/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three controllers on three members of etcd, each a real `barline controller run` with a file, as
 * in a rack.
 *
 * 	rack.tweak = group_name;	every daemon knows all three
 * 	group_up();
 * 	... until group_said("\"state\":\"ok\"") == nodes
 * 	k = group_leader();
 * 	group_stop(k, SIGTERM);
 * 	group_start(k);
 */
#ifndef BARLINE_TESTS_CTL_GROUP_H
#define BARLINE_TESTS_CTL_GROUP_H

#include "tests/net/rack.h"

#include "tests/net/barline_run.h"
#include "tests/net/controller/ctl_child.h"
#include "tests/net/controller/etcd.h"

#define GROUP 3

static struct {
	pid_t pid[GROUP]; /* 0: it does not run */
	bool next;        /* the next ones are of the other build */
} group;

T_FN void group_addr(unsigned int k, char *buf, size_t size)
{
	snprintf(buf, size, "127.0.0.1:%u", 61693 + k);
}

T_FN void group_name(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	for (cfg->ctl.n = 0; cfg->ctl.n < GROUP; cfg->ctl.n++)
		group_addr(cfg->ctl.n, cfg->ctl.addr[cfg->ctl.n],
			   sizeof(cfg->ctl.addr[cfg->ctl.n]));
}

T_FN void group_file(unsigned int k, const char *path)
{
	FILE *f = fopen(path, "w");
	char addr[64];
	unsigned int i;

	CHECK(f, "%s: %s", path, strerror(errno));
	group_addr(k, addr, sizeof(addr));
	fprintf(f, "listen: %s\nanswer_ms: 20000\netcd: { endpoints: [", addr);
	for (i = 0; i < ETCD_MEMBERS; i++)
		fprintf(f, "%s\"%s\"", i ? ", " : "", etcd.url[i]);
	fprintf(f, "] }\nnodes:\n");
	for (i = 0; i < rack.lab.nnodes; i++)
		fprintf(f, "  - { id: %u, name: %s }\n", lab_node_id(&rack.lab.nodes[i]),
			rack.lab.nodes[i].name);
	CHECK(!fclose(f), "%s", path);
}

T_FN void group_start(unsigned int k)
{
	char file[128], program[512];
	pid_t parent = getpid();

	snprintf(file, sizeof(file), BL_RUN_DIR "/ctl%u.yaml", k + 1);
	group_file(k, file);
	CHECK(barline_path(program, sizeof(program)), "where am I?");
	if (group.next)
		memcpy(strrchr(program, '/'), "/next/barline", sizeof("/next/barline"));
	fflush(NULL);
	group.pid[k] = fork();
	CHECK(group.pid[k] >= 0, "%s", strerror(errno));
	if (group.pid[k])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	execl(program, "barline", "controller", "run", file, NULL);
	_exit(127);
}

/* Ends a controller with @sig. Returns the time that this took in ms. */
T_FN unsigned int group_stop(unsigned int k, int sig)
{
	uint64_t at = t_mono(), end = at + 60000000000ULL;
	int st;

	CHECK(!kill(group.pid[k], sig), "%s", strerror(errno));
	while (waitpid(group.pid[k], &st, WNOHANG) != group.pid[k]) {
		CHECK(t_mono() < end, "controller %u does not stop", k + 1);
		rack_serve(1);
	}
	CHECK(sig == SIGKILL || (WIFEXITED(st) && !WEXITSTATUS(st)), "controller %u: status %#x",
	      k + 1, st);
	group.pid[k] = 0;
	return (unsigned int)((t_mono() - at) / 1000000);
}

T_FN void group_up(void)
{
	unsigned int k;

	etcd_up();
	for (k = 0; k < GROUP; k++)
		group_start(k);
}

/* Returns the index of the controller that leads; GROUP: none does. */
T_FN unsigned int group_leader(void)
{
	unsigned int k;

	for (k = 0; k < GROUP; k++)
		if (group.pid[k] && strstr(ctl_ask(group.pid[k]), "\"state\":\"leader\""))
			break;
	return k;
}

/* Returns how often the leader's status has @what. */
T_FN unsigned int group_said(const char *what)
{
	unsigned int k = group_leader(), n = 0;
	const char *p = k < GROUP ? ctl_ask(group.pid[k]) : "";

	for (; (p = strstr(p, what)); p++)
		n++;
	return n;
}

#endif
