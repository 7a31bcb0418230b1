import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Performs one transaction of the writer: the owners’ requests in order, each commit in a savepoint.
struct WriteSession {
    let db: Database
    let now: Timestamp
    let incarnation: String
    /// Generations that could not be written while the disk was full.
    let generations: [String: UInt32]
    private(set) var changed: StoreChanges = []
    private var library: LibraryWriter
    private var owners: [String: OwnerRow] = [:]
    private var stored: [String: OwnerRow] = [:]

    /// The maximum length of the name of a collection or record, in bytes.
    static let nameLimit = 512
    /// The maximum size of a document, in bytes.
    static let documentLimit = 4 << 20

    init(db: Database, now: Timestamp, incarnation: String, generations: [String: UInt32]) {
        self.db = db
        self.now = now
        library = LibraryWriter(db: db, now: now)
        self.incarnation = incarnation
        self.generations = generations
    }

    /// Performs one write. An error ends the whole transaction; refusals are results.
    mutating func perform(_ write: StoreWrite) throws -> Result<WirePersistenceReply, Failure> {
        switch write {
        case .load(let load): return try self.load(load)
        case .commit(let batch):
            if let refusal = Self.refusalOfOwner(batch.owner) { return .failure(refusal) }
            let outcomes = try commit(batch)
            return .success(.with { $0.outcomes = outcomes })
        case .own(let changes): for change in changes { try apply(change, by: ServiceName.persistence.text) }
        case .probe: try db.setMeta(Schema.Meta.probe, String(now.milliseconds))
        case .checked: try db.setMeta(Schema.Meta.checked, String(now.milliseconds))
        }
        return .success(WirePersistenceReply())
    }

    /// Writes the collected texts and the rows of owners; called once, before the transaction ends.
    mutating func finish() throws {
        try library.finish()
        for name in generations.keys { _ = try owner(name) }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO owner (name, generation, revision, recent) VALUES (?, ?, ?, ?)
                ON CONFLICT (name) DO UPDATE SET
                    generation = excluded.generation, revision = excluded.revision, recent = excluded.recent
                """)
        for (name, var row) in owners where stored[name] != row {
            if row.recent.count > OwnerRow.recentLimit * RequestID.length { try moveCommitIDs(of: name, &row) }
            try statement.execute(arguments: [name, row.generation, Int64(clamping: row.revision), row.recent])
        }
    }

    /// Moves the IDs in an owner’s row to their table.
    private func moveCommitIDs(of name: String, _ row: inout OwnerRow) throws {
        let statement = try db.cachedStatement(sql: "INSERT INTO commit_id (owner, id, at) VALUES (?, ?, ?)")
        for id in row.recentIDs { try statement.execute(arguments: [name, id, now.milliseconds]) }
        row.recent = Data()
    }

    static func fenced(_ owner: String, _ generation: UInt32, _ known: UInt32) -> Failure {
        var failure = Failure.fenced(by: known)
        failure.message = "Generation \(generation) of \(owner) has been replaced by generation \(known)."
        return failure
    }

    private static func refusalOfOwner(_ name: String) -> Failure? {
        guard let owner = ServiceName(name) else {
            return Failure(.invalidArgument, "“\(name)” isn’t a valid service name.")
        }
        return [.persistence, .bus].contains(owner) ? Failure(.notOwner, "\(owner) isn’t allowed to commit.") : nil
    }

    private mutating func owner(_ name: String) throws -> OwnerRow {
        if let row = owners[name] { return row }
        var row = try OwnerRow.fetch(db, name)
        stored[name] = row
        row.generation = max(row.generation, generations[name] ?? 0)
        owners[name] = row
        return row
    }

    private mutating func load(_ load: WireLoad) throws -> Result<WirePersistenceReply, Failure> {
        if let refusal = Self.refusalOfOwner(load.owner) { return .failure(refusal) }
        var row = try owner(load.owner)
        guard load.generation >= row.generation else {
            return .failure(Self.fenced(load.owner, load.generation, row.generation))
        }
        row.generation = load.generation
        owners[load.owner] = row
        return .success(row.loaded(incarnation))
    }

    private mutating func commit(_ batch: WireCommitBatch) throws -> WireCommitOutcomes {
        var outcomes = WireCommitOutcomes()
        outcomes.incarnation = incarnation
        var row = try owner(batch.owner)
        var refusal: Failure?
        if batch.generation < row.generation {
            refusal = Self.fenced(batch.owner, batch.generation, row.generation)
        } else if batch.generation > row.generation {
            // After a restore the owner is newer than the database; its first commit records its generation.
            row.generation = batch.generation
            owners[batch.owner] = row
        }
        for commit in batch.commits {
            let outcome: WireCommitOutcome
            if let refusal {
                outcome = .refused(refusal, revision: try owner(batch.owner).revision)
            } else {
                outcome = try apply(commit, of: batch.owner)
            }
            if outcome.kind == .refused || outcome.kind == .duplicateRequest, refusal == nil {
                refusal = Failure(
                    .revisionMismatch, "An earlier commit of \(batch.owner) was refused, and this one depends on it.")
            }
            outcomes.outcomes.append(outcome)
        }
        return outcomes
    }

    /// Applies or refuses a commit of an owner that isn’t fenced; no earlier commit of its batch was refused.
    private mutating func apply(_ commit: WireCommit, of name: String) throws -> WireCommitOutcome {
        let row = try owner(name)
        var outcome = WireCommitOutcome()
        outcome.revision = row.revision
        guard commit.id.count == RequestID.length,
            commit.requestID.isEmpty || commit.requestID.count == RequestID.length
        else {
            return .refused(Failure(.invalidArgument, "A commit ID must have 16 bytes."), revision: row.revision)
        }
        if try row.recentIDs.contains(commit.id) || isCommitted(commit.id, by: name) {
            outcome.kind = .repeated
            return outcome
        }
        if !commit.requestID.isEmpty, let reply = try Store.reply(db, owner: name, request: commit.requestID) {
            outcome.kind = .duplicateRequest
            outcome.reply = reply
            return outcome
        }
        guard commit.replacesEverything || commit.expectedRevision == row.revision else {
            let failure = Failure(
                .revisionMismatch,
                "\(name) is at revision \(row.revision); the commit expected \(commit.expectedRevision).")
            return .refused(failure, revision: row.revision)
        }
        if let failure = try refusalOfApplying(commit, of: name) { return .refused(failure, revision: row.revision) }
        owners[name] = OwnerRow(
            generation: row.generation, revision: commit.expectedRevision &+ 1, recent: row.recent + commit.id)
        outcome.kind = .committed
        outcome.revision = commit.expectedRevision &+ 1
        return outcome
    }

    /// Whether a commit’s ID has moved from the owner’s row to the table.
    private func isCommitted(_ id: Data, by owner: String) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM commit_id WHERE owner = ? AND id = ?")
        return try Int.fetchOne(statement, arguments: [owner, id]) != nil
    }

    /// Applies a commit in a savepoint, which a refusal rolls back.
    private mutating func refusalOfApplying(_ commit: WireCommit, of name: String) throws -> Failure? {
        let before = (changed, library)
        do {
            try db.inSavepoint {
                if commit.replacesEverything {
                    try db.execute(sql: "DELETE FROM record WHERE owner = ?", arguments: [name])
                    if name == ServiceName.queue.text || name == ServiceName.playback.text { changed.insert(.snapshot) }
                }
                for change in commit.changes { try apply(change, by: name) }
                try storeReply(of: commit, by: name)
                return .commit
            }
            return nil
        } catch let failure as Failure {
            (changed, library) = before
            return failure
        } catch let error as DatabaseError where Self.concernsOneCommit(error) {
            (changed, library) = before
            return Failure(.invalidArgument, "A change of \(name) can’t be stored: \(error.message ?? "constraint").")
        }
    }

    /// Whether an error is caused by the data of a commit, not by the state of the database.
    private static func concernsOneCommit(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_TOOBIG, .SQLITE_MISMATCH, .SQLITE_RANGE: true
        default: false
        }
    }

    private func storeReply(of commit: WireCommit, by name: String) throws {
        guard !commit.requestID.isEmpty else { return }
        try db.cachedStatement(sql: "INSERT INTO reply (owner, request, reply, at) VALUES (?, ?, ?, ?)")
            .execute(arguments: [name, commit.requestID, commit.reply, now.milliseconds])
    }

    // MARK: Changes

    private mutating func apply(_ change: WireChange, by owner: String) throws {
        switch change.change {
        case .put(let record):
            try checkName(record.collection, record.key, owner)
            try recordWillChange(record.collection, record.key, to: record.value, owner)
            try db.cachedStatement(
                sql: """
                    INSERT INTO record (owner, collection, key, value, episode, state) VALUES (?, ?, ?, ?, ?, ?)
                    ON CONFLICT (owner, collection, key) DO UPDATE SET
                        value = excluded.value, episode = excluded.episode, state = excluded.state
                    """
            ).execute(
                arguments: [
                    owner, record.collection, record.key, record.value, record.episode.isEmpty ? nil : record.episode,
                    record.state,
                ])
        case .delete(let key):
            try recordWillChange(key.collection, key.key, to: nil, owner)
            try delete(from: "record", key.collection, key.key, of: owner)
        case .deleteCollection(let collection):
            try recordWillChange(collection, "", to: nil, owner)
            try delete(from: "record", collection, of: owner)
        case .putDocument(let document): try put(document, by: owner)
        case .deleteDocument(let key): try delete(from: "document", key.collection, key.key, of: owner)
        case .deleteDocuments(let collection): try delete(from: "document", collection, of: owner)
        case .putEpisodeState(let state):
            try Self.require(.playback, owner, "the states of episodes")
            try library.put(state)
        case .putPlaySession(let session):
            try Self.require(.playback, owner, "play sessions")
            try PlaySessionTable(db: db).put(session)
        case .putPodcast, .deletePodcast, .putEpisode, .deleteEpisode, .putAlias, .setFlags:
            try Self.require(.feeds, owner, "podcasts and episodes")
            changed.insert(.library)
            try applyToLibrary(change)
        case nil: throw Failure(.unknownCommand, "This version doesn’t support a change that \(owner) committed.")
        }
    }

    private static func require(_ owner: ServiceName, _ name: String, _ what: String) throws {
        guard name == owner.text else { throw Failure(.notOwner, "Only \(owner) writes \(what), not \(name).") }
    }

    private func put(_ document: WireDocument, by owner: String) throws {
        try checkName(document.collection, document.key, owner)
        guard document.value.count <= Self.documentLimit else {
            throw Failure(.tooLarge, "The document \(document.collection)/\(document.key) is longer than 4 MiB.")
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO document (owner, collection, key, at, value) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (owner, collection, key) DO UPDATE SET at = excluded.at, value = excluded.value
                """
        ).execute(arguments: [owner, document.collection, document.key, document.at, document.value])
    }

    /// Deletes a record or document, or a whole collection of them.
    private func delete(from table: String, _ collection: String, _ key: String? = nil, of owner: String) throws {
        let condition = key == nil ? "" : "AND key = ?"
        try db.cachedStatement(sql: "DELETE FROM \(table) WHERE owner = ? AND collection = ? \(condition)")
            .execute(arguments: StatementArguments([owner, collection] + (key.map { [$0] } ?? [])))
    }

    private mutating func applyToLibrary(_ change: WireChange) throws {
        switch change.change {
        case .putPodcast(let podcast):
            let old = try library.put(podcast)
            if old?.isSameInSnapshot(as: podcast) != true { changed.insert(.snapshot) }
        case .deletePodcast(let id):
            changed.insert(.snapshot)
            try library.deletePodcast(id)
        case .putEpisode(let episode): try library.put(episode)
        case .deleteEpisode(let id): try library.deleteEpisode(id)
        case .putAlias(let alias): try library.put(alias)
        case .setFlags(let flags): try library.set(flags)
        default: break
        }
    }

    private func checkName(_ collection: String, _ key: String, _ owner: String) throws {
        guard !collection.isEmpty, collection.utf8.count <= Self.nameLimit, key.utf8.count <= Self.nameLimit,
            !collection.utf8.contains(0), !key.utf8.contains(0)
        else {
            throw Failure(.invalidArgument, "A record of \(owner) has an invalid name (“\(collection)”, “\(key)”).")
        }
        guard owner != ServiceName.feeds.text || collection != Store.podcastCollection else {
            throw Failure(.invalidArgument, "Podcasts are stored with put_podcast, not as records.")
        }
    }

    /// Records whether this change makes the side snapshot stale: it contains the queue and the loaded episode. A
    /// change of the position alone, which is saved every few seconds, doesn’t count.
    private mutating func recordWillChange(
        _ collection: String, _ key: String, to value: Data?, _ owner: String
    ) throws {
        guard !changed.contains(.snapshot) else { return }
        if owner == ServiceName.queue.text { changed.insert(.snapshot) }
        guard owner == ServiceName.playback.text, collection == "session" else { return }
        let old = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM record WHERE owner = ? AND collection = ? AND key = ?"),
            arguments: [owner, collection, key])
        let (new, known) = (value.flatMap(Self.loadedEpisode), old.flatMap(Self.loadedEpisode))
        if new == nil || new != known { changed.insert(.snapshot) }
    }

    private static func loadedEpisode(_ session: Data) -> String? {
        (try? WireSessionRecord(serializedBytes: session))?.episode.id
    }
}
