/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings of a controller, and the YAML file that they come from. docs/controller.md has the
 * table of keys.
 *
 * Example of a file:
 *
 *	listen: 10.0.0.1:61693
 *	etcd: { endpoints: [https://10.0.0.1:2379, https://10.0.0.2:2379], ca: ca.pem, ... }
 *	nodes: [{ id: 1, name: h1 }, { id: 2, name: h2 }, { id: 9, name: tor }]
 *	tls: { ca: ca.pem, cert: controller.pem, key: controller.key }
 */
#ifndef BARLINE_CONTROLLER_CONFIG_H
#define BARLINE_CONTROLLER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define BL_CTL_ETCD_MAX  8
#define BL_CTL_NODES_MAX 4096

/** struct bl_ctl_node - A node that may have sessions. */
struct bl_ctl_node {
	uint32_t id;
	char name[32]; /* for people */
};

/**
 * struct bl_ctl_cfg - Settings of a controller, filled by bl_ctl_config_load() or by a test. A
 * number of 0 and an empty text stand for the default.
 */
struct bl_ctl_cfg {
	char listen[64];    /* address and port on which agents connect */
	char advertise[64]; /* address that agents are told of this controller; "": @listen */
	/* the store: exactly one of @sqlite and @etcd is set */
	char sqlite[256];                /* path of the SQLite file; "": etcd is used */
	char etcd[BL_CTL_ETCD_MAX][256]; /* URLs of etcd's members */
	unsigned int netcd;              /* number of URLs in @etcd; 0: SQLite is used */
	char prefix[64];                 /* prefix of the keys in etcd; default "/barline/" */
	/* the nodes, besides those that are admitted by a command; bl_ctl_new() copies them */
	struct bl_ctl_node *nodes;
	uint32_t nnodes;
	/* sessions, and connections to etcd, without TLS with other machines */
	bool insecure;
	bool unnamed;   /* certificates without an identity are accepted */
	uint32_t ttl_s; /* lease in etcd, seconds; default 5 */
	/* TLS of the sessions with agents: paths of PEM files; all three "": no TLS */
	char ca[256];
	char cert[256];
	char key[256];
	/* TLS of the connections to etcd: paths of PEM files; "": see struct bl_etcd_cfg */
	char etcd_ca[256];
	char etcd_cert[256];
	char etcd_key[256];
	uint32_t settle_us;  /* from the first report of a failure to its decision; default 5000 */
	uint32_t answer_ms;  /* a node that takes longer for an answer has failed; default 1000 */
	uint32_t grace_ms;   /* for agents to find a new leader before it judges; default 3000 */
	uint32_t silence_ms; /* a session without a message for this time is closed; default 3000 */
	/*
	 * A sender whose frames do not reach a correct receiver for this time, neither over the
	 * network nor through the controller, reports it, and one of the two loses its membership;
	 * default 5000.
	 */
	uint32_t stuck_ms;
};

/**
 * bl_ctl_config_load - Reads the YAML file @path into *@cfg. Unknown keys, values out of range and
 * a missing or second store are errors.
 *
 * Returns 0 or -errno; the text in @err then begins with the file and the line.
 */
int bl_ctl_config_load(struct bl_ctl_cfg *cfg, const char *path, struct bl_err *err);

/** bl_ctl_config_defaults - Replaces zeros and empty texts by the defaults. */
void bl_ctl_config_defaults(struct bl_ctl_cfg *cfg);

/** bl_ctl_config_free - Frees the list of nodes that bl_ctl_config_load() made. */
void bl_ctl_config_free(struct bl_ctl_cfg *cfg);

/**
 * bl_ctl_config_check - Whether what is said with other machines is protected: TLS, loopback
 * addresses only, or the word insecure. Returns 0 or -EPERM with both ways out.
 */
int bl_ctl_config_check(const struct bl_ctl_cfg *cfg, struct bl_err *err);

#endif
