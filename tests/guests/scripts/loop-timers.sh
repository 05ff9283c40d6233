#!/bin/sh
# GUEST0907 loop-timers: timers of processor time expire in a loop that makes no call
cat >timers.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static volatile int count;

static void expired(int signal) {
    (void)signal;
    count++;
}

static void loop(const char *what) {
    while (count < 5)
        ;
    printf("%s\n", what);
    count = 0;
}

int main(void) {
    struct itimerval each = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct itimerspec often = { { 0, 20000000 }, { 0, 20000000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
    timer_t timer;
    signal(SIGPROF, expired);
    signal(SIGVTALRM, expired);
    signal(SIGUSR1, expired);
    setitimer(ITIMER_PROF, &each, 0);
    loop("profiling");
    setitimer(ITIMER_PROF, &never, 0);
    count = 0;
    setitimer(ITIMER_VIRTUAL, &each, 0);
    loop("user time");
    setitimer(ITIMER_VIRTUAL, &never, 0);
    count = 0;
    for (int i = 0; i < 2; i++) {
        if (timer_create(clocks[i], &event, &timer) != 0) return 1;
        timer_settime(timer, 0, &often, 0);
        loop(i == 0 ? "time of the process" : "time of the thread");
        timer_delete(timer);
        count = 0;
    }
    return 0;
}
END
tcc -o timers timers.c && ./timers
