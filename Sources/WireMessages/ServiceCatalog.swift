public import PodcastModel
public import SwiftProtobuf

/// The message of the requests to a service. Every service that takes requests raises alerts, which are answered by them.
public protocol ServiceRequest: SwiftProtobuf.Message {
    /// The message of its replies.
    associatedtype Reply: ServiceReply
    /// The answer to an alert.
    var answerAlert: WireAnswerAlert { get set }
}

/// The message of a service's replies.
public protocol ServiceReply: SwiftProtobuf.Message {
    /// The outcome of an answer to an alert.
    var alertAnswered: WireAlertAnswered { get }
}

/// The message of the requests to a service that keeps settings.
public protocol SettingRequest: ServiceRequest {
    /// A setting's new value.
    var setSetting: WireSetSetting { get set }
}

extension WirePersistenceRequest: ServiceRequest {
    /// The message of its replies.
    public typealias Reply = WirePersistenceReply
}

extension WirePlaybackRequest: SettingRequest {
    /// The message of its replies.
    public typealias Reply = WirePlaybackReply
}

extension WireQueueRequest: SettingRequest {
    /// The message of its replies.
    public typealias Reply = WireQueueReply
}

extension WireFeedsRequest: ServiceRequest {
    /// The message of its replies.
    public typealias Reply = WireFeedsReply
}

extension WireDownloadsRequest: SettingRequest {
    /// The message of its replies.
    public typealias Reply = WireDownloadsReply
}

extension WireSupervisorRequest: ServiceRequest {
    /// The message of its replies.
    public typealias Reply = WireSupervisorReply
}

extension WirePersistenceReply: ServiceReply {}
extension WirePlaybackReply: ServiceReply {}
extension WireQueueReply: ServiceReply {}
extension WireFeedsReply: ServiceReply {}
extension WireDownloadsReply: ServiceReply {}
extension WireSupervisorReply: ServiceReply {}

/// A service as the rest of the fleet must know it.
public struct ServiceDescription: Sendable {
    /// How a service's process starts.
    public enum Start: Sendable, Hashable {
        /// The supervisor starts it.
        case bySupervisor
        /// It is the supervisor itself.
        case byItself
        /// This version has no program for it, but knows its name.
        case planned
    }

    /// The name on the bus; its program is `lockstep-` and the name.
    public let name: ServiceName
    /// The message of its requests; nil: it takes none.
    public let request: (any ServiceRequest.Type)?
    /// How it starts.
    public let start: Start
    /// The services that must be ready before it starts, and that stop only after it.
    public let requires: [ServiceName]
    /// The maximum time from SIGTERM to its end, before SIGKILL.
    public let stopLimit: Duration
    /// Whether the fleet cannot work without it: then the supervisor never gives it up.
    public let isEssential: Bool
    /// The time that a client waits for a reply.
    public let replyLimit: Duration

    fileprivate init(
        _ name: ServiceName, _ request: (any ServiceRequest.Type)? = nil, start: Start = .bySupervisor,
        requires: [ServiceName] = [], stopLimit: Duration = .seconds(5), isEssential: Bool = false,
        replyLimit: Duration = .seconds(10)
    ) {
        self.name = name
        self.request = request
        self.start = start
        self.requires = requires
        self.stopLimit = stopLimit
        self.isEssential = isEssential
        self.replyLimit = replyLimit
    }
}

/// The services of this version. Beside this list a service has its name in `ServiceName`, its program in Package.swift and
/// its row in the arrows of `deploy/gates`; the gate `services` compares them.
public enum ServiceCatalog {
    /// Every service, each after those that it requires.
    public static let all: [ServiceDescription] = [
        .init(.bus, stopLimit: .seconds(2), isEssential: true),
        .init(
            .persistence, WirePersistenceRequest.self, requires: [.bus], stopLimit: .seconds(10), isEssential: true),
        .init(
            .playback, WirePlaybackRequest.self, requires: [.bus, .persistence], stopLimit: .seconds(3)),
        .init(
            .queue, WireQueueRequest.self, requires: [.bus, .persistence, .playback], stopLimit: .seconds(3)),
        .init(.feeds, WireFeedsRequest.self, requires: [.bus, .persistence], replyLimit: .seconds(60)),
        .init(.downloads, WireDownloadsRequest.self, requires: [.bus, .persistence]),
        .init(.supervisor, WireSupervisorRequest.self, start: .byItself),
        .init(.sync, start: .planned),
    ]

    /// The services that the supervisor starts, in the order of their start.
    public static var started: [ServiceDescription] { all.filter { $0.start == .bySupervisor } }

    /// The service of that name; nil: this version knows none.
    public static subscript(name: ServiceName) -> ServiceDescription? {
        all.first { $0.name == name }
    }
}
