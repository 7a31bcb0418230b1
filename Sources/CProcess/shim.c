#define _GNU_SOURCE
#include "CProcess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>

void lockstep_limit_free_memory(void) {
    // Setting a threshold also keeps it from growing to the largest block that has been freed, up to 32 MiB.
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 2);
}
void lockstep_release_memory(void) { malloc_trim(0); }
#else
void lockstep_limit_free_memory(void) {}
void lockstep_release_memory(void) {}
#endif

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

int lockstep_shorten_slice(void) {
#ifdef SYS_sched_setattr
    // The layout is from sched_setattr(2), because the C library doesn’t declare it.
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {0};
    attributes.size = sizeof attributes;
    // SCHED_FLAG_KEEP_POLICY: the current policy is kept.
    attributes.flags = 8;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    // For a thread with the default policy, the runtime is its time slice in nanoseconds.
    attributes.runtime = 100000;
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int socket_at(const char *path, int kind, struct sockaddr_un *address) {
    size_t length = strlen(path);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address->sun_path, path, length + 1);
    return socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int closing(int descriptor) {
    int number = errno;
    close(descriptor);
    errno = number;
    return -1;
}

pid_t lockstep_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                     int parent_death_signal, const char *directory) {
    pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    // No handler of the parent may run in the child.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid != 0) {
        int number = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = number;
        return pid;
    }
    // After the fork of a process with threads only async-signal-safe calls are allowed.
    if (parent_death_signal != 0) {
        prctl(PR_SET_PDEATHSIG, (unsigned long)parent_death_signal, 0UL, 0UL, 0UL);
        if (getppid() != parent) _exit(0);
    }
    setsid();
    for (int signal_number = 1; signal_number < NSIG; signal_number++) signal(signal_number, SIG_DFL);
    // The descriptors are first duplicated to numbers above 2, because either may be 0, 1 or 2.
    int in = fcntl(input, F_DUPFD, 3);
    int out = fcntl(output, F_DUPFD, 3);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(126);
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0) {
        for (int descriptor = 3; descriptor < 65536; descriptor++) close(descriptor);
    }
    if (directory != NULL && chdir(directory) != 0) _exit(126);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, arguments, environment);
    const char *reason = strerror(errno);
    ssize_t ignored = write(2, path, strlen(path));
    ignored = write(2, " cannot be started: ", 20);
    ignored = write(2, reason, strlen(reason));
    ignored = write(2, "\n", 1);
    (void)ignored;
    _exit(127);
}

int lockstep_notification_socket(const char *path) {
    struct sockaddr_un address;
    int descriptor = socket_at(path, SOCK_DGRAM, &address);
    if (descriptor < 0) return -1;
    int on = 1;
    unlink(path);
    if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return closing(descriptor);
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return closing(descriptor);
    return descriptor;
}

ssize_t lockstep_receive_notification(int descriptor, void *buffer, size_t capacity, pid_t *sender) {
    struct iovec part = {buffer, capacity};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    *sender = 0;
    ssize_t count = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) return -1;
    for (struct cmsghdr *entry = CMSG_FIRSTHDR(&message); entry != NULL; entry = CMSG_NXTHDR(&message, entry)) {
        if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_CREDENTIALS) continue;
        struct ucred credentials;
        memcpy(&credentials, CMSG_DATA(entry), sizeof credentials);
        *sender = credentials.pid;
    }
    return count;
}

int lockstep_listen(const char *path) {
    struct sockaddr_un address;
    int descriptor = socket_at(path, SOCK_STREAM, &address);
    if (descriptor < 0) return -1;
    unlink(path);
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return closing(descriptor);
    if (listen(descriptor, 64) != 0) return closing(descriptor);
    return descriptor;
}

int lockstep_connect(const char *path) {
    struct sockaddr_un address;
    int descriptor = socket_at(path, SOCK_STREAM, &address);
    if (descriptor < 0) return -1;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return closing(descriptor);
    return descriptor;
}

int lockstep_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int lockstep_pipe(int ends[2], int nonblocking) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    if (nonblocking) fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return 0;
}

int lockstep_stop_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int lockstep_next_signal(int descriptor) {
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

int lockstep_child_ended(pid_t pid, int *code, int *signalled) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        // Another caller has reaped it, so its exit status is unknown.
        *code = -1;
        *signalled = 0;
        return errno == ECHILD;
    }
    if (info.si_pid == 0) return 0;
    *signalled = info.si_code != CLD_EXITED;
    *code = info.si_status;
    return 1;
}

void lockstep_reap(pid_t pid) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

int lockstep_set_parent_death_signal(int signal) {
    return prctl(PR_SET_PDEATHSIG, (unsigned long)signal, 0UL, 0UL, 0UL);
}

int lockstep_pidfd_open(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0U);
}

int lockstep_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0U);
}

int lockstep_signal_thread(pid_t pid, pid_t thread, int signal) {
    return (int)syscall(SYS_tgkill, pid, thread, signal);
}
#else

int lockstep_shorten_slice(void) {
    errno = ENOSYS;
    return -1;
}
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

int lockstep_signal_thread(pid_t pid, pid_t thread, int signal) {
    (void)pid, (void)thread, (void)signal;
    errno = ENOSYS;
    return -1;
}

// The supervisor runs on Linux only; on other systems only clients are built.
pid_t lockstep_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                     int parent_death_signal, const char *directory) {
    (void)path, (void)arguments, (void)environment, (void)input, (void)output, (void)parent_death_signal, (void)directory;
    errno = ENOSYS;
    return -1;
}
int lockstep_notification_socket(const char *path) { (void)path; errno = ENOSYS; return -1; }
ssize_t lockstep_receive_notification(int descriptor, void *buffer, size_t capacity, pid_t *sender) {
    (void)descriptor, (void)buffer, (void)capacity, (void)sender;
    errno = ENOSYS;
    return -1;
}
int lockstep_listen(const char *path) { (void)path; errno = ENOSYS; return -1; }
int lockstep_connect(const char *path) { (void)path; errno = ENOSYS; return -1; }
int lockstep_accept(int listener) { (void)listener; errno = ENOSYS; return -1; }
int lockstep_pipe(int ends[2], int nonblocking) { (void)nonblocking; return pipe(ends); }
int lockstep_stop_signals(void) { errno = ENOSYS; return -1; }
int lockstep_next_signal(int descriptor) { (void)descriptor; return 0; }
int lockstep_child_ended(pid_t pid, int *code, int *signalled) { (void)pid; *code = -1; *signalled = 0; return 1; }
void lockstep_reap(pid_t pid) { (void)pid; }
#endif
