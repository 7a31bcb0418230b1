import ArgumentParser
import FleetHome
import LockstepClient
import PodcastModel
import SupervisorControl

struct Doctor: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find problems, and suggest how to fix them.",
        discussion:
            "It repairs nothing. The exit status is 69 after a fault, and 78 after a fault of the settings."
    )
    static let reportsSettings = true
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let home = HomeCheck(home: context.home)
        let settings = home.settings(context.settings)
        // Loading libmpv takes as long as all requests to the fleet.
        let environment = context.serviceEnvironment
        async let libraries = LibraryCheck(environment: environment).findings()
        async let running = FleetCheck(context).findings()
        let crashes = CrashReports(context.home).all()
        let all = await settings + home.findings() + libraries + running + [FleetCheck.crashes(crashes)]
        let findings = all.withoutRepetitions.map { $0.completed(by: context.output.advice) }
        let json = JSONValue.object([
            "findings": .array(findings.map(\.json)),
            "crashes": .array(
                crashes.map {
                    .object([
                        "path": .string($0.path), "service": .string($0.service), "pid": .integer(Int64($0.pid)),
                        "at": .seconds($0.writtenAt),
                    ])
                }),
        ])
        let reports = crashes.prefix(5).map {
            "         \($0.service) \(TimeText.minute(milliseconds: Int64($0.writtenAt * 1_000))) \($0.path)"
        }
        try context.output.value(json, lines: findings.flatMap(\.lines) + reports + [Self.sum(findings)])
        guard findings.contains(where: { $0.level == .fault }) else { return }
        let status: ExitStatus = settings.contains { $0.level == .fault } ? .configuration : .unavailable
        throw ExitCode(status.rawValue)
    }

    private static func sum(_ findings: [Finding]) -> String {
        let faults = findings.count { $0.level == .fault }
        let warnings = findings.count { $0.level == .warning }
        guard faults + warnings > 0 else { return "No problems found." }
        return "\(NumberText.counted(faults, "fault")), \(NumberText.counted(warnings, "warning"))."
    }
}
