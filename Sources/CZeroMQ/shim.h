#include <zmq.h>

// Swift's modules of the C library don't contain these headers.
#ifdef __linux__
#include <sys/eventfd.h>
#include <sys/prctl.h>

/// Names the calling thread; the system keeps the first 15 bytes.
static inline void lockstep_name_this_thread(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}
#endif
