#ifndef LOCKSTEP_CLOGIND_H
#define LOCKSTEP_CLOGIND_H

#include <stddef.h>

// What systemd's login manager tells of the machine's sleep, through libsystemd's sd-bus. The library is opened on
// demand, not linked: where it is missing there is no login manager either. Elsewhere than on Linux nothing is told.

enum clogind_event {
    /// The machine is about to sleep. It waits, for some seconds at most, until `clogind_release`.
    CLOGIND_SUSPENDS = 1,
    /// The machine is awake again.
    CLOGIND_WAKES = 2,
    /// Nothing more will be told: the system's bus is gone.
    CLOGIND_ENDS = 3,
};

struct clogind;

/// Begins to listen, on a thread of its own, which calls `handler` with `context`.
///
/// NULL, with a sentence in `error`, when there is no system bus or no library for it. A login manager that does not
/// answer is no error: then the sleep is told, if it ever is, but not held up.
struct clogind *_Nullable clogind_open(
    void (*_Nonnull handler)(void *_Nullable context, enum clogind_event event), void *_Nullable context,
    char *_Nonnull error, size_t capacity);

/// Lets the machine sleep. It is held up again once it has woken. From any thread.
void clogind_release(struct clogind *_Nonnull logind);

/// Ends the thread, frees all. Not to be called by the handler.
void clogind_close(struct clogind *_Nonnull logind);

#endif
