public import PodcastModel
package import WireMessages

/// An alert about a problem or a pending decision.
public struct AlertState: Sendable, Hashable {
    /// The severity of an alert.
    public enum Severity: String, Sendable, Hashable {
        /// The alert is informational.
        case info
        /// The alert is a warning.
        case warning
        /// The alert reports a failure.
        case error
    }

    package let wire: WireAlert
    /// The alert’s ID.
    public let id: AlertID
    /// The service that raised the alert and handles its answer.
    public let owner: ServiceName

    /// Reads an alert of a service; nil if its ID or its owner isn’t valid.
    package init?(_ wire: WireAlert) {
        guard let id = AlertID(wire.id), let owner = ServiceName(wire.owner) else { return nil }
        (self.id, self.owner, self.wire) = (id, owner, wire)
    }

    /// The stable code of its kind.
    public var code: String { wire.code }
    /// The alert’s severity.
    public var severity: Severity { Severity(rawValue: wire.severity.word) ?? .info }
    /// A short summary.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The full message, including the possible actions.
    public var message: String { DisplayText.sanitised(wire.message) }
    /// The actions that `AlertsClient.answer` accepts.
    public var actions: [String] { wire.actions.map { DisplayText.sanitised($0) } }
    /// The episode that the alert concerns; nil if none.
    public var episode: EpisodeID? { EpisodeID(wire.episode) }
    /// The podcast that the alert concerns; nil if none.
    public var podcast: PodcastID? { PodcastID(wire.podcast) }
    /// The time at which it was raised.
    public var raisedAt: Timestamp { Timestamp(milliseconds: wire.raisedAt) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

/// The sound devices.
public struct OutputState: Sendable, Hashable {
    /// A sound device.
    public struct Device: Sendable, Hashable {
        /// The name that `PlayerClient.setOutput` accepts.
        public let name: String
        /// The display name.
        public let title: String
    }

    package let wire: WireOutputState

    package init(_ wire: WireOutputState) {
        self.wire = wire
    }

    /// The selected device; nil for the system’s default.
    public var chosen: String? { wire.chosen.isEmpty ? nil : DisplayText.sanitised(wire.chosen) }
    /// The device in use; nil if there is none or it isn’t known.
    public var inUse: String? { wire.inUse.isEmpty ? nil : DisplayText.sanitised(wire.inUse) }
    /// The available devices.
    public var devices: [Device] {
        wire.devices.map {
            Device(name: DisplayText.sanitised($0.name), title: DisplayText.sanitised($0.description_p))
        }
    }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

/// A service of the fleet.
public struct ServiceState: Sendable, Hashable {
    package let wire: WireServiceStatus

    package init(_ wire: WireServiceStatus) {
        self.wire = wire
    }

    /// Its name, without a prefix.
    public var name: String { DisplayText.sanitised(wire.name) }
    /// Whether the service is ready.
    public var isReady: Bool { wire.state == .ready }
    /// Whether the service is starting.
    public var isStarting: Bool { wire.state == .starting }
    /// The name of its state: `starting`, `ready`, `down`, `unknown`.
    public var word: String { wire.state.word }
}
