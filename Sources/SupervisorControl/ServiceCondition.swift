/// The condition of a service, in the word that `ps` shows.
package enum ServiceCondition: String, Sendable, Hashable, CaseIterable {
    /// It waits for the services that it requires.
    case waiting
    /// The process runs and has not said READY.
    case starting
    case ready
    /// It serves, but has given no sign of life for 3 s.
    case late
    /// It hung, and is being ended.
    case hung
    /// It was asked to stop.
    case stopping
    /// It failed to start and will be tried again.
    case retrying
    /// It failed too often, or cannot start with this configuration; it is tried again every 5 min.
    case failed
    /// It ended as asked.
    case stopped
}
