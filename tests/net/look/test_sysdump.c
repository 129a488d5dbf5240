// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline sysdump` on a host of a rack: the archive has the state of the nodes, what failed or
 * took too long is noted, no secret is in it, and nothing is left behind.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/command.h"
#include "tests/net/barline_run.h"
#include "tests/net/run_beside.h"

#define SECRET "c0ffeec0ffeec0ffeec0ffeec0ffee42"
#define PSK    "hunter2hunter2"

static const char config[] = "node_id: 12\n"
			     "auth: { keys: /etc/barline/h1.keys }\n"
			     "psk: " PSK "\n"
			     "x: -----BEGIN PRIVATE KEY-----\n"
			     "MIIBshort\n"
			     "-----END PRIVATE KEY-----\n"
			     "y: " SECRET "\n"
			     "last: line\n";

static char barline[512], work[] = BL_RUN_DIR "/sysdump";

static void write_in(const char *name, const char *text, unsigned int mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", work, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f) && !chmod(path, mode), "%s: %s", path,
	      strerror(errno));
}

/* Returns the entry of the manifest for a file. */
static json_t *item(json_t *manifest, const char *name)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_object_get(manifest, "items"), i, o)
	{
		if (!strcmp(json_string_value(json_object_get(o, "name")), name))
			return o;
	}
	FAIL("the manifest has no %s", name);
}

static json_t *load(const char *name)
{
	char path[512];
	json_error_t e;
	json_t *o;

	snprintf(path, sizeof(path), "%s/out/%s", work, name);
	o = json_load_file(path, 0, &e);
	CHECK(o, "%s: %s", path, e.text);
	return o;
}

static json_int_t status_of(json_t *manifest, const char *name)
{
	return json_integer_value(json_object_get(item(manifest, name), "status"));
}

RACK_TEST(sysdump__rack)
{
	json_t *manifest, *o;
	char *text;
	int home, st;

	/* All files are in the case's own folder, which vanishes with it. */
	CHECK(barline_path(barline, sizeof(barline)) && !mkdir(work, 0700) &&
		      !mkdir(BL_RUN_DIR "/sysdump/tmp", 0700),
	      "%s", strerror(errno));
	rack.lab.spec.hosts = 2;
	rack_open();
	rack_settle();
	write_in("h1.yaml", config, 0600);
	write_in("h1.keys", SECRET "\n", 0600);
	write_in("node.key.pem", "-----BEGIN PRIVATE KEY-----\nMIIBshort\n", 0600);
	write_in("dmesg", "#!/bin/sh\nsleep 1000\n", 0755); /* hangs */
	write_in("chronyc", "#!/bin/sh\nexit 7\n", 0755);   /* fails */
	home = rack_away(rack_host(0));
	text = command_output(&st,
			      "PATH=%s:$PATH TMPDIR=%s/tmp %s sysdump -t 2 --config-dir %s "
			      "-o %s/out.tar.gz 2>&1",
			      work, work, barline, work, work);
	rack_back(home);
	CHECK(!st, "%#x: %s", st, text);
	/* one line, no progress */
	CHECK(strstr(text, "/out.tar.gz\n") && strchr(text, '\n')[1] == '\0', "it says \"%s\"",
	      text);
	CHECK(!rmdir(BL_RUN_DIR "/sysdump/tmp"), "its folder is still there");
	free(command_output(&st,
			    "mkdir %s/out && tar -C %s/out --strip-components 1 -xzf %s/out.tar.gz",
			    work, work, work));
	CHECK(!st, "tar: %#x", st);

	manifest = load("manifest.json");
	CHECK(json_integer_value(json_object_get(manifest, "schema")) == 1, "no schema");
	CHECK(!status_of(manifest, "show-nodes.json"), "show nodes failed");
	o = load("show-nodes.json"); /* with -a: those of the whole rack */
	CHECK(json_array_size(json_object_get(o, "nodes")) == 3, "%s", json_dumps(o, 0));
	json_decref(load("show-barriers.json"));
	CHECK(!status_of(manifest, "events.jsonl") && !status_of(manifest, "metrics.prom") &&
		      item(manifest, "trace-last.jsonl"),
	      "%s", json_dumps(manifest, 0));
	json_decref(load("ip-link.json"));
	o = item(manifest, "kernel-log.txt");
	CHECK(strstr(json_string_value(json_object_get(o, "why")), "took too long"), "%s",
	      json_dumps(o, 0));
	o = item(manifest, "clock-chrony.txt");
	CHECK(json_integer_value(json_object_get(o, "status")) == 7, "%s", json_dumps(o, 0));
	CHECK(!json_integer_value(json_object_get(item(manifest, "nic-eth0/driver.txt"), "status")),
	      "ethtool -i");

	text = command_output(&st, "cat %s/out/config-h1.yaml", work);
	CHECK(strstr(text, "node_id: 12\n") && strstr(text, "/etc/barline/h1.keys") &&
		      strstr(text, "last: line\n"),
	      "the configuration is %s", text);
	text = command_output(&st,
			      "grep -r -l -e " SECRET " -e " PSK " -e MIIBshort -e 'PRIVATE KEY' "
			      "%s/out",
			      work);
	CHECK(!*text, "secrets are in %s", text);
	text = command_output(&st, "find %s/out -name '*.pem' -o -name '*.keys'", work);
	CHECK(!*text, "files of secrets: %s", text);
	json_decref(manifest);
}

/* Returns the process of the command that hangs, once it runs. */
static pid_t hanging(void)
{
	char path[256];
	FILE *f;
	int pid = 0;

	snprintf(path, sizeof(path), "%s/hangs", work);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%d\n", &pid) != 1)
		pid = 0;
	fclose(f);
	return pid;
}

/*
 * Sends a signal while the program @hangs runs, of which nothing is left then. @limit: of each
 * command; a short one for what comes before tar
 */
static void interrupt(const char *hangs, const char *limit, int sig)
{
	char path[512], tmp[64], out[64];
	const char *const argv[] = { "/usr/bin/env", path,  tmp,  barline, "sysdump",
				     "-t",           limit, "-o", out,     NULL };
	uint64_t end = t_mono() + RUN_WAIT_NS;
	struct run r;
	pid_t pid;

	snprintf(path, sizeof(path), "PATH=%s:%s", work, getenv("PATH"));
	snprintf(tmp, sizeof(tmp), "TMPDIR=%s/tmp", work);
	snprintf(out, sizeof(out), "%s/out.tar.gz", work);
	CHECK(!mkdir(tmp + strlen("TMPDIR="), 0700), "%s", strerror(errno));
	write_in(hangs, "#!/bin/sh\necho $$ > " BL_RUN_DIR "/sysdump/hangs\nexec sleep 1000\n",
		 0755);
	r = start_on(rack_host(0), argv, "");
	while (!(pid = hanging())) {
		CHECK(t_mono() < end && !waitpid(r.pid, &r.status, WNOHANG), "%s does not run: %s",
		      hangs, text_of(r.err));
		rack_serve(5);
	}
	CHECK(!kill(r.pid, sig), "%s", strerror(errno));
	reap(&r, "sysdump");
	CHECK(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1, "%#x: %s", r.status,
	      text_of(r.err));
	CHECK(strstr(text_of(r.err), "none was written"), "it says \"%s\"", text_of(r.err));
	CHECK(access(out, F_OK) && !*text_of(r.out), "half an archive is there");
	CHECK(kill(pid, 0) && errno == ESRCH, "%s is still there", hangs);
	CHECK(!rmdir(tmp + strlen("TMPDIR=")), "its folder is still there");
	snprintf(path, sizeof(path), "%s/hangs", work);
	CHECK(!unlink(path), "%s", strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", work, hangs);
	CHECK(!unlink(path), "%s", strerror(errno));
	close(r.out);
	close(r.err);
}

RACK_TEST(sysdump__interrupted)
{
	CHECK(barline_path(barline, sizeof(barline)) && !mkdir(work, 0700), "%s", strerror(errno));
	rack.lab.spec.hosts = 2;
	rack_open();
	interrupt("uname", "600", SIGINT);
	interrupt("tar", "0.1", SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sysdump__rack),
		cmocka_unit_test(sysdump__interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
