import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct Pause: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "pause", abstract: "Pause.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: .player) { session in
            let reply = try await session.playbackWhileJoining { $0.setPaused.paused = true }
            try session.report(reply.state, to: context.output, already: !reply.changed)
        }
    }
}

struct Resume: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Resume the loaded episode.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: .player) { session in
            let reply = try await session.playbackWhileJoining { $0.setPaused.paused = false }
            if !reply.changed, reply.state.status == .playing {
                return try session.report(reply.state, to: context.output, already: true)
            }
            let settled = try await session.settled(AwaitedLoad(reply.state.loadID), output: context.output)
            try session.report(settled, to: context.output)
        }
    }
}

struct Toggle: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "toggle",
        abstract: "Pause if playing, otherwise resume.", aliases: ["play-pause"])
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: .playerAndQueues) { session in
            // The player decides: what is seen here may have changed before it hears of this.
            let reply: WirePlaybackReply
            do throws(Failure) {
                reply = try await session.playbackWhileJoining { $0.togglePaused = WireTogglePaused() }
            } catch {
                guard error.known == .nothingLoaded else { throw error }
                return try session.report(try await session.resume(context.output), to: context.output)
            }
            let isPaused = reply.state.status == .paused || reply.state.status == .loading && !reply.state.willPlay
            let state =
                isPaused
                ? reply.state : try await session.settled(AwaitedLoad(reply.state.loadID), output: context.output)
            try session.report(state, to: context.output)
        }
    }
}

struct Stop: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Pause, and close the audio device. The episode stays loaded at its position.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: .player) { session in
            let view = try await session.view(of: [.playback])
            guard let player = view.player, player.hasEpisode, player.status != .idle else {
                return try session.report(view.player, to: context.output, already: true)
            }
            let reply = try await session.playback { $0.stop = WireStopPlayback() }
            // What failed or has ended is as good as stopped; that nothing was done shows in the revision.
            guard reply.state.revision != player.revision else {
                return try session.report(reply.state, to: context.output, already: true)
            }
            let place = session.snapshot(reply.state).place
            try context.output.change(reply.state.nowJSON, "Stopped at \(place); the audio device is closed.")
        }
    }
}

struct Seek: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "seek",
        abstract: "Go to a place in the episode.",
        discussion:
            "12:34, 90 (seconds) and 1h30m are places, 50% is a part of the whole, +30, -15 and +2m count from where it is. "
            + "+ and % stop a second before the end; what goes to the very end has been played."
    )
    @Argument(help: "12:34, 90, 1h30m, 50%, +30 or -15.") var place: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard let expression = SeekExpression(place) else {
            throw Failure(
                .invalidArgument, "“\(place)” isn’t a position in an episode. Give \(SeekExpression.forms).")
        }
        try await context.withSession(observing: .player) { try await $0.seek(expression, output: context.output) }
    }
}

struct Skip: LockstepCommand {
    enum Direction: String, ExpressibleByArgument, CaseIterable {
        case forward
        case back
    }

    static let configuration = CommandConfiguration(
        commandName: "skip",
        abstract: "Skip forward or back by the seconds in the settings (30 and 10).",
        discussion:
            "How far: --seconds, else `lockstep set skipForward` and `skipBack` for the podcast, else for all, else "
            + "skip.forward and skip.back of config.yaml.")
    @Argument(help: "forward or back.") var direction: Direction
    @Option(parsing: .unconditional, help: "How far, in seconds.") var seconds: Double?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        if let seconds, !(seconds.isFinite && seconds > 0) {
            throw Failure(.invalidArgument, "How far to skip must be a number of seconds above 0.")
        }
        try await context.withSession(observing: .player) { session in
            let view = try await session.view(of: [.playback])
            let values = SettingValues(view.settings, settings: context.settings)
            let key = direction == .forward ? SettingKey.skipForward : .skipBack
            let distance = seconds ?? values.number(key, podcast: view.player?.episode.podcastID ?? "")
            try await session.seek(
                .relative(direction == .forward ? distance : -distance), output: context.output)
        }
    }
}

struct Status: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show what is playing.")
    @Option(help: "Text with {title}, {podcast}, {state}, {position}, {duration}, {remaining} … in it.")
    var format: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let format = try format.map { text throws(Failure) in try StatusFormat(text) }
        try await context.withSession(observing: .player) { session in
            let view = try await session.view(of: [.playback])
            let player = view.player ?? WirePlaybackState()
            let snapshot = PlayerSnapshot(view, now: SystemClocks.now(), bootID: SystemClocks.bootID)
            if let format { return try context.output.line(format.filled(snapshot.field)) }
            try context.output.value(
                player.nowJSON.adding("alerts", .array(view.alertsInOrder.map(\.json))), lines: Self.lines(snapshot))
        }
    }

    static func lines(_ snapshot: PlayerSnapshot) -> [String] {
        var lines = [Sentence.status(snapshot) + Sentence.home(snapshot), Sentence.levels(snapshot)]
        if let chapter = snapshot.chapter {
            lines.append(Sentence.chapter(chapter))
        }
        if snapshot.sleep != nil { lines.append(Sentence.capitalised(Sentence.sleep(snapshot.sleep) + ".")) }
        return lines + (Sentence.alerts(snapshot.alerts).map { [$0] } ?? [])
    }
}

extension PlayerSnapshot {
    /// The value of a field of `status --format`.
    func field(_ name: String) -> String {
        let loaded = hasEpisode && status != .idle
        switch name {
        case "state": return status.word
        case "title": return title
        case "podcast": return podcast
        case "id": return episodeID
        case "position": return loaded ? ClockText.format(position) : ""
        case "duration": return loaded ? ClockText.format(duration) : ""
        case "remaining": return loaded ? ClockText.format(remaining) : ""
        case "percent": return duration.map { "\(Int(position / $0 * 100))" } ?? ""
        case "speed": return NumberText.short(speed)
        case "volume": return NumberText.short(volume)
        case "output": return output
        case "chapter": return chapter?.title ?? ""
        case "sleep": return sleep == nil ? "" : Sentence.sleepTime(sleep)
        case "retry": return retry.map(Sentence.retry) ?? ""
        default: return ""
        }
    }
}

extension WirePlaybackState {
    /// `status --json` at this moment.
    var nowJSON: JSONValue { statusJSON(at: SystemClocks.now(), bootID: SystemClocks.bootID) }
}

extension Failure {
    /// Several things that a text could mean, listed for the user.
    static func ambiguous(_ message: String, _ candidates: [(id: String, title: String)]) -> Failure {
        var detail = WireCandidates()
        detail.candidates = candidates.map { candidate in
            var wire = WireCandidates.Candidate()
            wire.id = candidate.id
            wire.title = candidate.title
            return wire
        }
        return Failure(
            code: FailureCode.ambiguous.rawValue, message: message + " Say which by its ID:", detail: detail.wireBytes)
    }
}
