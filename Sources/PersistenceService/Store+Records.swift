import FoundationEssentials
import GRDB
package import PodcastModel
import SwiftProtobuf
package import WireMessages

extension Store {
    /// The collection that contains the podcasts among the records of `feeds`.
    static let podcastCollection = "podcast"
    /// The default size of a page in bytes; a reply must fit in one frame of 1 MiB.
    static let pageLimit = RequestSizes.pageBytes
    /// The maximum size of a page that can be requested, in bytes.
    static let largestPage = 786_432

    /// A page of an owner’s records, in order of (collection, key); those of `feeds` with its podcasts.
    func records(_ query: WireLoadRecords) throws(Failure) -> WireRecords {
        let limit = query.maxBytes == 0 ? Self.pageLimit : min(Int(query.maxBytes), Self.largestPage)
        return try read("loading records") { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT collection, key, value FROM record
                    WHERE owner = :owner AND (collection, key) > (:afterCollection, :afterKey)
                        AND (:collection = '' OR collection = :collection)
                    UNION ALL
                    SELECT :podcasts, id, value FROM podcast
                    WHERE :owner = 'feeds' AND (:podcasts, id) > (:afterCollection, :afterKey)
                        AND (:collection = '' OR :podcasts = :collection)
                    ORDER BY 1, 2
                    """)
            let rows = try Row.fetchCursor(
                statement,
                arguments: [
                    "owner": query.owner, "collection": query.collection, "podcasts": Self.podcastCollection,
                    "afterCollection": query.afterCollection, "afterKey": query.afterKey,
                ])
            var page = WireRecords()
            var size = 0
            while let row = try rows.next() {
                var record = WireRecord()
                record.collection = row[0]
                record.key = row[1]
                record.value = row[2]
                size += record.value.count + record.key.utf8.count + record.collection.utf8.count + 16
                if size > limit, !page.records.isEmpty {
                    page.more = true
                    break
                }
                page.records.append(record)
            }
            return page
        }
    }

    /// Returns all records of an owner that has few records, such as the service itself.
    package func allRecords(of owner: String) throws(Failure) -> [WireRecord] {
        var query = WireLoadRecords()
        query.owner = owner
        var result: [WireRecord] = []
        while true {
            let page = try records(query)
            result += page.records
            guard page.more, let last = page.records.last else { return result }
            query.afterCollection = last.collection
            query.afterKey = last.key
        }
    }

    /// The stored reply to a command, until it is pruned.
    func foundReply(_ query: WireFindReply) throws(Failure) -> WireFoundReply {
        try read("looking for a reply") { db in
            let reply = try Self.reply(db, owner: query.owner, request: query.requestID)
            return .with {
                $0.found = reply != nil
                $0.reply = reply ?? Data()
            }
        }
    }

    static func reply(_ db: Database, owner: String, request: Data) throws -> Data? {
        try Data.fetchOne(
            db.cachedStatement(sql: "SELECT reply FROM reply WHERE owner = ? AND request = ?"),
            arguments: [owner, request])
    }
}
