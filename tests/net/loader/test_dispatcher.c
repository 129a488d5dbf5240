// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Barline's program in a dispatcher of libxdp (loader/load/dispatcher.c): it joins others and is
 * joined by others, stays while they come and go and while it is upgraded, is put back when
 * somebody unloads it, and leaves nothing behind.
 *
 * On a kernel without BPF_PROG_TYPE_EXT, or where the libxdp of this machine makes dispatchers that
 * the kernel lets no program with a tail call join, each case checks instead that its node is
 * refused by a sentence that says so, and that nothing is attached. Which of these it is, libxdp
 * says with programs that are not barline's.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <xdp/libxdp.h>

#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/entry.h"
#include "maps/hook_watch_abi.h"
#include "maps/switch_abi.h"
#include "tests/net/loader/stranger.h"
#include "tests/net/serve_until.h"
#include "tests/net/traffic.h"

#include "loss.skel.h"
#include "pass.skel.h"

#define BPFFS "/sys/fs/bpf"

static bool on_switch; /* the switch is in dispatchers, not the first host */
static char chain[16];

static void join(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->dead_after_us = 60000000;
	cfg->clock_void_after_ms = 100000;
	cfg->dispatcher = on_switch ? n->kind == LAB_TOR : !strcmp(n->name, "h1");
	if (cfg->dispatcher)
		strcpy(cfg->chain, chain);
}

static void own_bpffs(void)
{
	CHECK(!mount("bpf", BPFFS, "bpf", 0, NULL), "%s", strerror(errno));
}

/* ---- others ---- */

/** struct other - an XDP program of somebody else, loaded by libxdp. */
struct other {
	struct bl_loss *loss; /* drops all frames, and counts them; NULL: */
	struct bl_pass *pass; /* passes all */
	struct xdp_program *prog;
};

static int quiet(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

static void other_open(struct other *o, bool drops, unsigned int prio, bool frags)
{
	LIBBPF_OPTS(xdp_program_opts, opts);

	libxdp_set_print(quiet);
	memset(o, 0, sizeof(*o));
	if (drops) {
		o->loss = bl_loss__open();
		CHECK(o->loss, "%s", strerror(errno));
		o->loss->rodata->below = UINT32_MAX;
		opts.obj = o->loss->obj;
	} else {
		o->pass = bl_pass__open();
		CHECK(o->pass, "%s", strerror(errno));
		opts.obj = o->pass->obj;
	}
	opts.prog_name = drops ? "bl_loss" : "bl_pass";
	o->prog = xdp_program__create(&opts);
	CHECK(!libxdp_get_error(o->prog), "%s", strerror((int)-libxdp_get_error(o->prog)));
	CHECK(!xdp_program__set_run_prio(o->prog, prio), "priority");
	CHECK(!xdp_program__set_xdp_frags_support(o->prog, frags), "frags");
}

static void other_close(struct other *o)
{
	xdp_program__close(o->prog);
	bl_loss__destroy(o->loss);
	bl_pass__destroy(o->pass);
}

/* As `xdp-loader load` does, on @ifname of @node. */
static int other_try(struct other *o, unsigned int node, const char *ifname, enum xdp_attach_mode m)
{
	int home = rack_away(node), rc;

	rc = xdp_program__attach(o->prog, (int)if_nametoindex(ifname), m, 0);
	rack_back(home);
	return rc;
}

static void other_load(struct other *o, unsigned int node, const char *ifname)
{
	int rc = other_try(o, node, ifname, XDP_MODE_NATIVE);

	CHECK(!rc, "%s", strerror(-rc));
}

/* As `xdp-loader unload -i ID` does. */
static void other_unload(struct other *o, unsigned int node, const char *ifname)
{
	int home = rack_away(node), rc;

	rc = xdp_program__detach(o->prog, (int)if_nametoindex(ifname), XDP_MODE_NATIVE, 0);
	rack_back(home);
	CHECK(!rc, "%s", strerror(-rc));
}

/* As `xdp-loader unload --all` does. */
static void unload_all(unsigned int node, const char *ifname)
{
	int home = rack_away(node), rc;
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex((int)if_nametoindex(ifname));

	CHECK(!libxdp_get_error(mp), "%s", strerror((int)-libxdp_get_error(mp)));
	rc = xdp_multiprog__detach(mp);
	xdp_multiprog__close(mp);
	rack_back(home);
	CHECK(!rc, "%s", strerror(-rc));
}

static uint64_t other_count(const struct other *o)
{
	struct {
		uint64_t lost;
	} bss;
	uint32_t zero = 0;

	CHECK(!bpf_map_lookup_elem(bpf_map__fd(o->loss->maps.bss), &zero, &bss), "%s",
	      strerror(errno));
	return bss.lost;
}

/* ---- what is there ---- */

/**
 * enum can - what libxdp itself can do on this kernel. A program with a tail call, as barline's
 * member is one, is a member of a dispatcher; only one without, or there are no dispatchers.
 */
enum can { NO_EXT, NO_TAIL_CALL, MEMBERS };

/* Tries with other programs on lo. Needs own_bpffs(). */
static enum can can(void)
{
	struct xdp_multiprog *mp;
	struct other o;
	enum can is = NO_TAIL_CALL;

	other_open(&o, true, 50, false);
	if (!xdp_program__attach(o.prog, 1, XDP_MODE_SKB, 0)) {
		mp = xdp_multiprog__get_from_ifindex(1);
		CHECK(!libxdp_get_error(mp), "%s", strerror((int)-libxdp_get_error(mp)));
		is = xdp_multiprog__is_legacy(mp) ? NO_EXT : MEMBERS;
		CHECK(!xdp_multiprog__detach(mp), "lo");
		xdp_multiprog__close(mp);
	}
	other_close(&o);
	return is;
}

static bool says_why(enum can is, const struct bl_err *err)
{
	return strstr(err->text, is == NO_EXT ? "BPF_PROG_TYPE_EXT" : "libxdp 1.5.5") &&
	       strstr(err->text, "--chain");
}

/* The folders of dispatchers that libxdp keeps. */
static unsigned int folders(void)
{
	DIR *d = opendir(BPFFS "/xdp");
	struct dirent *e;
	unsigned int n = 0;

	while (d && (e = readdir(d)))
		n += !strncmp(e->d_name, "dispatch-", 9);
	if (d)
		closedir(d);
	return n;
}

static struct bl_dispatcher dispatcher(unsigned int node, const char *ifname)
{
	struct bl_dispatcher d;
	int home = rack_away(node);

	CHECK(!bl_dispatcher_read(rack.dir[node], ifname, &d), "%s is in no dispatcher", ifname);
	rack_back(home);
	CHECK(d.id == xdp_at(node, ifname), "another one is attached");
	return d;
}

/* The members in the order of their calls, as "5 bl_entry, 50 bl_pass". */
static const char *order(const struct bl_dispatcher *d)
{
	static char text[256];
	unsigned int k;
	size_t n = 0;

	*text = 0;
	for (k = 0; k < d->n && n < sizeof(text); k++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u %s%s", k ? ", " : "",
				      d->member[k].prio, d->member[k].name,
				      d->member[k].own ? "*" : "");
	return text;
}

#define CHECK_ORDER(node, want)                                         \
	do {                                                            \
		struct bl_dispatcher d_ = dispatcher(node, "eth0");     \
		CHECK(!strcmp(order(&d_), want), "\"%s\"", order(&d_)); \
	} while (0)

static struct bl_hook_seen seen(unsigned int node, uint32_t port)
{
	int fd = rack_map(node, BL_MAP_HOOK_WATCH);
	struct bl_hook_watch w;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &w), "%s", strerror(errno));
	close(fd);
	return w.side[BL_HOOK_XDP];
}

/* The second host sends UDP that is not barline's until @o has got some of it. */
static void other_gets(const struct other *o, const char *when)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	uint64_t end = t_mono() + 60000000000ULL, before = other_count(o);
	int home = rack_away(rack_host(1)), s = socket(AF_INET, SOCK_DGRAM, 0);

	rack_back(home);
	lab_app_addr(&rack.lab, 0, (uint8_t *)&to.sin_addr);
	while (other_count(o) < before + 5) {
		CHECK(sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1, "%s",
		      strerror(errno));
		rack_serve(5);
		CHECK(t_mono() < end, "the other program gets nothing %s", when);
	}
	close(s);
}

static void detach(enum bl_role role, unsigned int node)
{
	char netns[64];
	struct bl_err err;

	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[node].name);
	CHECK(!bl_node_detach(role, netns, &err), "%s", err.text);
	CHECK(access(rack.dir[node], F_OK), "%s is left", rack.dir[node]);
}

/*
 * Starts the node that joins dispatchers. Returns false, after all checks, on a kernel where that
 * is not possible.
 */
static bool joins(unsigned int node)
{
	enum can is = can();
	struct bl_err err;

	if (is == MEMBERS) {
		rack_open_node(node);
		return true;
	}
	CHECK(!rack_start_node(node, &err), "it started without dispatchers");
	CHECK(says_why(is, &err), "%s", err.text);
	CHECK(!xdp_at(node, rack_is_switch(node) ? rack.lab.nodes[node].ports[0].ifname : "eth0"),
	      "the refused start left a program");
	CHECK(!folders(), "the refused start left pins of libxdp");
	return false;
}

static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

/* The rack without the node that is to join. Returns that node. */
static unsigned int open_rack(void)
{
	own_bpffs();
	rack.tweak = join;
	rack.lab.spec.hosts = 2;
	rack.closed = ~0ULL;
	rack_open();
	rack_open_node(rack_host(1));
	if (on_switch)
		return the_switch();
	rack_open_node(the_switch());
	return rack_host(0);
}

/* Adds an endpoint to each host and lets them talk until tr_end(). */
static void tr_begin(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 500,
					 .fan = 2,
					 .items = 2,
					 .gap_us = 2000,
					 .quiet_ms = 3000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_goes_on(0, "at first");
}

static void both_go_on(const char *when)
{
	tr_goes_on(0, when);
	tr_goes_on(1, when);
}

static void tr_end(void)
{
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0);
}

/* ---- cases ---- */

/* Barline is first in time; it leaves first. An upgrade leaves the dispatcher as it is. */
RACK_TEST(another__after)
{
	unsigned int node = open_rack();
	struct bl_dispatcher alone, both;
	struct other o;

	if (!joins(node))
		return;
	alone = dispatcher(node, "eth0");
	CHECK_ORDER(node, "5 bl_entry*");
	other_open(&o, true, 50, true);
	other_load(&o, node, "eth0");
	both = dispatcher(node, "eth0");
	CHECK(both.id != alone.id && both.member[0].id == alone.member[0].id, "the member is "
									      "another one");
	CHECK_ORDER(node, "5 bl_entry*, 50 bl_loss");
	UNTIL(seen(node, 0).state == BL_HOOK_OURS, "state %u", seen(node, 0).state);
	other_gets(&o, "behind barline");
	rack_forget_programs(node);
	rack_close_node(node);
	other_gets(&o, "while the daemon is stopped");
	rack_open_node(node);
	CHECK(dispatcher(node, "eth0").id == both.id, "a restart built another dispatcher");
	other_gets(&o, "after an upgrade");
	tr_begin();
	both_go_on("with another program");
	CHECK(!seen(node, 0).removed, "somebody else's load was taken for a loss");
	tr_end();
	rack_close_node(node);
	detach(BL_ROLE_HOST, node);
	CHECK(xdp_at(node, "eth0"), "the other program is gone");
	CHECK(folders() == 1, "%u dispatchers", folders());
	other_unload(&o, node, "eth0");
	CHECK(!xdp_at(node, "eth0") && !folders(), "something is left");
	other_close(&o);
}

/* Another one is first in time and in order; it leaves first, under traffic. */
RACK_TEST(another__before)
{
	unsigned int node = open_rack();
	struct other o, late;

	other_open(&o, false, 1, true);
	other_load(&o, node, "eth0");
	if (can() != MEMBERS) {
		struct bl_err err;
		uint32_t id = xdp_at(node, "eth0");

		CHECK(!rack_start_node(node, &err), "it started without dispatchers");
		CHECK(says_why(can(), &err), "%s", err.text);
		CHECK(xdp_at(node, "eth0") == id, "another program was replaced");
		return;
	}
	rack_open_node(node);
	CHECK_ORDER(node, "1 bl_pass, 5 bl_entry*");
	other_open(&late, true, 50, true);
	other_load(&late, node, "eth0");
	CHECK_ORDER(node, "1 bl_pass, 5 bl_entry*, 50 bl_loss");
	tr_begin();
	both_go_on("behind another program");
	other_unload(&o, node, "eth0");
	both_go_on("after the first program left");
	other_gets(&late, "after the first program left");
	other_unload(&late, node, "eth0");
	both_go_on("alone");
	CHECK_ORDER(node, "5 bl_entry*");
	CHECK(!seen(node, 0).removed, "somebody else's unload was taken for a loss");
	tr_end();
	rack_close_node(node);
	detach(BL_ROLE_HOST, node);
	CHECK(!xdp_at(node, "eth0") && !folders(), "something is left");
	other_close(&o);
	other_close(&late);
}

/* Others build the dispatcher anew again and again while messages pass: none is lost. */
RACK_TEST(rebuilt__under_traffic)
{
	unsigned int node = open_rack(), k;
	uint64_t broken;
	struct other o;

	if (!joins(node))
		return;
	tr_begin();
	broken = rack_count_all(BL_R_PROMISE_BROKEN);
	for (k = 0; k < 10; k++) {
		other_open(&o, k & 1, k & 2 ? 1 : 50, true);
		/* A program that drops everything is never before barline's. */
		if (k & 1)
			CHECK(!xdp_program__set_run_prio(o.prog, 60), "priority");
		other_load(&o, node, "eth0");
		both_go_on("after a load");
		other_unload(&o, node, "eth0");
		both_go_on("after an unload");
		other_close(&o);
	}
	CHECK(!seen(node, 0).removed && seen(node, 0).state == BL_HOOK_OURS, "%llu, state %u",
	      (unsigned long long)seen(node, 0).removed, seen(node, 0).state);
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == broken, "the order was broken");
	CHECK(folders() == 1, "%u dispatchers", folders());
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

/* Somebody takes everything away, in several ways; each time it is noticed and put back. */
RACK_TEST(unloaded__and_joined_again)
{
	unsigned int node = open_rack();
	struct bl_dispatcher d;
	char path[400];
	struct other o;
	int home;

	if (!joins(node))
		return;
	tr_begin();
	UNTIL(seen(node, 0).state == BL_HOOK_OURS, "state %u", seen(node, 0).state);
	unload_all(node, "eth0");
	UNTIL(seen(node, 0).repaired == 1, "not joined again");
	CHECK(seen(node, 0).removed == 1, "%llu", (unsigned long long)seen(node, 0).removed);
	both_go_on("after unload --all");
	/* others stay in a dispatcher, and barline's member is unloaded */
	other_open(&o, true, 50, true);
	other_load(&o, node, "eth0");
	d = dispatcher(node, "eth0");
	home = rack_away(node);
	{
		struct xdp_program *p = xdp_program__from_id(d.member[0].id);

		CHECK(!libxdp_get_error(p), "member");
		CHECK(!xdp_program__detach(p, (int)d.ifindex, XDP_MODE_NATIVE, 0), "unload");
		xdp_program__close(p);
	}
	rack_back(home);
	UNTIL(seen(node, 0).repaired == 2, "not joined again beside another one");
	CHECK_ORDER(node, "5 bl_entry*, 50 bl_loss");
	both_go_on("after its member was unloaded");
	other_gets(&o, "after a repair");
	/* the whole dispatcher is taken off by hand, and its folder is left */
	home = rack_away(node);
	CHECK(!bpf_xdp_detach((int)if_nametoindex("eth0"), XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	UNTIL(seen(node, 0).repaired == 3, "not joined again after xdp off");
	CHECK_ORDER(node, "5 bl_entry*");
	CHECK(folders() == 1, "%u dispatchers", folders());
	both_go_on("after xdp off");
	/* the pin is removed, which empties the array */
	snprintf(path, sizeof(path), "%s/links/xdp-eth0", rack.dir[node]);
	CHECK(!unlink(path), "%s: %s", path, strerror(errno));
	UNTIL(seen(node, 0).repaired == 4, "not joined again after its pin was removed");
	CHECK_ORDER(node, "5 bl_entry*");
	both_go_on("after its pin was removed");
	tr_end();
	other_close(&o);
}

/* A daemon that is killed leaves a member that works, and detach and a new start find it. */
RACK_TEST(killed__and_started_or_detached)
{
	unsigned int node = open_rack();
	struct bl_dispatcher d;

	if (!joins(node))
		return;
	d = dispatcher(node, "eth0");
	rack_close_node(node);
	CHECK(dispatcher(node, "eth0").id == d.id, "it left the dispatcher");
	rack_open_node(node);
	CHECK(dispatcher(node, "eth0").id == d.id, "another dispatcher");
	rack_close_node(node);
	/* unloaded while nobody looks */
	unload_all(node, "eth0");
	rack_open_node(node);
	CHECK_ORDER(node, "5 bl_entry*");
	rack_close_node(node);
	/* its pins are removed by hand, too: the member is dead, and the next node replaces it */
	d = dispatcher(node, "eth0");
	CHECK(!bl_dir_remove(rack.dir[node]), "%s", strerror(errno));
	CHECK(xdp_at(node, "eth0") == d.id, "no dispatcher");
	rack_open_node(node);
	CHECK_ORDER(node, "5 bl_entry*");
	CHECK(dispatcher(node, "eth0").member[0].id != d.member[0].id, "the dead member");
	rack_close_node(node);
	detach(BL_ROLE_HOST, node);
	CHECK(!xdp_at(node, "eth0") && !folders(), "something is left");
}

/* The ports of a switch, one of which has another program already. */
RACK_TEST(ports__of_a_switch)
{
	const char *first, *second;
	struct other o;
	unsigned int s;

	on_switch = true;
	s = open_rack();
	first = rack.lab.nodes[s].ports[0].ifname;
	second = rack.lab.nodes[s].ports[1].ifname;
	if (!joins(s))
		return;
	rack_open_node(rack_host(0));
	other_open(&o, true, 50, true);
	other_load(&o, s, first);
	CHECK(dispatcher(s, first).n == 2 && dispatcher(s, second).n == 1, "members");
	tr_begin();
	both_go_on("through two dispatchers");
	unload_all(s, second);
	UNTIL(seen(s, 1).repaired == 1, "the port did not join again");
	both_go_on("after a port joined again");
	CHECK(!seen(s, 0).removed, "the wrong port");
	tr_end();
	rack_close_node(s);
	detach(BL_ROLE_SWITCH, s);
	CHECK(xdp_at(s, first) && !xdp_at(s, second), "programs");
	other_unload(&o, s, first);
	CHECK(!folders(), "something is left");
	other_close(&o);
}

/* Whether this kernel's native XDP forwards frames of several buffers. */
static bool forwards_frags(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%u.%u", &major, &minor);
	return major > 6 || (major == 6 && minor >= 3);
}

/* Frames of several buffers: the dispatcher has the flag, and a member without it is refused. */
RACK_TEST(mtu__of_9000)
{
	unsigned int node;
	struct bl_hook h;
	struct other o;

	own_bpffs();
	rack.tweak = join;
	rack.lab.spec.hosts = 2;
	rack.lab.spec.mtu = 9000;
	rack.closed = ~0ULL;
	rack_open();
	node = rack_host(0);
	if (!joins(node))
		return;
	CHECK(!bl_hook_read(rack.dir[node], 0, &h) && h.frags == BL_HOOK_FRAGS_DISPATCHER, "%u",
	      h.frags);
	other_open(&o, false, 50, false);
	CHECK(other_try(&o, node, "eth0", XDP_MODE_NATIVE), "frames of 9000 bytes in one buffer");
	CHECK_ORDER(node, "5 bl_entry*");
	CHECK(folders() == 1, "%u dispatchers", folders());
	other_close(&o);
	other_open(&o, false, 1, true);
	other_load(&o, node, "eth0");
	CHECK_ORDER(node, "1 bl_pass, 5 bl_entry*");
	if (forwards_frags()) {
		rack_open_node(the_switch());
		rack_open_node(rack_host(1));
		tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_sink });
		tr_add(&(struct tr_cfg){ .host = 1,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 8000,
					 .fan = 1,
					 .items = 1,
					 .gap_us = 2000,
					 .quiet_ms = 3000,
					 .ring_bytes = TR_RING_TIGHT(64) });
		tr_go();
		tr_goes_on(0, "with jumbo frames");
		tr_enough();
		tr_stop();
		CHECK(!rack_count_all(BL_R_TOO_BIG), "too big for somebody");
	}
	other_close(&o);
}

/* What cannot be joined, and what excludes a dispatcher, is refused and stays as it is. */
RACK_TEST(what_cannot_be_joined)
{
	unsigned int node = open_rack();
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), home;
	struct bl_err err;
	uint32_t id;
	struct other o;

	strcpy(chain, "attached");
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "exclude each other"), "%s",
	      err.text);
	*chain = 0;
	CHECK(!umount(BPFFS), "%s", strerror(errno));
	CHECK(!mount("tmpfs", BPFFS, "tmpfs", 0, NULL), "%s", strerror(errno));
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "mount -t bpf bpf " BPFFS), "%s",
	      err.text);
	CHECK(!umount(BPFFS), "%s", strerror(errno));
	own_bpffs();
	if (can() != MEMBERS) {
		joins(node);
		return;
	}
	home = rack_away(node);
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	id = stranger_id(fd);
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "not in a dispatcher"), "%s",
	      err.text);
	CHECK(xdp_at(node, "eth0") == id, "somebody else's program was replaced");
	home = rack_away(node);
	CHECK(!bpf_xdp_detach((int)if_nametoindex("eth0"), XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	close(fd);
	other_open(&o, false, 50, true);
	CHECK(!other_try(&o, node, "eth0", XDP_MODE_SKB), "generic");
	id = xdp_at(node, "eth0");
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "--generic"), "%s", err.text);
	CHECK(xdp_at(node, "eth0") == id && folders() == 1, "the refused start changed something");
	unload_all(node, "eth0");
	other_close(&o);
	rack_open_node(node);
	rack_close_node(node);
	/* Another mode takes a detach, since nothing would arrive in between. */
	rack.tweak = NULL;
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "is in a dispatcher"), "%s",
	      err.text);
	CHECK_ORDER(node, "5 bl_entry*");
	detach(BL_ROLE_HOST, node);
	rack_open_node(node);
	rack_close_node(node);
	rack.tweak = join;
	CHECK(!rack_start_node(node, &err) && strstr(err.text, "by itself"), "%s", err.text);
	detach(BL_ROLE_HOST, node);
	CHECK(!xdp_at(node, "eth0") && !folders(), "something is left");
}

static unsigned int loaded(void)
{
	uint32_t id = 0;
	unsigned int n = 0;

	while (!bpf_prog_get_next_id(id, &id))
		n++;
	return n;
}

/* Nanoseconds that program @fd takes for one frame. */
static uint32_t cost(int fd)
{
	uint8_t frame[64] = { [12] = 0x08, [13] = 0x06 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = 100000);

	CHECK(!bpf_prog_test_run_opts(fd, &o), "%s", strerror(errno));
	CHECK(o.retval == XDP_PASS, "%u", o.retval);
	return o.duration;
}

/*
 * 100 rounds of joining and leaving, alone and beside another program, leave as many programs and
 * pins as there were. Prints what a dispatcher costs per frame.
 */
RACK_TEST(rounds__100)
{
	struct bl_iface i;
	struct bl_pass *prog = bl_pass__open();
	unsigned int programs, k, wait;
	struct bl_err err;
	char path[] = BPFFS "/xdp-eth0";
	struct other o;
	uint32_t id, direct, alone = 0, both = 0;
	int fd;

	own_bpffs();
	CHECK(prog, "%s", strerror(errno));
	bl_xdp_set_member(prog->progs.bl_pass);
	CHECK(!bl_pass__load(prog), "%s", strerror(errno));
	CHECK(!system("ip link add eth0 type veth peer name peer && ip link set eth0 up"), "veth");
	CHECK(!bl_iface_get(&i, "eth0", &err), "%s", err.text);
	fd = bpf_program__fd(prog->progs.bl_pass);
	if (can() != MEMBERS) {
		CHECK(bl_dispatcher_join(&i, path, fd, BL_XDP_NATIVE, false, &err) == -EOPNOTSUPP,
		      "it joined");
		CHECK(says_why(can(), &err) && access(path, F_OK), "%s", err.text);
		return;
	}
	direct = cost(fd);
	other_open(&o, false, 50, true);
	for (k = 0; k < 100; k++) {
		int pin, disp;

		if (k == 50)
			CHECK(!xdp_program__attach(o.prog, i.ifindex, XDP_MODE_NATIVE, 0), "other");
		programs = loaded();
		CHECK(!bl_dispatcher_join(&i, path, fd, BL_XDP_NATIVE, false, &err), "%s",
		      err.text);
		pin = bpf_obj_get(path);
		CHECK(!bl_entry_prog(pin, i.ifindex, &id) && id == stranger_id(fd),
		      "round %u: id %u", k, id);
		if (k == 49 || k == 99) {
			int flags;

			disp = bpf_prog_get_fd_by_id(bl_xdp_present(i.ifindex, NULL, 0, &flags));
			*(k == 49 ? &alone : &both) = cost(disp);
			close(disp);
		}
		CHECK(!bl_dispatcher_leave(pin, &err), "%s", err.text);
		close(pin);
		CHECK(!unlink(path), "%s", strerror(errno));
		CHECK(folders() == (k >= 50), "round %u: %u dispatchers", k, folders());
		for (wait = 0; loaded() != programs && wait < 1000; wait++)
			usleep(1000);
		CHECK(loaded() == programs, "round %u: %u programs, %u before", k, loaded(),
		      programs);
	}
	fprintf(stderr,
		"  ns per frame (bpf_prog_test_run, repeat 100000): %u by itself, %u in a "
		"dispatcher, %u beside another program\n",
		direct, alone, both);
	CHECK(!bl_dispatcher_leave(fd, &err), "a program is no array: %s", err.text);
	other_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another__after),
		cmocka_unit_test(another__before),
		cmocka_unit_test(rebuilt__under_traffic),
		cmocka_unit_test(unloaded__and_joined_again),
		cmocka_unit_test(killed__and_started_or_detached),
		cmocka_unit_test(ports__of_a_switch),
		cmocka_unit_test(mtu__of_9000),
		cmocka_unit_test(what_cannot_be_joined),
		cmocka_unit_test(rounds__100),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
