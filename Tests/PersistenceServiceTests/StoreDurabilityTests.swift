import Foundation
import GRDB
import GRDBSQLite
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import PersistenceService

/// Tests when data is on the disk.
@Suite struct StoreDurabilityTests {
    private func commit(_ number: Int) -> WireCommit {
        WireCommit(
            "c\(number)", at: UInt64(number), [.put("entry", "q\(number)", "value \(number)")], request: "r\(number)")
    }

    @Test func `every transaction synchronises the log once`() throws {
        let fixture = try StoreFixture()
        let syncs = NIOLockedValueBox(0)
        let watch = WatchedFiles(fixture.folder) { event in
            if event.operation == .sync, event.path.hasSuffix("-wal") { syncs.withLockedValue { $0 += 1 } }
            return SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            try store.apply("queue", [])
            for number in 1...20 {
                let before = syncs.withLockedValue { $0 }
                let outcomes = try store.commit(WireCommitBatch("queue", [commit(number)]))
                #expect(outcomes.outcomes[0].kind == .committed)
                #expect(syncs.withLockedValue { $0 } == before + 1)
            }
            // Sixty-four commits of several owners in one transaction synchronise once.
            let before = syncs.withLockedValue { $0 }
            let writes = (0..<64).map { number in
                StoreWrite.commit(
                    WireCommitBatch(
                        "owner" + String("abcdefgh".dropFirst(number % 8).prefix(1)),
                        [
                            WireCommit("g\(number)", at: UInt64(number / 8), [.put("entry", "q\(number)", "x")])
                        ]))
            }
            let result = store.write(writes, now: StoreFixture.moment())
            for one in result.results {
                guard case .outcomes(let outcomes)? = try one.get().result else { throw UnexpectedAnswer() }
                #expect(outcomes.outcomes.map(\.kind) == [.committed])
            }
            #expect(syncs.withLockedValue { $0 } == before + 1)
            store.close()
        }
    }

    @Test func `the count of synchronisations reveals a commit that doesn’t wait for the disk`() throws {
        let fixture = try StoreFixture()
        let syncs = NIOLockedValueBox(0)
        let watch = WatchedFiles(fixture.folder) { event in
            if event.operation == .sync { syncs.withLockedValue { $0 += 1 } }
            return SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            try store.pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA synchronous = NORMAL")
                #expect(throws: Failure.self) { try Store.checkDurability(db) }
            }
            try store.apply("queue", [])
            let before = syncs.withLockedValue { $0 }
            for number in 1...5 { _ = try store.commit(WireCommitBatch("queue", [commit(number)])) }
            #expect(syncs.withLockedValue { $0 } == before)
            store.close()
        }
    }

    /// Simulates a power failure: each file keeps only its synchronised content.
    @Test func `acknowledged commits survive a loss of power`() throws {
        let fixture = try StoreFixture()
        let image = fixture.folder + "/image.db"
        let main = fixture.files.database
        let watch = WatchedFiles(fixture.folder + "/state") { event in
            guard event.operation == .sync, event.path.hasPrefix(main),
                FileManager.default.fileExists(atPath: event.path)
            else { return SQLITE_OK }
            let copy = image + event.path.dropFirst(main.count)
            try? FileManager.default.removeItem(atPath: copy)
            try? FileManager.default.copyItem(atPath: event.path, toPath: copy)
            return SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            for number in 0..<30 {
                let before = try store.commit(WireCommitBatch("queue", [commit(number)]))
                #expect(before.outcomes[0].kind == .committed)
                guard number % 5 == 0 else { continue }
                try expect(number + 1, in: image, of: fixture)
            }
        }
    }

    /// Simulates `kill -9` between any two writes: acknowledged commits are complete, others complete or absent.
    @Test func `acknowledged commits survive a kill at every write`() throws {
        let fixture = try StoreFixture()
        let main = fixture.files.database
        let acknowledged = NIOLockedValueBox(0)
        let images = NIOLockedValueBox<[(path: String, acknowledged: Int)]>([])
        let folder = fixture.folder
        let watch = WatchedFiles(folder + "/state") { event in
            guard event.operation != .sync else { return SQLITE_OK }
            images.withLockedValue { images in
                let path = "\(folder)/killed\(images.count).db"
                for suffix in ["", "-wal"] {
                    try? FileManager.default.copyItem(atPath: main + suffix, toPath: path + suffix)
                }
                images.append((path, acknowledged.withLockedValue { $0 }))
            }
            return SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            let opened = images.withLockedValue { $0.count }
            for number in 0..<12 {
                _ = try store.commit(WireCommitBatch("queue", [commit(number)]))
                acknowledged.withLockedValue { $0 += 1 }
            }
            try store.pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
            let all = images.withLockedValue { $0 }
            #expect(all.count > opened + 12)
            for image in all.dropFirst(opened) {
                let database = StoreFiles(database: image.path, backups: folder + "/none")
                let killed = try Store.open(database, now: StoreFixture.moment())
                #expect(killed.recovery == nil)
                let revision = try killed.store.revision("queue")
                #expect(revision == UInt64(image.acknowledged) || revision == UInt64(image.acknowledged + 1))
                #expect(try killed.store.texts("queue").count == Int(revision))
                killed.store.close()
            }
        }
    }

    @Test func `a refused commit applies none of its changes`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let many = (0..<200).map { WireChange.put("entry", "q\($0)", String(repeating: "x", count: 500)) }
        let refused = many + [.put("", "", "")]
        let outcome = try store.commit(WireCommitBatch("queue", [WireCommit("a", at: 0, refused)])).outcomes[0]
        #expect(outcome.kind == .refused)
        #expect(try store.texts("queue") == [])
    }

    private func expect(_ count: Int, in image: String, of fixture: StoreFixture) throws {
        let copy = fixture.folder + "/power\(count).db"
        for suffix in ["", "-wal"] { try? FileManager.default.copyItem(atPath: image + suffix, toPath: copy + suffix) }
        let store = try Store.open(
            StoreFiles(database: copy, backups: fixture.folder + "/none"), now: StoreFixture.moment()
        ).store
        #expect(try store.revision("queue") == UInt64(count))
        #expect(try store.texts("queue").count == count)
        store.close()
    }
}
