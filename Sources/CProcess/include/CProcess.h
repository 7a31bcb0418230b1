// What Linux offers processes and Swift cannot call: variadic or missing from its headers' view.
// Each returns 0 (or a descriptor) or −1 with errno set; elsewhere than on Linux −1 and ENOSYS.
#ifndef LOCKSTEP_CPROCESS_H
#define LOCKSTEP_CPROCESS_H

#include <stddef.h>
#include <sys/types.h>

/// Has the kernel send `signal` to this process when the thread that made it ends.
int lockstep_set_parent_death_signal(int signal);

/// A descriptor that refers to the process `pid` and to no later one of the same number.
int lockstep_pidfd_open(pid_t pid);

/// Sends `signal` to the process that the descriptor refers to.
int lockstep_pidfd_send_signal(int pidfd, int signal);

/// Asks the scheduler for short turns of the calling thread, which it then wakes sooner, and of those it starts. Needs no
/// privilege. Returns −1 with errno set where the system has no such thing.
int lockstep_shorten_slice(void);

/// Has the allocator return blocks of 256 KiB and more to the system when they are freed, and trim its heaps, of which there
/// are two at most, from the same size on; rather than keep megabytes for blocks as large as the largest so far.
/// Call it before the process has many threads.
void lockstep_limit_free_memory(void);

/// Returns free memory to the system now.
void lockstep_release_memory(void);

/// Sends `signal` to one thread of a process.
int lockstep_signal_thread(pid_t pid, pid_t thread, int signal);

/// Starts a program in a session of its own.
///
/// Its standard input, output and error are `input`, `output` and `output` again; every other descriptor is closed and
/// every signal has its default. With `parent_death_signal` it gets that signal when the calling thread ends, which
/// must therefore be one that lasts. `directory`, unless NULL, becomes its working directory.
/// Returns the pid; −1 with errno set when there is no fork. A program that cannot be executed exits with 127.
pid_t lockstep_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                     int parent_death_signal, const char *directory);

/// A datagram socket bound at `path` that tells the pid of each sender. Anything at the path is replaced.
int lockstep_notification_socket(const char *path);

/// Receives a datagram without waiting. `sender` is the pid that the kernel vouches for, 0 if it does not.
/// Returns the number of bytes; −1 with errno set, EAGAIN when there is none.
ssize_t lockstep_receive_notification(int descriptor, void *buffer, size_t capacity, pid_t *sender);

/// A listening stream socket at `path`, which is replaced.
int lockstep_listen(const char *path);

/// A stream socket connected to `path`, or −1 with errno set. Never waits.
int lockstep_connect(const char *path);

/// The next connection, non-blocking; −1 with errno set, EAGAIN when there is none.
int lockstep_accept(int listener);

/// A pipe, both ends closed on exec; `ends[0]` is read without waiting if `nonblocking`.
int lockstep_pipe(int ends[2], int nonblocking);

/// Blocks SIGTERM, SIGINT and SIGHUP for the calling thread and those it starts, ignores SIGPIPE, and returns a
/// descriptor that they are read from.
int lockstep_stop_signals(void);

/// The number of the next signal of such a descriptor; 0 when there is none.
int lockstep_next_signal(int descriptor);

/// What `waitid` says of a child that has ended. `code` is the exit code, or the signal if `signalled`.
/// Returns 1 when the child has ended, 0 when it has not. It stays a zombie, and its pid its own, until `reap`.
int lockstep_child_ended(pid_t pid, int *code, int *signalled);

/// Takes the ended child off the system's table.
void lockstep_reap(pid_t pid);

#endif
