// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller and etcd with TLS: real members of etcd that demand client certificates, on
 * addresses that are not loopback's, and controllers as their operators start them. The
 * certificates are made by `barline pki` in the tmpfs of the case, and vanish with it.
 *
 * What must hold: with the right certificates a controller is elected, and its decisions are in
 * etcd. With any others neither side says anything to the other, the controller reports what is
 * wrong and what to do, and nothing is ever sent without TLS.
 */
#include "tests/net/rack.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/net/barline_run.h"
#include "tests/net/controller/ctl_child.h"

#define WAIT_S 80
#include "tests/net/event_loop.h"

#define ETCD_PKI BL_RUN_DIR "/pki-etcd" /* the authority of etcd and its controllers */
#define NODE_PKI BL_RUN_DIR "/pki"      /* that of the rack */
#define FILE_CTL BL_RUN_DIR "/ctl.yaml"
#define SAID     BL_RUN_DIR "/said"
#define MEMBERS  2
/* In a status: the first leader's epoch is the revision of the first change, which is 2. */
#define SAVED "\"epochs\":"
#define FIRST "[{\"epoch\":2,"

static const char *const host[MEMBERS] = { "10.9.0.1", "10.9.0.2" };
static pid_t member[MEMBERS];

/* ---- commands ---- */

static const char *read_back(const char *path)
{
	static char text[8192];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

/* Runs `barline`; its output goes to a file. Returns its exit status. */
static int barline(const char *args)
{
	char path[512], cmd[1200];

	CHECK(barline_path(path, sizeof(path)), "barline's path");
	snprintf(cmd, sizeof(cmd), "%s %s >" SAID " 2>&1", path, args);
	return WEXITSTATUS(system(cmd));
}

__attribute__((format(printf, 1, 2))) static void pki(const char *fmt, ...)
{
	char args[512] = "pki ";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(args + strlen(args), sizeof(args) - strlen(args), fmt, ap);
	va_end(ap);
	CHECK(!barline(args), "barline %s: %s", args, read_back(SAID));
}

/*
 * Makes both authorities: members of etcd and a controller of the one, and nodes of the other. A
 * member compares the address from which another one connects with the certificate: on one machine
 * that is the address to which it connects.
 */
static void make_certificates(void)
{
	unsigned int i;

	pki("init --dir " ETCD_PKI " --rack rack7");
	for (i = 0; i < MEMBERS; i++)
		pki("issue etcd%u --dir " ETCD_PKI " --role etcd --address %s --address %s "
		    "--address 127.0.0.1",
		    i, host[0], host[1]);
	pki("issue elsewhere --dir " ETCD_PKI " --role etcd --address 10.9.0.9");
	pki("issue ctl1 --dir " ETCD_PKI " --role controller");
	pki("init --dir " NODE_PKI " --rack rack7");
	pki("issue ctl1 --dir " NODE_PKI " --role controller");
	pki("issue h1 --dir " NODE_PKI " --id 1");
}

/* ---- members of etcd ---- */

static void etcd_says(void)
{
	fprintf(stderr, "etcd said: %.4000s\nbarline said: ", read_back(BL_RUN_DIR "/etcd.log"));
	fprintf(stderr, "%.4000s\n", read_back(BL_RUN_DIR "/ctl.log"));
}

static void network_up(void)
{
	unsigned int i;
	char cmd[64];
	struct bl_err err;

	rack_last_words = etcd_says;
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	for (i = 0; i < MEMBERS; i++) {
		snprintf(cmd, sizeof(cmd), "ip addr add %s/32 dev lo", host[i]);
		CHECK(!system(cmd), "%s", cmd);
	}
	CHECK(sd_event_new(&ev) >= 0, "an event loop");
}

/* Connects the output of a child to @log, and ends the child with its parent. */
static void begin_child(pid_t parent, const char *log)
{
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || fd < 0)
		_exit(1);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
}

/* Replaces this process by member @i of @n, with the certificate @name of @dir; NULL: without TLS.
 */
static void exec_member(unsigned int i, unsigned int n, const char *dir, const char *name)
{
	const char *scheme = name ? "https" : "http";
	char all[256] = "", data[64], peer[64], url[160], id[8], file[3][128];
	const char *argv[40] = { "etcd",
				 "--name",
				 id,
				 "--data-dir",
				 data,
				 "--initial-advertise-peer-urls",
				 peer,
				 "--listen-peer-urls",
				 peer,
				 "--listen-client-urls",
				 url,
				 "--advertise-client-urls",
				 url,
				 "--initial-cluster",
				 all,
				 "--unsafe-no-fsync",
				 "--logger",
				 "zap",
				 "--log-level",
				 "error" };
	const char *const tls[] = { "--client-cert-auth",
				    "--trusted-ca-file",
				    file[0],
				    "--cert-file",
				    file[1],
				    "--key-file",
				    file[2],
				    "--peer-client-cert-auth",
				    "--peer-trusted-ca-file",
				    file[0],
				    "--peer-cert-file",
				    file[1],
				    "--peer-key-file",
				    file[2] };
	unsigned int k;

	snprintf(id, sizeof(id), "m%u", i);
	snprintf(data, sizeof(data), BL_RUN_DIR "/etcd%u", i);
	snprintf(peer, sizeof(peer), "%s://%s:2380", scheme, host[i]);
	snprintf(url, sizeof(url), "%s://%s:2379,%s://127.0.0.1:%u", scheme, host[i], scheme,
		 2400 + i);
	for (k = 0; k < n; k++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%sm%u=%s://%s:2380",
			 k ? "," : "", k, scheme, host[k]);
	if (name) {
		snprintf(file[0], sizeof(file[0]), "%s/ca.pem", dir);
		snprintf(file[1], sizeof(file[1]), "%s/%s.pem", dir, name);
		snprintf(file[2], sizeof(file[2]), "%s/%s.key", dir, name);
		for (k = 0; argv[k]; k++)
			;
		memcpy(&argv[k], tls, sizeof(tls));
	}
	execvp("etcd", (char *const *)(uintptr_t)argv);
	dprintf(STDERR_FILENO, "cannot run etcd: %s\n", strerror(errno));
	_exit(127);
}

static void member_up(unsigned int i, unsigned int n, const char *dir, const char *name)
{
	pid_t parent = getpid();

	fflush(NULL);
	member[i] = fork();
	CHECK(member[i] >= 0, "%s", strerror(errno));
	if (member[i])
		return;
	begin_child(parent, BL_RUN_DIR "/etcd.log");
	exec_member(i, n, dir, name);
}

static void end(pid_t *pid)
{
	kill(*pid, SIGKILL);
	CHECK(waitpid(*pid, NULL, 0) == *pid, "%s", strerror(errno));
	*pid = 0;
}

/* ---- controllers ---- */

/*
 * Writes the file of a controller. @urls: of etcd. @more: what follows in the map etcd, and after
 * it.
 */
static void write_file(const char *urls, const char *more)
{
	FILE *f = fopen(FILE_CTL, "w");

	CHECK(f, "%s", strerror(errno));
	fprintf(f, "listen: 127.0.0.1:61693\netcd: { ttl_s: 5, endpoints: [%s]%s\n", urls, more);
	CHECK(!fclose(f), "%s", strerror(errno));
}

#define FILES(ca, cert) ", ca: " ca "/ca.pem, cert: " cert "/ctl1.pem, key: " cert "/ctl1.key }"
#define URL0            "https://10.9.0.1:2379"
#define URL1            "https://10.9.0.2:2379"

/* Starts `barline controller run`, with its sandbox. */
static pid_t run_controller(void)
{
	pid_t parent = getpid(), pid;
	char path[512];

	CHECK(barline_path(path, sizeof(path)), "barline's path");
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (pid)
		return pid;
	begin_child(parent, BL_RUN_DIR "/ctl.log");
	execl(path, path, "controller", "run", FILE_CTL, NULL);
	_exit(127);
}

static bool leads(pid_t pid)
{
	return strstr(ctl_ask(pid), "\"state\":\"leader\"") != NULL;
}

static uint64_t epoch_of(pid_t pid)
{
	const char *at = strstr(ctl_ask(pid), "\"epoch\":");

	return at ? strtoull(at + 8, NULL, 10) : 0;
}

/* Copies what the controller says is wrong with its store, "" if it does not, into @text. */
static const char *trouble_of(pid_t pid)
{
	static char text[2048];
	json_t *o = json_loads(ctl_ask(pid), 0, NULL);
	const char *said = json_string_value(json_object_get(o, "trouble"));

	snprintf(text, sizeof(text), "%s", said ? said : "");
	json_decref(o);
	return text;
}

/* A controller with this file is not elected, and says @words and the command @next. */
static void is_refused(const char *urls, const char *more, const char *words, const char *next)
{
	const char *said;
	pid_t pid;

	write_file(urls, more);
	pid = run_controller();
	/* A slow machine may have a timeout before or after. */
	UNTIL(strstr((said = trouble_of(pid)), words) || epoch_of(pid));
	fprintf(stderr, "%s\n", said);
	CHECK(strstr(said, words) && strstr(said, next) && strstr(said, "etcd at https://"), "%s",
	      said);
	CHECK(!epoch_of(pid), "it leads");
	end(&pid);
}

/* A controller is elected with the right files, and none was elected before. */
static void nobody_wrote(const char *urls)
{
	pid_t pid;

	write_file(urls, FILES(ETCD_PKI, ETCD_PKI));
	pid = run_controller();
	UNTIL(leads(pid) && strstr(ctl_ask(pid), SAVED "[{"));
	CHECK(strstr(ctl_ask(pid), SAVED FIRST), "others have written: %s", ctl_ask(pid));
	end(&pid);
}

/* ---- cases ---- */

/*
 * Two members that need each other, with certificates for clients and for each other. A controller
 * is elected, and what it has saved is there after it was killed. It also goes on after etcd stood
 * still: connections that broke do not stay in use.
 */
RACK_TEST(certificates__elected_and_saved)
{
	pid_t ctl;
	uint64_t epoch;

	network_up();
	make_certificates();
	member_up(0, 2, ETCD_PKI, "etcd0");
	member_up(1, 2, ETCD_PKI, "etcd1");
	write_file(URL0 ", " URL1, FILES(ETCD_PKI, ETCD_PKI));
	ctl = run_controller();
	UNTIL((epoch = epoch_of(ctl)) != 0);
	UNTIL(!barline("controller admit h1 --id 1"));
	end(&ctl);
	ctl = run_controller();
	UNTIL(epoch_of(ctl) > epoch);
	UNTIL(leads(ctl) && strstr(ctl_ask(ctl), "\"name\":\"h1\""));
	kill(member[0], SIGSTOP);
	UNTIL(!leads(ctl));
	kill(member[0], SIGCONT);
	UNTIL(leads(ctl));
	UNTIL(!barline("controller admit h2 --id 2"));
}

/* A controller that has no certificate of etcd's authority is refused by etcd. */
RACK_TEST(controller__is_refused)
{
	struct bl_ctl_cfg cfg = { .listen = "127.0.0.1:61693", .netcd = 1, .etcd = { URL0 } };
	struct bl_ctl *c;
	struct bl_err err;

	network_up();
	make_certificates();
	member_up(0, 1, ETCD_PKI, "etcd0");
	/* The rack's authority is not etcd's: what its nodes and controllers have opens nothing. */
	is_refused(URL0, FILES(ETCD_PKI, NODE_PKI), "it ended the TLS session",
		   "`barline pki issue NAME --role controller`");
	is_refused(URL0,
		   ", ca: " ETCD_PKI "/ca.pem, cert: " NODE_PKI "/h1.pem, key: " NODE_PKI "/h1.key "
		   "}",
		   "it ended the TLS session", NODE_PKI "/h1.pem");
	/* without any: only loopback may be tried at all */
	is_refused("https://127.0.0.1:2400", ", ca: " ETCD_PKI "/ca.pem }",
		   "it ended the TLS session", "etcd: cert names none");
	CHECK(bl_ctl_new(&c, &cfg, &err) == -EPERM, "https without certificates");
	CHECK(strstr(err.text, URL0) && strstr(err.text, "without ca"), "%s", err.text);
	snprintf(cfg.etcd_ca, sizeof(cfg.etcd_ca), ETCD_PKI "/ca.pem");
	CHECK(bl_ctl_new(&c, &cfg, &err) == -EPERM, "https without a client's certificate");
	CHECK(strstr(err.text, "without cert") && strstr(err.text, "barline pki issue"), "%s",
	      err.text);
	snprintf(cfg.etcd_cert, sizeof(cfg.etcd_cert), ETCD_PKI "/ctl1.pem");
	snprintf(cfg.etcd_key, sizeof(cfg.etcd_key), ETCD_PKI "/ctl2.key");
	CHECK(bl_ctl_new(&c, &cfg, &err) == -ENOENT, "a key that does not exist");
	CHECK(strstr(err.text, ETCD_PKI "/ctl2.key") && strstr(err.text, "barline pki"), "%s",
	      err.text);
	nobody_wrote(URL0);
}

/*
 * An etcd whose certificate is for another address, or of another authority: also of one that the
 * machine trusts otherwise, as the public ones.
 */
RACK_TEST(etcd__is_refused)
{
	network_up();
	make_certificates();
	member_up(0, 1, ETCD_PKI, "elsewhere");
	is_refused(URL0, FILES(ETCD_PKI, ETCD_PKI), "its certificate is refused",
		   "`barline pki issue NAME --role etcd --address HOST`");
	end(&member[0]);
	CHECK(!mount("tmpfs", "/etc/ssl/certs", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") &&
		      !system("cp " ETCD_PKI "/ca.pem /etc/ssl/certs/public.pem"),
	      "%s", strerror(errno));
	member_up(0, 1, ETCD_PKI, "etcd0");
	is_refused(URL0, FILES(NODE_PKI, ETCD_PKI), "its certificate is refused",
		   NODE_PKI "/ca.pem");
	nobody_wrote(URL0);
}

/* Whatever a server does with the connections, each of them begins with TLS. */
RACK_TEST(plain__never_instead_of_tls)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(2379) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	unsigned int k;
	bool told = false;
	pid_t ctl;

	network_up();
	make_certificates();
	sa.sin_addr.s_addr = inet_addr(host[0]);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
		      !bind(fd, (struct sockaddr *)&sa, sizeof(sa)) && !listen(fd, 16),
	      "%s", strerror(errno));
	write_file(URL0, FILES(ETCD_PKI, ETCD_PKI));
	ctl = run_controller();
	for (k = 0; k < 12 || !told; k++) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		unsigned char first = 0;

		CHECK(c >= 0 && recv(c, &first, 1, 0) == 1, "%s", strerror(errno));
		CHECK(first == 22, "connection %u begins with byte %u, and not with a handshake", k,
		      first);
		/* hang up at once, or claim to speak plain HTTP */
		if (k % 2)
			CHECK(send(c, answer, sizeof(answer) - 1, MSG_NOSIGNAL) > 0, "%s",
			      strerror(errno));
		close(c);
		told |= strstr(trouble_of(ctl), "does it speak TLS there?") != NULL;
	}
	CHECK(!epoch_of(ctl), "it leads");
}

/* Without TLS, etcd on another address than a loopback's needs the word. */
RACK_TEST(plain__needs_the_word)
{
	pid_t ctl;

	network_up();
	member_up(0, 1, NULL, NULL);
	write_file("http://10.9.0.1:2379", " }");
	CHECK(barline("controller run " FILE_CTL) == 1, "%s", read_back(SAID));
	CHECK(strstr(read_back(SAID), "http://10.9.0.1:2379 is reached without TLS") &&
		      strstr(read_back(SAID), "insecure: true") &&
		      strstr(read_back(SAID), "`barline pki"),
	      "%s", read_back(SAID));
	write_file("http://10.9.0.1:2379", " }\ninsecure: true");
	ctl = run_controller();
	UNTIL(leads(ctl));
	end(&ctl);
	/* loopback does not */
	write_file("http://127.0.0.1:2400", " }");
	ctl = run_controller();
	UNTIL(leads(ctl));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates__elected_and_saved),
		cmocka_unit_test(controller__is_refused),
		cmocka_unit_test(etcd__is_refused),
		cmocka_unit_test(plain__never_instead_of_tls),
		cmocka_unit_test(plain__needs_the_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
