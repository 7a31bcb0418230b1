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
        /// The rules that the smart playlist may have: several after commands without a known outcome.
        var rules: Set<String> = []
        /// The number of acknowledged changes of the rule.
        var ruleChanges = 0
    }

    let playlist: String
    /// The playlist of the episodes of `playlist` that are played, or not, by its rule.
    let smartPlaylist: String
    private let client: BusClient
    private let episodes: [String]
    private let state = NIOLockedValueBox(State())

    /// Creates an editor of a playlist, and of the marks of these episodes, which no other editor uses.
    init(_ client: BusClient, playlist: String, episodes: [String]) {
        (self.client, self.playlist, self.episodes) = (client, playlist, episodes)
        smartPlaylist = "\(playlist)-smart"
    }

    var marks: ExpectedOutcomes { state.withLockedValue { $0.marks } }
    var items: ExpectedOutcomes { state.withLockedValue { $0.items } }
    /// The number of acknowledged commands that changed something.
    var changes: Int { marks.changes + items.changes + state.withLockedValue { $0.ruleChanges } }
    /// The rules that the smart playlist may have.
    var rules: Set<String> { state.withLockedValue { $0.rules } }
    /// The two rules of the smart playlist: for played episodes, and for the others.
    var playedRule: String { "played and in \(playlist)" }
    var unplayedRule: String { "unplayed and in \(playlist)" }
    var unknown: Int { marks.unknown + items.unknown }

    /// Creates the playlist, then runs `commands` commands, each for up to ten episodes.
    func edit(seed: UInt64, commands: Int) async {
        var random = SeededGenerator(seed: seed)
        // The creations are repeated until their outcome is known; an existing playlist isn’t changed.
        while !(await isCreated(request { $0.create.title = self.playlist })) {}
        let smart = request(smartPlaylist) { $0.create.smart.rule = self.playedRule }
        while !(await isCreated(smart)) {}
        state.withLockedValue { $0.rules = [playedRule] }
        for _ in 0..<commands where !Task.isCancelled {
            let some = Set((0...random.below(10)).map { _ in episodes[random.below(episodes.count)] }).sorted()
            switch random.below(6) {
            case 5: await changeRule(to: random.below(2) == 0 ? playedRule : unplayedRule)
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

    private func isCreated(_ request: WireQueueRequest) async -> Bool {
        guard case .success = await send(.queue, request, \WireQueueReply.changed) else { return Task.isCancelled }
        return true
    }

    private func changeRule(to rule: String) async {
        let outcome = await send(
            .queue, request(smartPlaylist) { $0.change.rule = rule }, \WireQueueReply.changed)
        state.withLockedValue { state in
            switch outcome {
            case .success(let isChanged):
                if isChanged { state.ruleChanges += 1 }
                state.rules = [rule]
            case .failure(let error) where error.known == .outcomeUnknown: state.rules.insert(rule)
            case .failure: break
            }
        }
    }

    private func request(
        _ id: String? = nil, _ fill: (inout WirePlaylistRequest) -> Void
    ) -> WireQueueRequest {
        var request = WireQueueRequest()
        request.playlist.playlist = id ?? playlist
        fill(&request.playlist)
        return request
    }

    private func edit(
        _ episodes: [String], then expected: ExpectedOutcomes.State, _ fill: (inout WirePlaylistRequest) -> Void
    ) async {
        let outcome = await send(.queue, request(nil, fill), \WireQueueReply.changed)
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
