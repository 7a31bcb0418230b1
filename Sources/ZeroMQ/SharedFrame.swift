import CZeroMQ

/// The bytes of a frame, lent to libzmq until they are sent to all peers.
private final class FrameLoan: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

/// Messages of libzmq that share a frame’s bytes instead of copying them.
enum SharedFrame {
    /// The minimum size in bytes at which sharing is cheaper than copying.
    static var minimum: Int { 1_024 }

    /// Creates a message with the frame’s bytes; false if there is no memory for it.
    static func fill(_ message: inout zmq_msg_t, with frame: Frame) -> Bool {
        let loan = Unmanaged.passRetained(FrameLoan(frame.bytes))
        // The array’s buffer keeps its address while the loan holds the array, which can’t be changed any more.
        let result = frame.bytes.withUnsafeBytes { bytes in
            zmq_msg_init_data(
                &message, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count,
                { _, loan in
                    // Called by the thread that releases the message last.
                    if let loan { Unmanaged<FrameLoan>.fromOpaque(loan).release() }
                }, loan.toOpaque())
        }
        if result != 0 { loan.release() }
        return result == 0
    }
}
