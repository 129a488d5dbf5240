// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See parse.h. */
#include "cli/setup/parse.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

const char *setup_parse_name(const char *arg, char name[32])
{
	if (!*arg || *arg == '.' || *arg == '-' || arg[strspn(arg, NAME_CHARS)])
		return "a name is of letters, digits, _, - and ., and begins with one of the first "
		       "three";
	if (strlen(arg) >= 32)
		return "a name has at most 31 characters";
	strcpy(name, arg);
	return NULL;
}

const char *setup_parse_dev(const char *arg, char dev[IFNAMSIZ])
{
	if (!*arg || strlen(arg) >= IFNAMSIZ || !strcmp(arg, ".") || !strcmp(arg, "..") ||
	    arg[strspn(arg, NAME_CHARS "@")])
		return "this is no name of an interface; `ip link` lists them";
	strcpy(dev, arg);
	return NULL;
}

/* Copies the part of @arg before @mark to @to. Returns what is behind @mark, or NULL. */
static const char *cut(const char *arg, char mark, char *to, size_t size)
{
	const char *at = strchr(arg, mark);

	if (!at || (size_t)(at - arg) >= size)
		return NULL;
	snprintf(to, size, "%.*s", (int)(at - arg), arg);
	return at + 1;
}

static const char *parse_ip(const char *arg, char ip[INET6_ADDRSTRLEN])
{
	int family = strchr(arg, ':') ? AF_INET6 : AF_INET;
	uint8_t raw[16];

	if (inet_pton(family, arg, raw) != 1)
		return "this is no IP address";
	inet_ntop(family, raw, ip, INET6_ADDRSTRLEN);
	return NULL;
}

static const char *parse_mac(const char *arg, char mac[SETUP_MAC_TEXT])
{
	unsigned int v[6], k;
	int end = 0;

	if (sscanf(arg, "%2x:%2x:%2x:%2x:%2x:%2x%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		   &end) != 6 ||
	    arg[end] || strlen(arg) != SETUP_MAC_TEXT - 1)
		return "an Ethernet address has the form 02:00:00:00:00:01";
	for (k = 1; k < 6; k++)
		v[0] |= v[k] << 8; /* all zero? */
	if (v[0] & 1 || !v[0])
		return "this Ethernet address is not that of one machine";
	memcpy(mac, arg, SETUP_MAC_TEXT);
	for (k = 0; mac[k]; k++)
		mac[k] |= mac[k] >= 'A' && mac[k] <= 'F' ? 0x20 : 0;
	return NULL;
}

/* Reads ADDRESS/LENGTH. @network: no bit behind the length may be set. */
static const char *parse_prefix(const char *arg, char text[SETUP_TEXT], bool network)
{
	char address[INET6_ADDRSTRLEN], ip[INET6_ADDRSTRLEN];
	const char *length = cut(arg, '/', address, sizeof(address)), *wrong;
	int family = strchr(arg, ':') ? AF_INET6 : AF_INET;
	long long len, bit;
	uint8_t raw[16];

	if (!length)
		return "a length is missing, as in 10.0.0.1/24";
	wrong = parse_ip(address, ip);
	if (wrong)
		return wrong;
	if (!bl_read_integer(length, 0, family == AF_INET ? 32 : 128, &len))
		return family == AF_INET ? "the length is not a number from 0 to 32"
					 : "the length is not a number from 0 to 128";
	inet_pton(family, ip, raw);
	for (bit = len; network && bit < (family == AF_INET ? 32 : 128); bit++)
		if (raw[bit / 8] & 0x80 >> bit % 8)
			return "the network has bits behind its length; 10.0.0.0/16 is one that "
			       "has none";
	snprintf(text, SETUP_TEXT, "%s/%lld", ip, len);
	return NULL;
}

const char *setup_parse_host(const char *arg, struct setup_host *h)
{
	char dev[IFNAMSIZ], word[INET6_ADDRSTRLEN];
	const char *at = cut(arg, '=', dev, sizeof(dev)), *next, *wrong;

	*h = (struct setup_host){ 0 };
	if (!at)
		return "it needs IFNAME=MAC[,IP...], as in eth0=02:00:00:00:00:01,10.0.0.1";
	wrong = setup_parse_dev(dev, h->dev);
	if (wrong)
		return wrong;
	for (next = at; next; at = next) {
		next = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
		if (snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at) >=
		    (int)sizeof(word))
			return "an address is too long";
		if (!*h->mac)
			wrong = parse_mac(word, h->mac);
		else if (h->nip == SETUP_HOST_IPS)
			wrong = "a host has at most 8 IP addresses";
		else
			wrong = parse_ip(word, h->ip[h->nip++]);
		if (wrong)
			return wrong;
	}
	return NULL;
}

const char *setup_parse_address(const char *arg, struct setup_address *a)
{
	char dev[IFNAMSIZ];
	const char *at = cut(arg, '=', dev, sizeof(dev)), *wrong = NULL;

	*a = (struct setup_address){ 0 };
	if (at)
		wrong = setup_parse_dev(dev, a->dev);
	return wrong ? wrong : parse_prefix(at ? at : arg, a->text, false);
}

const char *setup_parse_route(const char *arg, struct setup_route *r)
{
	char net[SETUP_TEXT];
	const char *at = cut(arg, '=', net, sizeof(net)), *wrong;

	if (!at)
		return "it needs NETWORK/LENGTH=ROUTER, as in 10.0.0.0/16=10.0.1.254";
	wrong = parse_ip(at, r->via);
	if (wrong)
		return wrong;
	if (!strcmp(net, "default"))
		snprintf(net, sizeof(net), strchr(at, ':') ? "::/0" : "0.0.0.0/0");
	wrong = parse_prefix(net, r->net, true);
	if (!wrong && !strchr(r->net, ':') != !strchr(r->via, ':'))
		wrong = "the network and the router are not of the same kind of IP";
	return wrong;
}
