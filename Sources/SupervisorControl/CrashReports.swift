package import BusKit
import LibC
import PodcastModel

/// A report of a crash or a hang: a JSON file.
package struct CrashReport: Sendable, Hashable {
    package var path: String
    /// The service, without its prefix.
    package var service: String
    package var pid: Int32
    /// The time at which the file was written, in seconds since 1970.
    package var writtenAt: Double
}

/// The folder for crash reports, `lockstep-NAME-PID-….json` each. The newest 50 are kept.
package struct CrashReports: Sendable {
    package let folder: String

    package init(_ home: LockstepHome) { folder = home.crashDirectory }

    /// All reports, the newest first.
    package func all() -> [CrashReport] {
        SystemCall.names(in: folder).compactMap { name in
            let parts = name.split(separator: "-")
            var status = stat()
            guard name.hasSuffix(".json"), parts.count >= 4, parts[0] == "lockstep", let pid = Int32(parts[2]),
                stat(folder + "/" + name, &status) == 0
            else { return nil }
            let time = Double(status.modified.tv_sec) + Double(status.modified.tv_nsec) / 1e9
            return CrashReport(path: folder + "/" + name, service: String(parts[1]), pid: pid, writtenAt: time)
        }
        .sorted { $0.writtenAt > $1.writtenAt }
    }
}
