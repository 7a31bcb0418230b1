public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands for downloaded files. Each applies to all of its episodes (500 at most) or none; answers are in
/// their order.
public struct DownloadsClient: Sendable {
    /// An action on the files of episodes.
    public enum Action: Sendable, Hashable {
        /// Downloads them; failed downloads are retried.
        case add
        /// Pauses downloads, and keeps their partial files.
        case pause
        /// Resumes downloads that are paused or have failed.
        case resume
        /// Cancels unfinished downloads, and deletes their partial files.
        case cancel
        /// Deletes downloaded files.
        case remove
    }

    let fleet: Fleet

    /// Downloads episodes; failed downloads are retried.
    public func add(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await perform(.add, episodes)
    }

    /// Performs an action on the files of episodes.
    public func perform(_ action: Action, _ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        let ids = episodes.map(\.text)
        let reply = try await ask { request in
            switch action {
            case .add: request.add.episodes = ids
            case .pause: request.pause.episodes = ids
            case .resume: request.resume.episodes = ids
            case .cancel: request.cancel.episodes = ids
            case .remove: request.remove.episodes = ids
            }
        }
        return zip(reply.downloads, reply.changed).compactMap { download, changed in
            DownloadState(download).map { Answer(changed: changed, value: $0) }
        }
    }

    /// The reasons why an episode is, isn’t or is no longer downloaded, as sentences.
    public func reasons(for episode: EpisodeID) async throws(Failure) -> [String] {
        try await ask { $0.why.episode = episode.text }.why.map { DisplayText.sanitised($0) }
    }

    private func ask(_ fill: (inout WireDownloadsRequest) -> Void) async throws(Failure) -> WireDownloadsReply {
        var request = WireDownloadsRequest()
        fill(&request)
        return try await fleet.ask(.downloads, request, reply: WireDownloadsReply.self)
    }
}
