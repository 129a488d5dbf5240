/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps that are missing until a machine is what was asked for. Pure functions: facts and
 * wishes in, steps out.
 */
#ifndef BARLINE_CLI_SETUP_PLAN_H
#define BARLINE_CLI_SETUP_PLAN_H

#include <netinet/in.h>
#include <stdint.h>

#include "base/log.h"
#include "cli/setup/state.h"
#include "maps/meta_abi.h"
#include "maps/switch_abi.h"

#define SETUP_TEXT     64 /* an address, or a network, with its zero */
#define SETUP_HOST_IPS 8
#define SETUP_MAC_TEXT 18

/** struct setup_port - a port of the switch, or the NIC of the host. */
struct setup_port {
	char dev[IFNAMSIZ];
	enum bl_port_role role;
};

/** struct setup_host - a host behind a port of a switch. Texts are as inet_ntop() makes them. */
struct setup_host {
	char dev[IFNAMSIZ];
	char mac[SETUP_MAC_TEXT];
	char ip[SETUP_HOST_IPS][INET6_ADDRSTRLEN];
	unsigned int nip;
	unsigned int ncut; /* addresses that were learnt and have no room in @ip */
};

/** struct setup_address - an address that an interface is to have. */
struct setup_address {
	char dev[IFNAMSIZ], text[SETUP_TEXT]; /* ADDRESS/LENGTH */
};

/** struct setup_route - a static route. */
struct setup_route {
	char net[SETUP_TEXT], via[INET6_ADDRSTRLEN];
};

/** struct setup_want - what the command line asks for. Free with setup_want_free(). */
struct setup_want {
	enum bl_role role;
	enum bl_fwd forward;
	char name[32];                      /* of the node */
	char file[32];                      /* of its configuration and of its journal */
	uint32_t node_id;                   /* 0: the daemon makes one */
	uint32_t beacon_us, clock_bound_us; /* 0: the default of the daemon */
	uint32_t mtu;                       /* bytes; 0: stays as it is */
	char bridge[IFNAMSIZ];              /* l2; "": the bridge of the ports, or br0 */
	bool force;                         /* connections of this machine by a port may be cut */
	bool overwrite;                     /* a file that setup did not write is replaced */
	char session[INET6_ADDRSTRLEN];     /* the address by which the operator is logged in; "" */
	struct setup_port *ports;
	struct setup_host *hosts;
	struct setup_address *addresses;
	struct setup_route *routes;
	char (*controllers)[SETUP_TEXT];
	unsigned int nports, nhosts, naddresses, nroutes, ncontrollers;
	char dir[SETUP_ARG - 40]; /* of the configuration */
	const char *ours;         /* the configuration as an earlier setup wrote it; NULL: none */
};

void setup_want_free(struct setup_want *w);

/** setup_path - the path of the configuration. */
void setup_path(const struct setup_want *w, char *path, size_t size);

/** setup_yaml - the configuration of the node. The caller frees it; NULL: no memory. */
char *setup_yaml(const struct setup_want *w);

/**
 * setup_plan_ports - checks whether the ports can be ports of a node, and chooses the bridge of an
 * l2 switch: the one that was named, that of a port, or br0. Returns 0 or -errno as setup_plan().
 */
int setup_plan_ports(struct setup_want *w, struct setup_facts *f, struct bl_err *err);

/**
 * setup_plan - finds the steps.
 * @f: the machine; afterwards as it would be with the steps done
 * @yaml: the text of the configuration
 *
 * Returns 0; -ENODEV: no such interface; -EOPNOTSUPP: no node can run on it; -EBUSY: an interface
 * or address is used for something else; -EPERM: connections would be cut; -EEXIST: the file is
 * somebody else's, or a route leads elsewhere; -EINVAL: what is asked for contradicts itself.
 */
int setup_plan(struct setup_want *w, const char *yaml, struct setup_facts *f,
	       struct setup_steps *steps, struct bl_err *err);

#endif
