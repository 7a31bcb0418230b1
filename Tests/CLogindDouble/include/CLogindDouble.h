#ifndef LOCKSTEP_CLOGINDDOUBLE_H
#define LOCKSTEP_CLOGINDDOUBLE_H

// Simulates systemd's login manager on a test's own message bus. Only one thread at a time may call these functions.

struct logind_double;

/// Requests the manager's name on the bus at `address`; returns NULL on failure.
struct logind_double *_Nullable logind_double_open(const char *_Nonnull address);

/// Waits at most 30 s for a request for an inhibitor lock, and grants it.
///
/// Returns a descriptor that hangs up when the lock is released; -1 without a request.
int logind_double_grant(struct logind_double *_Nonnull manager);

/// Announces that the machine is about to sleep, or has woken. Returns a negative number on failure.
int logind_double_tell(struct logind_double *_Nonnull manager, int suspends);

/// Disconnects from the bus and frees the manager.
void logind_double_close(struct logind_double *_Nonnull manager);

#endif
