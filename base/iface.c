// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Network interfaces in the namespace of the calling thread: see iface.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/iface.h"
#include "base/ip.h"

int bl_iface_get(struct bl_iface *i, const char *name, struct bl_err *err)
{
	struct ifreq r = {};
	int fd, rc = 0;

	memset(i, 0, sizeof(*i));
	if (!*name || strlen(name) >= IFNAMSIZ)
		return bl_fail(err, EINVAL, "\"%s\" is no interface name; `ip link` lists them",
			       name);
	strcpy(i->name, name);
	i->ifindex = (int)if_nametoindex(name);
	if (!i->ifindex)
		return bl_fail(err, ENODEV,
			       "no interface %s in this network namespace; `ip link` lists them, "
			       "-n NETNS selects another namespace",
			       name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return bl_fail(err, errno, "socket: %s", strerror(errno));
	strcpy(r.ifr_name, name);
	if (!ioctl(fd, SIOCGIFHWADDR, &r)) {
		memcpy(i->mac, r.ifr_hwaddr.sa_data, 6);
		if (!ioctl(fd, SIOCGIFMTU, &r)) {
			i->mtu = (unsigned int)r.ifr_mtu;
			if (!ioctl(fd, SIOCGIFFLAGS, &r)) {
				i->up = r.ifr_flags & IFF_UP;
				goto out;
			}
		}
	}
	rc = bl_fail(err, errno, "cannot read the address, MTU and flags of %s: %s", name,
		     strerror(errno));
out:
	close(fd);
	return rc;
}

int bl_iface_up(const char *name, struct bl_err *err)
{
	struct ifreq r = {};
	int fd, rc = 0;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return bl_fail(err, errno, "socket: %s", strerror(errno));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &r)) {
		rc = bl_fail(err, errno, "cannot read the flags of %s: %s", name, strerror(errno));
	} else if (!(r.ifr_flags & IFF_UP)) {
		r.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &r))
			rc = bl_fail(err, errno,
				     "cannot set %s up: %s; `ip link set %s up` as root", name,
				     strerror(errno), name);
	}
	close(fd);
	return rc;
}

/* Whether other hosts can use the address: it is of this family, and not link-local. */
static bool is_usable_addr(const struct sockaddr *sa, int family)
{
	if (sa->sa_family != family)
		return false;
	return family == AF_INET ||
	       !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

int bl_iface_hear(const char *name, const uint8_t mac[6], bool on, struct bl_err *err)
{
	struct ifreq r = { .ifr_hwaddr.sa_family = AF_UNSPEC };
	int fd, rc = 0;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return bl_fail(err, errno, "socket: %s", strerror(errno));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	memcpy(r.ifr_hwaddr.sa_data, mac, 6);
	/* EINVAL: it has no filter. ENOENT: the address is not there, so there is nothing to end.
	 */
	if (ioctl(fd, on ? SIOCADDMULTI : SIOCDELMULTI, &r) && errno != EINVAL &&
	    (on || (errno != ENOENT && errno != EADDRNOTAVAIL)))
		rc = bl_fail(err, errno, "cannot %s a multicast address %s %s: %s",
			     on ? "add" : "remove", on ? "to" : "from", name, strerror(errno));
	close(fd);
	return rc;
}

int bl_iface_addr(const char *name, int family, uint8_t addr[16], struct bl_err *err)
{
	static const int both[] = { AF_INET, AF_INET6 };
	struct ifaddrs *all, *a;
	unsigned int k;

	if (getifaddrs(&all))
		return bl_fail(err, errno, "cannot list the addresses of %s: %s", name,
			       strerror(errno));
	for (k = 0; k < 2; k++) {
		if (family && family != both[k])
			continue;
		for (a = all; a; a = a->ifa_next) {
			if (!a->ifa_addr || strcmp(a->ifa_name, name) ||
			    !is_usable_addr(a->ifa_addr, both[k]))
				continue;
			if (both[k] == AF_INET) {
				memset(addr, 0, 10);
				memset(addr + 10, 0xff, 2);
				memcpy(addr + 12,
				       &((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr, 4);
			} else {
				memcpy(addr,
				       &((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr,
				       16);
			}
			freeifaddrs(all);
			return 0;
		}
	}
	freeifaddrs(all);
	return bl_fail(err, EADDRNOTAVAIL, "%s has no %s address; `ip addr add ADDRESS/LEN dev %s`",
		       name,
		       family == AF_INET    ? "IPv4"
		       : family == AF_INET6 ? "global IPv6"
					    : "IP",
		       name);
}

bool bl_iface_addr_here(const uint8_t ip[16])
{
	struct sockaddr_storage ss;
	socklen_t len = bl_ip_sockaddr(&ss, ip, 0);
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here = fd < 0 || !bind(fd, (const struct sockaddr *)&ss, len) ||
		    errno != EADDRNOTAVAIL;

	if (fd >= 0)
		close(fd);
	return here;
}
