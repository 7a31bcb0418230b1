public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands for settings. The effective values are in `FleetState.settings`.
public struct SettingsClient: Sendable {
    let fleet: Fleet

    /// Sets a value for a podcast, or with nil for all; an empty one removes the value.
    ///
    /// - Parameter value: the value in the key’s format, as `SettingKey.value(of:)` returns it.
    /// - Returns: the effective value.
    /// - Throws: `invalidArgument` for a value that the key doesn’t accept.
    public func set(
        _ key: SettingKey, to value: String, for podcast: PodcastID? = nil
    ) async throws(Failure) -> Answer<SettingValue> {
        guard let request = ServiceCatalog[key.rule.owner]?.request as? any SettingRequest.Type else {
            throw Failure(.internalError, "The \(key.rule.owner) service has no settings.")
        }
        let setting = WireSetSetting.with {
            $0.key = key.rawValue
            $0.value = value
            $0.podcast = podcast?.text ?? ""
        }
        return try await send(setting, to: key.rule.owner, request)
    }

    private func send<Request: SettingRequest>(
        _ setting: WireSetSetting, to owner: ServiceName, _: Request.Type
    ) async throws(Failure) -> Answer<SettingValue> {
        let request = Request.with { $0.setSetting = setting }
        let reply = try await fleet.ask(owner, request, reply: Request.Reply.self)
        guard let reply = (reply as? any SettingAnswer)?.setting else {
            throw Failure(.internalError, "The \(owner) service has no settings.")
        }
        let source: SettingValue.Source =
            switch reply.source {
            case .podcast: .podcast
            case .all: .all
            case .default, .unknown, .UNRECOGNIZED: .default
            }
        return Answer(changed: reply.changed, value: SettingValue(text: reply.value, source: source))
    }
}

private protocol SettingAnswer {
    var setting: WireSettingReply { get }
}

extension WirePlaybackReply: SettingAnswer {}
extension WireQueueReply: SettingAnswer {}
extension WireDownloadsReply: SettingAnswer {}
