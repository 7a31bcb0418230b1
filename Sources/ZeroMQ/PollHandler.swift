/// The handler of a poll thread, the only user of the thread’s sockets.
///
/// It is created on the thread, where every callback runs, so it needs no lock and may hold values that can’t be copied
/// or sent. If a callback throws, the thread calls `stop` and ends, and `PollThread.shutdown()` returns the error.
package protocol PollHandler: ~Copyable, SendableMetatype {
    /// The commands from other threads to this one.
    associatedtype Command: Sendable

    /// Opens the first sockets; called once, first. `PollThread.started()` throws its error.
    mutating func start(_ sockets: SocketSet) throws

    /// Handles a command from another thread; commands arrive in the order in which they were accepted.
    mutating func received(_ command: Command, _ sockets: SocketSet) throws

    /// Handles a message. Between two turn ends a bounded number of messages is read from each socket.
    mutating func received(_ message: Message, from socket: SocketID, _ sockets: SocketSet) throws

    /// Handles a message whose bytes can be read in place until the call returns. The default copies the message.
    mutating func received(_ message: borrowing ReceivedMessage, from socket: SocketID, _ sockets: SocketSet) throws

    /// Called when a socket accepts messages again, after `SocketSet.notifyWritable`.
    mutating func writable(_ socket: SocketID, _ sockets: SocketSet) throws

    /// Called when all waiting messages, or a bounded number of them, are handled, or when the deadline is reached.
    /// - Parameter now: CLOCK_MONOTONIC in nanoseconds.
    /// - Returns: the latest time of the next call, on the same clock; nil if none is needed.
    mutating func turnEnded(now: UInt64, _ sockets: SocketSet) throws -> UInt64?

    /// Called once, as the last callback, even after an error. The sockets are still open and are closed afterwards.
    mutating func stop(_ sockets: SocketSet)
}

extension PollHandler where Self: ~Copyable {
    package mutating func received(
        _ message: borrowing ReceivedMessage, from socket: SocketID, _ sockets: SocketSet
    ) throws {
        try received(message.message, from: socket, sockets)
    }

    package mutating func writable(_ socket: SocketID, _ sockets: SocketSet) throws {}

    package mutating func stop(_ sockets: SocketSet) {}
}
