import BusKit
import FoundationEssentials
import Logging
import PodcastModel
import ProcessKit
import SwiftProtobuf
import WireMessages

// Handles the input of an owner from other services: the stored records, answers, the stream.

extension OwnerRuntime {
    mutating func load(_ effects: inout [Effect]) {
        var request = WirePersistenceRequest()
        request.load.owner = Machine.owner.text
        request.load.generation = generation
        ask(request, .load, &effects)
    }

    private func loadRecords(after last: StoredRecord?, _ effects: inout [Effect]) {
        var request = WirePersistenceRequest()
        request.loadRecords.owner = Machine.owner.text
        request.loadRecords.afterCollection = last?.collection ?? ""
        request.loadRecords.afterKey = last?.key ?? ""
        ask(request, .records, &effects)
    }

    mutating func handle(
        _ result: Result<[UInt8], Failure>, for purpose: Purpose, _ now: Moment, _ effects: inout [Effect]
    ) {
        switch purpose {
        case .call(let query, let lookup?): answered(query, result, lookup, now, &effects)
        case .call(let query, nil): run(.answered(query, result), now, &effects)
        case .load, .records: loaded(result.persistenceReply, now, &effects)
        case .podcast(let podcast): verified(podcast, result.persistenceReply, now, &effects)
        case .batch:
            switch result.persistenceReply {
            case .success(let reply): updatePipeline(.outcomes(reply.outcomes), now, &effects)
            case .failure(let failure): updatePipeline(.failed(failure), now, &effects)
            }
        case .lookUp(let id):
            let found = result.persistenceReply.map { $0.foundReply.found ? [UInt8]($0.foundReply.reply) : nil }
            deduplicate(.found(id, found), now, &effects)
        }
    }

    /// Passes the episodes of all pages to the machine, or queries the next page.
    private mutating func answered(
        _ query: Machine.Query, _ page: Result<[UInt8], Failure>, _ lookup: EpisodeLookup, _ now: Moment,
        _ effects: inout [Effect]
    ) {
        var lookup = lookup
        switch page {
        case .failure: run(.answered(query, page), now, &effects)
        case .success(let reply):
            guard let rest = lookup.add(reply) else {
                return run(.answered(query, .success(lookup.reply)), now, &effects)
            }
            let request = OutgoingRequest(
                id: .random(), service: .persistence, payload: rest,
                deadline: lookup.limit.map { now.monotonic.advanced(by: $0) })
            effects.append(.ask(request) { [lookup] in .answered(.call(query, lookup), $0) })
        }
    }

    private mutating func loaded(
        _ result: Result<WirePersistenceReply, Failure>, _ now: Moment, _ effects: inout [Effect]
    ) {
        guard case .loading = phase else { return }
        switch result {
        case .failure(let failure):
            effects.append(.log(.error, "the stored records can’t be read: \(failure)"))
            stop(failure, &effects)
        case .success(let reply):
            switch reply.result {
            case .loaded(let answer):
                loaded = (answer.revision, answer.incarnation)
                loadRecords(after: nil, &effects)
            case .records(let page):
                records += page.records.map {
                    StoredRecord(collection: $0.collection, key: $0.key, value: [UInt8]($0.value))
                }
                if page.more, !page.records.isEmpty { return loadRecords(after: records.last, &effects) }
                restore(now, &effects)
            default: stop(Failure(.malformed, "The database’s answer can’t be read."), &effects)
            }
        }
    }

    private mutating func restore(_ now: Moment, _ effects: inout [Effect]) {
        updatePipeline(.loaded(revision: loaded.revision, incarnation: loaded.incarnation), now, &effects)
        let stored = records
        records = []
        phase = .serving
        database = loaded.incarnation
        perform(machine.restore(stored, now: now), now, &effects)
        if Machine.followsPodcasts { forgottenPodcasts.verify(machine.knownPodcasts) }
        // Values may have been put before the machine was ready to handle them.
        reportChanges(to: replica, since: Replica(), now, &effects)
    }

    /// A new process of persistence may have another database.
    mutating func serviceStatusChanged(_ service: ServiceName, ready generation: UInt32?) {
        guard service == .persistence, let generation else { return }
        forgottenPodcasts.libraryReturned()
        if let known = persistenceGeneration, known != generation { persistenceHasRestarted = true }
        persistenceGeneration = generation
    }

    /// Sends an empty batch: the answer identifies the database.
    mutating func probeIfRestarted(_ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase, persistenceHasRestarted, pipeline.isIdle else { return }
        persistenceHasRestarted = false
        updatePipeline(.probe, now, &effects)
    }
}

// MARK: - The stream

extension OwnerRuntime {
    mutating func handle(_ update: ReplicaUpdate, _ now: Moment, _ effects: inout [Effect]) {
        switch update {
        case .snapshot(let snapshot):
            let before = replica
            replica = snapshot
            reportChanges(to: snapshot, since: before, now, &effects)
        case .event(let event):
            let changed = replica.apply(event)
            followPodcasts(changed)
            if isObserved(event.topic) {
                // Values that are staged until their owner is ready are reported then.
                let isVisible = event.header.kind == .event || changed.contains(event.topic)
                if isVisible { report(event, now, &effects) }
            }
            for topic in changed where topic != event.topic && isObserved(topic) && !replica.isStale(topic) {
                guard let value = replica.entries[topic] else { continue }
                report(value, now, &effects)
            }
        case .live, .connection: break
        }
    }

    private mutating func reportChanges(
        to snapshot: Replica, since before: Replica, _ now: Moment, _ effects: inout [Effect]
    ) {
        followPodcasts(snapshot, since: before)
        guard !Machine.observes.isEmpty else { return }
        for (topic, old) in before.entries where snapshot.entries[topic] == nil && isObserved(topic) {
            let header = BusHeader(
                .delete, generation: old.put.header.generation, epoch: snapshot.position.epoch,
                sequence: snapshot.position.sequence)
            report(StreamEvent(topic: topic, header: header, payload: []), now, &effects)
        }
        for value in snapshot.ordered where isObserved(value.put.topic) && !snapshot.isStale(value.put.topic) {
            report(value, now, &effects)
        }
    }

    private mutating func report(_ value: RetainedValue, _ now: Moment, _ effects: inout [Effect]) {
        report(value.put, now, &effects)
        for delta in value.deltas { report(delta, now, &effects) }
    }

    private mutating func report(_ event: StreamEvent, _ now: Moment, _ effects: inout [Effect]) {
        if case .loading = phase { return }
        run(.observed(event), now, &effects)
    }

    private func isObserved(_ topic: Topic) -> Bool {
        Machine.observes.contains { topic.text.hasPrefix($0) }
    }
}

// MARK: - Forgotten podcasts

extension OwnerRuntime {
    private mutating func followPodcasts(_ snapshot: Replica, since before: Replica) {
        guard Machine.followsPodcasts else { return }
        for topic in snapshot.entries.keys { ForgottenPodcasts.podcast(topic).map { forgottenPodcasts.exists($0) } }
        let gone = before.entries.keys.filter { snapshot.entries[$0] == nil }.compactMap(ForgottenPodcasts.podcast)
        forgottenPodcasts.verify(Set(gone))
    }

    private mutating func followPodcasts(_ changed: [Topic]) {
        guard Machine.followsPodcasts else { return }
        for topic in changed {
            guard let podcast = ForgottenPodcasts.podcast(topic) else { continue }
            if replica.entries[topic] == nil {
                forgottenPodcasts.verify([podcast])
            } else {
                forgottenPodcasts.exists(podcast)
            }
        }
    }

    mutating func verifyNextPodcast(_ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase, let podcast = forgottenPodcasts.next(now: now.monotonic) else { return }
        var request = WirePersistenceRequest()
        request.findPodcast.text = podcast.text
        ask(request, .podcast(podcast), until: now.monotonic.advanced(by: .seconds(10)), &effects)
    }

    private mutating func verified(
        _ podcast: PodcastID, _ result: Result<WirePersistenceReply, Failure>, _ now: Moment,
        _ effects: inout [Effect]
    ) {
        let isShown = replica.entries[.podcast(podcast.text)] != nil
        guard forgottenPodcasts.answered(podcast, result, isShown: isShown, now: now.monotonic) else { return }
        run(.podcastForgotten(podcast), now, &effects)
    }
}
