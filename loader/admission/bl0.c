// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl0: the veth pair through which applications reach the hold queues (maps/hold_abi.h).
 * Applications have an address on bl0; bl0d, its other end, carries bl_hold_xdp.
 *
 * The pair is made when admission is first turned on, and stays when the daemon ends, as the pins
 * do, so connections through it survive. The pin links/hold-bl0d says that the pair is barline's. A
 * pair without that pin is taken for barline's if it has the address that barline would give it: a
 * start was killed. `barline host detach` removes the pair.
 *
 * Example: the NIC's address is 02:77:00:01:00:00, so bl0 gets 02:c4:00:01:00:00. The NIC is set to
 * receive frames for that address, too, and to answer ARP requests only for its own addresses
 * (arp_ignore 1), so that bl0 answers for its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/nl.h"
#include "base/iface.h"
#include "loader/admission/bl0.h"
#include "loader/admission/policies.h"
#include "loader/load/attach.h"
#include "loader/load/maps.h"
#include "loader/load/napi.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "pass.skel.h"

#define MAC_MIX 0xb1
#define BL0_MTU 1500 /* at most: a slot takes such a frame with one tag */

unsigned int bl_bl0_mtu(unsigned int nic, unsigned int policy)
{
	unsigned int mtu = nic < BL0_MTU ? nic : BL0_MTU;

	return mtu - bl_policy_ops(policy)->frame_room;
}

/*
 * NICs with the same first octet get different addresses. The address is locally administered; its
 * multicast bit and BL_EARLY_MAC0 are clear. Its second octet differs from the NIC's, whose address
 * may be locally administered, too.
 */
void bl_bl0_mac(const uint8_t nic[6], uint8_t mac[6])
{
	memcpy(mac, nic, 6);
	mac[0] = 0x02;
	mac[1] = (uint8_t)(nic[1] ^ nic[0] ^ MAC_MIX);
}

static int set_mtu(const char *name, unsigned int mtu, struct bl_err *err)
{
	struct ifreq r = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return bl_fail(err, errno, "socket: %s", strerror(errno));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFMTU, &r) ||
	    (r.ifr_mtu != (int)mtu && (r.ifr_mtu = (int)mtu, ioctl(fd, SIOCSIFMTU, &r))))
		rc = bl_fail(err, errno, "cannot set the MTU of %s to %u: %s", name, mtu,
			     strerror(errno));
	close(fd);
	return rc;
}

/*
 * Sets a sysctl in the namespace of the thread. A missing file is no error: the kernel does not
 * have the protocol.
 */
static int set_sysctl(const char *proto, const char *ifname, const char *key, const char *value,
		      struct bl_err *err)
{
	char path[128];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", proto, ifname, key);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : bl_fail(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (write(fd, value, strlen(value)) < 0)
		rc = bl_fail(err, errno, "cannot write %s to %s: %s", value, path, strerror(errno));
	close(fd);
	return rc;
}

/*
 * bl0 and the NIC are two stations on one link: each answers for its own addresses only, and
 * replies may come back through the other.
 */
static int set_sysctls(const char *nic, const char *bl0, const char *bl0d, struct bl_err *err)
{
	const struct {
		const char *proto, *ifname, *key, *value;
	} all[] = {
		{ "ipv4", nic, "arp_ignore", "1" },
		{ "ipv4", nic, "arp_announce", "2" },
		{ "ipv4", nic, "rp_filter", "2" },
		{ "ipv4", bl0, "arp_ignore", "1" },
		{ "ipv4", bl0, "arp_announce", "2" },
		{ "ipv4", bl0, "rp_filter", "2" },
		/* bl0d is no station: the kernel must send nothing from it */
		{ "ipv6", bl0d, "disable_ipv6", "1" },
	};
	unsigned int k;
	int rc = 0;

	for (k = 0; k < sizeof(all) / sizeof(all[0]) && !rc; k++)
		rc = set_sysctl(all[k].proto, all[k].ifname, all[k].key, all[k].value, err);
	return rc;
}

/** struct pin_find - finds the pin of a kind, as "hold-bl0d", and the interface in its name. */
struct pin_find {
	const char *kind;
	char name[IFNAMSIZ]; /* "": not found */
};

static int find_pin(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	struct pin_find *f = ctx;
	size_t len = strlen(f->kind);
	char *p;

	(void)path, (void)link_fd;
	if (!ifindex || strncmp(name, f->kind, len) || name[len] != '-')
		return 0;
	snprintf(f->name, sizeof(f->name), "%s", name + len + 1);
	for (p = f->name; *p; p++)
		if (*p == ':')
			*p = '.';
	return 0;
}

/* The names of a node's bl0d, bl0 and NIC by their pins; "": none. */
static void pinned_names(const char *dir, char bl0d[IFNAMSIZ], char bl0[IFNAMSIZ],
			 char nic[IFNAMSIZ])
{
	struct pin_find d = { .kind = "hold" }, a = { .kind = "pass" }, x = { .kind = "xdp" };

	bl_links_each(dir, find_pin, &d);
	bl_links_each(dir, find_pin, &a);
	bl_links_each(dir, find_pin, &x);
	memcpy(bl0d, d.name, IFNAMSIZ);
	memcpy(bl0, a.name, IFNAMSIZ);
	memcpy(nic, x.name, IFNAMSIZ);
}

static int make_pair(const struct bl_admission_cfg *a, const uint8_t mac[6], unsigned int mtu,
		     struct bl_err *err)
{
	/* frames on the wire never have the address of bl0d */
	struct nl_end app = { .name = a->bl0 },
		      dev = { .name = a->bl0d,
			      .mac = { 0x02, 0xb1, 0x0d, mac[3], mac[4], mac[5] } };
	struct nl nl;
	int rc;

	memcpy(app.mac, mac, 6);
	rc = nl_open(&nl);
	if (!rc) {
		rc = nl_veth(&nl, &app, &dev, -1, mtu);
		nl_close(&nl);
	}
	return rc ? bl_fail(err, -rc,
			    "cannot make the pair %s, %s: %s; the kernel needs CONFIG_VETH", a->bl0,
			    a->bl0d, strerror(-rc))
		  : 0;
}

/* Sets *@there: the pair exists and is barline's. Refuses a pair that is not. */
static int check_pair(const struct bl_node *n, const uint8_t mac[6], bool *there,
		      struct bl_err *err)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;
	char bl0d[IFNAMSIZ], bl0[IFNAMSIZ], nic[IFNAMSIZ];
	struct bl_iface i;

	pinned_names(n->dir, bl0d, bl0, nic);
	*there = false;
	if (*bl0d && strcmp(bl0d, a->bl0d))
		return bl_fail(err, EBUSY,
			       "the running host has %s, the configuration says %s; detach it to "
			       "change that",
			       bl0d, a->bl0d);
	if (!if_nametoindex(a->bl0) && !if_nametoindex(a->bl0d))
		return 0;
	*there = true;
	if (!if_nametoindex(a->bl0d) || bl_iface_get(&i, a->bl0, NULL) ||
	    (!*bl0d && memcmp(i.mac, mac, 6)))
		return bl_fail(err, EEXIST,
			       "an interface %s or %s is there already and is not barline's; "
			       "remove it (`ip link del %s`) or give bl0 another name",
			       a->bl0, a->bl0d, if_nametoindex(a->bl0) ? a->bl0 : a->bl0d);
	return 0;
}

static int set_offloads(const char *bl0, const char *bl0d, struct bl_err *err)
{
	int rc = nl_plain(bl0);

	/* frames must be complete, with their checksums: nothing after bl0d would complete them */
	if (!rc)
		rc = nl_plain(bl0d);
	if (!rc)
		rc = nl_gro(bl0);
	return rc ? bl_fail(err, -rc, "cannot turn offloads of %s and %s off: %s", bl0, bl0d,
			    strerror(-rc))
		  : 0;
}

static int attach_xdp(const char *name, const char *dir, const char *kind, int prog_fd,
		      uint32_t *ifindex, struct bl_err *err)
{
	struct bl_attached a = { .port = -1, .home_cpu = -1 };
	int rc = bl_iface_get(&a.iface, name, err);

	if (ifindex)
		*ifindex = (uint32_t)a.iface.ifindex;
	return rc ? rc : bl_attach_xdp(&a, dir, kind, prog_fd, BL_XDP_NATIVE, false, err);
}

/* Keeps a descriptor of a program, for the watch over hooks. */
static int keep_prog(int *to, int fd, struct bl_err *err)
{
	*to = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *to < 0 ? bl_fail(err, errno, "cannot keep a program of bl0: %s", strerror(errno))
		       : 0;
}

/* Attaches all programs of bl0, bl0d and the NIC that admission needs. */
static int attach_programs(struct bl_node *n, uint32_t *bl0d, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;
	int hold = bl_progs_find(&n->progs, "bl_hold_xdp"),
	    clone = bl_progs_find(&n->progs, "bl_host_clone"),
	    lift = bl_progs_find(&n->progs, "bl_host_lift"),
	    hint = bl_progs_find(&n->progs, "bl_host_hint");
	struct bl_attached nic = n->att[0], app = { .port = -1, .home_cpu = -1 };
	struct bl_pass *pass;
	int rc;

	if (hold < 0 || clone < 0 || lift < 0 || hint < 0)
		return bl_fail(err, ENOENT, "this build has no program %s; build it anew",
			       hold < 0    ? "bl_hold_xdp"
			       : clone < 0 ? "bl_host_clone"
			       : lift < 0  ? "bl_host_lift"
					   : "bl_host_hint");
	pass = bl_pass__open_and_load();
	if (!pass)
		return bl_load_failed(errno, "pass", err);
	/*
	 * Frames that XDP redirects into bl0d reach bl0 only if bl0 runs NAPI. A veth does so if it
	 * has GRO or an XDP program; both are there in case one is taken away.
	 */
	rc = attach_xdp(a->bl0, n->dir, "pass", bpf_program__fd(pass->progs.bl_pass), NULL, err);
	if (!rc)
		rc = keep_prog(&n->bl0_prog[BL_BL0_PASS], bpf_program__fd(pass->progs.bl_pass),
			       err);
	bl_pass__destroy(pass);
	if (!rc)
		rc = attach_xdp(a->bl0d, n->dir, "hold", hold, bl0d, err);
	if (!rc)
		rc = bl_attach_tc(&nic, n->dir, true, clone, err);
	if (!rc)
		rc = keep_prog(&n->clone_prog, clone, err);
	if (!rc)
		rc = keep_prog(&n->bl0_prog[BL_BL0_HOLD], hold, err);
	if (!rc)
		rc = bl_iface_get(&app.iface, a->bl0, err);
	if (!rc)
		rc = bl_attach_tc(&app, n->dir, false, hint, err);
	if (!rc)
		rc = keep_prog(&n->bl0_prog[BL_BL0_HINT], hint, err);
	if (!rc && !bl_beacon_paced(&n->cfg)) {
		bl_detach_ingress(n->dir, a->bl0); /* left by an earlier configuration */
		return 0;
	}
	if (!rc)
		rc = bl_attach_tc(&app, n->dir, true, lift, err);
	return rc ? rc : keep_prog(&n->bl0_prog[BL_BL0_LIFT], lift, err);
}

/* The NIC receives frames for @mac, too, or no longer does. 0 or -errno. */
static int set_station(const char *nic, const uint8_t mac[6], bool on)
{
	struct nl nl;
	int rc = nl_open(&nl);

	if (rc)
		return rc;
	rc = nl_station(&nl, if_nametoindex(nic), mac, on);
	nl_close(&nl);
	return rc;
}

/*
 * Has the kernel wait for the next TCP segment of a flow, for a slot and a quarter. Segments at the
 * link's rate are further apart than a poll takes, so GRO alone would find one at a time, and every
 * second one would be acknowledged: each ACK with a reservation and a grant of its own, 2 % of the
 * sender's link. At 2 Mbit/s, the slowest rate, the wait is 7.7 ms. Segments with PSH, the last
 * ones of a message, are not delayed, and neither are other protocols.
 */
static void gather_segments(const char *bl0, uint32_t ns_q20)
{
	struct bl_iface i;
	int rc = bl_iface_get(&i, bl0, NULL);

	if (!rc)
		rc = bl_napi_gather(&i, bl_slot_ns(ns_q20) * 5 / 4);
	if (rc)
		bl_log(BL_LOG_INFO,
		       "%s: gro_flush_timeout cannot be set (%s): TCP will acknowledge every other "
		       "segment",
		       bl0, strerror(-rc));
}

void bl_bl0_rate(const char *dir, uint32_t ns_q20)
{
	char bl0d[IFNAMSIZ], bl0[IFNAMSIZ], nic[IFNAMSIZ];

	pinned_names(dir, bl0d, bl0, nic);
	if (*bl0)
		gather_segments(bl0, ns_q20);
}

/*
 * Makes the pair or takes it over, and turns admission on. The NIC's programs are attached already;
 * n->att[0] is the NIC. Returns 0 or -errno.
 */
int bl_bl0_open(struct bl_node *n, struct bpf_object *obj, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;
	const struct bl_iface *nic = &n->att[0].iface;
	unsigned int mtu = bl_bl0_mtu(nic->mtu, a->policy);
	uint32_t bl0d = 0;
	uint8_t mac[6];
	bool there;
	int rc;

	bl_bl0_mac(nic->mac, mac);
	rc = check_pair(n, mac, &there, err);
	if (!rc && !there)
		rc = make_pair(a, mac, mtu, err);
	if (rc)
		return rc;
	rc = set_mtu(a->bl0, mtu, err);
	if (!rc)
		rc = set_mtu(a->bl0d, mtu, err);
	if (!rc)
		rc = set_offloads(a->bl0, a->bl0d, err);
	if (!rc)
		rc = set_sysctls(nic->name, a->bl0, a->bl0d, err);
	if (!rc)
		rc = attach_programs(n, &bl0d, err);
	if (!rc)
		rc = bl_iface_up(a->bl0d, err);
	if (!rc)
		rc = bl_iface_up(a->bl0, err);
	if (!rc)
		gather_segments(a->bl0, bl_rate_ns_q20(a->rate_bps));
	if (!rc)
		rc = bl_admission_host_on(n, obj, mac, (uint32_t)nic->ifindex, bl0d, err);
	if (rc && !there)
		bl_bl0_remove(n->dir, NULL);
	if (!rc && (rc = set_station(nic->name, mac, true))) {
		bl_log(BL_LOG_WARN,
		       "%s does not take a second address (%s): `ip link set %s promisc on`, or "
		       "nothing comes to %s",
		       nic->name, strerror(-rc), nic->name, a->bl0);
		rc = 0;
	}
	return rc;
}

int bl_bl0_give(const struct bl_node_cfg *cfg, uid_t uid, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &cfg->admission;
	struct bl_iface nic, app;
	uint8_t mac[6];
	int rc = bl_iface_get(&nic, cfg->ifname, err);

	bl_bl0_mac(nic.mac, mac);
	if (!rc && !if_nametoindex(a->bl0))
		rc = make_pair(a, mac, bl_bl0_mtu(nic.mtu, a->policy), err);
	if (!rc)
		rc = bl_iface_get(&app, a->bl0, err);
	return rc ? rc : bl_napi_give(&app, uid, err);
}

int bl_bl0_nic(struct bl_node *n, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &n->cfg.admission;
	struct bl_attached nic = n->att[0];
	struct bl_iface app;
	int rc;

	rc = bl_iface_get(&app, a->bl0, err);
	if (!rc)
		rc = set_sysctls(nic.iface.name, a->bl0, a->bl0d, err);
	if (!rc)
		rc = bl_attach_tc(&nic, n->dir, true, n->clone_prog, err);
	if (!rc && set_station(nic.iface.name, app.mac, true))
		bl_log(BL_LOG_WARN,
		       "%s does not take a second address: `ip link set %s promisc on`, or nothing "
		       "comes to %s",
		       nic.iface.name, nic.iface.name, a->bl0);
	return rc;
}

int bl_bl0_policy(const char *dir, unsigned int policy, struct bl_err *err)
{
	char bl0d[IFNAMSIZ], bl0[IFNAMSIZ], nic[IFNAMSIZ];
	struct bl_iface i;
	int rc;

	pinned_names(dir, bl0d, bl0, nic);
	if (!*bl0 || !*bl0d || !*nic)
		return 0;
	rc = bl_iface_get(&i, nic, err);
	if (!rc)
		rc = set_mtu(bl0, bl_bl0_mtu(i.mtu, policy), err);
	return rc ? rc : set_mtu(bl0d, bl_bl0_mtu(i.mtu, policy), err);
}

/* Removes the pair of the node with these pins, if it has one, and with it the programs on it. */
int bl_bl0_remove(const char *dir, struct bl_err *err)
{
	char bl0d[IFNAMSIZ], bl0[IFNAMSIZ], nic[IFNAMSIZ];
	struct bl_iface i, app;
	struct nl nl;
	int rc;

	pinned_names(dir, bl0d, bl0, nic);
	if (!*bl0d && !*bl0)
		return 0;
	if (*nic) {
		bl_detach_ingress(dir, nic);
		if (*bl0 && !bl_iface_get(&app, bl0, NULL))
			set_station(nic, app.mac, false); /* fails if it is gone already */
	}
	rc = bl_iface_get(&i, *bl0d ? bl0d : bl0, err);
	if (rc)
		return rc == -ENODEV ? 0 : rc;
	rc = nl_open(&nl);
	if (!rc) {
		rc = nl_del(&nl, (unsigned int)i.ifindex);
		nl_close(&nl);
	}
	if (rc)
		return bl_fail(err, -rc, "cannot remove %s: %s; `ip link del %s`", i.name,
			       strerror(-rc), i.name);
	bl_detach_links(dir, *bl0d ? bl0d : bl0, NULL);
	if (*bl0)
		bl_detach_links(dir, bl0, NULL);
	return 0;
}
