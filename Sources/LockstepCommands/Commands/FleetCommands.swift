import ArgumentParser
import FleetHome
import LockstepClient
import PodcastModel
import SupervisorControl

struct Up: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Start the fleet.", discussion: "Stays in the foreground until Ctrl-C, unless --detach is given.")
    static let reportsSettings = true
    @Flag(help: "Start the fleet in the background, and return when it is ready.") var detach = false
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let isRunning = FleetPresence.answers(context.home.controlSocket)
        if isRunning {
            context.warnOfSettings()
        } else {
            try context.home.prepare()
            try context.settings.requireUsable()
        }
        let launcher = SupervisorLauncher(home: context.home, environment: context.serviceEnvironment)
        guard detach else {
            if isRunning { return try context.output.change(Self.json(false, context), Self.sentence(false, [])) }
            context.exportEnvironment()
            throw launcher.becomeSupervisor()
        }
        let started = try launcher.startDetached() == .started
        let alerts = await Self.databaseAlerts(context)
        try context.output.change(Self.json(started, context, alerts), Self.sentence(started, alerts.map(\.title)))
    }

    static func sentence(_ started: Bool, _ alerts: [String]) -> String {
        let sentences =
            [started ? "The fleet is up." : "No change: the fleet is already up."]
            + alerts.map { Sentence.stopped($0) } + (alerts.isEmpty ? [] : ["See `lockstep alerts`."])
        return sentences.joined(separator: " ")
    }

    /// The alerts about the database, such as that it was lost, or that the disk is full.
    private static func databaseAlerts(_ context: CommandContext) async -> [AlertState] {
        let alerts = try? await context.withFleet(observing: .parts([.alerts])) { fleet in
            try await fleet.current([.alerts], services: [.persistence]).alerts
        }
        return (alerts ?? []).filter { $0.owner == .persistence && $0.severity == .error }
    }

    private static func json(_ changed: Bool, _ context: CommandContext, _ alerts: [AlertState] = []) -> JSONValue {
        .object([
            "state": "up", "changed": .bool(changed), "run": .string(context.home.runDirectory),
            "alerts": .array(alerts.map(\.json)),
        ])
    }
}

struct Down: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "down", abstract: "Stop the fleet. The playback position is saved first.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        var changed = true
        do throws(Failure) {
            try SupervisorControlClient(home: context.home).down()
        } catch {
            guard error.known == .noFleet else { throw error }
            changed = try StraySupervisors(home: context.home).stop()
        }
        try context.output.change(
            .object(["state": "down", "changed": .bool(changed)]), if: changed, "The fleet is down.",
            else: "no fleet is running")
    }
}

struct Processes: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "ps", abstract: "Show the fleet’s processes.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let services = try SupervisorControlClient(home: context.home).ps()
        try context.output.value(.array(services.map(\.json)), lines: Self.lines(services))
    }

    static func lines(_ services: [ServiceReport]) -> [String] {
        let columns: [TextTable.Column] = [
            "service", "state", .right("pid"), .right("uptime"), .right("restarts"), .right("memory"), .right("cpu"),
            .flexible("notes"),
        ]
        return TextTable(columns, services.map(\.cells)).printed()
    }
}

extension ServiceReport {
    var json: JSONValue {
        func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
        return .object([
            "name": .string(name), "state": .string(state), "pid": pid.map { .integer(Int64($0)) } ?? .null,
            "restarts": .integer(Int64(restarts)), "uptime": uptime.map { .seconds($0) } ?? .null,
            "pss": pss.map { .integer(Int64($0)) } ?? .null,
            "written": written.map { .integer(Int64($0)) } ?? .null, "cpu": cpu.map { .seconds($0) } ?? .null,
            "status": text(status), "lastExit": text(lastEnd), "nextTry": nextTry.map { .seconds($0) } ?? .null,
            "warning": text(warning), "crashReport": text(crashReport),
        ])
    }

    fileprivate var cells: [String] {
        let process = pid.map { "\($0)" }
        let memory = pss.map { NumberText.bytes(UInt64(clamping: $0)) }
        let time = cpu.map { "\(NumberText.short($0)) s" }
        return [
            name, state, process ?? "-", uptime.map(TimeText.span) ?? "-", "\(restarts)", memory ?? "-", time ?? "-",
            notes,
        ]
    }

    private var notes: String {
        let notes = [
            warning, lastEnd.map { "last: \($0)" }, nextTry.map { "next try in \(TimeText.span($0))" },
            crashReport.map { "report: \($0)" },
        ]
        return notes.compactMap(\.self).joined(separator: "; ")
    }
}

struct Logs: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs", abstract: "Show the services’ logs.")
    @Flag(name: .shortAndLong, help: "Keep printing new lines.") var follow = false
    @Option(name: [.customShort("n"), .long], parsing: .unconditional, help: "The number of latest lines to print.")
    var lines = 50
    @Argument(help: "The service; all by default.", completion: .list(serviceNames)) var service: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard lines > 0 || follow && lines == 0 else {
            throw ValidationError("--lines must be a number above 0; with --follow, 0 is also valid.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        var isEmpty = true
        func show(_ lines: [String]) throws {
            if !lines.isEmpty { isEmpty = false }
            for line in lines { try context.output.line(context.output.json ? LogLine.json(line) : LogLine.text(line)) }
        }
        var closed = false
        do throws(Failure) {
            try SupervisorControlClient(home: context.home).logs(of: service, lines: lines, follow: follow) {
                lines in
                do { try show(lines) } catch { closed = true }
                return !closed
            }
        } catch {
            // The files exist without a fleet, but can’t be followed.
            guard error.known == .noFleet, !follow else { throw error }
            let kept = LogReader(context.home).last(lines, of: service)
            guard !kept.isEmpty else { throw error }
            try show(kept)
        }
        if closed { throw Output.Closed() }
        if isEmpty, !context.output.json {
            try context.output.line(service.map { "\($0) hasn’t logged anything." } ?? "Nothing has been logged.")
        }
    }
}

private let serviceNames = Fleet.serviceNames

protocol ServiceCommand: LockstepCommand {
    var service: String { get }
    /// - Returns: a sentence that describes the supervisor’s action.
    func ask(_ supervisor: SupervisorControlClient) throws(Failure) -> String
}

extension ServiceCommand {
    func perform(_ context: CommandContext) async throws {
        let message = try ask(SupervisorControlClient(home: context.home))
        try context.output.change(.object(["service": .string(service), "message": .string(message)]), message)
    }
}

struct Restart: ServiceCommand {
    static let configuration = CommandConfiguration(commandName: "restart", abstract: "Restart a service.")
    @Argument(help: "The service’s name, as `ps` shows it.", completion: .list(serviceNames)) var service: String
    @OptionGroup var options: GlobalOptions

    func ask(_ supervisor: SupervisorControlClient) throws(Failure) -> String { try supervisor.restart(service) }
}

struct ResetFailed: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset-failed", abstract: "Retry a failed service now.")
    @Argument(help: "The service’s name, as `ps` shows it.", completion: .list(serviceNames)) var service: String
    @OptionGroup var options: GlobalOptions

    func ask(_ supervisor: SupervisorControlClient) throws(Failure) -> String { try supervisor.resetFailed(service) }
}
