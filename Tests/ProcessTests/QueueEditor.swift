import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import TestSupport
import WireMessages

/// Edits the queue of a running fleet and records the acknowledged edits.
final class QueueEditor: Sendable {
    private struct State {
        var outcomes = ExpectedOutcomes()
        var entries: [String: String] = [:]
    }
    private let state = NIOLockedValueBox(State())
    private let client: BusClient
    private let episodes: [String]

    /// Creates an editor of these episodes, which no other editor uses.
    init(_ client: BusClient, episodes: [String]) {
        self.client = client
        self.episodes = episodes
    }

    var outcomes: ExpectedOutcomes { state.withLockedValue { $0.outcomes } }

    /// Adds, removes and moves entries until it is cancelled or has run `limit` commands.
    func edit(seed: UInt64, limit: Int = .max) async {
        var random = SeededGenerator(seed: seed)
        var done = 0
        while !Task.isCancelled, done < limit {
            done += 1
            let episode = episodes[random.below(episodes.count)]
            switch state.withLockedValue({ $0.outcomes.state(episode) }) {
            case .absent, .unknown: await add(episode)
            case .present:
                if random.below(2) == 0 { await remove(episode) } else { await move(episode, random.below(3)) }
            }
        }
    }

    private func add(_ episode: String) async {
        var request = WireQueueRequest()
        request.add.episodes = [episode]
        await send(request, episode, then: .present) { reply, state in
            if let entry = reply.entries.first { state.entries[episode] = entry.id }
        }
    }

    private func remove(_ episode: String) async {
        guard let entry = state.withLockedValue({ $0.entries[episode] }) else { return }
        var request = WireQueueRequest()
        request.remove.entries = [entry]
        await send(request, episode, then: .absent) { _, _ in }
    }

    private func move(_ episode: String, _ index: Int) async {
        guard let entry = state.withLockedValue({ $0.entries[episode] }) else { return }
        var request = WireQueueRequest()
        request.move.entry = entry
        request.move.index = UInt32(index)
        await send(request, episode, then: .present) { _, _ in }
    }

    private func send(
        _ request: WireQueueRequest, _ episode: String, then expected: ExpectedOutcomes.State,
        _ record: @Sendable (WireQueueReply, inout State) -> Void
    ) async {
        // Even a cancelled editor awaits its pending command, to record the outcome.
        let client = client
        let answer = Task { () -> Result<WireQueueReply, Failure> in
            do throws(Failure) {
                return .success(
                    try await client.ask(.queue, request, reply: WireQueueReply.self, within: .seconds(30)).0)
            } catch {
                return .failure(error)
            }
        }
        let result = await answer.value
        state.withLockedValue { state in
            state.outcomes.record(result.map(\.changed), [episode], then: expected)
            if case .success(let reply) = result { record(reply, &state) }
        }
    }
}
