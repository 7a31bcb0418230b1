import CZeroMQ
import LibC

/// A message as libzmq received it, which can be read in place without allocating frames.
package struct ReceivedMessage: ~Copyable {
    /// The number of frames whose bytes can be read in place; later ones are copied when they arrive.
    private static var framesInPlace: Int { 4 }
    private static var places: Int { framesInPlace + 1 }

    private let frames: UnsafeMutablePointer<zmq_msg_t>
    private var further: [Frame] = []
    package private(set) var count = 0

    package init() {
        frames = .allocate(capacity: Self.places)
        for index in 0..<Self.places { _ = zmq_msg_init(frames + index) }
    }

    deinit {
        for index in 0..<Self.places { _ = zmq_msg_close(frames + index) }
        frames.deallocate()
    }

    /// The bytes of a frame, valid until this value receives again or is cleared; empty for a missing frame and beyond
    /// the first four.
    package func bytes(of index: Int) -> UnsafeRawBufferPointer {
        guard index >= 0, index < min(count, Self.framesInPlace) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: zmq_msg_data(frames + index), count: zmq_msg_size(frames + index))
    }

    /// A copy of all frames.
    package var message: Message {
        var message = Message()
        message.reserveCapacity(count)
        for index in 0..<min(count, Self.framesInPlace) { message.append(Frame(copying: bytes(of: index))) }
        return message + further
    }

    /// Releases the message and libzmq’s memory.
    package mutating func clear() {
        for index in 0..<Self.places {
            _ = zmq_msg_close(frames + index)
            _ = zmq_msg_init(frames + index)
        }
        further = []
        count = 0
    }

    /// Receives the next message of a socket; returns 0, or libzmq’s error number if there is none.
    ///
    /// Frames beyond the limit are read and dropped.
    mutating func receive(from handle: UnsafeMutableRawPointer, wait: Bool) -> Int32 {
        count = 0
        if !further.isEmpty { further = [] }
        var flags = wait ? 0 : ZMQ_DONTWAIT
        while true {
            // All later frames are received into the one extra frame.
            let frame = frames + min(count, Self.framesInPlace)
            if zmq_msg_recv(frame, handle, flags) < 0 {
                let number = zmq_errno()
                if number == EINTR { continue }
                return number
            }
            if count < Socket.maximumFrames {
                if count >= Self.framesInPlace {
                    let bytes = UnsafeRawBufferPointer(start: zmq_msg_data(frame), count: zmq_msg_size(frame))
                    further.append(Frame(copying: bytes))
                }
                count += 1
            }
            guard zmq_msg_more(frame) != 0 else { return 0 }
            flags = 0
        }
    }
}
