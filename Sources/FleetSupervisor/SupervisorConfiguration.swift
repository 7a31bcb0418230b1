public import BusKit

/// What a supervisor is told at its start.
public struct SupervisorConfiguration: Sendable {
    /// Where everything lies.
    public var home: LockstepHome
    /// The services.
    public var plan = FleetPlan.standard
    /// The limits.
    public var limits = SupervisorLimits()
    /// Where the executables are.
    public var programDirectory: String
    /// What the services inherit, besides what the supervisor sets.
    public var environment: [String: String]
    /// A descriptor that stop signals are read from; nil for none.
    public var signals: Int32?
    /// Whether its own log is copied to standard error.
    public var printsLog = false

    /// A supervisor of the standard fleet.
    public init(home: LockstepHome, programDirectory: String, environment: [String: String]) {
        self.home = home
        self.programDirectory = programDirectory
        self.environment = environment
    }
}
