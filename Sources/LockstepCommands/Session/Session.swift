import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A command's connection to a running fleet.
struct Session: Sendable {
    let fleet: Fleet
    /// What can be set.
    let settings: Settings

    /// How long a one-shot command waits for a service whose state it reads.
    static let ownerLimit = Duration.seconds(2)

    /// Questions to the database.
    var persistence: PersistenceClient { fleet.persistence }

    /// The state once everything of `owners` is up to date.
    ///
    /// - Throws: `unavailable` naming the services that are not ready within two seconds.
    func view(of owners: [ServiceName], within limit: Duration = ownerLimit) async throws(Failure) -> FleetView {
        try await fleet.current(of: owners, within: limit).view
    }

    /// Follows the stream until `done`, or until the time is over.
    ///
    /// - Returns: the last view, and whether it was the one.
    func follow(
        until limit: Duration, _ done: @escaping @Sendable (FleetView) -> Bool
    ) async -> (view: FleetView, isDone: Bool) {
        let (state, isDone) = await fleet.first(within: limit) { done($0.view) }
        return (state.view, isDone)
    }

    // MARK: - Asking

    /// Asks the player, and waits until the effect can be read from the stream.
    func playback(
        _ build: (inout WirePlaybackRequest) -> Void
    ) async throws(Failure) -> WirePlaybackReply {
        var request = WirePlaybackRequest()
        build(&request)
        return try await ask(.playback, request, reply: WirePlaybackReply.self)
    }

    /// Asks the player while the stream is being joined: for a command that needs not know its state first.
    ///
    /// - Throws: also `unavailable` when the player is not ready within two seconds and the request has not reached it.
    func playbackWhileJoining(
        _ build: (inout WirePlaybackRequest) -> Void
    ) async throws(Failure) -> WirePlaybackReply {
        typealias Outcome = Result<(reply: WirePlaybackReply, position: StreamPosition?), Failure>
        enum Event {
            case answered(Outcome)
            case ready
            case notReady(Failure)
        }
        var request = WirePlaybackRequest()
        build(&request)
        let result = await withTaskGroup(of: Event.self) { [request] group -> Outcome in
            group.addTask {
                do throws(Failure) {
                    return .answered(
                        .success(try await fleet.client.ask(.playback, request, reply: WirePlaybackReply.self)))
                } catch {
                    return .answered(.failure(error))
                }
            }
            group.addTask {
                do throws(Failure) { _ = try await view(of: [.playback]) } catch { return .notReady(error) }
                return .ready
            }
            defer { group.cancelAll() }
            var notReady: Failure?
            for await event in group {
                switch event {
                case .answered(.failure(let failure)) where failure.known == .unavailable:
                    return .failure(notReady ?? failure)
                case .answered(let result): return result
                case .ready: break
                case .notReady(let failure):
                    notReady = failure
                    // Ends the request, which knows whether it may have reached the player.
                    group.cancelAll()
                }
            }
            return .failure(Failure(.unavailable, "The program no longer waits for the answer."))
        }
        let answer = try result.get()
        await fleet.arrive(at: answer.position, of: .playback)
        return answer.reply
    }

    /// Asks a queue; without a name Up Next, the usual one.
    func queue(
        named name: String = "", _ build: (inout WireQueueRequest) -> Void
    ) async throws(Failure) -> WireQueueReply {
        var request = WireQueueRequest()
        request.queue = name
        build(&request)
        return try await ask(.queue, request, reply: WireQueueReply.self)
    }

    /// Asks the downloads.
    func downloads(_ build: (inout WireDownloadsRequest) -> Void) async throws(Failure) -> WireDownloadsReply {
        var request = WireDownloadsRequest()
        build(&request)
        return try await ask(.downloads, request, reply: WireDownloadsReply.self)
    }

    /// Asks the feeds, which may take a minute to fetch.
    func feeds(
        within limit: Duration = .seconds(60), _ build: (inout WireFeedsRequest) -> Void
    ) async throws(Failure) -> WireFeedsReply {
        var request = WireFeedsRequest()
        build(&request)
        return try await ask(.feeds, request, reply: WireFeedsReply.self, within: limit)
    }

    /// Asks a service and waits until its effect is on the stream here.
    func ask<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ request: some SwiftProtobuf.Message, reply: Reply.Type,
        within limit: Duration = .seconds(10)
    ) async throws(Failure) -> Reply {
        try await fleet.ask(service, request, reply: reply, within: limit)
    }

    /// The player as its own reply states it.
    func snapshot(_ state: WirePlaybackState) -> PlayerSnapshot {
        var snapshot = PlayerSnapshot()
        snapshot.take(state, now: SystemClocks.now(), bootID: SystemClocks.bootID)
        return snapshot
    }
}

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

    /// Finds the home and reads the settings.
    init(_ options: GlobalOptions) throws {
        var environment = ProcessEnvironment.current
        if let home = options.home { environment["LOCKSTEP_HOME"] = home }
        home = try LockstepHome.find(environment)
        settings = Settings(file: home.configurationFile, environment: environment)
        output = Output(json: options.json, quiet: options.quiet, advice: AdvisedCommands(options))
        plain = options.plain || settings.plain || environment["TERM"] == "dumb"
    }

    /// Says on standard error which settings cannot be used. A fleet that runs goes on with what it was started with.
    func warnOfSettings() {
        guard !output.quiet else { return }
        for problem in settings.problems { Output.warn(output.advice.completed(problem), json: output.json) }
    }

    /// Runs `body` with a connection to the fleet.
    ///
    /// - Throws: `noFleet` at once when there is none.
    func withSession<Result: Sendable>(
        origin: String = CommandOrigin.commandLine.text, observing: TopicSelection? = .all,
        _ body: @Sendable (Session) async throws -> Result
    ) async throws -> Result {
        let fleet = try Fleet.connect(as: origin, to: home, observing: observing)
        do {
            let result = try await body(Session(fleet: fleet, settings: settings))
            await fleet.disconnect()
            return result
        } catch {
            await fleet.disconnect()
            throw error
        }
    }
}
