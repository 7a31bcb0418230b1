#ifndef LOCKSTEP_CLOGINDDOUBLE_H
#define LOCKSTEP_CLOGINDDOUBLE_H

// Stands in for systemd's login manager on a message bus of a test's own. None of it may be called from two threads at
// once.

struct logind_double;

/// Takes the manager's name on the bus at `address`; NULL when that fails.
struct logind_double *_Nullable logind_double_open(const char *_Nonnull address);

/// Waits until somebody asks to hold the sleep up, for 30 s at most, and grants it.
///
/// Returns a descriptor that hangs up when that is over; -1 when nobody has asked.
int logind_double_grant(struct logind_double *_Nonnull manager);

/// Says that the machine is about to sleep, or has woken. Returns a negative number when it cannot be said.
int logind_double_tell(struct logind_double *_Nonnull manager, int suspends);

/// Leaves the bus.
void logind_double_close(struct logind_double *_Nonnull manager);

#endif
