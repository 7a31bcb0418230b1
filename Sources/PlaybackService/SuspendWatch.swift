import CLogind
import NIOConcurrencyHelpers

/// Receives the login manager’s notifications before the computer sleeps and after it wakes, and delays the sleep until
/// the position is saved, for as long as the manager allows (5 s by default). Without such a manager it does nothing.
final class SuspendWatch: Sendable {
    enum Event: Sendable, Hashable {
        /// The computer is about to sleep and waits for `release`.
        case suspends
        case wakes
        /// No more events follow, for this reason.
        case ended(String)
    }

    /// Receives events on the watch’s own thread; it must not block.
    typealias Observer = @Sendable (Event) -> Void

    private final class Target: Sendable {
        let observer: Observer

        init(_ observer: @escaping Observer) {
            self.observer = observer
        }
    }

    /// Unchecked: every function of the library may be called from any thread.
    private struct Logind: @unchecked Sendable {
        var pointer: OpaquePointer
        var target: Unmanaged<Target>
    }

    private enum State {
        case new
        case listening(Logind)
        case over
    }

    private let state = NIOLockedValueBox(State.new)

    /// Starts reporting; further calls have no effect.
    func start(_ observer: @escaping Observer) {
        let problem: String? = state.withLockedValue { state in
            guard case .new = state else { return nil }
            let target = Unmanaged.passRetained(Target(observer))
            var error = [CChar](repeating: 0, count: 256)
            let logind = clogind_open(
                { context, event in
                    guard let context else { return }
                    let target = Unmanaged<Target>.fromOpaque(context).takeUnretainedValue()
                    switch event {
                    case CLOGIND_SUSPENDS: target.observer(.suspends)
                    case CLOGIND_WAKES: target.observer(.wakes)
                    default: target.observer(.ended("the system bus has ended the connection"))
                    }
                }, target.toOpaque(), &error, error.count)
            guard let logind else {
                target.release()
                state = .over
                return String(decoding: error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }
            state = .listening(Logind(pointer: logind, target: target))
            return nil
        }
        if let problem { observer(.ended(problem)) }
    }

    func release() {
        state.withLockedValue { state in
            guard case .listening(let logind) = state else { return }
            clogind_release(logind.pointer)
        }
    }

    func close() {
        let before = state.withLockedValue { state in
            defer { state = .over }
            return state
        }
        guard case .listening(let logind) = before else { return }
        clogind_close(logind.pointer)
        logind.target.release()
    }
}
