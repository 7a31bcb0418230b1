// What libzmq doesn't limit for the sockets `pub.sock`, `cli.sock` and `svc.sock` of a bus in this process:
//
// * It aborts when it accepts a connection and no descriptor is left. Here new connections are refused while there is
//   still a reserve, which only processes of the same fleet may use.
// * It buffers a message of many frames until the last one has come. Here a connection ends whose message is too long.
//
// libzmq is linked dynamically and calls `accept4`, `recv` and `close`; this target defines them for the program.
// For every other socket they do what the system's do. A build with a sanitizer, which defines them itself, and systems
// other than Linux go without the guard.
#ifndef LOCKSTEP_CCONNECTIONGUARD_H
#define LOCKSTEP_CCONNECTIONGUARD_H

#include <stddef.h>
#include <stdint.h>

/// The most frames of one message from a peer.
#define LOCKSTEP_MESSAGE_FRAMES 4096
/// The most bytes of one message from a peer: a frame of 8 MiB and the frames before it.
#define LOCKSTEP_MESSAGE_BYTES ((8 << 20) + (64 << 10))
/// The most bytes of unfinished messages of all peers; beyond it a connection ends whose message has 64 KiB or more.
#define LOCKSTEP_UNFINISHED_BYTES (64 << 20)
/// The most subscriptions and cancellations on one connection to `pub.sock`.
#define LOCKSTEP_SUBSCRIPTIONS 4096
/// The most bytes of them: libzmq keeps a node for each byte of a topic.
#define LOCKSTEP_SUBSCRIPTION_BYTES (64 << 10)

/// What the guard has done since the program began.
struct lockstep_guard_counts {
    /// Connections refused because only the reserve of descriptors was left.
    uint64_t refused;
    /// Connections ended because of what they sent.
    uint64_t ended;
};

/// Turns the guard on for the sockets that the program's libzmq accepts connections on from now on.
/// `reserve` is the number of descriptors that only the fleet's processes may use: `supervisor`, and those that it
/// started; 0: there is none.
/// Returns 0 if this build has no guard.
int lockstep_guard_start(int reserve, int supervisor);

/// What it has done.
struct lockstep_guard_counts lockstep_guard_count(void);

/// The state of one connection's incoming frames. Zero it for a new connection.
struct lockstep_frames {
    uint64_t left;        // of the frame's body
    uint64_t bytes;       // of the unfinished message that have come, and what libzmq needs beside them
    uint64_t total;       // of its frames, as they are announced
    uint32_t frames;      // of the unfinished message
    uint32_t subscriptions;      // and cancellations that have come
    uint32_t subscription_bytes; // of their topics
    uint8_t header[16];   // of the greeting or of the frame that is being read
    uint8_t have;         // bytes of it
    uint8_t greeting;     // bytes of the greeting that have come
    uint8_t has_more;     // whether another frame follows
    uint8_t is_command;   // whether the frame is a command of ZMTP
    uint8_t is_at_name;   // whether the next byte is the length of the command's name
    uint8_t is_publisher; // whether the socket is `pub.sock`
};

/// Reads what a peer has sent, in ZMTP 3. Returns 0 while it is within the limits, else −1.
int lockstep_frames_read(struct lockstep_frames *frames, const uint8_t *bytes, size_t count);

#endif
