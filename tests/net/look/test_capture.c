// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline capture` on a rack, as its users run it: every frame of a message is seen at every node,
 * in and out, with the reason and the barriers, also where no socket sees it; filters; pcapng with
 * comments, read by tshark with docs/barline.lua; what a capture that is killed, stopped or too
 * slow leaves behind.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/command.h"
#include "tests/net/barline_run.h"
#include "tests/net/loader/stranger.h"
#include "tests/net/run_beside.h"
#include "core/capture_core.h"

#define PORT "61710"

static char barline[512];

/* Waits for the end of a command, which must be a success. */
static void wait_end(struct run *r, const char *what)
{
	reap(r, what);
	CHECK(WIFEXITED(r->status) && !WEXITSTATUS(r->status), "%s ended with %#x: %s %s", what,
	      r->status, text_of(r->err), strdup(text_of(r->out)));
}

static void finish(struct run *r, const char *what)
{
	CHECK(!kill(r->pid, SIGINT), "%s", strerror(errno));
	wait_end(r, what);
	close(r->err);
}

/* Starts a capture of all nodes, and waits until it captures. */
#define CAPTURE(...)                                                                         \
	({                                                                                   \
		const char *const argv_[] = { barline, "-v", "capture", "-a", __VA_ARGS__ }; \
		struct run r_ = start_on(rack_host(0), argv_, "");                           \
		written(&r_, r_.err, "capturing");                                           \
		r_;                                                                          \
	})

/* Sends @n lines from h1 to h2, and waits until they are printed there. */
static void talk(unsigned int n, bool reliable)
{
	char count[16], to[64], text[8192];
	const char *const recv[] = { barline, "recv",  "-p",
				     PORT,    "-c",    count,
				     "-t",    "30000", reliable ? "-r" : NULL,
				     NULL };
	const char *const send[] = { barline, "send", "-w", "20000", to, reliable ? "-r" : NULL,
				     NULL };
	struct run r, s;
	unsigned int i;
	size_t len = 0;
	int found;

	snprintf(count, sizeof(count), "%u", n);
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "line %u\n", i);
	CHECK(len < sizeof(text), "too many lines");
	r = start_on(rack_host(1), recv, "");
	found = sscanf(written(&r, r.err, "receiving on "), "%63s", to);
	CHECK(found == 1, "it does not say where");
	s = start_on(rack_host(0), send, text);
	wait_end(&r, "the receiver");
	kill(s.pid, SIGTERM);
	reap(&s, "the sender");
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "line %u\n", i);
		CHECK(strstr(text_of(r.out), text), "line %u was lost", i);
	}
	close(r.out);
	close(r.err);
	close(s.out);
	close(s.err);
}

static void open_two(void)
{
	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rack.lab.spec.hosts = 2;
	rack_open();
	rack_settle();
}

/** struct want - what a captured frame is to say. NULL: anything. */
struct want {
	const char *node, *name, *direction, *reason, *opcode;
};

static bool says(const json_t *o, const char *key, const char *want)
{
	return !want || json_says(o, key, want);
}

/* Returns how many frames are such in the output of `-j capture`. All lines must be JSON. */
static unsigned int frames(int fd, const struct want *w, json_t **first)
{
	FILE *f = fmemopen((void *)text_of(fd), strlen(text_of(fd)), "r");
	unsigned int n = 0;
	json_error_t e;
	json_t *o;

	if (!f)
		return 0; /* empty */
	while ((o = json_loadf(f, JSON_DISABLE_EOF_CHECK, &e))) {
		CHECK(json_integer_value(json_object_get(o, "schema")) == 1, "no schema");
		if (says(o, "node", w->node) && says(o, "name", w->name) &&
		    says(o, "direction", w->direction) && says(o, "reason", w->reason) &&
		    says(o, "opcode", w->opcode)) {
			n++;
			if (first && !*first)
				*first = json_incref(o);
		}
		json_decref(o);
	}
	fclose(f);
	return n;
}

static json_int_t time_of(const json_t *o, const char *key)
{
	CHECK(json_is_integer(json_object_get(o, key)), "%s: %s", key, json_dumps(o, 0));
	return json_integer_value(json_object_get(o, key));
}

/* The switch's port to h1 is named after it. */
static const struct want hops[] = {
	{ "h1", "eth0", "out", "sent", "data" },
	{ "s1", "h1", "in", "forwarded", "data" },
	{ "s1", "h2", "out", "forwarded", "data" },
	{ "h2", "eth0", "in", "stored", "data" },
};

RACK_TEST(capture__every_hop)
{
	json_t *hop[4] = { NULL };
	struct want all = { 0 };
	struct run c;
	size_t i;

	open_two();
	c = CAPTURE("-j", "--opcode", "data", "--endpoint", PORT, NULL);
	talk(5, false);
	finish(&c, "the capture");
	CHECK(frames(c.out, &all, NULL) == 20, "%u frames: %s", frames(c.out, &all, NULL),
	      text_of(c.out));
	for (i = 0; i < 4; i++) {
		CHECK(frames(c.out, &hops[i], &hop[i]) == 5, "hop %zu: %s", i, text_of(c.out));
		CHECK(time_of(hop[i], "ts") == time_of(hop[0], "ts"), "hop %zu", i);
		CHECK(time_of(hop[i], "psn") == time_of(hop[0], "psn"), "hop %zu", i);
		CHECK(!i || time_of(hop[i], "time_ns") >= time_of(hop[i - 1], "time_ns"),
		      "hop %zu is before the one before it", i);
	}
	/* What the host promised is what the switch takes in, and what it writes is what arrives.
	 */
	CHECK(time_of(hop[0], "barrier_after") <= time_of(hop[1], "barrier_before"), "h1 to s1");
	CHECK(time_of(hop[1], "barrier_after") == time_of(hop[3], "barrier_before"), "s1 to h2");
	CHECK(time_of(hop[3], "barrier_after") >= time_of(hop[3], "barrier_before"), "h2");
	CHECK(json_is_null(json_object_get(hop[0], "barrier_before")), "a host makes barriers");
}

RACK_TEST(capture__filters)
{
	struct want all = { 0 }, refused = { "h2", "eth0", "in", "no_endpoint", NULL },
		    port = { "s1", "h2", NULL, NULL, NULL }, in = { NULL, NULL, "in", NULL, NULL };
	const char *const to_nobody[] = {
		barline, "send", "-w", "100", "10.77.1.2:61799", "x", NULL
	};
	struct run reason, ports, dirs, s;
	uint64_t end;

	open_two();
	reason = CAPTURE("-j", "--reason", "no_endpoint,ring_full", NULL);
	ports = CAPTURE("-j", "--port", "h2", "--opcode", "data,beacon", NULL);
	dirs = CAPTURE("-j", "--direction", "in", NULL);
	s = start_on(rack_host(0), to_nobody, "");
	reap(&s, "the sender to nobody");
	talk(2, false);
	end = t_mono() + RUN_WAIT_NS;
	while (!frames(reason.out, &refused, NULL)) {
		CHECK(t_mono() < end, "no refused frame; the sender: %s", text_of(s.err));
		rack_serve(20);
	}
	finish(&reason, "the capture of a reason");
	finish(&ports, "the capture of a port");
	finish(&dirs, "the capture of a direction");
	CHECK(frames(reason.out, &all, NULL) == frames(reason.out, &refused, NULL), "%s",
	      text_of(reason.out));
	CHECK(frames(ports.out, &port, NULL) > 2, "%s", text_of(ports.out));
	CHECK(frames(ports.out, &all, NULL) == frames(ports.out, &port, NULL), "%s",
	      text_of(ports.out));
	CHECK(frames(dirs.out, &in, NULL) > 2, "%s", text_of(dirs.out));
	CHECK(frames(dirs.out, &all, NULL) == frames(dirs.out, &in, NULL), "%s", text_of(dirs.out));
}

static char chain[16]; /* id of the program that is chained on h2 */

static void set_chain(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (!strcmp(n->name, "h2"))
		strcpy(cfg->chain, chain);
}

/* What another program gets is shown before it: this one drops it. */
RACK_TEST(capture__chained)
{
	struct want chained = { "h2", "eth0", "in", "chained", "other" }, all = { 0 };
	const char *const udp[] = { "/bin/bash", "-c", "echo > /dev/udp/10.77.1.2/9", NULL };
	struct run r, p;
	uint64_t end;
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0);

	snprintf(chain, sizeof(chain), "%u", stranger_id(fd));
	rack.tweak = set_chain;
	open_two();
	close(fd);
	r = CAPTURE("-j", "--others", "--reason", "chained", NULL);
	end = t_mono() + RUN_WAIT_NS;
	do {
		CHECK(t_mono() < end, "nothing was captured: %s", text_of(r.err));
		p = start_on(rack_host(0), udp, "");
		reap(&p, "the sender");
		close(p.out);
		close(p.err);
	} while (!frames(r.out, &all, NULL));
	CHECK(rack_counts(rack_host(1)).n[BL_R_CHAINED], "none is counted");
	finish(&r, "the capture");
	CHECK(frames(r.out, &all, NULL) == frames(r.out, &chained, NULL), "%s", text_of(r.out));
	close(r.out);
}

/* A reason for which no frame ends is refused rather than waited for. */
RACK_TEST(capture__notes)
{
	static const char *const names[] = { "excluded", "ring_full,promise_broken",
					     "token_expired" };
	size_t k;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		int st;
		char *text = command_output(&st, "%s capture --reason %s 2>&1", barline, names[k]);

		CHECK(text && WIFEXITED(st) && WEXITSTATUS(st) == 2 &&
			      strstr(text, "show drops -i 1"),
		      "%#x: %s", st, text);
		free(text);
	}
}

/* Returns what a command prints. It must be a success. */
#define OUTPUT(...)                                                  \
	({                                                           \
		int st_;                                             \
		char *text_ = command_output(&st_, __VA_ARGS__);     \
		CHECK(text_ && !st_, "a command failed: %s", text_); \
		text_;                                               \
	})

RACK_TEST(capture__tshark)
{
	static const char *const opcodes[] = { "1", "3", "6", "10", "11", "12", "13" };
	char file[] = BL_RUN_DIR "/capture.pcapng", want[64], *text;
	struct run c;
	size_t i;

	open_two();
	c = CAPTURE("-w", file, "-s", "200", NULL);
	talk(3, false);
	talk(3, true);
	finish(&c, "the capture");
	text = OUTPUT("tshark -n -X lua_script:docs/barline.lua -r %s -T fields -E separator=, "
		      "-e barline.opcode -e frame.interface_name -e frame.comment 2>/dev/null",
		      file);
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		snprintf(want, sizeof(want), "\n%s,", opcodes[i]);
		CHECK(strstr(text, want), "no frame of opcode %s", opcodes[i]);
	}
	CHECK(strstr(text, "10,h1/eth0/out,node=h1 name=eth0 direction=out reason=sent "
			   "barrier_after="),
	      "the PREP at h1");
	CHECK(strstr(text, "11,h2/eth0/in,node=h2 name=eth0 direction=in reason=prepared"),
	      "the ACK that h2 makes of it");
	CHECK(strstr(text, "11,s1/h1/out,node=s1 name=h1 direction=out reason=forwarded"), "the "
											   "ACK at "
											   "the "
											   "switc"
											   "h");
	CHECK(strstr(text, "11,h1/eth0/in,node=h1 name=eth0 direction=in reason=acked") ||
		      strstr(text, "6,h1/eth0/in,node=h1 name=eth0 direction=in reason=committed"),
	      "the ACK at h1, or the beacon that it became");
	CHECK(strstr(text, "1,s1/h2/out,node=s1 name=h2 direction=out reason=forwarded"), "data at "
											  "the "
											  "switch");
	free(text);
	text = OUTPUT("tshark -n -X lua_script:docs/barline.lua -r %s -V 2>/dev/null | "
		      "grep -E -c 'Lua Error|alformed' || true",
		      file);
	CHECK(!strcmp(text, "0\n"), "the dissector complains %s times", text);
	free(text);
}

/* Maps the page of the captures of a node. */
static const struct bl_capture_page *page_of(const char *dir)
{
	struct bpf_link_info link = {};
	struct bpf_prog_info prog = {};
	uint32_t ids[256], len = sizeof(link), i;
	char path[384];
	void *page;
	int fd;

	snprintf(path, sizeof(path), "%s/links/xdp-eth0", dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &link, &len), "%s", path);
	close(fd);
	fd = bpf_prog_get_fd_by_id(link.prog_id);
	prog.map_ids = (uint64_t)(uintptr_t)ids;
	prog.nr_map_ids = 256;
	len = sizeof(prog);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &prog, &len), "%s", strerror(errno));
	close(fd);
	for (i = 0; i < prog.nr_map_ids; i++) {
		struct bpf_map_info map = {};

		len = sizeof(map);
		fd = bpf_map_get_fd_by_id(ids[i]);
		CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &map, &len), "%s", strerror(errno));
		page = strcmp(map.name, BL_CAPTURE_PAGE)
			       ? MAP_FAILED
			       : mmap(NULL, sizeof(struct bl_capture_page), PROT_READ, MAP_SHARED,
				      fd, 0);
		close(fd);
		if (page != MAP_FAILED)
			return page;
	}
	FAIL("the program has no page of captures");
}

static unsigned int is_on(const struct bl_capture_page *p)
{
	return __atomic_load_n(&p->on, __ATOMIC_ACQUIRE);
}

/* A capture that is killed takes no slot and no time of the datapath any more. */
RACK_TEST(capture__killed)
{
	const struct bl_capture_page *page;
	struct run c[BL_CAPTURE_SLOTS], more;
	uint64_t end = t_mono() + RUN_WAIT_NS;
	const char *const argv[] = { barline, "capture", "-a", NULL };
	size_t i;

	open_two();
	page = page_of(rack.dir[rack_host(0)]);
	CHECK(!is_on(page), "the programs capture for nobody");
	for (i = 0; i < BL_CAPTURE_SLOTS; i++)
		c[i] = CAPTURE("--opcode", "nak", NULL);
	CHECK(is_on(page), "the programs do not capture");
	/* Killed or not, there are not more than so many. */
	more = start_on(rack_host(0), argv, "");
	reap(&more, "the fifth capture");
	CHECK(WIFEXITED(more.status) && WEXITSTATUS(more.status) == 1 &&
		      strstr(text_of(more.err), "has 4 captures already"),
	      "%#x: %s", more.status, text_of(more.err));
	for (i = 0; i < BL_CAPTURE_SLOTS; i++) {
		kill(c[i].pid, SIGKILL);
		waitpid(c[i].pid, &c[i].status, 0);
	}
	while (is_on(page)) {
		CHECK(t_mono() < end, "the programs go on capturing for nobody");
		rack_serve(20);
	}
	more = CAPTURE("-j", "--opcode", "data", NULL);
	talk(1, false);
	finish(&more, "the capture after the killed ones");
	CHECK(frames(more.out, &hops[3], NULL) == 1, "%s", text_of(more.out));
	CHECK(!is_on(page), "the programs go on after an orderly end");
}

/* A reader that is stopped loses captures, and the rack loses nothing. */
RACK_TEST(capture__full)
{
	struct run c;
	unsigned int lost = 0, n = 0;
	const char *at;

	open_two();
	c = CAPTURE("--buffer", "4", "--opcode", "data", NULL);
	CHECK(!kill(c.pid, SIGSTOP), "%s", strerror(errno));
	talk(300, false);
	CHECK(!kill(c.pid, SIGCONT), "%s", strerror(errno));
	kill(c.pid, SIGINT);
	wait_end(&c, "the capture");
	at = strstr(text_of(c.err), " frames captured, ");
	if (at)
		lost = (unsigned int)strtoul(at + strlen(" frames captured, "), NULL, 10);
	CHECK(lost, "it says: %s", text_of(c.err));
	for (at = text_of(c.out); (at = strchr(at, '\n')); at++)
		n++;
	CHECK(n, "nothing was captured at all");
}

/* New programs of a node are captured as the old ones were. */
RACK_TEST(capture__upgrade)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;
	struct run c;

	open_two();
	c = CAPTURE("-j", "--opcode", "data", NULL);
	rack_close_node(rack_host(1));
	rack_open_node(rack_host(1));
	rack_settle();
	while (!frames(c.out, &hops[3], NULL)) {
		CHECK(t_mono() < end, "the new programs are not captured");
		talk(1, false);
		rack_serve(300);
	}
	finish(&c, "the capture");
}

/* A host that is silent holds the messages of all others, and is named. */
RACK_TEST(trace__silent_host)
{
	const char *const argv[] = { barline,         "-v",     "-j", "trace", "-a",
				     "--slower-than", "300000", NULL };
	struct run t;
	const char *text;
	json_t *o, *by;
	uint64_t end;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rack.lab.spec.hosts = 3;
	rack_open();
	rack_settle();
	t = start_on(rack_host(0), argv, "");
	written(&t, t.err, "tracing");
	talk(1, false); /* as fast as usual, and not shown */
	rack_close_node(rack_host(2));
	talk(1, false); /* waits for h3, until it is excluded */
	end = t_mono() + RUN_WAIT_NS;
	while (!strchr(text = text_of(t.out), '\n')) {
		CHECK(t_mono() < end, "the trace says nothing: %s", text_of(t.err));
		rack_serve(20);
	}
	o = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	by = json_object_get(o, "held_by");
	CHECK(says(by, "node", "h3") && says(by, "switch", "s1") && says(by, "name", "h3"), "%s",
	      text);
	/* A host that was silent has promised ahead: its timestamp may be later than its frame. */
	CHECK(says(o, "opcode", "data") && time_of(o, "order_ns") > 300000000 &&
		      time_of(o, "total_ns") == time_of(o, "host_ns") + time_of(o, "up_ns") +
							time_of(o, "switches_ns") +
							time_of(o, "down_ns") +
							time_of(o, "order_ns") &&
		      time_of(o, "up_ns") >= 0 && time_of(o, "down_ns") >= 0,
	      "%s", text);
	finish(&t, "the trace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture__every_hop), cmocka_unit_test(capture__filters),
		cmocka_unit_test(capture__chained),   cmocka_unit_test(capture__notes),
		cmocka_unit_test(capture__tshark),    cmocka_unit_test(capture__killed),
		cmocka_unit_test(capture__full),      cmocka_unit_test(capture__upgrade),
		cmocka_unit_test(trace__silent_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
