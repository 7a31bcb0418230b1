package import BusKit

/// What a supervisor is told at its start.
package struct SupervisorConfiguration: Sendable {
    /// Where everything lies.
    package var home: LockstepHome
    package var plan = FleetPlan.standard
    package var limits = SupervisorLimits()
    /// Where the executables are.
    package var programDirectory: String
    /// What the services inherit, besides what the supervisor sets.
    package var environment: [String: String]
    /// A descriptor that stop signals are read from; nil for none.
    package var signals: Int32?
    /// Whether its own log is copied to standard error.
    package var printsLog = false

    /// A supervisor of the standard fleet.
    package init(home: LockstepHome, programDirectory: String, environment: [String: String]) {
        self.home = home
        self.programDirectory = programDirectory
        self.environment = environment
    }
}
