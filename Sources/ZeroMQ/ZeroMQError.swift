import CZeroMQ
import LibC

/// A failed call into libzmq, or into the system for one of its sockets.
package struct ZeroMQError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The C function that failed, with the option’s name if it has one.
    package let call: String
    /// The endpoint or file of the call; empty if there is none.
    package let endpoint: String
    /// The system’s or libzmq’s error number.
    package let errno: Int32
    package let text: String

    /// Creates an error with a number and a text of the caller’s choice.
    package init(call: String, endpoint: String, errno: Int32, text: String) {
        self.call = call
        self.endpoint = endpoint
        self.errno = errno
        self.text = text
    }

    static func last(_ call: String, _ endpoint: String) -> ZeroMQError {
        ZeroMQError(call: call, endpoint: endpoint, number: zmq_errno())
    }

    init(call: String, endpoint: String, number: Int32) {
        let text = zmq_strerror(number).map { String(cString: $0) } ?? "error \(number)"
        self.init(call: call, endpoint: endpoint, errno: number, text: text)
    }

    package var description: String {
        endpoint.isEmpty ? "\(call): \(text)" : "\(call) on \(endpoint): \(text)"
    }
}
