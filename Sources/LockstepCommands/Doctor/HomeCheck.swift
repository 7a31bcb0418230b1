import FleetHome
import FoundationEssentials
import LibC
import LockstepClient
import PodcastModel

/// Checks the settings, the folders, the disk, the backups and the clock, without a fleet.
struct HomeCheck: Sendable {
    let home: LockstepHome
    /// The current time in seconds since 1970.
    var now = Date().timeIntervalSince1970
    var userID = geteuid()
    var canAccess: @Sendable (String, Int32) -> Bool = { access($0, $1) == 0 }

    private static let day = 86_400.0

    func findings() -> [Finding] {
        folders() + [sockets(), disk(), backups(), clock()]
    }

    func settings(_ settings: Settings) -> [Finding] {
        guard settings.problems.isEmpty else {
            return settings.problems.map {
                .fault("settings", $0, do: "Correct the setting; until then the fleet can’t be restarted.")
            }
        }
        guard access(home.configurationFile, F_OK) == 0 else {
            return [.ok("settings", "There is no \(home.configurationFile); the defaults are used.")]
        }
        return [.ok("settings", "\(home.configurationFile) is valid.")]
    }

    func folders() -> [Finding] {
        let faults = home.folderFaults(userID: userID, canAccess: canAccess)
            .map { Finding.fault("folders", $0.message, do: $0.advice) }
        let findings = warnings() + faults
        guard findings.isEmpty else { return findings }
        return [
            .ok(
                "folders", "\(home.dataDirectory), \(home.stateDirectory) and \(home.runDirectory) belong to this user."
            )
        ]
    }

    /// Checks for permissions that are usable but unsafe.
    private func warnings() -> [Finding] {
        var warnings: [Finding] = []
        var isOthers = false
        for path in [home.configurationDirectory, home.dataDirectory, home.stateDirectory, home.runDirectory] {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { continue }
            guard status.st_uid == userID else {
                // An unusable folder and the run directory are reported as faults elsewhere; one warning is sufficient.
                if isOthers || path == home.runDirectory || !canAccess(path, R_OK | W_OK | X_OK) { continue }
                isOthers = true
                let owner = LockstepHome.name(ofUser: status.st_uid)
                warnings.append(
                    .warning(
                        "folders",
                        "\(path) belongs to another user (\(owner)), who may not be able to use files that you create there.",
                        do: "Run `lockstep` as that user."))
                continue
            }
            if let finding = Self.finding(ofMode: status.st_mode, path, isPrivate: path == home.runDirectory) {
                warnings.append(finding)
            }
        }
        return warnings
    }

    private static func finding(ofMode mode: mode_t, _ path: String, isPrivate: Bool) -> Finding? {
        let others = mode & 0o077
        if others != 0, isPrivate {
            return .warning(
                "folders", "\(path) is accessible to other users, who could control the fleet through its sockets.",
                do: "chmod 700 \(path)"
            )
        }
        guard others & 0o022 != 0 else { return nil }
        return .warning("folders", "Other users can write to \(path).", do: "chmod go-w \(path)")
    }

    func sockets() -> Finding {
        do throws(Failure) {
            try home.checkSocketPaths()
            return .ok("sockets", "The path \(home.controlSocket) is short enough for a socket.")
        } catch {
            return .fault("sockets", error.message, do: "For example: `export LOCKSTEP_HOME=$HOME/lockstep`.")
        }
    }

    func disk() -> Finding {
        var status = statvfs()
        guard statvfs(LockstepHome.nearestFile(to: home.dataDirectory), &status) == 0 else {
            let reason = SystemError.reason()
            return .warning("disk", "Couldn’t determine the free space: \(reason).", do: "See `df`.")
        }
        guard status.f_blocks > 0 else {
            return .warning(
                "disk", "\(home.dataDirectory) is on a virtual file system, which stores no files.",
                do: "Set LOCKSTEP_HOME to another folder.")
        }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        return Self.disk(free: free, at: home.dataDirectory)
    }

    static func disk(free: UInt64, at path: String) -> Finding {
        let message = "\(NumberText.bytes(free)) free at \(path)."
        if free < 50_000_000 {
            var finding = Finding.fault(
                "disk", message, do: "Free some space: nothing can be saved once the disk is full.")
            finding.subject = Finding.fullDisk
            return finding
        }
        if free < 500_000_000 { return .warning("disk", message, do: "Free some space soon.") }
        return .ok("disk", message)
    }

    func backups() -> Finding {
        let database = Self.modified(home.database)
        let copies = DatabaseCopy.all(in: home.backupDirectory).filter { $0.kind == .backup }
        let newest = copies.compactMap { copy in Self.modified(copy.path).map { (copy, at: $0) } }.max { $0.at < $1.at }
        guard let (copy, newest) = newest else {
            guard database != nil else { return .ok("backups", "There is no database yet.") }
            // The modification time of the service’s lock file is its last start.
            guard let started = Self.modified(home.runFile("persistence.lock")), now - started > 3_600 else {
                return .ok("backups", "There is no backup yet; the first is made five minutes after the start.")
            }
            return .warning("backups", "There is no backup.", do: "Make one with `lockstep backup`.")
        }
        let age = max(0, now - newest)
        let message = "The newest backup is \(TimeText.span(age)) old."
        guard age > 2 * Self.day + Double(copy.interval) / 1_000, let database, now - database < age else {
            return .ok("backups", message)
        }
        return .warning("backups", message, do: "Make one with `lockstep backup`; see `lockstep logs persistence`.")
    }

    func clock() -> Finding {
        // Every start of a service or of the bus writes these files.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: home.stateDirectory)) ?? []
        let files = names.filter { $0.hasSuffix(".generation") || $0.contains("epoch") }
        return Self.clock(now: now, newestFile: files.compactMap { Self.modified(home.stateFile($0)) }.max())
    }

    static func clock(now: Double, newestFile: Double?) -> Finding {
        // 1 January 2026: no correct clock is earlier, because this program was released later.
        guard now > 1_767_225_600 - 60 * day else {
            return .fault(
                "clock",
                "The clock says \(TimeText.minute(milliseconds: Int64(now * 1_000))), which is in the past.",
                do: "Set it, for example with `timedatectl set-ntp true`; secure connections fail until then.")
        }
        if let newestFile, newestFile > now + 60 {
            return .warning(
                "clock", "The clock was set back by \(TimeText.span(newestFile - now)) since the fleet’s last start.",
                do: "Check it with `timedatectl`; no data is lost, but times in lists may be wrong.")
        }
        return .ok("clock", "The time is \(TimeText.minute(milliseconds: Int64(now * 1_000))).")
    }

    private static func modified(_ path: String) -> Double? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.modificationDate] as? Date)?.timeIntervalSince1970
    }
}
