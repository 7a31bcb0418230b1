import CProcess
import LibC
import PodcastModel
import SupervisorControl

/// The control socket. It is confined to the supervisor’s thread.
///
/// A reserved descriptor accepts and refuses connections while no other is free: otherwise `poll` would report them
/// again and again. If even that fails, accepting pauses for a second.
struct ControlListener {
    private var listener: Int32
    private var reserve: Int32
    private var pausedUntil: MonotonicTime?

    init(_ descriptor: Int32) {
        listener = descriptor
        reserve = Self.spare()
    }

    /// The descriptor to poll; −1 for none.
    var descriptor: Int32 { pausedUntil == nil ? listener : -1 }
    /// The end of a pause; nil if there is none.
    var deadline: MonotonicTime? { pausedUntil }

    /// Accepts the waiting connections. Those without a free descriptor are refused with `busy`.
    mutating func accept(now: MonotonicTime) -> [ControlConnection] {
        guard listener >= 0 else { return [] }
        if let due = pausedUntil, now < due { return [] }
        pausedUntil = nil
        if reserve < 0 { reserve = Self.spare() }
        var connections: [ControlConnection] = []
        while true {
            let descriptor = lockstep_accept(listener)
            if descriptor >= 0 {
                connections.append(ControlConnection(descriptor))
            } else if errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM {
                switch refuseOne() {
                case .refused: continue
                case .noneWaits: return connections
                case .impossible:
                    pausedUntil = now.advanced(by: .seconds(1))
                    return connections
                }
            } else if errno != EINTR, errno != ECONNABORTED {
                return connections
            }
        }
    }

    mutating func close() {
        for descriptor in [listener, reserve] where descriptor >= 0 { closeDescriptor(descriptor) }
        (listener, reserve) = (-1, -1)
    }

    private enum Refusal {
        case refused
        /// No connection is waiting. Without a free descriptor the system reports EMFILE in this case, too.
        case noneWaits
        case impossible
    }

    /// Accepts the first waiting connection and refuses it.
    private mutating func refuseOne() -> Refusal {
        guard reserve >= 0 else { return .impossible }
        closeDescriptor(reserve)
        let descriptor = lockstep_accept(listener)
        let noneWaits = descriptor < 0 && errno == EAGAIN
        if descriptor >= 0 {
            var connection = ControlConnection(descriptor)
            connection.send(
                ControlReply(
                    error: ControlError(
                        Failure(
                            .busy, "The supervisor has no free file descriptor for another client. Try again later."))))
            closeDescriptor(descriptor)
        }
        reserve = Self.spare()
        if noneWaits { return .noneWaits }
        return descriptor >= 0 ? .refused : .impossible
    }

    private static func spare() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
}
