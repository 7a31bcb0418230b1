import FleetHome
import LockstepClient
import PodcastModel

/// What every command starts from.
struct CommandContext: Sendable {
    /// Where the fleet's files are.
    let home: LockstepHome
    /// What can be set.
    let settings: Settings
    /// Where results go.
    let output: Output
    /// Whether screens are lines of words.
    let plain: Bool

    /// How long a request is tried whose service isn’t there.
    private static let reachLimit = Duration.seconds(2)

    /// Finds the home and reads the settings.
    init(_ options: GlobalOptions) throws {
        var environment = ProcessEnvironment.current
        if let home = options.home { environment["LOCKSTEP_HOME"] = home }
        home = try LockstepHome.find(environment)
        settings = Settings(file: home.configurationFile, environment: environment)
        output = Output(json: options.json, quiet: options.quiet, advice: AdvisedCommands(options))
        plain = options.plain || settings.plain || environment["TERM"] == "dumb"
    }

    /// Prints on standard error which settings can’t be used. A fleet that runs keeps those that it was started with.
    func warnOfSettings() {
        guard !output.quiet else { return }
        for problem in settings.problems { Output.warn(output.advice.completed(problem), json: output.json) }
    }

    /// Runs `body` with a connection to the fleet.
    ///
    /// - Parameter observation: what `body` reads of the state; by default it only asks.
    /// - Throws: `noFleet` at once when there is none.
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
}
