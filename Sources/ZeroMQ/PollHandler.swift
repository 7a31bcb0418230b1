/// The code of a poll thread: the one owner of what its sockets receive and send.
///
/// It is made on the thread, and every callback runs there, so it needs no lock and may hold values that cannot be copied or
/// sent. A callback that throws ends the thread in an orderly way, and `PollThread.shutdown()` returns the error.
package protocol PollHandler: ~Copyable, SendableMetatype {
    /// The commands of other threads to this one.
    associatedtype Command: Sendable

    /// Called once, first: opens the first sockets. What it throws is thrown by `PollThread.started()`.
    mutating func start(_ sockets: SocketSet) throws

    /// A command from another thread; commands arrive in the order in which they were accepted.
    mutating func received(_ command: Command, _ sockets: SocketSet) throws

    /// A message has arrived. Between two ends of a turn each socket is asked for a bounded number of them.
    mutating func received(_ message: Message, from socket: SocketID, _ sockets: SocketSet) throws

    /// A message has arrived, whose bytes can be read in place until the call returns. By default it is copied.
    mutating func received(_ message: borrowing ReceivedMessage, from socket: SocketID, _ sockets: SocketSet) throws

    /// The socket takes messages again. Only after `SocketSet.notifyWritable`.
    mutating func writable(_ socket: SocketID, _ sockets: SocketSet) throws

    /// All that was waiting, or a bounded part of it, has been handed over, or the deadline has come.
    /// - Parameter now: CLOCK_MONOTONIC in nanoseconds.
    /// - Returns: when to be called again at the latest, on the same clock; nil if only for an occasion.
    mutating func turnEnded(now: UInt64, _ sockets: SocketSet) throws -> UInt64?

    /// Called once, last, also after a callback threw, while the sockets are still open; they are closed right after.
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
