import LibC
import PodcastModel

extension DownloadFolder {
    /// Deletes a downloaded file, which must be a regular file whose name contains the episode’s ID.
    ///
    /// - Returns: the failure, which allows a retry if the file is a download; nil if the file no longer exists.
    func delete(_ episode: String, at path: String) -> Failure? {
        guard let parts = try? Self.parts(of: path), parts.name.contains("[\(episode)].") else {
            return foreignFile("\(path) isn’t a path of a download of \(episode)")
        }
        let folder: Int32
        do throws(Failure) { folder = try openFolder(parts.folder, making: false) } catch {
            return error.code != Self.wrongFolderCode && errno == ENOENT ? nil : error
        }
        defer { close(folder) }
        var status = stat()
        guard fstatat(folder, parts.name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return errno == ENOENT ? nil : failure("The file can’t be checked", path)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return foreignFile("\(root)/\(path) isn’t the file that was downloaded")
        }
        guard unlinkat(folder, parts.name, 0) == 0 else { return failure("The file can’t be deleted", path) }
        fsync(folder)
        // The removal succeeds only if the folder is empty.
        if let top = try? openRoot(making: false) {
            unlinkat(top, parts.folder, AT_REMOVEDIR)
            close(top)
        }
        return nil
    }

    /// The files in the folder and its subfolders with their sizes. Symbolic links aren’t followed and count as files.
    /// One descriptor is used throughout, so that a folder that is mounted meanwhile isn’t read.
    func files() throws(Failure) -> (files: [String: UInt64], snapshot: FolderSnapshot) {
        let top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard top >= 0 else {
            guard errno == ENOENT else { throw failure("The download folder can’t be opened", "") }
            return ([:], FolderSnapshot())
        }
        defer { close(top) }
        guard let marker = Self.marker(in: top) else { throw failure("The folder’s marker can’t be read", "") }
        var snapshot = FolderSnapshot(marker: marker)
        var files: [String: UInt64] = [:]
        for name in Self.names(in: top) where name != Self.partial && !name.hasPrefix(Self.markerName) {
            guard let entry = Self.status(of: name, in: top) else { continue }
            let folder = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard folder >= 0 else {
                files[name] = UInt64(max(0, entry.st_size))
                continue
            }
            defer { close(folder) }
            if Self.isMount(folder, in: top) { snapshot.mounts.insert(name) }
            for inner in Self.names(in: folder) {
                guard let entry = Self.status(of: inner, in: folder) else { continue }
                files["\(name)/\(inner)"] = UInt64(max(0, entry.st_size))
            }
        }
        return (files, snapshot)
    }

    /// Checks the files at these paths (by episode, relative to the folder) and omits files that can’t be checked. The
    /// snapshot is nil if the folder itself can’t be checked.
    func check(_ paths: [String: String]) -> (found: [String: FoundFile], snapshot: FolderSnapshot?) {
        let top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard top >= 0 else {
            return Self.isAbsent(errno) ? (paths.mapValues { _ in .nothing }, FolderSnapshot()) : ([:], nil)
        }
        defer { close(top) }
        guard let marker = Self.marker(in: top) else { return ([:], nil) }
        var snapshot = FolderSnapshot(marker: marker)
        var found: [String: FoundFile] = [:]
        // A folder is opened once for all of its files.
        for (name, files) in Dictionary(grouping: paths, by: { $0.value.prefix { $0 != "/" } }) {
            let folder = openat(top, String(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard folder >= 0 else {
                if Self.isAbsent(errno) { for file in files { found[file.key] = .nothing } }
                continue
            }
            defer { close(folder) }
            if Self.isMount(folder, in: top) { snapshot.mounts.insert(String(name)) }
            for (episode, path) in files {
                found[episode] = Self.lookUp(String(path.dropFirst(name.count + 1)), in: folder)
            }
        }
        return (found, snapshot)
    }

    /// Whether a folder is on another device than its parent.
    private static func isMount(_ folder: Int32, in top: Int32) -> Bool {
        var (inner, outer) = (stat(), stat())
        return fstat(folder, &inner) == 0 && fstat(top, &outer) == 0 && inner.st_dev != outer.st_dev
    }

    private static func lookUp(_ name: String, in folder: Int32) -> FoundFile? {
        var status = stat()
        guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return isAbsent(errno) ? .nothing : nil
        }
        return status.st_mode & S_IFMT == S_IFREG ? .file(UInt64(max(0, status.st_size))) : .other
    }

    /// Whether an error means that a path doesn’t exist or that one of its parents isn’t a folder.
    static func isAbsent(_ error: Int32) -> Bool { [ENOENT, ENOTDIR, ELOOP].contains(error) }

    private func foreignFile(_ what: String) -> Failure {
        Failure(code: FailureCode.storageFailed.rawValue, message: "\(what); it is left alone.")
    }
}
