// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints that are expelled while their process lives. The process is stopped and then continues
 * with whatever it was doing. What it sent below its T is delivered by all, the rest by none. It
 * gets ESTALE with the reason and does not crash; C rises, and its slot is free when it is gone.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/controller/controller.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/note.h"
#include "loader/order/endpoint.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
#define DEAD_US   5000000 /* a host that has no CPU for a while is not announced */

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = DEAD_US;
}

/*
 * Opens four lossy hosts with an endpoint each. The first two will end; the others send until then.
 */
static void open_four(void)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .gap_us = 300,
			      .len = 300,
			      .fan = 4,
			      .reliable = true,
			      .quiet_ms = 6000,
			      .to = 0xc,
			      .more = 60 };
	unsigned int i;

	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = 4;
	rack.tweak = tweak;
	rack_open();
	CHECK(tr_until(all_ok, WAIT_MS), "not all nodes are there: %s", ask());
	for (cfg.host = 0; cfg.host < 4; cfg.host++)
		tr_add(&cfg);
	rack_last_words = say_all;
	for (i = 0; i < 4; i++)
		make_lossy(i, 6554, tr_sh->seed + i);
	tr_sh->node[1].may_die = true; /* with an exit status: it learns that it is expelled */
}

static void signal_to(unsigned int id, int sig)
{
	CHECK(tr_sh->node[id].pid && !kill(tr_sh->node[id].pid, sig), "endpoint %u: %s", id,
	      tr_sh->node[id].error);
}

static struct bl_node *host_of(unsigned int id)
{
	return rack.node[rack_host(tr_sh->node[id].cfg.host)];
}

static struct bl_ep *endpoint(unsigned int id)
{
	return bl_endpoint_at(host_of(id), BL_PORT_BASE + id);
}

/* Returns whether the first announcement is in the page of endpoint 1. */
static bool published(void)
{
	struct bl_failures *page = bl_failures_map(host_of(1));
	bool yes;

	CHECK(page, "%s", strerror(errno));
	yes = page->last > 0;
	bl_failures_unmap(page);
	return yes;
}

/* Returns whether the two endpoints that will end are in the middle of sending. */
static bool both_sent(void)
{
	return TR_LOAD(tr_sh->node[0].nsent) > 100 && TR_LOAD(tr_sh->node[1].nsent) > 100;
}

static void talk(void)
{
	tr_go();
	CHECK(tr_until(both_sent, WAIT_MS), "they do not send");
	tr_goes_on(2, "at first");
}

static bool second_gone(void)
{
	return !tr_sh->node[1].pid;
}

static bool second_settled(void)
{
	const struct bl_ep *ep = endpoint(1);

	return ep && ep->settled;
}

static bool slot_free(void)
{
	return !endpoint(1);
}

static void put_out(void)
{
	const struct bl_ep *ep = endpoint(1);

	CHECK(ep && !ep->dead, "endpoint 1 is not there");
	bl_endpoint_put_out(host_of(1), 1ULL << ep->slot, BL_OUT_WINDOW);
}

static void told_why(const char *text)
{
	CHECK(tr_until(second_gone, WAIT_MS), "it was expelled, and does not hear of it");
	CHECK(strstr(tr_sh->node[1].error, text), "it ended with \"%s\"", tr_sh->node[1].error);
}

/* Judges "all or none" for what the two ended endpoints have sent. */
static void judge(void)
{
	tr_enough();
	tr_wait_done(WAIT_MS);
	judge_without(0, 0xc);
	all_or_none(1, 0xc);
	CHECK(tr_until(all_finished, WAIT_MS), "the failures do not come to their end: %s", ask());
	CHECK(tr_until(slot_free, WAIT_MS), "its slot is not free, though it is gone");
}

/*
 * One endpoint dies. Another one is stopped now and then while it recalls what waits for the dead
 * one, is expelled, and continues.
 */
RACK_TEST(put_out__in_its_recall)
{
	unsigned int i;

	open_four();
	talk();
	signal_to(1, SIGSTOP);
	tr_kill(0);
	CHECK(tr_until(published, WAIT_MS), "the failure is not announced: %s", ask());
	for (i = 0; i < 4 && tr_sh->node[1].pid; i++) {
		signal_to(1, SIGCONT);
		usleep(t_below(&tr_sh->seed, 2000));
		signal_to(1, SIGSTOP);
		tr_pass(t_below(&tr_sh->seed, 3));
	}
	put_out();
	tr_pass(t_below(&tr_sh->seed, 30));
	signal_to(1, SIGCONT);
	told_why("put this endpoint out: it stood still with reliable messages");
	judge();
}

/*
 * The same, but it does not continue before all others are done with it: until then its slot is
 * still its own and counts for nothing.
 */
RACK_TEST(put_out__goes_on_after_resume)
{
	open_four();
	talk();
	signal_to(1, SIGSTOP);
	tr_kill(0);
	CHECK(tr_until(published, WAIT_MS), "the failure is not announced: %s", ask());
	put_out();
	CHECK(tr_until(second_settled, WAIT_MS), "it is not resumed: %s", ask());
	tr_goes_on(2, "while the process stands still, though it is out: C stands, too");
	signal_to(1, SIGCONT);
	told_why("put this endpoint out: it stood still with reliable messages");
	judge();
}

/* ---- what a daemon finds that the previous one had begun ---- */

/* Opens two hosts without controllers; the first one's daemon is gone. */
static void open_two(void)
{
	struct tr_cfg cfg = { .fn = tr_sink };

	rack.lab.spec.hosts = 2;
	rack_open();
	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg);
	tr_sh->node[0].may_die = true;
	tr_go();
	rack_close_node(rack_host(0));
}

/* Returns what the daemon has decided about @slot. */
static struct bl_ep_word word_of(uint32_t slot)
{
	int fd = rack_map(rack_host(0), BL_MAP_HOST_PAGE);
	struct bl_host_page page;
	uint32_t zero = 0;

	CHECK(!bpf_map_lookup_elem(fd, &zero, &page), "%s", strerror(errno));
	close(fd);
	return page.word[slot];
}

/* Writes @w where nobody but the program bl_note can. */
static void write_word(uint32_t slot, const struct bl_ep_word *w)
{
	struct bl_note_arg a = { .kind = BL_NOTE_WORD, .slot = slot, .word = *w };
	int clock = rack_map(rack_host(0), BL_MAP_CLOCK),
	    page = rack_map(rack_host(0), BL_MAP_HOST_PAGE),
	    failures = rack_map(rack_host(0), BL_MAP_FAILURES);
	struct bl_err err = { 0 };
	int note = bl_note_open(clock, page, failures, &err);

	CHECK(note >= 0, "%s", err.text);
	CHECK(!bl_note(note, &a), "bl_note");
	close(note);
	close(clock);
	close(page);
	close(failures);
}

/*
 * Writes BL_EP_DEAD into the entry of endpoint 0, @ts into its line, and @out for the daemon.
 * Returns its slot.
 */
static uint32_t leave_behind(uint64_t ts, uint64_t out)
{
	const struct bl_ep_word w = { .out = out };
	int eps = rack_map(rack_host(0), BL_MAP_EPS);
	struct bl_ep_page *p;
	uint32_t key = 0;
	struct bl_ep_slot e;

	CHECK(!bpf_map_lookup_elem(eps, &key, &e) && e.active == BL_EP_ACTIVE, "endpoint 0 is not "
									       "there");
	p = rack_page(rack_host(0), e.slot);
	CHECK(p, "%s", strerror(errno));
	p->line.ts = ts;
	munmap(p, sizeof(*p));
	if (out)
		write_word(e.slot, &w);
	e.active = BL_EP_DEAD;
	CHECK(!bpf_map_update_elem(eps, &key, &e, BPF_ANY), "%s", strerror(errno));
	close(eps);
	return e.slot;
}

static bool first_gone(void)
{
	return !tr_sh->node[0].pid;
}

static uint32_t first_slot;

static bool first_free(void)
{
	return !endpoint(0);
}

/*
 * Its process is gone, and the daemon died before it had cleared what was in flight. B must not
 * stay there for ever.
 */
RACK_TEST(adopt__dead_with_something_in_flight)
{
	open_two();
	tr_kill(0);
	CHECK(tr_until(first_gone, WAIT_MS), "it does not die");
	first_slot = leave_behind(7, 0);
	rack_open_node(rack_host(0));
	CHECK(!rack_page(rack_host(0), first_slot), "its line still counts");
	CHECK(!endpoint(0), "its slot is not free");
}

/*
 * Its process lives, and the daemon died when it had stopped C and not decided T. The next daemon
 * decides, and the process is told.
 */
RACK_TEST(adopt__put_out_by_half)
{
	open_two();
	first_slot = leave_behind(BL_TIME_NONE, 7);
	rack_open_node(rack_host(0));
	CHECK(word_of(first_slot).out != 7 && (word_of(first_slot).out_why || !endpoint(0)),
	      "the first bound was taken for T");
	CHECK(tr_until(first_gone, WAIT_MS), "it does not hear of it");
	CHECK(strstr(tr_sh->node[0].error, "put this endpoint out"), "it ended with \"%s\"",
	      tr_sh->node[0].error);
	CHECK(tr_until(first_free, WAIT_MS), "its slot is not free");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_out__in_its_recall),
		cmocka_unit_test(put_out__goes_on_after_resume),
		cmocka_unit_test(adopt__dead_with_something_in_flight),
		cmocka_unit_test(adopt__put_out_by_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
