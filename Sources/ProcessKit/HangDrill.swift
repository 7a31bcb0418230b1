import BusKit
import LibC

/// Has a thread hang on request, so that tests see what the fleet does about a service that hangs: a stopped process
/// is not the same, for it takes no signals.
enum HangDrill {
    /// With any value the process's thread that gets SIGSYS hangs.
    static let variable = "LOCKSTEP_HANG_DRILL"

    /// To be called at the start; does nothing without the variable.
    static func arm(environment: [String: String] = ProcessEnvironment.current) {
        guard environment[variable] != nil else { return }
        // The poll threads take no others than those that faults raise.
        _ = signal(SIGSYS) { _ in
            while true { _ = pause() }
        }
    }
}
