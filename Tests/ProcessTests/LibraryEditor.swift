import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import TestSupport
import WireMessages

/// Marks episodes and edits a playlist of its own in a running fleet, and records the acknowledged commands.
final class LibraryEditor: Sendable {
    private struct State {
        /// The episodes that are played.
        var marks = ExpectedOutcomes()
        /// The episodes in the playlist.
        var items = ExpectedOutcomes()
    }

    let playlist: String
    private let client: BusClient
    private let episodes: [String]
    private let state = NIOLockedValueBox(State())

    /// Creates an editor of a playlist, and of the marks of these episodes, which no other editor uses.
    init(_ client: BusClient, playlist: String, episodes: [String]) {
        (self.client, self.playlist, self.episodes) = (client, playlist, episodes)
    }

    var marks: ExpectedOutcomes { state.withLockedValue { $0.marks } }
    var items: ExpectedOutcomes { state.withLockedValue { $0.items } }
    /// The number of acknowledged commands that changed something.
    var changes: Int { marks.changes + items.changes }
    var unknown: Int { marks.unknown + items.unknown }

    /// Creates the playlist, then runs `commands` commands, each for up to ten episodes.
    func edit(seed: UInt64, commands: Int) async {
        var random = SeededGenerator(seed: seed)
        _ = await send(.queue, request { $0.create.title = self.playlist }, \WireQueueReply.changed)
        for _ in 0..<commands where !Task.isCancelled {
            let some = Set((0...random.below(10)).map { _ in episodes[random.below(episodes.count)] }).sorted()
            switch random.below(5) {
            case 0, 1: await mark(some, random.below(2) == 0)
            case 2: await edit(some, then: .present) { $0.add.episodes = some }
            case 3: await edit(some, then: .absent) { $0.remove.episodes = some }
            default:
                let order = random.below(2) == 0
                await edit([], then: .present) {
                    ($0.sort.by, $0.sort.descending) = (.title, order)
                }
            }
        }
    }

    private func request(_ fill: (inout WirePlaylistRequest) -> Void) -> WireQueueRequest {
        var request = WireQueueRequest()
        request.playlist.playlist = playlist
        fill(&request.playlist)
        return request
    }

    private func edit(
        _ episodes: [String], then expected: ExpectedOutcomes.State, _ fill: (inout WirePlaylistRequest) -> Void
    ) async {
        let outcome = await send(.queue, request(fill), \WireQueueReply.changed)
        state.withLockedValue { $0.items.record(outcome, episodes, then: expected) }
    }

    private func mark(_ episodes: [String], _ isPlayed: Bool) async {
        let request = WirePlaybackRequest.with { ($0.setPlayed.episodes, $0.setPlayed.played) = (episodes, isPlayed) }
        let outcome = await send(.playback, request, \WirePlaybackReply.changed)
        state.withLockedValue { $0.marks.record(outcome, episodes, then: isPlayed ? .present : .absent) }
    }

    /// Sends a request and awaits its outcome, even if the editor is cancelled.
    private func send<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ request: some SwiftProtobuf.Message, _ changed: @escaping @Sendable (Reply) -> Bool
    ) async -> Result<Bool, Failure> {
        let client = client
        return await Task { () -> Result<Bool, Failure> in
            do throws(Failure) {
                return .success(
                    changed(try await client.ask(service, request, reply: Reply.self, within: .seconds(30)).reply))
            } catch {
                return .failure(error)
            }
        }.value
    }
}
