import CLogind
import NIOConcurrencyHelpers

/// Hears from the system's login manager when the machine is about to sleep and when it is awake again, and holds the
/// sleep up until the player’s position is saved, as long as the manager allows (5 s, unless set otherwise). Where there is
/// no such manager nothing happens.
final class SuspendWatch: Sendable {
    /// An event of the machine’s sleep.
    enum Event: Sendable, Hashable {
        /// The machine is about to sleep, and waits for `release`.
        case suspends
        /// It is awake again.
        case wakes
        /// Nothing more will be told, for this reason.
        case ended(String)
    }

    /// Where events go: called on a thread of the watch's own, and must not block.
    typealias Observer = @Sendable (Event) -> Void

    /// The context of the library’s thread, as long as it runs.
    private final class Target: Sendable {
        let observer: Observer

        init(_ observer: @escaping Observer) {
            self.observer = observer
        }
    }

    /// The library's object; every function on it may be called from any thread.
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

    /// Begins to tell `observer`; only the first call counts.
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

    /// Whether a sleep would be held up now.
    var holds: Bool {
        state.withLockedValue { state in
            guard case .listening(let logind) = state else { return false }
            return clogind_holds(logind.pointer) != 0
        }
    }

    /// Lets the machine sleep.
    func release() {
        state.withLockedValue { state in
            guard case .listening(let logind) = state else { return }
            clogind_release(logind.pointer)
        }
    }

    /// Ends it; no event follows.
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
