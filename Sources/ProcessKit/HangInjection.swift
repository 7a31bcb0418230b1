#if DEBUG
import BusKit
import LibC

/// Makes a thread hang on request, so that tests see how the fleet handles a service that hangs: a stopped process is not the
/// same, as it takes no signals. Debug builds only.
enum HangInjection {
    /// With any value the thread of the process that gets SIGSYS hangs.
    static let variable = "LOCKSTEP_HANG_INJECTION"

    /// Installs the signal handler if the environment asks for it; called at the start.
    static func install(environment: [String: String] = ProcessEnvironment.current) {
        guard environment[variable] != nil else { return }
        // The poll threads take no other signals than those that faults raise.
        _ = signal(SIGSYS) { _ in
            while true { _ = pause() }
        }
    }
}
#endif
