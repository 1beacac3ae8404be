/*
 * A program with the provider behaves as without it: signals, threads, processes, limits. "guest IA TEST" runs a test.
 * A test that succeeds prints "ok TEST"; a check that fails prints a line with FAILED. Without arguments the program
 * lists its tests.
 */

#define _GNU_SOURCE
#include "traffic.h"

#include "guest_signals.c"
#include "guest_faults.c"
#include "guest_process.c"
#include "guest_limits.c"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"state", test_state}, {"threads", test_threads}, {"handlers", test_handlers}, {"storm", test_storm}, {"sigwait", test_sigwait},
	{"exits", test_exits}, {"reentry", test_reentry}, {"deaths", test_deaths}, {"repair", test_repair}, {"unmapped", test_unmapped}, {"jump", test_jump},
	{"chain", test_chain}, {"children", test_children}, {"workers", test_workers}, {"memory", test_memory},
	{"descriptors", test_descriptors}, {"nothreads", test_no_threads}, {"lastthreads", test_last_threads}};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	ia_name = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		if (argc < 3) {
			printf("%s\n", tests[i].name);
		} else if (!strcmp(argv[2], tests[i].name)) {
			tests[i].run();
			if (!failures)
				printf("ok %s\n", tests[i].name);
			return failures != 0;
		}
	}
	return 2;
}
