package import PodcastModel
package import SwiftProtobuf

/// A service’s request message. Every service that accepts requests raises alerts, which requests answer.
package protocol ServiceRequest: SwiftProtobuf.Message {
    associatedtype Reply: ServiceReply
    var answerAlert: WireAnswerAlert { get set }
}

package protocol ServiceReply: SwiftProtobuf.Message {
    var alertAnswered: WireAlertAnswered { get }
}

/// The request message of a service that owns settings.
package protocol SettingRequest: ServiceRequest {
    var setSetting: WireSetSetting { get set }
}

extension WirePersistenceRequest: ServiceRequest { package typealias Reply = WirePersistenceReply }
extension WirePlaybackRequest: SettingRequest { package typealias Reply = WirePlaybackReply }
extension WireQueueRequest: SettingRequest { package typealias Reply = WireQueueReply }
extension WireFeedsRequest: ServiceRequest { package typealias Reply = WireFeedsReply }
extension WireDownloadsRequest: SettingRequest { package typealias Reply = WireDownloadsReply }
extension WireSupervisorRequest: ServiceRequest { package typealias Reply = WireSupervisorReply }
extension WirePersistenceReply: ServiceReply {}
extension WirePlaybackReply: ServiceReply {}
extension WireQueueReply: ServiceReply {}
extension WireFeedsReply: ServiceReply {}
extension WireDownloadsReply: ServiceReply {}
extension WireSupervisorReply: ServiceReply {}

/// The properties of a service that the rest of the fleet uses.
package struct ServiceDescription: Sendable {
    /// The way in which a service’s process starts.
    package enum Start: Sendable, Hashable {
        case bySupervisor
        /// The service is the supervisor itself.
        case byItself
        /// This version has no program for it, but reserves its name.
        case planned
    }

    /// The name on the bus; its program is `lockstep-` plus the name.
    package let name: ServiceName
    package var start = Start.bySupervisor
    /// The services that must be ready before it starts, and that stop only after it.
    package var requires: [ServiceName] = []
    /// The maximum time from SIGTERM to its end, before SIGKILL.
    package var stopLimit = Duration.seconds(5)
    /// Whether the services that require it wait for it even if it can’t be started. However often it fails, it is
    /// retried within two seconds, except after exit code 78, 126 or 127 or without its program: then it is retried
    /// every five minutes, like any other service.
    package var isEssential = false
    /// The time limit of a client for a reply.
    package var replyLimit = Duration.seconds(10)

    /// The message type of its requests; nil if it accepts none. This is computed: if it were stored, the metadata of all
    /// types would need 0.5 MB of memory in each process.
    package var request: (any ServiceRequest.Type)? {
        switch name {
        case .persistence: WirePersistenceRequest.self
        case .playback: WirePlaybackRequest.self
        case .queue: WireQueueRequest.self
        case .feeds: WireFeedsRequest.self
        case .downloads: WireDownloadsRequest.self
        case .supervisor: WireSupervisorRequest.self
        default: nil
        }
    }
}

/// The services of this version. A new service also needs its name in `ServiceName`, its case in `request`,
/// `protocols/NAME.proto` and `NAME.md`, `ServiceRequest` and `ServiceReply` conformances, `Sources/NameService` with
/// its tests, `Sources/lockstep-NAME`, their targets and the product in Package.swift, a row for each in the arrows of
/// `deploy/gates`, and its row in the README. The gate `services` checks the product, the targets and the arrows.
package enum ServiceCatalog {
    /// Every service, each after those that it requires.
    package static let all: [ServiceDescription] = [
        .init(name: .bus, stopLimit: .seconds(2), isEssential: true),
        .init(name: .persistence, requires: [.bus], stopLimit: .seconds(10), isEssential: true),
        .init(name: .playback, requires: [.bus, .persistence], stopLimit: .seconds(3)),
        .init(name: .queue, requires: [.bus, .persistence, .playback], stopLimit: .seconds(3)),
        .init(name: .feeds, requires: [.bus, .persistence], replyLimit: .seconds(60)),
        .init(name: .downloads, requires: [.bus, .persistence]),
        .init(name: .supervisor, start: .byItself),
        .init(name: .sync, start: .planned),
    ]

    /// The services that the supervisor starts, in start order.
    package static var started: [ServiceDescription] { all.filter { $0.start == .bySupervisor } }

    /// The service with this name; nil if it is unknown in this version.
    package static subscript(name: ServiceName) -> ServiceDescription? { all.first { $0.name == name } }
}
