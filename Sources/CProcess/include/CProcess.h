// What Linux offers processes and Swift cannot call: variadic or missing from its headers' view.
// Each returns 0 (or a descriptor) or −1 with errno set; elsewhere than on Linux −1 and ENOSYS.
#ifndef LOCKSTEP_CPROCESS_H
#define LOCKSTEP_CPROCESS_H

#include <sys/types.h>

/// Has the kernel send `signal` to this process when the thread that made it ends.
int lockstep_set_parent_death_signal(int signal);

/// A descriptor that refers to the process `pid` and to no later one of the same number.
int lockstep_pidfd_open(pid_t pid);

/// Sends `signal` to the process that the descriptor refers to.
int lockstep_pidfd_send_signal(int pidfd, int signal);

#endif
