import PodcastModel
import ProcessKit
import TestSupport
import Testing
import WireMessages

@testable import BusKit
@testable import OwnerKit

struct ForgottenPodcastsTests {
    private let podcast = PodcastID.derived(from: "one")

    /// An owner with data of the podcast, which the stream shows.
    private func trial(libraryHas podcasts: Set<PodcastID> = []) -> (OwnerTrial, ModelBus) {
        var trial = OwnerTrial.serving()
        trial.database.podcasts = Set(podcasts.map(\.text))
        var bus = ModelBus(epoch: 5)
        let put = bus.publish(.put, .podcast(podcast.text), [1])
        var replica = Replica()
        replica.replace(at: put.position, ready: [.feeds: 1], entries: [put])
        trial.handle(.update(.snapshot(replica)))
        trial.serve()
        return (trial, bus)
    }

    /// A snapshot that shows nothing of the podcast.
    private func dropAll(_ trial: inout OwnerTrial) {
        var empty = Replica()
        empty.replace(at: StreamPosition(epoch: 5, sequence: 9), ready: [:], entries: [])
        trial.handle(.update(.snapshot(empty)))
    }

    @Test func `a podcast that was deleted and that the library doesn’t have is forgotten`() {
        var (trial, bus) = trial()
        trial.handle(.update(.event(bus.publish(.delete, .podcast(podcast.text)))))
        #expect(trial.runtime.machine.forgotten.isEmpty && trial.waiting.count == 1)
        trial.serve()
        #expect(trial.runtime.machine.forgotten == [podcast])
        #expect(trial.runtime.machine.observed.isEmpty)
    }

    @Test func `a podcast whose value the bus only dropped isn’t forgotten`() {
        var (trial, _) = trial(libraryHas: [podcast])
        dropAll(&trial)
        #expect(trial.waiting.count == 1)
        trial.serve()
        #expect(trial.runtime.machine.forgotten.isEmpty)
    }

    @Test func `a podcast that is missing from a snapshot and from the library is forgotten`() {
        var (trial, _) = trial()
        dropAll(&trial)
        trial.serve()
        #expect(trial.runtime.machine.forgotten == [podcast])
    }

    @Test func `a podcast that is subscribed to again before the library answers isn’t forgotten`() {
        var (trial, bus) = trial()
        trial.handle(.update(.event(bus.publish(.delete, .podcast(podcast.text)))))
        let answer = trial.take()
        trial.handle(.update(.event(bus.publish(.put, .podcast(podcast.text), [2]))))
        if let answer { trial.handle(answer) }
        trial.serve()
        #expect(trial.runtime.machine.forgotten.isEmpty)
    }

    @Test func `the library is queried again with backoff, and at once when it is ready again`() {
        var (trial, bus) = trial()
        trial.database.libraryFailure = Failure(.unavailable, "away")
        trial.handle(.update(.event(bus.publish(.delete, .podcast(podcast.text)))))
        for wait in [1, 2, 4] {
            trial.serve()
            trial.pass(.milliseconds(wait * 1_000 - 1))
            #expect(trial.waiting.isEmpty)
            trial.pass(.milliseconds(1))
            #expect(trial.waiting.count == 1)
        }
        trial.serve()
        #expect(trial.runtime.machine.forgotten.isEmpty)
        trial.database.libraryFailure = nil
        trial.handle(.status(.persistence, ready: 1))
        trial.serve()
        #expect(trial.runtime.machine.forgotten == [podcast])
    }

    @Test func `podcasts that were forgotten while the owner was down are found at its start`() {
        let kept = PodcastID.derived(from: "two")
        var trial = OwnerTrial()
        trial.database.podcasts = [kept.text]
        trial.runtime.machine.knownPodcasts = [podcast, kept]
        trial.handle(.started)
        trial.serve()
        #expect(trial.runtime.machine.forgotten == [podcast])
    }

    @Test func `a forgotten podcast that still has data after a rollback is reported again`() {
        var (trial, bus) = trial()
        trial.runtime.machine.knownPodcasts = [podcast]
        trial.database.refusedWords["without \(podcast)"] = Failure(.diskFull, "full")
        trial.handle(.update(.event(bus.publish(.delete, .podcast(podcast.text)))))
        trial.serve()
        #expect(trial.runtime.machine.refused.count == 1)
        trial.database.refusedWords = [:]
        trial.pass(.seconds(1))
        trial.serve()
        #expect(trial.runtime.machine.forgotten == [podcast, podcast])
        #expect(trial.runtime.machine.committed.count == 1)
    }
}
