// Functions of Linux that Swift can’t call, because they are variadic or not declared for Swift.
// Each returns 0 (or a descriptor), or −1 with errno set; on other systems −1 with ENOSYS.
#ifndef LOCKSTEP_CPROCESS_H
#define LOCKSTEP_CPROCESS_H

#include <stddef.h>
#include <sys/types.h>

/// Makes the kernel send `signal` to this process when the thread that started it ends.
int lockstep_set_parent_death_signal(int signal);

/// Returns a descriptor that refers to the process `pid`, and to no later process with the same pid.
int lockstep_pidfd_open(pid_t pid);

/// Sends `signal` to the process that the descriptor refers to.
int lockstep_pidfd_send_signal(int pidfd, int signal);

/// Requests short time slices for the calling thread and those that it starts, so that they are woken sooner. This
/// needs no privilege. Returns −1 with errno set if the system doesn’t support it.
int lockstep_shorten_slice(void);

/// Makes the allocator return freed memory to the system from 256 KiB on, instead of keeping megabytes, and limits its
/// heaps to two. It must be called before the process has many threads.
void lockstep_limit_free_memory(void);

/// Returns the free memory of the allocator to the system.
void lockstep_release_memory(void);

/// Sends `signal` to one thread of a process.
int lockstep_signal_thread(pid_t pid, pid_t thread, int signal);

/// Starts a program in a session of its own.
///
/// Its standard input, output and error are `input`, `output` and `output` again; every other descriptor is closed and
/// every signal has its default action. With `parent_death_signal` it gets that signal when the calling thread ends, which
/// must therefore outlive the program. `directory`, unless NULL, is its working directory.
/// Returns the pid; −1 with errno set if the fork fails. A program that can’t be executed exits with 127.
pid_t lockstep_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output,
                     int parent_death_signal, const char *directory);

/// Returns a datagram socket bound to `path` that reports the pid of each sender. An existing file is replaced.
int lockstep_notification_socket(const char *path);

/// Receives a datagram without waiting. `sender` is the pid from the kernel; 0 if there is none.
/// Returns the number of bytes; −1 with errno set, EAGAIN if there is none.
ssize_t lockstep_receive_notification(int descriptor, void *buffer, size_t capacity, pid_t *sender);

/// Returns a listening stream socket at `path`, where an existing file is replaced.
int lockstep_listen(const char *path);

/// Returns a stream socket connected to `path`, or −1 with errno set. It never blocks.
int lockstep_connect(const char *path);

/// Returns the next connection, which is non-blocking; −1 with errno set, EAGAIN if there is none.
int lockstep_accept(int listener);

/// Creates a pipe whose ends are closed on exec; `ends[0]` doesn’t block if `nonblocking`.
int lockstep_pipe(int ends[2], int nonblocking);

/// Blocks SIGTERM, SIGINT and SIGHUP for the calling thread and those that it starts, ignores SIGPIPE, and
/// returns the descriptor from which the signals are read.
int lockstep_stop_signals(void);

/// Returns the number of the next signal of such a descriptor; 0 if there is none.
int lockstep_next_signal(int descriptor);

/// Checks whether a child has ended: returns 1 if it has, otherwise 0. `code` is the exit code, or the signal if
/// `signalled`. The child remains a zombie, so that its pid isn’t reused, until it is reaped.
int lockstep_child_ended(pid_t pid, int *code, int *signalled);

/// Reaps an ended child, so that its pid may be reused.
void lockstep_reap(pid_t pid);

#endif
