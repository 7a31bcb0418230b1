public import BusKit
import LibC
import PodcastModel

/// One report of a crash or a hang: a JSON file.
public struct CrashReport: Sendable, Hashable {
    /// The file.
    public var path: String
    /// The service, without its prefix.
    public var service: String
    /// The process.
    public var pid: Int32
    /// When the file was written, in seconds since 1970.
    public var writtenAt: Double
}

/// The folder of crash reports: `lockstep-NAME-PID-….json` each. The newest 50 are kept.
public struct CrashReports: Sendable {
    /// The folder.
    public let folder: String

    /// The reports of this home.
    public init(_ home: LockstepHome) { folder = home.crashDirectory }

    /// All reports, newest first.
    public func all() -> [CrashReport] {
        SystemCall.names(in: folder).compactMap { name in
            let parts = name.split(separator: "-")
            guard name.hasSuffix(".json"), parts.count >= 4, parts[0] == "lockstep", let pid = Int32(parts[2]),
                let time = SystemCall.modified(folder + "/" + name)
            else { return nil }
            return CrashReport(path: folder + "/" + name, service: String(parts[1]), pid: pid, writtenAt: time)
        }
        .sorted { $0.writtenAt > $1.writtenAt }
    }
}
