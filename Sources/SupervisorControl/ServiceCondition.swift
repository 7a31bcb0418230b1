/// The condition of a service; the raw value is shown by `ps`.
package enum ServiceCondition: String, Sendable, Hashable, CaseIterable {
    /// The services that it requires aren’t ready.
    case waiting
    /// The process runs and has not reported READY.
    case starting
    case ready
    /// The service works, but has sent no liveness report for 3 s.
    case late
    /// The process hung and is being killed.
    case hung
    case stopping
    /// The service failed to start and will be retried.
    case retrying
    /// The service failed too often, or can’t start with this configuration; it is retried every 5 min.
    case failed
    case stopped
}
