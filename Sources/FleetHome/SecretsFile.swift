import LibC
import NIOConcurrencyHelpers
package import PodcastModel

/// The file of the feeds’ users and passwords (`secrets.json`, mode 0600). Only one service writes it.
package struct SecretsFile: Sendable, Hashable {
    package let path: String

    /// The maximum size of a file that is read, in bytes.
    static let limit = 16 << 20

    package init(path: String) { self.path = path }

    /// Reads the secrets; empty if there is no file.
    ///
    /// - Throws: `storageFailed` for an unreadable file; `malformed` for another format.
    package func read() throws(Failure) -> FeedSecrets {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try SmallFile.contents(path, limit: Self.limit)
        } catch {
            if error.number == ENOENT { return FeedSecrets() }
            throw Failure(.storageFailed, "The password file \(path) can’t be read: \(error.reason).")
        }
        do {
            return try FeedSecrets(content: bytes)
        } catch {
            // The parser’s error isn’t quoted, because it could contain a password.
            throw Failure(.malformed, "The password file \(path) is damaged.")
        }
    }

    /// Reads the secrets. A damaged file is moved aside, so that it is neither read again nor overwritten; `damage`
    /// reports it.
    ///
    /// - Throws: `storageFailed` for a file that can’t be read or moved aside; the file isn’t changed.
    package func load(at moment: Timestamp) throws(Failure) -> (secrets: FeedSecrets, damage: String?) {
        do throws(Failure) {
            return (try read(), nil)
        } catch {
            guard error.known == .malformed else { throw error }
            return (FeedSecrets(), "\(error.message) It was kept as \(try setAside(at: moment)).")
        }
    }

    /// Replaces the file atomically and durably.
    package func write(_ secrets: FeedSecrets) throws(Failure) {
        let bytes: [UInt8]
        do {
            bytes = try secrets.content
        } catch {
            throw Failure(.storageFailed, "The passwords can’t be written.")
        }
        try SmallFile.replaceWhole(path, with: String(decoding: bytes, as: UTF8.self))
    }

    /// Moves the file aside; returns its new path.
    private func setAside(at moment: Timestamp) throws(Failure) -> String {
        let target = "\(path).damaged-\(moment.milliseconds)"
        guard rename(path, target) == 0 else {
            throw Failure(
                .storageFailed,
                "The password file \(path) is damaged, and can’t be moved aside: \(SystemError.reason()).")
        }
        return target
    }

    package func remove() {
        _ = unlink(path)
    }
}

/// Looks up users and passwords in the current file, which is read again only when it has changed.
package final class SecretsReader: Sendable {
    private struct Version: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int
        var nanoseconds: Int
    }

    private let file: SecretsFile
    private let known = NIOLockedValueBox<(version: Version, secrets: FeedSecrets)?>(nil)

    package init(_ file: SecretsFile) { self.file = file }

    /// The credentials of a podcast, by server; empty if the file can’t be read.
    package func credentials(of podcast: String) -> [WebOrigin: WebCredentials] {
        current.credentials(of: podcast)
    }

    /// The user and password for an address of a podcast; nil unless they belong to the same server.
    package func credentials(of podcast: String, at address: WebAddress) -> WebCredentials? {
        current.credentials(of: podcast, at: address)
    }

    private var current: FeedSecrets {
        var status = stat()
        guard stat(file.path, &status) == 0 else { return FeedSecrets() }
        let version = Version(
            inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: status.modified.tv_sec,
            nanoseconds: status.modified.tv_nsec)
        return known.withLockedValue { known in
            if let known, known.version == version { return known.secrets }
            guard let secrets = try? file.read() else { return FeedSecrets() }
            known = (version, secrets)
            return secrets
        }
    }
}

extension LockstepHome {
    package var secretsFile: SecretsFile { SecretsFile(path: dataDirectory + "/secrets.json") }
    /// The users and passwords that persistence found in an older database, until the feeds service imports them.
    package var movedSecretsFile: SecretsFile { SecretsFile(path: dataDirectory + "/secrets.moved.json") }
}
