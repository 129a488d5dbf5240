/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arguments of `barline switch setup` and `barline host setup`. Texts come out as inet_ntop()
 * writes them, so that they can be compared. Functions return NULL, or what is wrong.
 */
#ifndef BARLINE_CLI_SETUP_PARSE_H
#define BARLINE_CLI_SETUP_PARSE_H

#include "cli/setup/plan.h"

/** setup_parse_name - a name of a node that is good for a file. */
const char *setup_parse_name(const char *arg, char name[32]);
/** setup_parse_dev - a name of an interface that needs no quotes in YAML. */
const char *setup_parse_dev(const char *arg, char dev[IFNAMSIZ]);
/** setup_parse_host - IFNAME=MAC[,IP...], as in eth0=02:00:00:00:00:01,10.0.0.1 */
const char *setup_parse_host(const char *arg, struct setup_host *h);
/** setup_parse_address - [IFNAME=]ADDRESS/LENGTH; without IFNAME, @a->dev is "". */
const char *setup_parse_address(const char *arg, struct setup_address *a);
/** setup_parse_route - NETWORK/LENGTH=ROUTER, or default=ROUTER. */
const char *setup_parse_route(const char *arg, struct setup_route *r);

#endif
