import NIOConcurrencyHelpers
public import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The file of the feeds’ users and passwords (`secrets.json`, mode 0600). One service writes it.
public struct SecretsFile: Sendable, Hashable {
    /// Where it lies.
    public let path: String

    /// The largest file that is read, in bytes.
    static let limit = 16 << 20

    /// The file at `path`, which need not exist.
    public init(path: String) {
        self.path = path
    }

    /// What it holds; without a file, nothing.
    ///
    /// - Throws: `storageFailed` for a file that can’t be read or isn’t what this service writes.
    public func read() throws(Failure) -> FeedSecrets {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return FeedSecrets() }
            throw Failure(
                .storageFailed, "The file of passwords \(path) can’t be read: \(String(cString: strerror(errno))).")
        }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= Self.limit {
            let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, filled in
                // Nothing interrupts reading a regular file.
                filled = max(0, PlatformFile.read(descriptor, buffer.baseAddress, buffer.count))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        do {
            return try FeedSecrets(content: bytes)
        } catch {
            // The reason could quote what stands there.
            throw Failure(.storageFailed, "The file of passwords \(path) is damaged.")
        }
    }

    /// Writes it anew: whole and on the disk, or not at all.
    ///
    /// - Throws: `diskFull`, `badConfiguration`, `storageFailed`.
    public func write(_ secrets: FeedSecrets) throws(Failure) {
        let bytes: [UInt8]
        do {
            bytes = try secrets.content
        } catch {
            throw Failure(.storageFailed, "The passwords can’t be written.")
        }
        try SmallFile.replaceWhole(path, with: String(decoding: bytes, as: UTF8.self))
    }

    /// Moves a damaged file out of the way, so that it is neither read again nor written over.
    ///
    /// - Returns: its new path; nil if it could not be moved.
    public func setAside(at moment: Timestamp) -> String? {
        let target = "\(path).damaged-\(moment.milliseconds)"
        return rename(path, target) == 0 ? target : nil
    }

    /// Removes it, if it is there.
    public func remove() {
        _ = unlink(path)
    }
}

private enum PlatformFile {
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
        #if canImport(Glibc)
        Glibc.read(descriptor, buffer, count)
        #elseif canImport(Musl)
        Musl.read(descriptor, buffer, count)
        #else
        Darwin.read(descriptor, buffer, count)
        #endif
    }
}

/// Looks up users and passwords in the file as it is now. It is read again only when it has changed.
public final class SecretsReader: Sendable {
    private struct Version: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int
        var nanoseconds: Int
    }

    private let file: SecretsFile
    private let known = NIOLockedValueBox<(version: Version, secrets: FeedSecrets)?>(nil)

    /// A reader of a home’s secrets.
    public init(_ file: SecretsFile) {
        self.file = file
    }

    /// Everything of a podcast, by server. A file that can’t be read holds nothing.
    public func credentials(of podcast: String) -> [WebOrigin: WebCredentials] {
        current.credentials(of: podcast)
    }

    /// The user and password for an address of a podcast; nil unless they belong to that very server.
    public func credentials(of podcast: String, at address: WebAddress) -> WebCredentials? {
        current.credentials(of: podcast, at: address)
    }

    private var current: FeedSecrets {
        var status = stat()
        guard stat(file.path, &status) == 0 else { return FeedSecrets() }
        #if canImport(Darwin)
        let modified = status.st_mtimespec
        #else
        let modified = status.st_mtim
        #endif
        let version = Version(
            inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: modified.tv_sec,
            nanoseconds: modified.tv_nsec)
        return known.withLockedValue { known in
            if let known, known.version == version { return known.secrets }
            guard let secrets = try? file.read() else { return FeedSecrets() }
            known = (version, secrets)
            return secrets
        }
    }
}
