import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// What a test waited for in vain.
struct Unseen: Error, CustomStringConvertible {
    var description: String
}

/// Follows the stream as a screen does, and lets tests wait for what it shows.
final class StreamWatcher: Sendable {
    private struct Waiter: Sendable {
        var condition: @Sendable (FleetView) -> Bool
        var met: AsyncStream<FleetView?>.Continuation
    }
    private struct State {
        var view = FleetView()
        var waiters: [Int: Waiter] = [:]
        var count = 0
        var loads: [String] = []
        var watch: (@Sendable (FleetView) -> Void)?
    }

    /// The connection that it follows.
    let client: BusClient
    private let state = NIOLockedValueBox(State())

    init(_ client: BusClient) {
        self.client = client
    }

    /// Follows until the client ends.
    func follow() async {
        for await update in client.updates() {
            let (met, view, watch) = state.withLockedValue { state in
                state.view.apply(update)
                if let player = state.view.player, player.status == .playing, state.loads.last != player.loadID {
                    state.loads.append(player.loadID)
                }
                let view = state.view
                let met = state.waiters.filter { $0.value.condition(view) }
                for key in met.keys { state.waiters[key] = nil }
                return (Array(met.values), view, state.watch)
            }
            for waiter in met { waiter.met.yield(view) }
            watch?(view)
        }
    }

    /// What it shows now.
    var view: FleetView { state.withLockedValue(\.view) }
    /// The loads that have been seen playing, in order.
    var loads: [String] { state.withLockedValue(\.loads) }

    /// Has `watch` called after each update.
    func each(_ watch: (@Sendable (FleetView) -> Void)?) {
        state.withLockedValue { $0.watch = watch }
    }

    /// Waits until the condition holds.
    /// - Throws: what was seen instead, after a minute.
    @discardableResult
    func until(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable (FleetView) -> Bool
    ) async throws -> FleetView {
        let met = AsyncStream<FleetView?>.makeStream()
        let key = state.withLockedValue { state in
            state.count += 1
            if condition(state.view) {
                met.continuation.yield(state.view)
            } else {
                state.waiters[state.count] = Waiter(condition: condition, met: met.continuation)
            }
            return state.count
        }
        let timer = Task {
            try await ContinuousClock().sleep(for: limit)
            met.continuation.yield(nil)
        }
        defer {
            timer.cancel()
            state.withLockedValue { _ = $0.waiters.removeValue(forKey: key) }
        }
        for await found in met.stream {
            if let found { return found }
            break
        }
        throw Unseen(description: "waited for: \(what); seen: \(summary)")
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
