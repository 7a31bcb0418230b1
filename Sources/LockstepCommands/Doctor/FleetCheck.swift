import LockstepClient
import PodcastModel
import SupervisorControl

struct FleetCheck: Sendable {
    private let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    func findings() async -> [Finding] {
        let services: [ServiceReport]
        do throws(Failure) {
            services = try SupervisorControlClient(home: context.home).ps()
        } catch {
            guard error.known == .noFleet else {
                return [.fault("fleet", error.message, do: "See `lockstep ps`.")]
            }
            return [
                .warning("fleet", "No fleet is running.", do: "Start one with `lockstep up --detach`."),
                DatabaseFileCheck(home: context.home).finding(),
            ]
        }
        let processes = services.map(Self.finding) + [Self.written(services)].compactMap(\.self)
        // If the bus isn’t ready, the findings about the processes show the reason.
        guard Self.serves(.bus, services) else { return processes }
        let hasDatabase = Self.serves(.persistence, services)
        do {
            return try await processes
                + context.withFleet(observing: .parts([.alerts])) { fleet in
                    let database = hasDatabase ? [await Self.database(fleet.library)] : []
                    return try await database + Self.alerts(fleet.current([.alerts]).alerts)
                }
        } catch {
            let message = (error as? Failure)?.message ?? "\(error)"
            return processes + [.fault("bus", message, do: "See `lockstep logs bus`.")]
        }
    }

    static func serves(_ name: ServiceName, _ services: [ServiceReport]) -> Bool {
        let states = [ServiceCondition.ready, .late].map(\.rawValue)
        return services.contains { $0.name == name.text && states.contains($0.state) }
    }

    static func finding(_ service: ServiceReport) -> Finding {
        var finding = conditionFinding(service)
        // Two services in the same condition have two findings.
        finding.subject = service.name
        return finding
    }

    /// The number of bytes that the services wrote to disks since they started, without downloads; nil if the system
    /// doesn’t count them.
    static func written(_ services: [ServiceReport]) -> Finding? {
        let counted = services.filter { $0.written != nil }
        let longest = counted.compactMap(\.uptime).max() ?? 0
        guard longest > 0 else { return nil }
        let isDownloads = { (service: ServiceReport) in service.name == ServiceName.downloads.text }
        let kept = counted.filter { !isDownloads($0) }
        let bytes = kept.reduce(0) { $0 + UInt64($1.written ?? 0) }
        var message = "\(NumberText.bytes(bytes)) written in \(TimeText.span(longest))"
        if longest >= 3_600 {
            // Services that were restarted have written for a shorter time.
            let daily = kept.reduce(0) { sum, service in
                sum + Double(service.written ?? 0) / max(service.uptime ?? longest, 1) * 86_400
            }
            message += ", \(NumberText.bytes(UInt64(daily))) a day"
        }
        if let downloads = counted.first(where: isDownloads)?.written, downloads > 0 {
            message += "; \(NumberText.bytes(UInt64(downloads))) by downloads"
        }
        return .ok("disk writes", message + ".")
    }

    private static func conditionFinding(_ service: ServiceReport) -> Finding {
        let past = service.lastEnd.map { " (last: \($0))" } ?? ""
        let restarts =
            service.restarts > 0 ? ", \(NumberText.counted(service.restarts, "restart"))\(past)" : ""
        let message = "\(service.state)\(restarts)."
        switch service.state {
        case "hung":
            let logs = "`lockstep logs \(service.name)` may show why it hangs."
            return .fault(service.name, message, do: "It will be restarted automatically in a moment; \(logs)")
        case "failed", "retrying":
            return .fault(
                service.name, message,
                do: "See `lockstep logs \(service.name)`; then `lockstep reset-failed \(service.name)`.")
        case "ready":
            guard let warning = service.warning else { return .ok(service.name, message) }
            return .warning(
                service.name, "\(service.state), but \(warning)\(past).",
                do: "See `lockstep logs \(service.name)`; `lockstep reset-failed \(service.name)` clears this.")
        default:
            return .warning(service.name, message, do: "Wait a moment, then check with `lockstep ps`.")
        }
    }

    /// Crash reports aren’t faults: the services were restarted.
    static func crashes(_ reports: [CrashReport]) -> Finding {
        guard let newest = reports.first else { return .ok("crashes", "No crash report.") }
        return .warning(
            "crashes",
            "\(NumberText.counted(reports.count, "crash report")), the newest of \(newest.service).",
            do: "Report the crash with the newest file, then delete the files.")
    }

    static func alerts(_ alerts: [AlertState]) -> [Finding] {
        guard !alerts.isEmpty else { return [.ok("alerts", "There are no open alerts.")] }
        // The supervisor’s alerts concern processes, which have their own findings.
        return alerts.filter { $0.owner != .supervisor }.map { alert in
            let advice = "See `lockstep alerts`; answer with `lockstep alerts answer \(alert.id) ACTION`."
            var finding =
                alert.severity == .error && !isAboutContent(alert)
                ? Finding.fault("alerts", alert.title, do: advice) : .warning("alerts", alert.title, do: advice)
            finding.subject = alert.code == FailureCode.diskFull.rawValue ? Finding.fullDisk : alert.id.text
            return finding
        }
    }

    /// The codes of alerts that concern this machine or the program, even if they name an episode or a podcast.
    private static let ownCodes =
        [.diskFull, .insufficientStorage, .notSaved, .storageFailed, .noSoundDevice, .quarantined, .internalError]
        .map(\FailureCode.rawValue) + ["playbackCrashed"]

    /// Whether an alert concerns an episode or podcast: its server or feed is at fault, not the installation.
    private static func isAboutContent(_ alert: AlertState) -> Bool {
        !ownCodes.contains(alert.code) && (alert.episode != nil || alert.podcast != nil)
    }

    private static func database(_ library: LibraryClient) async -> Finding {
        do throws(Failure) {
            let check = try await library.checkDatabase()
            let size = "\(NumberText.bytes(check.bytes)), SQLite \(check.sqliteVersion)"
            guard check.damage.isEmpty else {
                return .fault(
                    "database", "The database is damaged: \(check.damage) (\(size)).",
                    do: "Restore the newest good backup with `lockstep restart persistence`.")
            }
            return .ok("database", "No damage found (\(size)).")
        } catch {
            return .fault("database", error.message, do: "See `lockstep logs persistence`.")
        }
    }
}
