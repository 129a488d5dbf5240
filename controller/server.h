/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A controller's process: the failure procedure (recover_core.h) between its store (store.h) and
 *the agents' sessions (proto/session.h).
 *
 * Several may run; one leads. Who leads reads what was saved, takes the agents' sessions and gives
 *orders as long as its own clock lets it believe that it leads. The others answer HELLO with who
 *does. Without a store that takes writes nothing is decided, and it says why; traffic goes on.
 *
 * In the store: "node/1f4a0007" each node that ever said HELLO, "failure/0000000007" each failure,
 *with its step, "epoch/00000000000000000041" who led; "leader" is the election's.
 *
 * Example of a file:
 *
 *	listen: 10.0.0.1:61693
 *	etcd: { endpoints: [http://10.0.0.1:2379, http://10.0.0.2:2379, http://10.0.0.3:2379] }
 *	tls: { ca: ca.pem, cert: controller.pem, key: controller.key }
 */
#ifndef BARLINE_CONTROLLER_SERVER_H
#define BARLINE_CONTROLLER_SERVER_H

#include <stdint.h>

#include "proto/session.h"
#include "controller/store/store.h"

#define BL_CTL_ETCD_MAX    8
#define BL_CTL_SESSIONS    4096
#define BL_CTL_STRANGERS   256                        /* sessions that have not said HELLO yet */
#define BL_CTL_STATUS      "/controller-%llu-%d.sock" /* in BL_RUN_DIR: network namespace, process */
#define BL_CTL_STATUS_GLOB "/controller-%llu-*.sock"  /* all of a network namespace: glob */

/**
 * struct bl_ctl_cfg - from YAML, or the tests. Numbers: 0 is the default.
 * @listen: address; @advertise: what agents know it by; "": @listen. @sqlite: a file; or @etcd:
 * URLs. @prefix: of etcd's keys.
 * @ca, @cert, @key: of agents' sessions; all "": no TLS. @etcd_ca, ...: of etcd's.
 * @settle_us: reports of one failure may come that far apart; 5000. @answer_ms: who takes longer
 * has failed; 1000. @grace_ms: for agents to come to a new leader; 3000. @silence_ms: sessions that
 * say nothing for so long end; 3000.
 * @stuck_ms: what does not get through to a receiver for so long, though everybody is there, costs
 * one of the two its membership; 5000.
 */
struct bl_ctl_cfg {
	char listen[64], advertise[64];
	char sqlite[256];
	char etcd[BL_CTL_ETCD_MAX][256];
	unsigned int netcd;
	char prefix[64];
	uint32_t ttl_s;
	char ca[256], cert[256], key[256];
	char etcd_ca[256], etcd_cert[256], etcd_key[256];
	uint32_t settle_us, answer_ms, grace_ms, silence_ms, stuck_ms;
};

struct bl_ctl;

/**
 * bl_ctl_config_load - strict, as all files of barline. Returns 0 or -errno; @err begins with file
 * and line.
 */
int bl_ctl_config_load(struct bl_ctl_cfg *cfg, const char *path, struct bl_err *err);

/**
 * bl_ctl_new - opens store and socket, in the network namespace of the thread. bl_ctl_run - until
 * bl_ctl_stop(), which may be called from a signal handler or another thread. Both return 0 or
 * -errno.
 */
int bl_ctl_new(struct bl_ctl **out, const struct bl_ctl_cfg *cfg, struct bl_err *err);
int bl_ctl_run(struct bl_ctl *c, struct bl_err *err);
void bl_ctl_stop(struct bl_ctl *c);
void bl_ctl_free(struct bl_ctl *c);

/**
 * bl_ctl_text - what `barline controller show` reads: one JSON object, from malloc(). From any
 * thread while bl_ctl_run() runs.
 */
char *bl_ctl_text(struct bl_ctl *c);

#endif
