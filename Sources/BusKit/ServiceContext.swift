public import Logging
public import WireMessages

/// What a service is given at its start.
public struct ServiceContext: Sendable {
    /// Its name.
    public var name: ServiceName
    /// Its life: larger than that of any process of the same service before it.
    public var generation: UInt32
    /// Where the bus's sockets are.
    public var runDirectory: String
    /// For its log.
    public var logger: Logger
    /// Called when it serves for the first time.
    public var notifyReady: @Sendable () -> Void
    /// Called once a second from its work loop, as long as the loop and the poll thread turn.
    public var notifyAlive: @Sendable () -> Void

    /// A context of these parts.
    public init(
        name: ServiceName, generation: UInt32, runDirectory: String, logger: Logger,
        notifyReady: @escaping @Sendable () -> Void = {}, notifyAlive: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.generation = generation
        self.runDirectory = runDirectory
        self.logger = logger
        self.notifyReady = notifyReady
        self.notifyAlive = notifyAlive
    }
}
