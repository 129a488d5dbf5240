// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Nothing waits without a limit for a process that is stopped (SIGSTOP, a debugger). Every command
 * of `barline` runs against stopped daemons, and those that others answer against stopped
 * controllers, arbiters, caretakers and applications. Each ends by itself, says which process does
 * not answer and what to do, and works again when the process continues.
 *
 * The table has one row for each run. A command without a row fails the test, so a new command
 * comes with its row. The commands of a case run at the same time; none of them may take
 * RUN_WAIT_NS (run_beside.h), which is longer than any limit in the documentation. Libraries' calls
 * are in test_stopped_lib.c, labs in tests/net/lab/test_lab_up.c.
 */
#include "base/proc.h"
#include "tests/net/loader/restart.h"
#include "tests/net/run_beside.h"

/** enum at - in whose network namespace a command runs. */
enum at {
	HOST,   /* h1: its daemon is the one that is stopped */
	PEER,   /* h2: nobody is stopped there */
	SWITCH, /* s1 */
	HERE    /* that of the services: controller, arbiter, fault isolation, exporter */
};

/** enum stop - what is stopped. */
enum stop { DAEMONS, SERVICES, CARETAKER, APPLICATION };

#define ENDLESS (-1) /* as a status: it runs until it is terminated, and then ends with 0 */
#define NOT     (-1) /* as what happens afterwards: it is not run again */
/* As what happens afterwards: 0, or 1 for another reason. The node may be announced as failed. */
#define ANSWERS (-2)

/** enum who - the process whose number a message has to have. */
enum who { NOBODY, H1, S1, CARE, CONTROLLER, ARBITER, FAULTS, OTHERS };

/** struct row - one command, while something is stopped. */
struct row {
	enum stop stop;
	enum at at;
	const char *name; /* as the list of commands has it */
	const char *args; /* words */
	int status;       /* exit status, or ENDLESS */
	enum who who;     /* its message has "process N" of this one */
	const char *says; /* it prints this, among other things; NULL: whatever */
	int after;        /* exit status when all go on, or NOT */
};

#define FP_FILE  BL_RUN_DIR "/fastpass.yaml"
#define CTL_FILE BL_RUN_DIR "/ctl.yaml"
#define H1_FILE  BL_RUN_DIR "/h1.yaml"
#define STOPPED  "is stopped by a signal or a debugger"
#define SILENT   "has not answered for 5 s; is it stopped?"

static const struct row rows[] = {
	/* ---- daemons of h1 and s1 ---- */
	{ DAEMONS, HOST, "show nodes", "", 0, NOBODY, "h1", NOT },
	{ DAEMONS, SWITCH, "show ports", "", 0, NOBODY, "h1", NOT },
	{ DAEMONS, SWITCH, "show barriers", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show endpoints", "", 0, NOBODY, "61700", NOT },
	{ DAEMONS, SWITCH, "show sources", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show links", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show drops", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show clock", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show maps", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, SWITCH, "show reservations", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show holds", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, SWITCH, "show queues", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show pacer", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show fastpass", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show tokens", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show auth", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show hooks", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show network", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "show nics", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "show controller", "", 0, NOBODY, "h1", NOT },
	{ DAEMONS, HERE, "show failures", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "show epochs", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "status", "", 1, H1, STOPPED, ANSWERS },
	{ DAEMONS, SWITCH, "status", "", 1, S1, STOPPED, ANSWERS },
	{ DAEMONS, HOST, "wait", "--for ready --timeout 1s", 1, H1, STOPPED, ANSWERS },
	{ DAEMONS, HOST, "events", "", 0, NOBODY, "h1", NOT },
	{ DAEMONS, HOST, "events", "-f", ENDLESS, NOBODY, "h1", NOT },
	{ DAEMONS, HOST, "watch", "-c 1", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "top", "-b -c 1", 0, NOBODY, "h1", NOT },
	{ DAEMONS, HOST, "capture", "-v", ENDLESS, NOBODY, "capturing", NOT },
	{ DAEMONS, HOST, "trace", "-v", ENDLESS, NOBODY, "tracing", NOT },
	{ DAEMONS, HOST, "sysdump", "-o " BL_RUN_DIR "/dump.tar.gz", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "metrics", "", 0, NOBODY, "barline_", NOT },
	{ DAEMONS, HOST, "doctor", "--quick", 1, H1, STOPPED, NOT },
	{ DAEMONS, SWITCH, "switch setup", "--dry-run h1", 0, NOBODY, NULL, NOT },
	{ DAEMONS, SWITCH, "switch up", "h1", 1, S1, "serves the switch", NOT },
	{ DAEMONS, SWITCH, "switch detach", "", 1, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "host setup", "--dry-run eth0", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "host up", "eth0", 1, H1, "serves the host", NOT },
	{ DAEMONS, HOST, "host detach", "", 1, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "host detach", "--force", 1, H1, "serves the host", NOT },
	{ DAEMONS, HOST, "host drain", "--timeout 1", 1, H1, STOPPED, NOT },
	{ DAEMONS, HOST, "host undrain", "", 1, H1, STOPPED, 0 },
	{ DAEMONS, HOST, "config show", "", 0, NOBODY, "name: h1", NOT },
	{ DAEMONS, HOST, "config diff", H1_FILE, 0, NOBODY, NULL, NOT },
	{ DAEMONS, HOST, "config reload", "", 1, H1, STOPPED, 0 },
	{ DAEMONS, SWITCH, "config reload", "", 1, S1, STOPPED, 0 },
	{ DAEMONS, HOST, "admission set", "none", 1, NOBODY, "without admission", NOT },
	{ DAEMONS, HOST, "admission show", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "admission set", "--rack none", 1, NOBODY, "without admission", 1 },
	{ DAEMONS, HERE, "clean", "--dry-run", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "clean", "--all --dry-run", 1, NOBODY, "stop it first", NOT },
	{ DAEMONS, HOST, "send", "10.77.1.2:61701", 1, H1, SILENT, NOT },
	{ DAEMONS, HOST, "recv", "-p 61702 -c 1", 1, H1, SILENT, NOT },
	{ DAEMONS, HOST, "bench all-to-all", "--duration 1", 1, H1, SILENT, NOT },
	{ DAEMONS, HOST, "bench latency", "--serve", 1, H1, SILENT, NOT },
	{ DAEMONS, HERE, "arbiter run", FP_FILE, 1, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "arbiter reload", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "arbiter secret", BL_RUN_DIR "/secret", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "arbiter show", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "arbiter faults", "show", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "arbiter bench", "alloc --slots 1000 --endpoints 4 --load 0.5", 0, NOBODY,
	  NULL, NOT },
	{ DAEMONS, HERE, "controller run", CTL_FILE, ENDLESS, NOBODY, "controller at", NOT },
	{ DAEMONS, HERE, "controller reload", "", 1, NOBODY, "without a file", NOT },
	{ DAEMONS, HERE, "controller admit", "h9 --id 9", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "controller remove", "h8", 1, NOBODY, "knows no node h8", NOT },
	{ DAEMONS, HERE, "controller show", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "controller failures", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "controller epochs", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "pki init", "--dir " BL_RUN_DIR "/pki2 --rack two", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "pki issue", "--dir " BL_RUN_DIR "/pki --id 7 h7", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "pki renew", "--dir " BL_RUN_DIR "/pki h8", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "pki show", "--dir " BL_RUN_DIR "/pki", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "auth init", BL_RUN_DIR "/auth2", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "auth rotate", BL_RUN_DIR "/auth", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "auth issue", "-o " BL_RUN_DIR "/h1.keys " BL_RUN_DIR "/auth 1 2", 0,
	  NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "lab exec", "none h1 -- true", 1, NOBODY, "no lab", NOT },
	{ DAEMONS, HERE, "lab down", "none", 1, NOBODY, "no lab", NOT },
	{ DAEMONS, HERE, "lab list", "", 0, NOBODY, "no labs", NOT },
	{ DAEMONS, HERE, "completion", "bash", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "help", "", 0, NOBODY, NULL, NOT },
	{ DAEMONS, HERE, "version", "", 0, NOBODY, NULL, NOT },
	/* ---- services: controller, arbiter, fault isolation; exporter, capture and events ---- */
	{ SERVICES, HERE, "show controller", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "show failures", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "show epochs", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "controller show", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "controller failures", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "controller epochs", "", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "controller reload", "", 1, CONTROLLER, STOPPED, 1 },
	{ SERVICES, HERE, "controller admit", "h9 --id 9", 1, CONTROLLER, STOPPED, 0 },
	{ SERVICES, HERE, "controller remove", "9", 1, CONTROLLER, STOPPED, 1 },
	{ SERVICES, HERE, "admission set", "--rack none", 1, CONTROLLER, STOPPED, 1 },
	{ SERVICES, HERE, "arbiter show", "", 1, ARBITER, STOPPED, 0 },
	{ SERVICES, HERE, "arbiter reload", "", 1, ARBITER, STOPPED, 0 },
	{ SERVICES, HERE, "arbiter run", FP_FILE, 1, NOBODY, NULL, NOT },
	{ SERVICES, HERE, "arbiter faults", FP_FILE, 1, NOBODY, NULL, NOT },
	{ SERVICES, HERE, "arbiter faults", "show", 1, FAULTS, STOPPED, 0 },
	{ SERVICES, HERE, "arbiter faults", "clear", 1, FAULTS, STOPPED, 0 },
	{ SERVICES, HERE, "metrics", "", 0, CONTROLLER, STOPPED, NOT },
	{ SERVICES, HERE, "metrics", "--listen 127.0.0.1:9469", 1, NOBODY, "Address already in use",
	  NOT },
	{ SERVICES, HERE, "sysdump", "-o " BL_RUN_DIR "/dump.tar.gz", 0, NOBODY, NULL, NOT },
	{ SERVICES, HOST, "status", "", 0, NOBODY, "h1", NOT },
	{ SERVICES, HOST, "wait", "--for ready --timeout 30s", 0, NOBODY, NULL, NOT },
	{ SERVICES, HOST, "doctor", "--quick", 0, NOBODY, NULL, NOT },
	{ SERVICES, HOST, "capture", "-v", ENDLESS, NOBODY, "capturing", NOT },
	{ SERVICES, HOST, "trace", "-v", ENDLESS, NOBODY, "tracing", NOT },
	{ SERVICES, HOST, "events", "", 0, NOBODY, "h1", NOT },
	{ SERVICES, HOST, "config reload", "", 0, NOBODY, NULL, NOT },
	{ SERVICES, HOST, "send", "10.77.1.2:61701", 0, NOBODY, NULL, NOT },
	{ SERVICES, HERE, "clean", "", 0, NOBODY, "nothing to clean", NOT },

	/* ---- the caretaker of h1, which stands in for a daemon that has ended ---- */
	{ CARETAKER, HOST, "status", "", 1, CARE, STOPPED, NOT },
	{ CARETAKER, HOST, "show nodes", "", 0, NOBODY, "h1", NOT },
	{ CARETAKER, HOST, "show clock", "", 0, NOBODY, NULL, NOT },
	{ CARETAKER, HOST, "doctor", "--quick", 1, NOBODY, NULL, NOT },
	{ CARETAKER, HOST, "config reload", "", 1, NOBODY, "no daemon runs", 0 },
	{ CARETAKER, HOST, "host drain", "--timeout 1", 1, NOBODY, "no host daemon", NOT },
	{ CARETAKER, HOST, "send", "10.77.1.2:61701", 1, NOBODY, "no barline host daemon", 0 },
	{ CARETAKER, HOST, "metrics", "", 0, NOBODY, NULL, NOT },
	{ CARETAKER, HOST, "capture", "-v", ENDLESS, NOBODY, "capturing", NOT },
	{ CARETAKER, HERE, "clean", "", 0, NOBODY, NULL, NOT },

	/* ---- an application of h1 that receives ---- */
	{ APPLICATION, PEER, "send", "-w 3000 10.77.1.1:61700", 1, NOBODY, "10.77.1.1:61700", 0 },
	{ APPLICATION, PEER, "bench latency", "--peer 10.77.1.1:61700", 1, NOBODY,
	  "10.77.1.1:61700 has not answered", NOT },
	{ APPLICATION, HOST, "show endpoints", "", 0, NOBODY, "61700", NOT },
	{ APPLICATION, HOST, "trace", "-v", ENDLESS, NOBODY, "tracing", NOT },
	{ APPLICATION, HOST, "metrics", "", 0, NOBODY, NULL, NOT },
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* Commands that have no row, and why. */
static const char *const elsewhere[] = {
	"lab up",  /* tests/net/lab/test_lab_up.c: stopped__lab */
	"lab run", /* and its workloads: asks no process that it has not started */
};

static char barline[512];
static pid_t others[OTHERS];

/* ---- one command ---- */

/** struct going - a command that runs. */
struct going {
	const struct row *row;
	struct run run;
	char words[256];
};

static unsigned int node_at(enum at at)
{
	unsigned int i;

	if (at == HERE)
		return RUN_HERE;
	if (at != SWITCH)
		return rack_host(at == PEER);
	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

/* Starts `barline NAME ARGS`. Its input is one line. */
static void start_row(struct going *g, const struct row *r)
{
	const char *argv[16] = { barline };
	char *save, *w;
	int n = 1;

	g->row = r;
	snprintf(g->words, sizeof(g->words), "%s %s", r->name, r->args);
	for (w = strtok_r(g->words, " ", &save); w && n < 15; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	g->run = start_on(node_at(r->at), argv, "hello\n");
}

/* Returns what the command has printed. */
static const char *said(const struct run *r)
{
	static char all[2 << 20];
	size_t n = (size_t)snprintf(all, sizeof(all), "%s", text_of(r->err));

	snprintf(all + n, sizeof(all) - n, "%s", text_of(r->out));
	return all;
}

static pid_t pid_of(enum who who)
{
	return who == H1                  ? dm[node_at(HOST)].pid
	       : who == S1                ? dm[node_at(SWITCH)].pid
	       : who == CONTROLLER && ctl ? ctl
					  : others[who];
}

/* Returns 1 after a message if the command has not done what it should, else 0. */
static unsigned int judge(const struct going *g, int status, enum who who, const char *says)
{
	const char *text = said(&g->run);
	char pid[32] = "";
	int st = g->run.status;

	if (who)
		snprintf(pid, sizeof(pid), "process %d", pid_of(who));
	if (g->row->status == ENDLESS && WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM)
		st = 0; /* it has nothing to clean up */
	if (status == ANSWERS && WIFEXITED(st) && WEXITSTATUS(st) <= 1 && !strstr(text, STOPPED))
		return 0;
	if (WIFEXITED(st) && WEXITSTATUS(st) == status && strstr(text, pid) &&
	    (!says || strstr(text, says)))
		return 0;
	fprintf(stderr,
		"barline %s %s: wait status %#x, expected exit status %d, \"%s\" and \"%s\"; it "
		"printed:\n%.800s\n",
		g->row->name, g->row->args, st, status, pid, says ? says : "", text);
	return 1;
}

/* Runs the rows of @stop at the same time. */
static void run_rows(enum stop stop)
{
	static struct going going[NROWS];
	unsigned int wrong = 0;
	char what[128];
	size_t n = 0, i;

	for (i = 0; i < NROWS; i++)
		if (rows[i].stop == stop)
			start_row(&going[n++], &rows[i]);
	for (i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%s %s", going[i].row->name, going[i].row->args);
		if (going[i].row->status == ENDLESS)
			continue;
		reap(&going[i].run, what);
		wrong += judge(&going[i], going[i].row->status, going[i].row->who,
			       going[i].row->says);
	}
	for (i = 0; i < n; i++) {
		struct going *g = &going[i];

		if (g->row->status != ENDLESS)
			continue;
		UNTIL("waits for an endless command",
		      !g->row->says || strstr(said(&g->run), g->row->says));
		CHECK(!kill(g->run.pid, SIGTERM), "%s", strerror(errno));
		reap(&g->run, g->row->name);
		wrong += judge(g, 0, NOBODY, g->row->says);
	}
	CHECK(!wrong, "%u commands did not do what they should", wrong);
	for (i = 0; i < n; i++) {
		close(going[i].run.out);
		close(going[i].run.err);
	}
}

/* Runs those rows of @stop again that failed for want of an answer: they work now. */
static void run_again(enum stop stop)
{
	unsigned int wrong = 0;
	struct going g;
	size_t i;

	for (i = 0; i < NROWS; i++) {
		if (rows[i].stop != stop || rows[i].after == NOT)
			continue;
		start_row(&g, &rows[i]);
		reap(&g.run, rows[i].name);
		wrong += judge(&g, rows[i].after, NOBODY, NULL);
		close(g.run.out);
		close(g.run.err);
	}
	CHECK(!wrong, "%u commands do not work again", wrong);
}

/* Runs one command to its end. Returns its exit status; *@text is what it has printed. */
static int once(enum at at, const char *name, const char *args, const char **text)
{
	const struct row r = { .at = at, .name = name, .args = args };
	struct going g;

	start_row(&g, &r);
	reap(&g.run, name);
	*text = said(&g.run);
	close(g.run.out);
	close(g.run.err);
	CHECK(WIFEXITED(g.run.status), "%s %s: %#x", name, args, g.run.status);
	return WEXITSTATUS(g.run.status);
}

/* ---- the rack and its services ---- */

static void open_all(void)
{
	CHECK(barline_path(barline, sizeof(barline)), "where am I?");
	dm_void_ms = 60000;          /* no clock becomes void while its daemon is stopped */
	rack_last_words = rack_dump; /* the state of the controller is long */
	open_rack(2);
}

static void halt(pid_t pid)
{
	CHECK(pid > 0 && bl_proc_state(pid) != 'Z', "process %d is gone", pid);
	UNTIL("waits for a process to stop", !kill(pid, SIGSTOP) && bl_proc_state(pid) == 'T');
}

static void go_on(pid_t pid)
{
	CHECK(!kill(pid, SIGCONT), "%s", strerror(errno));
}

static void all_ready(void)
{
	const char *text;

	CHECK(!once(HOST, "wait", "--for ready --timeout 60s", &text), "%s", text);
	CHECK(!once(PEER, "wait", "--for ready --timeout 60s", &text), "%s", text);
	CHECK(!once(SWITCH, "wait", "--for ready --timeout 60s", &text), "%s", text);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f), "%s", path);
}

/* Starts a command that goes on, and waits until it has said @says. */
static pid_t beside(enum at at, const char *name, const char *args, const char *says)
{
	const struct row r = { .at = at, .name = name, .args = args };
	struct going g;
	unsigned int i;

	start_row(&g, &r);
	for (i = 0; !strstr(said(&g.run), says); i++) {
		CHECK(!waitpid(g.run.pid, NULL, WNOHANG) && i < 60000, "%s: %s", name,
		      said(&g.run));
		rack_serve(1);
	}
	return g.run.pid;
}

static void services_open(void)
{
	write_file(CTL_FILE, "listen: 127.0.0.1:61694\nsqlite: " BL_RUN_DIR "/ctl.db\n"
			     "nodes: [{ id: 1, name: h1 }]\n");
	write_file(FP_FILE, "arbiters: [127.0.0.1]\nfaults: 127.0.0.1\nsecret: "
			    "\"00000000000012340000000000000000\"\n"
			    "endpoints:\n  - { name: h1, addr: 10.77.1.1 }\n"
			    "  - { name: h2, addr: 10.77.1.2 }\n");
	others[ARBITER] = beside(HERE, "arbiter run", FP_FILE, "arbiter");
	others[FAULTS] = beside(HERE, "arbiter faults", FP_FILE, "fault isolation");
}

/* ---- cases ---- */

#define LIST "_barline_commands=\"" /* in the completion for bash */

/* Every command of the list is in the table, and nothing else is. */
RACK_TEST(every_command__has_a_row)
{
	char names[8192], *save, *name;
	unsigned int missing = 0;
	struct bl_err err;
	const char *text;
	size_t i, n = 0;

	CHECK(barline_path(barline, sizeof(barline)), "where am I?");
	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	CHECK(!once(HERE, "completion", "bash", &text), "%s", text);
	text = strstr(text, LIST);
	CHECK(text, "the completion has no list of commands");
	text += strlen(LIST);
	snprintf(names, sizeof(names), "%.*s", (int)strcspn(text, "\""), text);
	for (name = strtok_r(names, "\n", &save); name; name = strtok_r(NULL, "\n", &save), n++) {
		bool found = false;

		for (i = 0; i < NROWS; i++)
			found |= !strcmp(rows[i].name, name);
		for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
			found |= !strncmp(elsewhere[i], name, strlen(elsewhere[i]));
		if (!found)
			fprintf(stderr, "%s has no row\n", name);
		missing += !found;
	}
	CHECK(!missing && n > 60, "%u of %zu commands have no row", missing, n);
}

RACK_TEST(stopped__daemons)
{
	const char *text;

	open_all();
	services_open();
	beside(HOST, "recv", "-p 61700", "receiving");
	CHECK(!once(HERE, "pki init", "--dir " BL_RUN_DIR "/pki --rack one", &text) &&
		      !once(HERE, "pki issue", "--dir " BL_RUN_DIR "/pki --id 8 h8", &text) &&
		      !once(HERE, "auth init", BL_RUN_DIR "/auth", &text),
	      "%s", text);
	halt(pid_of(H1));
	halt(pid_of(S1));
	run_rows(DAEMONS);
	go_on(pid_of(H1));
	go_on(pid_of(S1));
	/*
	 * The daemon obeys what it was told meanwhile. drain and undrain were told at the same
	 * time, so that either may have been the last one.
	 */
	CHECK(!once(HOST, "host undrain", "", &text), "%s", text);
	all_ready();
	run_again(DAEMONS);
	daemons_end();
}

RACK_TEST(stopped__services)
{
	pid_t more[3], standby;
	const char *text;
	unsigned int i;
	enum who w;

	open_all();
	services_open();
	beside(PEER, "recv", "-p 61701", "receiving");
	more[0] = beside(HERE, "metrics", "--listen 127.0.0.1:9469", "metrics at");
	more[1] = beside(HOST, "capture", "-v -w " BL_RUN_DIR "/cap.pcapng", "capturing");
	more[2] = beside(HOST, "events", "-f", "h1");
	for (w = CONTROLLER; w < OTHERS; w++)
		halt(pid_of(w));
	for (i = 0; i < 3; i++)
		halt(more[i]);
	run_rows(SERVICES);
	/* One that answers does not hide one that does not. */
	standby = beside(HERE, "controller run", CTL_FILE, "controller at");
	UNTIL("waits for the standby",
	      !once(HERE, "show controller", "", &text) && strstr(text, STOPPED));
	CHECK(!kill(standby, SIGTERM) && waitpid(standby, NULL, 0) == standby, "%s",
	      strerror(errno));
	for (w = CONTROLLER; w < OTHERS; w++)
		go_on(pid_of(w));
	for (i = 0; i < 3; i++)
		go_on(more[i]);
	UNTIL("waits for all nodes", all_ok());
	run_again(SERVICES);
	daemons_end();
}

/* Ends the daemon of node @i in order, and stops its caretaker. */
static pid_t halted_caretaker(unsigned int i)
{
	daemon_stop(i, SIGTERM);
	UNTIL("waits for the caretaker", (others[CARE] = caretaker(i)));
	dm_guard(others[CARE]); /* one that is stopped does not end with its daemon's parent */
	halt(others[CARE]);
	return others[CARE];
}

RACK_TEST(stopped__caretaker)
{
	unsigned int h;
	const char *text;
	pid_t pid;

	open_all();
	h = node_at(HOST);
	beside(PEER, "recv", "-p 61701", "receiving");
	pid = halted_caretaker(h);
	run_rows(CARETAKER);
	daemon_start(h); /* takes over without an answer of the caretaker */
	UNTIL("waits for the end of the caretaker", !runs(pid));
	all_ready();
	run_again(CARETAKER);
	pid = halted_caretaker(h);
	CHECK(!once(HOST, "host detach", "--force", &text), "%s", text);
	UNTIL("waits for the end of the caretaker", !runs(pid));
	daemon_start(h); /* for daemons_end() */
	daemons_end();
}

RACK_TEST(stopped__application)
{
	const char *text;
	pid_t pid;

	open_all();
	pid = beside(HOST, "recv", "-p 61700", "receiving");
	halt(pid);
	run_rows(APPLICATION);
	/* The host goes on without it after its limit. */
	CHECK(!once(HOST, "host drain", "--timeout 60", &text), "%s", text);
	CHECK(!once(HOST, "host undrain", "", &text), "%s", text);
	go_on(pid);
	CHECK(waitpid(pid, NULL, 0) == pid, "%s", strerror(errno)); /* it is out */
	beside(HOST, "recv", "-p 61700", "receiving");
	run_again(APPLICATION);
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command__has_a_row), cmocka_unit_test(stopped__daemons),
		cmocka_unit_test(stopped__services),        cmocka_unit_test(stopped__caretaker),
		cmocka_unit_test(stopped__application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
