import BusKit
import GRDB
package import PodcastModel
package import WireMessages

extension Store {
    /// Answers a query; may run on any thread, concurrently with others and the writer.
    ///
    /// - Throws: the failure to answer with.
    package func answer(
        _ question: WirePersistenceRequest.OneOf_Command, now: Timestamp = SystemClocks.wall()
    ) throws(Failure) -> WirePersistenceReply {
        var reply = WirePersistenceReply()
        switch question {
        case .loadRecords(let query): reply.records = try records(query)
        case .findReply(let query): reply.foundReply = try foundReply(query)
        case .podcasts(let query): reply.podcasts = try podcasts(query)
        case .episodes(let query): reply.episodes = try episodes(query, now: now)
        case .episodesByID(let query): reply.episodes = try episodes(query)
        case .findEpisode(let query): reply.episodes = try find(query)
        case .findPodcast(let query): reply.podcasts = try find(query)
        case .aliases(let query): reply.aliases = try aliases(query)
        case .history(let query): reply.history = try history(query)
        case .statistics(let query): reply.statistics = try statistics(query)
        case .listBackups: reply.backups = listBackups()
        case .check: reply.check = try check()
        case .load, .commit, .backup, .answerAlert:
            throw Failure(.unknownCommand, "The request is a command, not a query.")
        }
        return reply
    }

    /// Reads the whole database.
    private func check() throws(Failure) -> WireDatabaseCheck {
        var check = WireDatabaseCheck()
        check.damage = try damage()?.description ?? ""
        // The size includes the log, which has the newest pages.
        check.bytes = ["", "-wal"].reduce(0) { $0 + (DatabaseCopy.size(of: files.database + $1) ?? 0) }
        check.sqliteVersion = try read("reading the version") { db in
            try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? ""
        }
        return check
    }
}
