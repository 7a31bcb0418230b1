// Limits that libzmq lacks for the sockets `pub.sock`, `cli.sock` and `svc.sock` of a bus in this process:
//
// * libzmq aborts when it accepts a connection and no descriptor is left. The guard refuses connections while there is
//   still a reserve, which only processes of the same fleet may use.
// * libzmq buffers a message of many frames until the last one has arrived. The guard closes a connection whose
//   message is too long.
//
// libzmq is linked dynamically and calls `accept4`, `recv` and `close`; this target defines them for the program.
// For every other socket they work like the system’s. A build with a sanitizer, which defines them itself, and builds
// for systems other than Linux have no guard.
#ifndef LOCKSTEP_CCONNECTIONGUARD_H
#define LOCKSTEP_CCONNECTIONGUARD_H

#include <stddef.h>
#include <stdint.h>

/// The maximum number of frames in one message from a peer.
#define LOCKSTEP_MESSAGE_FRAMES 4096
/// The maximum size of one message from a peer, in bytes: a frame of 8 MiB and the frames before it.
#define LOCKSTEP_MESSAGE_BYTES ((8 << 20) + (64 << 10))
/// The maximum size of the unfinished messages of all peers, in bytes; beyond it a connection with a message of 64 KiB
/// or more is closed.
#define LOCKSTEP_UNFINISHED_BYTES (64 << 20)
/// The maximum number of subscriptions and cancellations on one connection to `pub.sock`.
#define LOCKSTEP_SUBSCRIPTIONS 4096
/// The maximum size of their topics, in bytes: libzmq keeps a node for each byte of a topic.
#define LOCKSTEP_SUBSCRIPTION_BYTES (64 << 10)

/// The actions of the guard since the start of the program.
struct lockstep_guard_counts {
    /// The number of connections refused because only the reserve of descriptors was left.
    uint64_t refused;
    /// The number of connections closed because a message exceeded a limit.
    uint64_t ended;
};

/// Enables the guard for the sockets on which libzmq accepts connections from now on.
/// `reserve` is the number of descriptors that only the fleet's processes may use: `supervisor`, and those that it
/// started; 0 for no reserve.
/// Returns 0 if this build has no guard.
int lockstep_guard_start(int reserve, int supervisor);

/// Returns the guard’s counts so far.
struct lockstep_guard_counts lockstep_guard_count(void);

/// The state of one connection's incoming frames. Zero it for a new connection.
struct lockstep_frames {
    uint64_t left;        // of the frame's body
    uint64_t bytes;       // of the unfinished message so far, and libzmq’s overhead
    uint64_t total;       // of its frames, as announced
    uint32_t frames;      // of the unfinished message
    uint32_t subscriptions;      // and cancellations so far
    uint32_t subscription_bytes; // of their topics
    uint8_t header[16];   // of the greeting or of the frame that is being read
    uint8_t have;         // bytes of the header so far
    uint8_t greeting;     // bytes of the greeting so far
    uint8_t has_more;     // whether another frame follows
    uint8_t is_command;   // whether the frame is a command of ZMTP
    uint8_t is_at_name;   // whether the next byte is the length of the command's name
    uint8_t is_publisher; // whether the socket is `pub.sock`
};

/// Parses bytes from a peer, in ZMTP 3. Returns 0 while they are within the limits, otherwise −1.
int lockstep_frames_read(struct lockstep_frames *frames, const uint8_t *bytes, size_t count);

#endif
