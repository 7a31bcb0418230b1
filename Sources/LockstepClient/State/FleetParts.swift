public import PodcastModel
package import WireMessages

/// An alert: something has gone wrong or needs a decision.
public struct AlertState: Sendable, Hashable {
    /// The severity of an alert.
    public enum Severity: String, Sendable, Hashable {
        /// It is for information.
        case info
        /// Something isn’t as it should be.
        case warning
        /// Something doesn’t work.
        case error
    }

    package let wire: WireAlert
    /// The alert’s ID.
    public let id: AlertID
    /// The service that has raised it, and takes the answer.
    public let owner: ServiceName

    /// An alert as its owner names it; nil: its ID or its owner isn’t readable.
    package init?(_ wire: WireAlert) {
        guard let id = AlertID(wire.id), let owner = ServiceName(wire.owner) else { return nil }
        (self.id, self.owner, self.wire) = (id, owner, wire)
    }

    /// A stable word for its kind.
    public var code: String { wire.code }
    /// The alert’s severity.
    public var severity: Severity { Severity(rawValue: wire.severity.word) ?? .info }
    /// A summary in a few words.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The whole message, with what can be done.
    public var message: String { DisplayText.sanitised(wire.message) }
    /// The answers that it takes, as `AlertsClient.answer` does.
    public var actions: [String] { wire.actions.map { DisplayText.sanitised($0) } }
    /// The episode that it is about; nil: none.
    public var episode: EpisodeID? { EpisodeID(wire.episode) }
    /// The podcast that it is about; nil: none.
    public var podcast: PodcastID? { PodcastID(wire.podcast) }
    /// The time at which it was raised.
    public var raisedAt: Timestamp { Timestamp(milliseconds: wire.raisedAt) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// The sound devices.
public struct OutputState: Sendable, Hashable {
    /// A sound device.
    public struct Device: Sendable, Hashable {
        /// The name that `PlayerClient.setOutput` takes.
        public let name: String
        /// The name for people.
        public let title: String
    }

    package let wire: WireOutputState

    package init(_ wire: WireOutputState) {
        self.wire = wire
    }

    /// The device that was chosen; nil: the system’s default.
    public var chosen: String? { wire.chosen.isEmpty ? nil : DisplayText.sanitised(wire.chosen) }
    /// The device in use; nil: none, or not known.
    public var inUse: String? { wire.inUse.isEmpty ? nil : DisplayText.sanitised(wire.inUse) }
    /// The devices that are there.
    public var devices: [Device] {
        wire.devices.map {
            Device(name: DisplayText.sanitised($0.name), title: DisplayText.sanitised($0.description_p))
        }
    }
    /// The documented object.
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
    /// Whether it serves.
    public var isReady: Bool { wire.state == .ready }
    /// Whether it is starting.
    public var isStarting: Bool { wire.state == .starting }
    /// Its state in a word: `starting`, `ready`, `down`, `unknown`.
    public var word: String { wire.state.word }
}
