import BusKit

struct SupervisorConfiguration: Sendable {
    var home: LockstepHome
    var plan = FleetPlan.default
    var limits = SupervisorLimits()
    /// The folder of the executables.
    var programDirectory: String
    /// The environment that the services inherit, besides the supervisor’s own variables.
    var environment: [String: String]
    /// A descriptor that reports stop signals.
    var signals: Int32?
    /// Whether its own log is copied to standard error.
    var printsLog = false
}
