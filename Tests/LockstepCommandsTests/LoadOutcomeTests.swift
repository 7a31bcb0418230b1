import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient

/// Tests the outcome of a load that a command has requested.
@Suite struct LoadOutcomeTests {
    private typealias Decided = (load: String, outcome: WireDecidedLoad.Outcome, after: String)

    private static func outcome(
        of load: String = "l2", isLoaded: Bool = false, shows shown: String, _ status: WirePlaybackState.Status,
        isHeard: Bool = true, decided: [Decided], ready: [ServiceName] = [.playback, .queue]
    ) throws -> LoadOutcome {
        var puts: [(Topic, any SwiftProtobuf.Message)] = ready.map { name in
            (.service(name), WireServiceStatus.with { $0.state = .ready })
        }
        let player = WirePlaybackState.with {
            ($0.loadID, $0.status) = (shown, status)
            $0.anchor.running = status == .playing && isHeard
        }
        puts.append((.playbackState, player))
        let next = WireQueueNext.with {
            $0.loads = decided.map { decided in
                .with {
                    ($0.loadID, $0.outcome, $0.afterLoad) = (decided.load, decided.outcome, decided.after)
                    if decided.outcome == .refused { $0.failure = WireFailure(Self.refusal) }
                }
            }
        }
        puts.append((Topic("stream/queue/next"), next))
        var view = FleetView(puts: puts)
        view.apply(.connection(.live))
        return LoadOutcome(of: try #require(LoadID(load)), isLoaded: isLoaded, in: view)
    }

    private static let refusal = Failure(.badURL, "It has no audio.")

    @Test(
        arguments: [
            // The queue has not published the load yet.
            ("l0", .playing, [], .pending),
            ("l0", .playing, [("l2", .pending, "")], .pending),
            // The player is opening the load.
            ("l2", .loading, [("l2", .accepted, "")], .pending),
            ("l2", .playing, [("l2", .pending, "")], .settled),
            ("l2", .paused, [("l2", .accepted, "")], .settled),
            ("l2", .failed, [("l2", .accepted, "")], .settled),
            // The load has ended, and another has followed.
            ("l3", .playing, [("l2", .accepted, ""), ("l3", .accepted, "l2")], .settled),
            // Another load was requested, before or after the player received this one.
            ("l3", .playing, [("l2", .accepted, ""), ("l3", .accepted, "")], .superseded),
            ("l0", .playing, [("l2", .superseded, ""), ("l3", .pending, "")], .superseded),
            ("l0", .playing, [("l2", .refused, "")], .refused(refusal)),
        ] as [(String, WirePlaybackState.Status, [(String, WireDecidedLoad.Outcome, String)], LoadOutcome)])
    func `a load is pending until it is settled, refused or superseded`(
        shown: String, status: WirePlaybackState.Status, decided: [(String, WireDecidedLoad.Outcome, String)],
        outcome: LoadOutcome
    ) throws {
        #expect(try Self.outcome(shows: shown, status, decided: decided.map { ($0, $1, $2) }) == outcome)
    }

    @Test func `a load is pending while its audio is open but waits for data`() throws {
        #expect(try Self.outcome(isLoaded: true, shows: "l2", .playing, isHeard: false, decided: []) == .pending)
        #expect(try Self.outcome(isLoaded: true, shows: "l2", .paused, isHeard: false, decided: []) == .settled)
    }

    @Test(arguments: [
        ("Part 1", "The server said 404.", "“Part 1”: The server said 404."),
        ("Part 1", "“Part 1” is too short.", "“Part 1” is too short."), ("", "It failed.", "It failed."),
    ])
    func `the failure of a load names its episode once`(title: String, message: String, named: String) {
        let episode = EpisodeSummary(WireEpisodeSummary.with { ($0.id, $0.title) = ("e1", title) })
        #expect(Failure(.streamFailed, message).naming(episode) == Failure(.streamFailed, named))
        #expect(Failure(.streamFailed, message).naming(nil).message == message)
    }

    @Test func `a load stays pending while a service is down`() throws {
        let decided: [Decided] = [("l2", .superseded, "")]
        for ready in [[.playback], [.queue]] as [[ServiceName]] {
            #expect(try Self.outcome(shows: "l3", .playing, decided: decided, ready: ready) == .pending)
        }
    }

    @Test func `a load is superseded when the player has another load`() throws {
        #expect(try Self.outcome(isLoaded: true, shows: "l3", .playing, decided: []) == .superseded)
        #expect(try Self.outcome(isLoaded: true, shows: "l2", .loading, decided: []) == .pending)
        #expect(
            try Self.outcome(of: "l2", isLoaded: true, shows: LoadID.advance(after: "l2").text, .playing, decided: [])
                == .settled)
    }
}
