import CProcess
import LibC
import PodcastModel
import SupervisorControl

/// The control socket. Confined to the supervisor's thread.
///
/// When the process has no descriptor left a waiting connection can be neither taken nor overlooked: `poll` would report
/// it again at once, for ever. A descriptor is kept in reserve, with which such a connection is taken and refused; if
/// even that has gone, nobody is looked at for a second.
struct ControlListener {
    private var listener: Int32
    private var reserve: Int32
    private var pausedUntil: MonotonicTime?

    /// Listens on this descriptor, and closes it in the end.
    init(_ descriptor: Int32) {
        listener = descriptor
        reserve = Self.spare()
    }

    /// The descriptor to poll; −1 for none.
    var descriptor: Int32 { pausedUntil == nil ? listener : -1 }
    /// When to look again although nothing was polled.
    var deadline: MonotonicTime? { pausedUntil }

    /// The connections that wait. Those for which there is no descriptor hear `busy`.
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
                case .nobodyWaits: return connections
                case .impossible:
                    pausedUntil = now.advanced(by: .seconds(1))
                    return connections
                }
            } else if errno != EINTR, errno != ECONNABORTED {
                return connections
            }
        }
    }

    /// Takes nobody any more.
    mutating func close() {
        for descriptor in [listener, reserve] where descriptor >= 0 { closeDescriptor(descriptor) }
        (listener, reserve) = (-1, -1)
    }

    private enum Refusal {
        case refused
        /// Without a free descriptor the system does not even look whether somebody does.
        case nobodyWaits
        case impossible
    }

    /// Takes the first one that waits and tells it that there is no room.
    private mutating func refuseOne() -> Refusal {
        guard reserve >= 0 else { return .impossible }
        closeDescriptor(reserve)
        let descriptor = lockstep_accept(listener)
        let nobodyWaits = descriptor < 0 && errno == EAGAIN
        if descriptor >= 0 {
            var connection = ControlConnection(descriptor)
            connection.send(
                ControlReply(
                    error: ControlError(
                        Failure(.busy, "The supervisor has no descriptor left for another client. Try again."))))
            closeDescriptor(descriptor)
        }
        reserve = Self.spare()
        if nobodyWaits { return .nobodyWaits }
        return descriptor >= 0 ? .refused : .impossible
    }

    private static func spare() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
}
