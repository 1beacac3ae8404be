/* Tests of guest.c: processes that the program starts, and calls by handlers. */

#include <arpa/inet.h>
#include <spawn.h>
#include <sys/prctl.h>

extern char **environ;
static char *const argv_true[] = {"true", NULL};

static int status_of(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void fork_and_exit(void)
{
	pid_t child = fork();

	if (!child)
		_exit(7);
	CHECK(status_of(child) == 7 << 8, "a child that exits");
}

static void fork_and_exec(void)
{
	pid_t child = fork();

	if (!child) {
		execvp("true", argv_true);
		_exit(1);
	}
	CHECK(status_of(child) == 0, "a child that executes a program");
}

static void fork_and_fall(void)
{
	pid_t child = fork();
	struct rlimit none = {0, 0};

	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &none);
		*nowhere = 1;
		_exit(1);
	}
	status = status_of(child);
	CHECK(WTERMSIG(status) == SIGSEGV || status == NOT_REPAIRED << 8, "status %#x of a child with a fault", status);
}

static void vfork_and_exec(void)
{
	pid_t child = vfork();

	if (!child) {
		execvp("true", argv_true);
		_exit(1);
	}
	CHECK(status_of(child) == 0, "a child of vfork");
}

static void spawn(void)
{
	pid_t child;

	CHECK(!posix_spawnp(&child, "true", NULL, NULL, argv_true, environ) && status_of(child) == 0, "posix_spawn");
}

static void run_shell(void)
{
	char line[16] = "";
	FILE *f = popen("echo hello", "r");

	CHECK(f, "popen");
	while (!fgets(line, sizeof line, f) && errno == EINTR) /* a handler without SA_RESTART ran */
		clearerr(f);
	CHECK(!strcmp(line, "hello\n"), "popen read %s", line);
	pclose(f);
	CHECK(system("true") == 0, "system");
}

/* Children of all kinds while other threads transfer, with a handler of SIGCHLD that is installed after the open. */
static void test_children(void)
{
	struct exchanger x[2];

	open_ia();
	start_traffic(x, 2);
	for (int i = 0; i < 20 && !failures; i++) {
		set_action(SIGCHLD, nothing, i % 2 ? SA_RESTART : 0);
		fork_and_exit();
		fork_and_exec();
		fork_and_fall();
		vfork_and_exec();
		spawn();
		run_shell();
	}
	stop_traffic(x, 2);
}

/* Reports whether the program could bind the port of the adapter, which is closed. */
static int port_is_free(void)
{
	struct sockaddr_in at;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), free;

	memcpy(&at, &self, sizeof at);
	at.sin_port = htons(17473);
	free = !bind(fd, (struct sockaddr *)&at, sizeof at);
	close(fd);
	return free;
}

/* Children that live on keep nothing of an adapter that the program closes: it opens it again, with traffic. */
static void test_workers(void)
{
	enum { WORKERS = 3 };
	pid_t workers[WORKERS];
	struct point a, b;
	int ready[2];
	char c;

	CHECK(!pipe(ready), "pipe");
	for (int i = 0; i < WORKERS; i++) {
		open_ia();
		a = make_point();
		b = make_point();
		join(&a, &b);
		exchange(&a, &b, 3, 0);
		if (!(workers[i] = fork())) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed check ends the parent */
			if (write(ready[1], "", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		CHECK(read(ready[0], &c, 1) == 1, "the worker ended");
		exchange(&a, &b, 3, 1);
		MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		CHECK(port_is_free(), "with %d workers the port of the closed adapter is in use", i + 1);
	}
	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		status_of(workers[i]);
	}
}

/* --- a handler that calls the provider gets an error if it has interrupted a call --- */

static volatile long refused;

static void call_provider(int sig)
{
	DAT_EVENT ev;
	DAT_RETURN r = dat_evd_dequeue(async_evd, &ev);

	if (DAT_GET_TYPE(r) == DAT_INVALID_STATE)
		refused++;
	else if (DAT_GET_TYPE(r) != DAT_QUEUE_EMPTY)
		wrong++;
}

static void test_reentry(void)
{
	struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct point a, b;

	open_ia();
	a = make_point();
	b = make_point();
	join(&a, &b);
	signal(SIGALRM, call_provider);
	setitimer(ITIMER_REAL, &every, NULL);
	for (time_t end = time(NULL) + 2; time(NULL) < end && !failures;) {
		exchange(&a, &b, 20, 0);
		exchange(&a, &b, 20, 1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(refused > 100 && !wrong, "%ld calls were refused, %ld had another result", refused, wrong);
}
