import BusKit
import FoundationEssentials
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Simulates persistence for one owner, in memory: revisions, commit IDs, stored replies, an incarnation.
struct ScriptedDatabase {
    var revision: UInt64 = 0
    var incarnation = "one"
    var generation: UInt32 = 0
    var records: [String: [UInt8]] = [:]
    var replies: [Data: Data] = [:]
    var outcomes: [Data: WireCommitOutcome] = [:]
    /// Commits whose change to this value are refused.
    var refusedWords: [String: Failure] = [:]
    var commits = 0
    /// The podcasts of the library, by ID, or the failure of its queries.
    var podcasts: Set<String> = []
    var libraryFailure: Failure?
    /// Parts of a whole state, which take effect with the last one.
    private var staged: [[WireChange]] = []

    /// Ends the process: state that was only in its memory is lost.
    mutating func restart() { staged = [] }

    mutating func answer(_ request: WirePersistenceRequest) -> Result<WirePersistenceReply, Failure> {
        var reply = WirePersistenceReply()
        switch request.command {
        case .load(let load):
            guard load.generation >= generation else { return .failure(Failure(.fenced, "An older process.")) }
            generation = load.generation
            reply.loaded.revision = revision
            reply.loaded.incarnation = incarnation
        case .loadRecords(let page): reply.records = self.page(after: page.afterKey)
        case .commit(let batch):
            guard batch.generation >= generation else { return .failure(Failure(.fenced, "An older process.")) }
            reply.outcomes.incarnation = incarnation
            reply.outcomes.outcomes = batch.commits.map { commit($0) }
        case .findReply(let find):
            reply.foundReply.found = replies[find.requestID] != nil
            reply.foundReply.reply = replies[find.requestID] ?? Data()
        case .findPodcast(let find):
            if let libraryFailure { return .failure(libraryFailure) }
            guard podcasts.contains(find.text) else { return .failure(Failure(.notFound, "No such podcast.")) }
            reply.podcasts.podcasts = [.with { $0.id = find.text }]
        default: return .failure(Failure(.unknownCommand, "Not here."))
        }
        return .success(reply)
    }

    /// Two records a page.
    private func page(after key: String) -> WireRecords {
        let rest = records.keys.filter { $0 > key }.sorted()
        var page = WireRecords()
        page.records = rest.prefix(2).map { key in
            var record = WireRecord()
            record.collection = "word"
            record.key = key
            record.value = Data(records[key] ?? [])
            return record
        }
        page.more = rest.count > 2
        return page
    }

    private mutating func commit(_ commit: WireCommit) -> WireCommitOutcome {
        if var known = outcomes[commit.id] {
            known.kind = .repeated
            return known
        }
        var outcome = WireCommitOutcome()
        if commit.more || commit.parts > 0 {
            guard Int(commit.parts) == staged.count else {
                outcome.kind = .refused
                outcome.failure = WireFailure(Failure(.revisionMismatch, "A part is missing."))
                return outcome
            }
            if commit.more {
                staged.append(commit.changes)
                outcome.kind = .staged
                return outcome
            }
        }
        var commit = commit
        commit.changes = staged.flatMap { $0 } + commit.changes
        staged = []
        outcome.revision = revision
        if !commit.requestID.isEmpty, let reply = replies[commit.requestID] {
            outcome.kind = .duplicateRequest
            outcome.reply = reply
            return outcome
        }
        guard commit.replacesEverything || commit.expectedRevision == revision else {
            outcome.kind = .refused
            outcome.failure = WireFailure(Failure(.revisionMismatch, "Another revision."))
            return outcome
        }
        for change in commit.changes {
            if let failure = refusedWords[String(decoding: change.put.value, as: UTF8.self)] {
                outcome.kind = .refused
                outcome.failure = WireFailure(failure)
                return outcome
            }
        }
        if commit.replacesEverything { records = [:] }
        for change in commit.changes { records[change.put.key] = [UInt8](change.put.value) }
        if !commit.requestID.isEmpty { replies[commit.requestID] = commit.reply }
        revision += 1
        commits += 1
        outcome.kind = .committed
        outcome.revision = revision
        outcomes[commit.id] = outcome
        return outcome
    }

    var words: [String] { records.sorted { $0.key < $1.key }.map { String(decoding: $0.value, as: UTF8.self) } }
}
