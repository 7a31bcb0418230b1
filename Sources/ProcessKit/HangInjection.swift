#if DEBUG
import BusKit
import LibC

/// Makes a thread hang on request, for tests: a stopped process is not the same, as it takes no signals. Debug builds only.
enum HangInjection {
    /// With any value the thread of the process that gets SIGSYS hangs.
    static let variable = "LOCKSTEP_HANG_INJECTION"

    static func install(environment: [String: String] = ProcessEnvironment.current) {
        guard environment[variable] != nil else { return }
        // The poll threads take no other signals than those that faults raise.
        _ = signal(SIGSYS) { _ in
            while true { _ = pause() }
        }
    }
}
#endif
