import BusKit
import LockstepClient
import PodcastModel
import TestSupport
import WireMessages

/// The error of a test whose fleet isn’t in the expected state.
struct UnexpectedState: Error, CustomStringConvertible {
    var description: String
}

/// Follows the stream as a screen does, and waits for expected states.
final class StreamWatcher: Sendable {
    private struct State {
        var view = FleetView()
        var loads: [String] = []
        var episodes: [Topic: WireEpisodeState] = [:]
        var watch: (@Sendable (FleetView) -> Void)?

        mutating func keepEpisode(of update: ReplicaUpdate) {
            guard case .event(let event) = update,
                let episode = try? WireEpisodeState(wireBytes: event.payload),
                event.topic == .episodeState(episode.episode)
            else { return }
            episodes[event.topic] = episode
        }
    }

    /// The connection that is followed.
    let client: BusClient
    private let state = Awaited(State())

    init(_ client: BusClient) {
        self.client = client
    }

    /// Follows until the client ends.
    func follow() async {
        for await update in client.updates() {
            let (view, watch) = state.change { state in
                state.view.apply(update)
                state.keepEpisode(of: update)
                if let player = state.view.player, player.status == .playing, state.loads.last != player.loadID {
                    state.loads.append(player.loadID)
                }
                return (state.view, state.watch)
            }
            watch?(view)
        }
    }

    /// The current state of the fleet.
    var view: FleetView { state.now.view }
    /// The loads that have been seen playing, in order.
    var loads: [String] { state.now.loads }

    /// Calls `watch` after each update.
    func each(_ watch: (@Sendable (FleetView) -> Void)?) {
        state.change { $0.watch = watch }
    }

    /// Waits until the condition holds.
    /// - Throws: `UnexpectedState` with the last state, after a minute.
    @discardableResult
    func until(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable (FleetView) -> Bool
    ) async throws -> FleetView {
        if let met = await state.first(within: limit, where: { condition($0.view) }) { return met.view }
        throw UnexpectedState(description: "waited for: \(what); seen: \(summary)")
    }

    /// Waits until the latest stored state of a published episode meets the condition.
    /// - Throws: `UnexpectedState` with the published states, after a minute.
    func until(
        _ what: String, episode: String, _ condition: @escaping @Sendable (WireEpisodeState) -> Bool
    ) async throws {
        let topic = Topic.episodeState(episode)
        if await state.first(within: .seconds(60), where: { $0.episodes[topic].map(condition) ?? false }) != nil {
            return
        }
        let seen = state.now.episodes[topic].map { "\($0)" } ?? "nothing"
        throw UnexpectedState(description: "waited for: \(what); published of \(episode): \(seen); \(summary)")
    }

    private var summary: String {
        let view = view
        let player = view.player.map { "\($0.status) \($0.episode.id) \($0.loadID) \($0.error.message)" } ?? "none"
        let queue = view.mainQueue.map { "\($0.revision) \($0.entries.map(\.episode.id)) current \($0.current)" }
        return """
            \(view.connection) \(view.replica.position), ready \(view.replica.ready), player \(player), \
            queue \(queue ?? "none"), alerts \(view.alertsInOrder.map(\.code))
            """
    }
}
