import FleetHome
import Foundation
import PodcastModel
import SwiftProtobuf
import TestSupport
import WireMessages

@testable import PersistenceService

/// A store in a separate folder, which is removed after the test.
final class StoreFixture: Sendable {
    private let temporary: TemporaryFolder
    var folder: String { temporary.path }
    let files: StoreFiles

    init() throws {
        temporary = try TemporaryFolder()
        files = StoreFiles(database: temporary.path + "/state/lockstep.db", backups: temporary.path + "/backups")
    }

    /// A time in 2026, plus a number of seconds.
    static func moment(_ seconds: Int64 = 0) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000 + seconds * 1_000)
    }

    /// A copy that is described but doesn’t exist.
    static func copy(_ kind: DatabaseCopy.Kind, at seconds: Int64, bytes: UInt64 = 1) -> DatabaseCopy {
        DatabaseCopy(kind: kind, path: "\(kind)\(seconds)", at: moment(seconds), bytes: bytes)
    }

    func open(at seconds: Int64 = 0) throws -> Store { try Store.open(files, now: Self.moment(seconds)).store }

    func openRecovering(at seconds: Int64 = 0) throws -> (store: Store, recovery: Recovery?) {
        try Store.open(files, now: Self.moment(seconds))
    }

    /// The names of the files in the folder of the database.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder + "/state").sorted()
    }

    func bytes() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: files.database)) }

    func overwrite(_ data: Data) throws {
        try data.write(to: URL(fileURLWithPath: files.database))
    }
}

extension Data {
    /// Derives 16 bytes from a name.
    static func id(_ name: String) -> Data {
        var bytes = Data(name.utf8.prefix(16))
        bytes.append(Data(repeating: 0x2E, count: 16 - bytes.count))
        return bytes
    }
}

extension WireChange {
    static func put(_ collection: String, _ key: String, _ text: String) -> WireChange {
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value = Data(text.utf8)
        return change
    }

    static func podcast(_ id: String, title: String = "Show", subscribed: Bool = true) -> WireChange {
        var change = WireChange()
        change.putPodcast.id = id
        change.putPodcast.title = title
        change.putPodcast.subscribed = subscribed
        change.putPodcast.url = "https://example.org/\(id)"
        change.putPodcast.etag = "tag"
        return change
    }

    static func episode(
        _ id: String, of podcast: String = "p1", title: String = "Episode", notes: String = "", published: Int64 = 1_000
    ) -> WireChange {
        var change = WireChange()
        change.putEpisode.id = id
        change.putEpisode.podcastID = podcast
        change.putEpisode.title = title
        change.putEpisode.description_p = notes
        change.putEpisode.published = published
        return change
    }

    static func state(_ id: String, position: Double = 10, played: Bool = false) -> WireChange {
        var change = WireChange()
        change.putEpisodeState.episode = id
        change.putEpisodeState.position = position
        change.putEpisodeState.played = played
        return change
    }

    static func session(
        _ id: String, _ episode: String = "e1", of podcast: String = "p1", at started: Int64, heard: Double = 60,
        _ change: (inout WirePlaySession) -> Void = { _ in }
    ) -> WireChange {
        var session = WirePlaySession.with {
            ($0.id, $0.episode, $0.podcast, $0.started, $0.ended) = (id, episode, podcast, started, started + 40_000)
            ($0.began, $0.leftAt, $0.heard, $0.wall, $0.silence, $0.device) = (5, 65, heard, 40, 2, "laptop")
        }
        change(&session)
        return .with { $0.putPlaySession = session }
    }

    static func alias(_ name: String, of podcast: String, is episode: String) -> WireChange {
        var change = WireChange()
        change.putAlias.podcast = podcast
        change.putAlias.alias = name
        change.putAlias.episode = episode
        return change
    }
}

extension WireCommit {
    init(_ id: String, at revision: UInt64, _ changes: [WireChange], request: String? = nil, reply: String = "") {
        self.init()
        self.id = .id(id)
        expectedRevision = revision
        self.changes = changes
        if let request { requestID = .id(request) }
        self.reply = Data(reply.utf8)
    }
}

extension WireCommitBatch {
    init(_ owner: String, generation: UInt32 = 1, _ commits: [WireCommit]) {
        self.init()
        self.owner = owner
        self.generation = generation
        self.commits = commits
    }
}

extension Store {
    /// Writes one batch of commits.
    func commit(_ batch: WireCommitBatch, at seconds: Int64 = 0) throws -> WireCommitOutcomes {
        let result = write([.commit(batch)], now: StoreFixture.moment(seconds))
        guard case .outcomes(let outcomes)? = try result.results[0].get().result else { throw UnexpectedAnswer() }
        return outcomes
    }

    /// Commits with the owner’s current revision, for tests of other behaviour.
    @discardableResult
    func apply(_ owner: String, _ changes: [WireChange], at seconds: Int64 = 0) throws -> WireCommitOutcome {
        let row = try read("testing") { db in try OwnerRow.fetch(db, owner) }
        let commit = WireCommit("\(owner)\(row.revision)", at: row.revision, changes)
        let outcome = try self.commit(
            WireCommitBatch(owner, generation: max(row.generation, 1), [commit]), at: seconds
        ).outcomes[0]
        guard outcome.kind == .committed else { throw outcome.failure.failure }
        return outcome
    }

    func load(_ owner: String, generation: UInt32) throws -> WireLoaded {
        var load = WireLoad()
        load.owner = owner
        load.generation = generation
        let result = write([.load(load)], now: StoreFixture.moment())
        guard case .loaded(let loaded)? = try result.results[0].get().result else { throw UnexpectedAnswer() }
        return loaded
    }

    /// All records of an owner as `collection/key=text`.
    func texts(_ owner: String) throws -> [String] {
        try allRecords(of: owner).map { "\($0.collection)/\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }
    }

    func revision(_ owner: String) throws -> UInt64 {
        try read("testing") { db in try OwnerRow.fetch(db, owner).revision }
    }

    func episodes(
        now: Timestamp = StoreFixture.moment(), _ change: (inout WireEpisodesQuery) -> Void = { _ in }
    ) throws -> WireEpisodesPage {
        var query = WireEpisodesQuery()
        change(&query)
        return try episodes(query, now: now)
    }

    /// The IDs of all pages of a list.
    func ids(
        now: Timestamp = StoreFixture.moment(), pageLength: UInt32 = 3, _ change: (inout WireEpisodesQuery) -> Void
    ) throws -> [String] {
        var query = WireEpisodesQuery.with { $0.limit = pageLength }
        change(&query)
        var ids: [String] = []
        repeat {
            let page = try episodes(query, now: now)
            ids += page.episodes.map(\.id)
            query.after = page.next
        } while !query.after.isEmpty
        return ids
    }
}

struct UnexpectedAnswer: Error {}
