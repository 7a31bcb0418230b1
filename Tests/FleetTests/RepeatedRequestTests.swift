import BusKit
import EngineDouble
import LockstepClient
import PlaybackService
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that a request takes effect once and that its repeats get the first reply.
@Suite(.timeLimit(.minutes(3)))
struct RepeatedRequestTests {
    @Test func `a repeat whose revision is outdated gets the stored reply`() async throws {
        try await WholeFleet.with(files: WholeFleet.files(3)) { fleet in
            try await fleet.fillLibrary(episodes: 3)
            let id = RequestID.random()
            @Sendable func add(mayBeRepeat: Bool = false) async throws(Failure) -> WireQueueReply {
                try await fleet.queue(id: id, mayBeRepeat: mayBeRepeat) {
                    $0.ifRevision = 0
                    $0.add.episodes = ["e1"]
                }
            }
            let first = try await add()
            #expect(first.revision == 1 && first.changed)
            let second = try await fleet.queue {
                $0.ifRevision = 1
                $0.add.episodes = ["e2"]
            }
            #expect(second.revision == 2)
            let again = try await add()
            #expect(again == first)

            try await fleet.bus.restartBus()
            let afterBus = try await add()
            #expect(afterBus == first)

            try await fleet.restart(.queue)
            try await fleet.untilReady([.queue])
            let afterQueue = try await add(mayBeRepeat: true)
            #expect(afterQueue == first)

            for service in [ServiceName.persistence, .queue] { try await fleet.restart(service) }
            try await fleet.untilReady([.persistence, .queue])
            let afterAll = try await add(mayBeRepeat: true)
            #expect(afterAll == first)

            let failure = await #expect(throws: Failure.self) {
                try await fleet.queue {
                    $0.ifRevision = 0
                    $0.add.episodes = ["e3"]
                }
            }
            #expect(failure?.known == .revisionMismatch)
            let view = try await fleet.watcher.until("the queue") { $0.mainQueue?.revision == 2 }
            #expect(view.mainQueue?.entries.map(\.episode.id) == ["e1", "e2"])
        }
    }

    @Test func `when two clients answer an alert, the first wins and both see the alert removed`() async throws {
        try await WholeFleet.with(files: [:]) { fleet in
            try await fleet.fillLibrary(episodes: 1)
            try await fleet.queue { $0.play.episode = "e1" }
            let alert = try #require(
                try await fleet.watcher.until("an alert") { !$0.alerts.isEmpty }.alertsInOrder.first)
            #expect(alert.code == FailureCode.fileMissing.rawValue)
            try fleet.engine().setFile(WholeFleet.source(1), SimulatedEngine.Audio(length: 100))
            try await fleet.bus.withClient { other in
                @Sendable func answer(_ client: BusClient, _ action: String) async -> Result<String, Failure> {
                    let request = WirePlaybackRequest.with {
                        $0.answerAlert.alert = alert.id
                        $0.answerAlert.action = action
                    }
                    do throws(Failure) {
                        let answer = try await client.ask(
                            .playback, request, reply: WirePlaybackReply.self, within: .seconds(60))
                        return .success(answer.reply.alertAnswered.action)
                    } catch {
                        return .failure(error)
                    }
                }
                async let one = answer(fleet.client, "retry")
                async let two = answer(other, "dismiss")
                let results = await [one, two]
                let winners = results.compactMap { try? $0.get() }
                #expect(winners.count == 1)
                for case .failure(let failure) in results {
                    #expect(failure.known == .alreadyAnswered)
                    #expect(failure.message.contains(winners.first ?? "?"))
                }
                try await fleet.watcher.until("no alert is shown") { $0.alerts.isEmpty }
                // The client whose answer won gets it as its reply, however late.
                let late = await answer(other, winners.first ?? "?")
                #expect((try? late.get()) == winners.first)
                let second = StreamWatcher(other)
                let following = Task { await second.follow() }
                try await second.until("the same state without the alert") {
                    $0.player?.loadID == fleet.watcher.view.player?.loadID && $0.alerts.isEmpty
                }
                following.cancel()
                if winners == ["retry"] {
                    try await fleet.watcher.until("the episode plays") { $0.player?.status == .playing }
                } else {
                    #expect(fleet.watcher.view.player?.status == .failed)
                }
            }
        }
    }
}
