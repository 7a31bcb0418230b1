import LibC
package import PodcastModel

/// A sentence with the reason why a fleet can’t store its files in a folder, and another one with advice.
package struct FolderFault: Sendable, Hashable {
    package let message: String
    package let advice: String
    /// The folder that must be changed: the required one, or one above it.
    package let path: String
}

extension LockstepHome {
    /// All folders of a fleet, each after the folders that contain it.
    package var folders: [String] {
        [
            configurationDirectory, dataDirectory, stateDirectory, runDirectory, backupDirectory, logDirectory,
            crashDirectory,
        ]
    }

    /// The reasons why a user can’t run a fleet in its folders, each once. Missing folders are checked by creating and
    /// removing one in each folder that would contain them.
    package func folderFaults(userID: UInt32, canAccess: (String, Int32) -> Bool) -> [FolderFault] {
        var faults: [(folder: String, fault: FolderFault)] = []
        var tried: Set<String> = []
        for folder in folders {
            // A fault of a folder also affects the folders in it.
            let isBehindFault = faults.contains { folder.hasPrefix($0.folder + "/") }
            guard !isBehindFault, let fault = fault(of: folder, userID, canAccess, &tried),
                !faults.contains(where: { $0.fault.path == fault.path })
            else { continue }
            faults.append((folder, fault))
        }
        return faults.map(\.fault)
    }

    /// Creates the missing folders, accessible to this user only.
    ///
    /// - Throws: `badConfiguration` naming the folder: see `folderFaults`; or its path is too long for a socket.
    package func prepare() throws(Failure) {
        try checkSocketPaths()
        if let fault = folderFaults(userID: geteuid(), canAccess: { access($0, $1) == 0 }).first {
            throw Failure(.badConfiguration, "\(fault.message) \(fault.advice)")
        }
        for folder in folders { try Self.createFolder(folder) }
        var status = stat()
        if stat(runDirectory, &status) == 0, status.st_mode & 0o077 != 0, chmod(runDirectory, 0o700) != 0 {
            throw Failure(
                .badConfiguration,
                "The folder \(runDirectory) is accessible to others, and can’t be closed: \(SystemError.reason()).")
        }
    }

    /// The path, or the nearest existing file above it.
    package static func nearestFile(to path: String) -> String {
        var parts = path.split(separator: "/")
        var status = stat()
        while !parts.isEmpty, lstat("/" + parts.joined(separator: "/"), &status) != 0 { parts.removeLast() }
        return "/" + parts.joined(separator: "/")
    }

    // MARK: - One folder

    private func fault(
        of path: String, _ userID: UInt32, _ canAccess: (String, Int32) -> Bool, _ tried: inout Set<String>
    ) -> FolderFault? {
        var status = stat()
        guard stat(path, &status) == 0 else { return Self.faultOfAbsent(path, errno, canAccess, &tried) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return FolderFault(
                message: "\(path) is a file, not a folder.",
                advice: "Move it away, or set LOCKSTEP_HOME to another folder.", path: path)
        }
        let isRun = path == runDirectory
        var link = stat()
        if isRun, lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK {
            return FolderFault(
                message: "\(path) is a symbolic link; its sockets wouldn’t be safe.",
                advice: "Remove it, or set LOCKSTEP_HOME to another folder.", path: path)
        }
        let isUsable = canAccess(path, R_OK | W_OK | X_OK)
        let number = errno
        // A privileged user may use another user’s data folder, but not another user’s run folder, whose owner could
        // replace the sockets.
        if status.st_uid != userID, isRun || !isUsable {
            return FolderFault(
                message: "\(path) belongs to another user (\(Self.name(ofUser: status.st_uid))).",
                advice: "Run `lockstep` as that user, or set LOCKSTEP_HOME to another folder.", path: path)
        }
        guard !isUsable else { return nil }
        return FolderFault(
            message: "\(path) can’t be read and written: \(SystemError.reason(number)).",
            advice: number == EACCES
                ? "Change its mode to u+rwx, or set LOCKSTEP_HOME to another folder."
                : "Set LOCKSTEP_HOME to another folder.", path: path)
    }

    /// The fault of a missing folder; nil if it can be created.
    private static func faultOfAbsent(
        _ path: String, _ number: Int32, _ canAccess: (String, Int32) -> Bool, _ tried: inout Set<String>
    ) -> FolderFault? {
        let nearest = nearestFile(to: path)
        var status = stat()
        guard stat(nearest, &status) == 0 else {
            return cannotCreate(path, in: nearest, "\(nearest) is a symbolic link to nothing")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return cannotCreate(path, in: nearest, "\(nearest) is a file, not a folder")
        }
        guard canAccess(nearest, W_OK | X_OK) else {
            return cannotCreate(path, in: nearest, "\(nearest) isn’t writable (\(SystemError.reason()))")
        }
        guard number == ENOENT else {
            return FolderFault(
                message: "\(path) can’t be examined: \(SystemError.reason(number)).",
                advice: "Set LOCKSTEP_HOME to another folder.", path: path)
        }
        // Some system folders, such as /proc, appear writable but aren’t.
        guard tried.insert(nearest).inserted else { return nil }
        let trial = nearest + "/.lockstep-\(getpid())"
        guard mkdir(trial, 0o700) == 0 else {
            guard errno != EEXIST else { return nil }
            return cannotCreate(path, in: nearest, "no folder can be created in \(nearest) (\(SystemError.reason()))")
        }
        rmdir(trial)
        return nil
    }

    private static func cannotCreate(_ path: String, in nearest: String, _ reason: String) -> FolderFault {
        FolderFault(
            message: "\(path) can’t be created: \(reason).",
            advice: "Set LOCKSTEP_HOME to a folder that this user can write to, or change \(nearest).", path: nearest)
    }

    /// Creates a folder and the missing ones above it, accessible to this user only.
    package static func createFolder(_ folder: String) throws(Failure) {
        guard !make(folder) else { return }
        // `errno` is read before another call overwrites it.
        let reason = SystemError.reason()
        let fault = cannotCreate(folder, in: nearestFile(to: folder), reason)
        throw Failure(.badConfiguration, "\(fault.message) \(fault.advice)")
    }

    /// Creates a folder and the missing ones above it; false with `errno` on failure.
    private static func make(_ folder: String) -> Bool {
        var path = ""
        for part in folder.split(separator: "/") {
            path += "/" + part
            if mkdir(path, 0o700) == 0 || errno == EEXIST || errno == EISDIR { continue }
            // A parent folder that isn’t writable may nevertheless exist.
            let number = errno
            guard access(path, X_OK) == 0 else {
                errno = number
                return false
            }
        }
        return true
    }

    /// The name of a user, or the number if there is none.
    package static func name(ofUser number: UInt32) -> String {
        guard let entry = getpwuid(number), let name = entry.pointee.pw_name else { return "number \(number)" }
        return String(cString: name)
    }
}
