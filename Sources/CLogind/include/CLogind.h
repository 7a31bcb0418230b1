#ifndef LOCKSTEP_CLOGIND_H
#define LOCKSTEP_CLOGIND_H

#include <stddef.h>

// The events of the machine's suspension from systemd's login manager, through libsystemd's sd-bus. The library is
// opened on demand, not linked: without it there is no login manager either. Other systems than Linux send no events.

enum clogind_event {
    /// The machine is about to sleep. It waits, for a few seconds at most, until `clogind_release` is called.
    CLOGIND_SUSPENDS = 1,
    /// The machine is awake again.
    CLOGIND_WAKES = 2,
    /// No further event will follow: the connection to the system bus is lost.
    CLOGIND_ENDS = 3,
};

struct clogind;

/// Receives the events on a thread of its own, which calls `handler` with `context`.
///
/// Returns NULL, with a sentence in `error`, if there is no system bus or no library for it. If the login manager
/// doesn't answer, which is no error, the machine's sleep isn't delayed.
struct clogind *_Nullable clogind_open(
    void (*_Nonnull handler)(void *_Nullable context, enum clogind_event event), void *_Nullable context,
    char *_Nonnull error, size_t capacity);

/// Lets the machine sleep. Its next sleep is delayed again. May be called from any thread.
void clogind_release(struct clogind *_Nonnull logind);

/// Ends the thread and frees all memory. The handler must not call it.
void clogind_close(struct clogind *_Nonnull logind);

#endif
