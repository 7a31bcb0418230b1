import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Simulates the database and the stream between the services.
extension QueueSimulation {
    func lookUp<Query>(_ call: OwnerCall<Query>) -> Result<[UInt8], Failure> {
        guard let request = try? WirePersistenceRequest(wireBytes: call.payload) else {
            return .failure(Failure(.malformed, "unreadable"))
        }
        var reply = WirePersistenceReply()
        reply.episodes.episodes = request.episodesByID.ids.compactMap { id in
            var episode = sources.episodes[id]
            if let state = states[id] { episode?.state = state }
            return episode
        }
        return .success(reply.wireBytes)
    }

    func store(_ changes: [WireChange], in records: inout [String: StoredRecord]) {
        for change in changes {
            switch change.change {
            case .put(let record)?:
                records["\(record.collection)/\(record.key)"] = StoredRecord(
                    collection: record.collection, key: record.key, value: Array(record.value))
            case .delete(let key)?: records["\(key.collection)/\(key.key)"] = nil
            case .deleteCollection(let name)?: records = records.filter { $0.value.collection != name }
            case .putEpisodeState(let state)?: states[state.episode] = state
            default: break
            }
        }
    }

    func deliverToQueue(_ publication: Publication) {
        queueInbox.append(
            .observed(
                StreamEvent(
                    topic: publication.topic, header: BusHeader(publication.kind), payload: publication.payload)))
    }

    func publish(_ publications: [Publication]) throws {
        var before = early.player
        var isShown = false
        for publication in publications {
            // Two states in one batch are both checked.
            if publication.topic == .playbackState, isShown {
                checks.compare(before, with: early, isRestarting: isRestarting)
                before = early.player
            }
            isShown = isShown || publication.topic == .playbackState
            switch publication.kind {
            case .put: retained[publication.topic] = [publication]
            case .delta: retained[publication.topic, default: []].append(publication)
            case .delete: retained[publication.topic] = nil
            default: break
            }
            try early.apply(publication)
            try late.apply(publication)
            // The second screen reconnects; its snapshot must equal the state of the first one.
            if random.below(5) == 0 {
                late = SimulatedScreen()
                for topic in retained.keys.sorted() { try (retained[topic] ?? []).forEach { try late.apply($0) } }
            }
            if early != late { checks.recordViolation("two screens disagree after \(publication.topic)") }
            if publication.topic.owner == .playback || publication.topic == .service(.playback) {
                deliverToQueue(publication)
            }
        }
        recordViolation(guarantees.checkAlerts(early))
        if isShown { checks.compare(before, with: early, isRestarting: isRestarting) }
    }
}
