import BusKit
public import PodcastModel
import WireMessages

// Commands about the database itself.

extension LibraryClient {
    /// A backup of the database that was made.
    public struct Backup: Sendable, Hashable {
        /// The file’s path.
        public let path: String
        /// Its length in bytes.
        public let bytes: UInt64
    }

    /// The result of a check of the whole database.
    public struct DatabaseCheck: Sendable, Hashable {
        /// The damage that was found; empty: none.
        public let damage: String
        /// Its length in bytes.
        public let bytes: UInt64
        /// The version of the library that reads it.
        public let sqliteVersion: String
    }

    /// Backs up the database now.
    public func backUp() async throws(Failure) -> Backup {
        let done = try await fleet.persistence.backup()
        return Backup(path: DisplayText.sanitised(done.path), bytes: done.bytes)
    }

    /// Reads the whole database and checks it, which may take a minute.
    public func checkDatabase() async throws(Failure) -> DatabaseCheck {
        let check = try await PersistenceClient(fleet.client, within: .seconds(60)).check()
        return DatabaseCheck(
            damage: DisplayText.sanitised(check.damage), bytes: check.bytes,
            sqliteVersion: DisplayText.sanitised(check.sqliteVersion))
    }
}

extension Fleet {
    /// The names of the services that a fleet can have.
    package static let serviceNames = ServiceCatalog.all.filter { $0.start != .planned }.map(\.name.text)

    /// The version of the library that carries the messages, libzmq.
    package static var messagingVersion: (major: Int, minor: Int, patch: Int) { BusLibrary.version }
}
