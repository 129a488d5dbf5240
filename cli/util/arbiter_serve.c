/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See arbiter_serve.h.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/event.h"
#include "arbiter/config.h"
#include "arbiter/engine.h"
#include "arbiter/reload.h"
#include "arbiter/server.h"
#include "arbiter/status.h"
#include "cli/util/arbiter_serve.h"
#include "cli/util/out.h"

/* finds the interface that has the arbiter's address, for the multicast group of arbiters */
static int group_interface(struct bl_arb_cfg *c, const uint8_t addr[16], struct bl_err *err)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)addr), found = false;
	struct ifaddrs *list = NULL, *a;
	char text[INET6_ADDRSTRLEN];

	if (getifaddrs(&list))
		return bl_fail(err, errno, "cannot list the addresses of this machine: %s",
			       strerror(errno));
	for (a = list; a && !found; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != (v4 ? AF_INET : AF_INET6))
			continue;
		found = v4 ? !memcmp(&((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr,
				     addr + 12, 4)
			   : !memcmp(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr, addr,
				     16);
		if (found)
			snprintf(c->group_if, sizeof(c->group_if), "%s", a->ifa_name);
	}
	freeifaddrs(list);
	return found ? 0
		     : bl_fail(err, EADDRNOTAVAIL, "no interface has the arbiter's address %s",
			       bl_fp_addr_text(addr, text));
}

static struct bl_arb *running;

static void on_signal(int sig)
{
	(void)sig;
	bl_arb_stop(running);
}

int arb_serve(const struct bl_fp_file *f, unsigned int rank, const struct bl_arb_cfg *how,
	      const char *path, void (*ready)(void *), void *ctx)
{
	struct bl_arb_cfg c = *how;
	struct sigaction act = { .sa_handler = on_signal };
	struct bl_arb_status *door = NULL;
	struct bl_arb_reload *reload = NULL;
	struct bl_engine *e = NULL;
	struct bl_arb *a = NULL;
	struct bl_err err;
	int rc;

	rc = bl_arb_cfg_of(&c, f, rank, &err);
	if (!rc && f->has_group && !*c.group_if)
		rc = group_interface(&c, f->arbiter[rank], &err);
	if (!rc)
		rc = bl_engine_new(&e, f, &err);
	c.links = bl_engine_links;
	c.links_ctx = e;
	if (!rc)
		rc = bl_arb_new(&a, &c, bl_engine_ops(e), bl_engine_alloc(e), bl_engine_path_ops(e),
				bl_engine_paths(e), &err);
	bl_event_role("arbiter");
	if (!rc && path)
		rc = bl_arb_reload_open(&reload, a, f, path, &err);
	if (!rc)
		rc = bl_arb_serve(&door, a, f, e, rank, reload, &err);
	if (!rc) {
		running = a;
		sigaction(SIGTERM, &act, NULL);
		sigaction(SIGINT, &act, NULL);
		/* a page fault takes longer than a slot */
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			cli_say("the arbiter's memory cannot be locked: %s", strerror(errno));
		if (ready)
			ready(ctx);
		rc = bl_arb_run(a, &err);
	}
	bl_arb_serve_end(door);
	bl_arb_reload_close(reload);
	bl_arb_free(a);
	bl_engine_free(e);
	bl_arb_cfg_free(&c);
	return rc ? cli_fail("%s", err.text) : 0;
}
