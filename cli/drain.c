// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline host drain, undrain: asks the host's daemon, which does the work (loader/order/drain.h).
 * `drain` gives the order and asks how far it is until the host has left; the daemon goes on if
 * the command ends earlier.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/netns.h"
#include "base/number.h"
#include "base/proc.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "maps/host_abi.h"
#include "maps/meta_abi.h"

#define ANSWER_S  5 /* a daemon that takes longer is stopped */
#define ASK_NS    20000000ULL
#define TIMEOUT_S 60

static const char *const state_words[] = { [BL_DRAIN_NONE] = "active",
					   [BL_DRAIN_WAITS] = "draining",
					   [BL_DRAIN_LEAVES] = "leaving",
					   [BL_DRAIN_DRAINED] = "drained" };

static const char *state_word(uint32_t state)
{
	return state <= BL_DRAIN_DRAINED ? state_words[state] : "unknown";
}

static int no_answer(pid_t pid)
{
	char said[256];

	return cli_fail("%s",
			bl_proc_silence(said, sizeof(said), "host's daemon", pid, ANSWER_S * 1000));
}

/* Sends one request. Returns 0 with the answer in @rep, or 1 after an error message. */
static int ask(enum bl_drain_what what, struct bl_drain_rep *rep)
{
	const struct bl_drain_req q = { .magic = BL_SOCK_DRAIN,
					.abi_version = BL_ABI_VERSION,
					.what = what };
	const struct timeval most = { .tv_sec = ANSWER_S };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), why;
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	ssize_t n = -1;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR,
		 bl_netns_ino());
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		why = errno;
		close(fd);
		return why == EAGAIN ? no_answer(0)
				     : cli_fail("no host daemon answers at %s: %s; start barlined "
						"first",
						sa.sun_path, strerror(why));
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q))
		n = recv(fd, rep, sizeof(*rep), 0);
	why = errno;
	close(fd);
	if (n < 0 && why == EAGAIN)
		return no_answer(who.pid);
	if (n != sizeof(*rep) || rep->magic != BL_SOCK_DRAIN)
		return cli_fail("the host's daemon at %s does not know this request: restart it, "
				"so that it has the version of this command",
				sa.sun_path);
	rep->message[sizeof(rep->message) - 1] = '\0';
	return rep->error ? cli_fail("%s", rep->message) : 0;
}

static int report(const struct bl_drain_rep *rep)
{
	if (cli.json)
		cli_json(json_pack("{s:s, s:i, s:s, s:I}", "state", state_word(rep->state), "waits",
				   (int)rep->waits, "for", rep->message, "since_unix_ns",
				   (json_int_t)rep->since_ns));
	else
		printf("%s\n", state_word(rep->state));
	return 0;
}

static error_t parse_drain(int key, char *arg, struct argp_state *state)
{
	unsigned int *timeout_s = state->input;
	long long v;

	if (key != 't')
		return ARGP_ERR_UNKNOWN;
	if (!bl_read_integer(arg, 0, 86400, &v))
		argp_error(state, "--timeout %s: give a number of seconds from 0 to 86400", arg);
	*timeout_s = (unsigned int)v;
	return 0;
}

static int wait_until_drained(struct bl_drain_rep *rep, unsigned int timeout_s)
{
	uint64_t end = bl_mono_ns() + timeout_s * 1000000000ULL;
	int rc = 0;

	while (!rc && rep->state != BL_DRAIN_DRAINED && bl_mono_ns() < end) {
		if (!cli.json)
			out_progress("waits for %s", rep->message);
		nap_ns(ASK_NS);
		rc = ask(BL_DRAIN_ASK, rep);
		if (!rc && rep->state == BL_DRAIN_NONE)
			rc = cli_fail("somebody has ended this: the host is not drained any more");
	}
	if (!cli.json)
		out_progress_end();
	return rc;
}

int cmd_host_drain(int argc, char **argv)
{
	static const struct argp_option options[] = { { "timeout", 't', "SECONDS", 0,
							"how long to wait until the host has left "
							"(default 60); 0: only begin",
							0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_drain,
					  .children = cmd_globals,
					  .doc = "barline host drain - let this namespace's host "
						 "leave the rack in order\v"
						 "Its processes send nothing new (ESHUTDOWN), and "
						 "there are no new "
						 "endpoints. When everything that they sent is "
						 "acknowledged or reported, "
						 "their endpoints leave, and then the host: "
						 "nothing waits for it, nobody is "
						 "announced as failed, and its machine can be "
						 "rebooted. If that takes "
						 "longer than --timeout, the exit status is 1, and "
						 "the daemon goes on." };
	unsigned int timeout_s = TIMEOUT_S;
	struct bl_drain_rep rep;

	cmd_parse(&argp, argc, argv, &timeout_s);
	if (ask(BL_DRAIN_BEGIN, &rep) || wait_until_drained(&rep, timeout_s))
		return 1;
	if (rep.state != BL_DRAIN_DRAINED && timeout_s)
		return cli_fail("not drained after %u s: it waits for %s; it goes on, and `barline "
				"host undrain` ends that",
				timeout_s, rep.message);
	return report(&rep);
}

int cmd_host_undrain(int argc, char **argv)
{
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "barline host undrain - take this namespace's "
						 "host into the rack again\v"
						 "Endpoints that have left stay out: their "
						 "processes begin anew with "
						 "bl_exit() and bl_init(). The others go on." };
	struct bl_drain_rep rep;

	cmd_parse(&argp, argc, argv, NULL);
	return ask(BL_DRAIN_END, &rep) ? 1 : report(&rep);
}
