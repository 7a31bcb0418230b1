import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import TestSupport
import WireMessages

/// Edits the queue of a living fleet and keeps account of what was acknowledged.
final class QueueEditor: Sendable {
    /// The known facts about an episode's position in the queue.
    enum Belief: Sendable, Hashable {
        case present
        case absent
        /// A command about it had no known outcome.
        case unknown
    }

    private struct State {
        var beliefs: [String: Belief] = [:]
        var entries: [String: String] = [:]
        /// Acknowledged commands that changed the queue.
        var changes = 0
        /// Commands whose outcome is not known.
        var unknown = 0
        var failures: [Failure] = []
    }
    private let state = NIOLockedValueBox(State())
    private let client: BusClient
    private let episodes: [String]

    /// Edits with these episodes, which no other editor touches.
    init(_ client: BusClient, episodes: [String]) {
        self.client = client
        self.episodes = episodes
    }

    var beliefs: [String: Belief] { state.withLockedValue { $0.beliefs } }
    var changes: Int { state.withLockedValue { $0.changes } }
    var unknown: Int { state.withLockedValue { $0.unknown } }
    /// Refusals that should not have happened.
    var failures: [Failure] { state.withLockedValue { $0.failures } }

    /// Adds, removes and moves until it is cancelled or has done `limit` commands.
    func edit(seed: UInt64, limit: Int = .max) async {
        var random = SeededGenerator(seed: seed)
        var done = 0
        while !Task.isCancelled, done < limit {
            done += 1
            let episode = episodes[random.below(episodes.count)]
            switch state.withLockedValue({ $0.beliefs[episode] ?? .absent }) {
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

    private func move(_ episode: String, _ place: Int) async {
        guard let entry = state.withLockedValue({ $0.entries[episode] }) else { return }
        var request = WireQueueRequest()
        request.move.entry = entry
        request.move.index = UInt32(place)
        await send(request, episode, then: .present) { _, _ in }
    }

    private func send(
        _ request: WireQueueRequest, _ episode: String, then belief: Belief,
        _ note: @Sendable (WireQueueReply, inout State) -> Void
    ) async {
        // A command that is on its way is waited for, even by an editor that is to stop: its outcome is part of the account.
        let client = client
        let answer = Task { () -> Result<WireQueueReply, Failure> in
            do throws(Failure) {
                return .success(
                    try await client.ask(.queue, request, reply: WireQueueReply.self, within: .seconds(30)).0)
            } catch {
                return .failure(error)
            }
        }
        switch await answer.value {
        case .success(let reply):
            state.withLockedValue { state in
                if reply.changed { state.changes += 1 }
                state.beliefs[episode] = belief
                note(reply, &state)
            }
        case .failure(let error):
            state.withLockedValue { state in
                switch error.known {
                case .outcomeUnknown:
                    state.unknown += 1
                    state.beliefs[episode] = .unknown
                case .unavailable, .busy, .lostInFlight, .expired:
                    // Refused for good: nothing happened.
                    break
                case .notFound where state.beliefs[episode] == .unknown, .invalidArgument:
                    break
                default:
                    state.failures.append(error)
                }
            }
        }
    }
}
