#define _GNU_SOURCE
#include "CProcess.h"

#include <errno.h>
#include <stddef.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int lockstep_set_parent_death_signal(int signal) {
    return prctl(PR_SET_PDEATHSIG, (unsigned long)signal, 0UL, 0UL, 0UL);
}

int lockstep_pidfd_open(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

int lockstep_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0U);
}
#else
int lockstep_set_parent_death_signal(int signal) {
    (void)signal;
    errno = ENOSYS;
    return -1;
}

int lockstep_pidfd_open(pid_t pid) {
    (void)pid;
    errno = ENOSYS;
    return -1;
}

int lockstep_pidfd_send_signal(int pidfd, int signal) {
    (void)pidfd;
    (void)signal;
    errno = ENOSYS;
    return -1;
}
#endif
