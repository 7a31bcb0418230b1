import FleetHome
import LibC
import LockstepClient
import PodcastModel

struct CommandContext: Sendable {
    let home: LockstepHome
    let settings: Settings
    let output: Output
    /// Whether players print plain text.
    let plain: Bool

    /// The time for which a request to an absent service is retried.
    private static let reachLimit = Duration.seconds(2)

    init(_ options: GlobalOptions) throws {
        var environment = ProcessEnvironment.current
        if let home = options.home { environment["LOCKSTEP_HOME"] = home }
        home = try LockstepHome.find(environment)
        settings = Settings(file: home.configurationFile, environment: environment)
        output = Output(
            json: options.json, quiet: options.quiet, advice: AdvisedCommands(options), listed: ListedEpisodes(home))
        plain = options.plain || settings.plain || environment["TERM"] == "dumb"
    }

    func warnOfSettings() {
        guard !output.quiet else { return }
        for problem in settings.problems { Output.warn(output.advice.completed(problem), json: output.json) }
    }

    /// - Throws: `noFleet` at once if none is running.
    func withFleet<Result: Sendable>(
        origin: String = CommandOrigin.commandLine.text, observing observation: Observation = .nothing,
        _ body: @Sendable (Fleet) async throws -> Result
    ) async throws -> Result {
        let fleet = try Fleet.connect(
            as: origin, to: home, observing: observation.selection, reachLimit: Self.reachLimit)
        do {
            let result = try await body(fleet)
            await fleet.disconnect()
            return result
        } catch {
            await fleet.disconnect()
            throw error
        }
    }

    /// The environment variables that `up` passes to the services.
    var serviceEnvironment: [String: String] {
        ProcessEnvironment.current.merging(settings.serviceEnvironment) { _, set in set }
    }

    /// Sets the folders and settings in the environment of the program that replaces this process.
    func exportEnvironment() {
        for variables in [settings.serviceEnvironment, home.environment] {
            for (name, value) in variables { setenv(name, value, 1) }
        }
    }
}
