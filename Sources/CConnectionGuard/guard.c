#define _GNU_SOURCE
#include "CConnectionGuard.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#if defined(__linux__) && !defined(HAS_SANITIZER)

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 1 << 16, LONG_MESSAGE = 64 << 10 };

// The connections that the guard watches, by descriptor.
static _Atomic(struct lockstep_frames *) connections[MOST_DESCRIPTORS];
static atomic_int reserve = -1;
static atomic_int supervisor;
// The spare descriptor, which is closed to accept and refuse a connection when no other descriptor is free.
static atomic_int spare = -1;
static atomic_uint_fast64_t refused;
static atomic_uint_fast64_t ended;
static atomic_int_fast64_t unfinished;

int lockstep_guard_start(int descriptors, int supervisor_pid) {
    atomic_store(&supervisor, supervisor_pid);
    if (atomic_load(&spare) < 0) atomic_store(&spare, open("/dev/null", O_RDONLY | O_CLOEXEC));
    atomic_store(&reserve, descriptors);
    return 1;
}

struct lockstep_guard_counts lockstep_guard_count(void) {
    return (struct lockstep_guard_counts){atomic_load(&refused), atomic_load(&ended)};
}

// 'p', 'c' or 's' for a listening socket of a bus, 0 for any other.
static char bus_socket(int listener) {
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0 || address.sun_family != AF_UNIX) return 0;
    if (length <= offsetof(struct sockaddr_un, sun_path)) return 0;
    char path[sizeof address.sun_path + 1];
    memcpy(path, address.sun_path, sizeof address.sun_path);
    path[sizeof address.sun_path] = 0;
    const char *slash = strrchr(path, '/');
    if (!slash) return 0;
    if (!strcmp(slash, "/pub.sock") || !strcmp(slash, "/cli.sock") || !strcmp(slash, "/svc.sock")) return slash[1];
    return 0;
}

// The process's parent, read from the fourth field of /proc/PID/stat; 0 if it isn't known.
static pid_t parent_of(pid_t pid) {
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t count = read(file, text, sizeof text - 1);
    syscall(SYS_close, file);
    if (count <= 0) return 0;
    text[count] = 0;
    // The name in parentheses may contain any character.
    const char *rest = strrchr(text, ')');
    int parent = 0;
    if (!rest || sscanf(rest, ") %*c %d", &parent) != 1) return 0;
    return parent;
}

// Whether the peer is the supervisor, this process, or another one that the supervisor started.
static int is_of_the_fleet(int connection) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0) return 0;
    pid_t parent = atomic_load(&supervisor);
    if (peer.pid == getpid()) return 1;
    if (parent <= 0) return 0;
    return peer.pid == parent || parent_of(peer.pid) == parent;
}

// Whether the connection would use the reserve and its peer isn’t a process of the fleet.
static int must_refuse(int connection) {
    if (connection >= MOST_DESCRIPTORS) return 1;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    // The system returns the lowest free number, so all lower ones are in use.
    rlim_t kept = (rlim_t)atomic_load(&reserve);
    if (limit.rlim_cur > kept && (rlim_t)connection < limit.rlim_cur - kept) return 0;
    return !is_of_the_fleet(connection);
}

static int refuse(int connection) {
    syscall(SYS_close, connection);
    atomic_fetch_add(&refused, 1);
    // libzmq ignores ECONNABORTED.
    errno = ECONNABORTED;
    return -1;
}

static int accept_guarded(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    int connection = (int)syscall(SYS_accept4, listener, address, length, flags);
    if (atomic_load(&reserve) < 0) return connection;
    if (connection < 0) {
        if (errno != EMFILE || !bus_socket(listener)) return connection;
        // libzmq would abort. The spare descriptor takes the connection, which is then closed.
        int held = atomic_exchange(&spare, -1);
        if (held >= 0) syscall(SYS_close, held);
        connection = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0) syscall(SYS_close, connection);
        atomic_store(&spare, open("/dev/null", O_RDONLY | O_CLOEXEC));
        atomic_fetch_add(&refused, 1);
        errno = ECONNABORTED;
        return -1;
    }
    char socket = bus_socket(listener);
    if (!socket) return connection;
    if (must_refuse(connection)) return refuse(connection);
    struct lockstep_frames *frames = calloc(1, sizeof *frames);
    if (!frames) return refuse(connection);
    frames->is_publisher = socket == 'p';
    free(atomic_exchange(&connections[connection], frames));
    return connection;
}

__attribute__((visibility("default"), used)) int accept4(
    int listener, struct sockaddr *address, socklen_t *length, int flags) {
    return accept_guarded(listener, address, length, flags);
}

__attribute__((visibility("default"), used)) ssize_t recv(int descriptor, void *buffer, size_t size, int flags) {
    ssize_t count = syscall(SYS_recvfrom, descriptor, buffer, size, flags, NULL, NULL);
    if (count <= 0 || descriptor < 0 || descriptor >= MOST_DESCRIPTORS || flags & MSG_PEEK) return count;
    struct lockstep_frames *frames = atomic_load_explicit(&connections[descriptor], memory_order_relaxed);
    if (!frames) return count;
    int64_t before = (int64_t)frames->bytes;
    int result = lockstep_frames_read(frames, buffer, (size_t)count);
    int64_t change = (int64_t)frames->bytes - before;
    if (change != 0) atomic_fetch_add(&unfinished, change);
    int is_too_much = frames->bytes >= LONG_MESSAGE && atomic_load(&unfinished) > LOCKSTEP_UNFINISHED_BYTES;
    if (result == 0 && !is_too_much) return count;
    atomic_fetch_add(&ended, 1);
    errno = ECONNRESET;
    return -1;
}

__attribute__((visibility("default"), used)) int close(int descriptor) {
    if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS && atomic_load(&connections[descriptor])) {
        struct lockstep_frames *frames = atomic_exchange(&connections[descriptor], NULL);
        if (frames) {
            atomic_fetch_sub(&unfinished, (int64_t)frames->bytes);
            free(frames);
        }
    }
    return (int)syscall(SYS_close, descriptor);
}

#else

int lockstep_guard_start(int descriptors, int supervisor_pid) {
    (void)descriptors;
    (void)supervisor_pid;
    return 0;
}

struct lockstep_guard_counts lockstep_guard_count(void) { return (struct lockstep_guard_counts){0, 0}; }

#endif
