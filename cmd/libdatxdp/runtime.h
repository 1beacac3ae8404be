/* Declarations for the files that keep the Go runtime and the program apart: runtime.c, signals.c and sigtable.c. */
#ifndef DATXDP_RUNTIME_H
#define DATXDP_RUNTIME_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

int dx_is_library(void); /* 1 if this code was loaded as a library, and not linked into a test program */

/* The signal stack of the runtime for this thread of the program. ss_sp is NULL if there is none, or if it is installed. */
extern __thread stack_t dx_go_stack __attribute__((tls_model("initial-exec")));

/* Threads in reserve. The runtime has 7 threads on two processors with one adapter, most of them from the start. */
enum { RESERVE = 8 };

void dx_block_signals(sigset_t *old);

/* Creates the threads in reserve that are missing. Returns 0 if it cannot. */
int dx_reserve_threads(void);
void dx_release_threads(void); /* ends the threads in reserve */

/* Is pthread_create, and takes a thread out of the reserve if no other can be created. */
int dx_create_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg);

void dx_keep_signals_blocked(void); /* call it before the runtime starts */
void dx_take_signals(void); /* installs the handlers of the provider that are not installed */
void dx_give_signals(void); /* sets the actions of the program again */

#endif
