import NIOConcurrencyHelpers
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

// What is there already, and goes.

extension DownloadFolder {
    /// Deletes a downloaded file, if it is a file whose name ends as ours do with the episode's id.
    ///
    /// - Returns: why it was not, to be tried again unless it is not ours; nil also if it was not there.
    func delete(_ episode: String, at path: String) -> Failure? {
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts.allSatisfy(Self.isComponent), parts[1].contains("[\(episode)].") else {
            return notOurs("\(path) is not where downloads of \(episode) lie")
        }
        let folder: Int32
        do throws(Failure) { folder = try openFolder(parts[0], making: false) } catch {
            return errno == ENOENT ? nil : error
        }
        defer { close(folder) }
        var status = stat()
        guard fstatat(folder, parts[1], &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return errno == ENOENT ? nil : failure("The file cannot be looked at", path)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return notOurs("\(root)/\(path) is not the file that was downloaded")
        }
        guard unlinkat(folder, parts[1], 0) == 0 else { return failure("The file cannot be deleted", path) }
        fsync(folder)
        // Goes only if it is empty.
        if let top = try? openRoot(making: false) {
            unlinkat(top, parts[0], AT_REMOVEDIR)
            close(top)
        }
        return nil
    }

    /// The files in the folder and its folders, with their sizes; symbolic links are not followed, and count as files.
    ///
    /// - Throws: `storageFailed`.
    func files() throws(Failure) -> [String: UInt64] {
        let top = try openRoot(making: true)
        defer { close(top) }
        var files: [String: UInt64] = [:]
        for name in Self.names(in: top) where name != Self.partial {
            guard let entry = Self.status(of: name, in: top) else { continue }
            guard entry.st_mode & S_IFMT == S_IFDIR, let folder = try? openFolder(name, making: false) else {
                files[name] = UInt64(max(0, entry.st_size))
                continue
            }
            defer { close(folder) }
            for inner in Self.names(in: folder) {
                guard let entry = Self.status(of: inner, in: folder) else { continue }
                files["\(name)/\(inner)"] = UInt64(max(0, entry.st_size))
            }
        }
        return files
    }

    /// What lies at these paths, relative to the folder, by episode; those that cannot be looked at are left out.
    func look(at paths: [String: String]) -> [String: FoundFile] {
        let top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard top >= 0 else { return Self.isAbsent(errno) ? paths.mapValues { _ in .nothing } : [:] }
        defer { close(top) }
        var found: [String: FoundFile] = [:]
        // A folder is opened once, however many of its files are looked at.
        for (name, files) in Dictionary(grouping: paths, by: { $0.value.prefix { $0 != "/" } }) {
            let folder = openat(top, String(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard folder >= 0 else {
                if Self.isAbsent(errno) { for file in files { found[file.key] = .nothing } }
                continue
            }
            defer { close(folder) }
            for (episode, path) in files {
                found[episode] = Self.lookUp(String(path.dropFirst(name.count + 1)), in: folder)
            }
        }
        return found
    }

    private static func lookUp(_ name: String, in folder: Int32) -> FoundFile? {
        var status = stat()
        guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return isAbsent(errno) ? .nothing : nil
        }
        return status.st_mode & S_IFMT == S_IFREG ? .file(UInt64(max(0, status.st_size))) : .other
    }

    /// Whether an error says that there is no such thing, or something else in place of a folder.
    private static func isAbsent(_ error: Int32) -> Bool { [ENOENT, ENOTDIR, ELOOP].contains(error) }

    /// The device that the folder is on; where there is none, that of what it would be in.
    var device: UInt64? {
        var path = root
        var status = stat()
        while !path.isEmpty {
            if stat(path, &status) == 0 { return UInt64(status.st_dev) }
            path = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
        }
        return nil
    }

    func notOurs(_ what: String) -> Failure {
        Failure(code: FailureCode.storageFailed.rawValue, message: "\(what); it is left alone.")
    }
}

/// Looks at files, and takes none for gone where the whole disk is out, or not there yet.
final class FolderSight: Sendable {
    private let folder: DownloadFolder
    private let device: @Sendable () -> UInt64?
    /// The device on which files were last.
    private let seen: NIOLockedValueBox<UInt64?>

    /// - Parameter device: the device that the folder is on.
    init(_ folder: DownloadFolder, device: (@Sendable () -> UInt64?)? = nil) {
        let device = device ?? { folder.device }
        self.folder = folder
        self.device = device
        seen = NIOLockedValueBox(device())
    }

    /// What lies at these paths, by episode; nothing is said of those that may be there with their disk.
    func look(at paths: [String: String]) -> [String: FoundFile] {
        let before = device()
        let found = folder.look(at: paths)
        guard let now = device(), now == before else { return [:] }
        let isThere = found.values.contains { if case .file = $0 { true } else { false } }
        return seen.withLockedValue { seen in
            guard isThere || now == seen else { return [:] }
            seen = now
            return found
        }
    }
}
