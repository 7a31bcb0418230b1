#if DEBUG
import BusKit
import LibC

/// Makes a thread hang on request, for tests; a stopped process would handle no signals. Debug builds only.
enum HangInjection {
    /// The environment variable that, with any value, makes a thread hang when it receives SIGSYS.
    static let variable = "LOCKSTEP_HANG_INJECTION"

    static func install(environment: [String: String] = ProcessEnvironment.current) {
        guard environment[variable] != nil else { return }
        // The poll threads block all signals but those of faults.
        _ = signal(SIGSYS) { _ in
            while true { _ = pause() }
        }
    }
}
#endif
