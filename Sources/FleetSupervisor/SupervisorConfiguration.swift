package import BusKit

/// The configuration of a supervisor.
package struct SupervisorConfiguration: Sendable {
    /// The folders of the fleet.
    package var home: LockstepHome
    package var plan = FleetPlan.standard
    package var limits = SupervisorLimits()
    /// The folder of the executables.
    package var programDirectory: String
    /// The environment that the services inherit, besides what the supervisor sets.
    package var environment: [String: String]
    /// A descriptor that stop signals are read from; nil for none.
    package var signals: Int32?
    /// Whether its own log is copied to standard error.
    package var printsLog = false

    package init(home: LockstepHome, programDirectory: String, environment: [String: String]) {
        self.home = home
        self.programDirectory = programDirectory
        self.environment = environment
    }
}
