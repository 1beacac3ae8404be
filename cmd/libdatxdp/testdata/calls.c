/*
 * Tests of calls that Debian's test programs do not make. "calls IA TEST..." runs the tests one after the other. A test
 * that succeeds prints "ok TEST"; a check that fails prints a line with FAILED. The adapter connects to itself. Without
 * arguments the program lists its tests.
 */

#include "calls.h"

#include "calls_connection.c"
#include "calls_event.c"
#include "calls_handle.c"
#include "calls_memory.c"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"rmr", test_rmr}, {"table", test_table}, {"srq", test_srq}, {"cno", test_cno}, {"evd", test_evd},
	{"private", test_private}, {"service", test_service}, {"close", test_close}, {"stale", test_stale}, {"late", test_late}, {"context", test_context},
	{"memory", test_memory}, {"gone", test_gone}, {"open", test_open}, {"fork", test_fork}, {"threads", test_threads}, {"extension", test_extension}};

static int run(const char *name)
{
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		if (strcmp(name, tests[i].name))
			continue;
		failures = 0;
		open_ia();
		tests[i].run();
		MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); /* no object is left */
		if (!failures)
			printf("ok %s\n", name);
		return failures != 0;
	}
	printf("FAILED: there is no test %s\n", name);
	return 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 3) {
		for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
			printf("%s\n", tests[i].name);
		return 2;
	}
	ia_name = argv[1];
	for (int i = 2; i < argc; i++)
		failed |= run(argv[i]);
	return failed;
}
