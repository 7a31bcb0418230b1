import ArgumentParser
import BusKit
import PodcastModel
import WireMessages

struct Pause: LockstepCommand {
    static let configuration = CommandConfiguration(abstract: "Pause.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            if view.player?.status == .paused {
                return try session.report(view.player, to: context.output, already: true)
            }
            let reply = try await session.playback { $0.setPaused.paused = true }
            try session.report(reply.state, to: context.output)
        }
    }
}

struct Resume: LockstepCommand {
    static let configuration = CommandConfiguration(abstract: "Go on with what is loaded.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            if view.player?.status == .playing {
                return try session.report(view.player, to: context.output, already: true)
            }
            let reply = try await session.playback { $0.setPaused.paused = false }
            let settled = try await session.settled(load: reply.state.loadID)
            try session.report(settled, to: context.output)
        }
    }
}

struct Toggle: LockstepCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pause what plays, or go on with what does not.", aliases: ["play-pause"])
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            switch view.player?.status {
            case .playing, .loading:
                let reply = try await session.playback { $0.setPaused.paused = true }
                try session.report(reply.state, to: context.output)
            default: try session.report(try await session.resume(), to: context.output)
            }
        }
    }
}

struct Stop: LockstepCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stop, and close the audio. The episode stays loaded at its position.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            guard let player = view.player, player.hasEpisode, player.status != .idle else {
                return try session.report(view.player, to: context.output, already: true)
            }
            let reply = try await session.playback { $0.stop = WireStopPlayback() }
            try context.output.change(reply.state.nowJSON, "Stopped at \(session.snapshot(reply.state).place).")
        }
    }
}

struct Seek: LockstepCommand {
    static let configuration = CommandConfiguration(
        abstract: "Go to a place in the episode.",
        discussion: "12:34 and 90 (seconds) are places, 50% is a part of the whole, +30 and -15 count from where it is."
    )
    @Argument(help: "12:34, 90, 50%, +30 or -15.") var place: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard let expression = SeekExpression(place) else {
            throw Failure(
                .invalidArgument, "“\(place)” is no place in an episode. Give 12:34, 90 (seconds), 50%, +30 or -15.")
        }
        try await context.withSession { try await $0.seek(expression, output: context.output) }
    }
}

struct Skip: LockstepCommand {
    enum Direction: String, ExpressibleByArgument, CaseIterable {
        case forward
        case back
    }

    static let configuration = CommandConfiguration(
        abstract: "Skip forward or back by the seconds in the settings (30 and 10).")
    @Argument(help: "forward or back.") var direction: Direction
    @Option(help: "How far, in seconds.") var seconds: Double?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let forward = seconds ?? context.settings.skipForward
        let back = seconds ?? context.settings.skipBack
        guard forward.isFinite, forward > 0, back > 0 else {
            throw Failure(.invalidArgument, "How far to skip must be a number of seconds above 0.")
        }
        let delta = direction == .forward ? forward : -back
        try await context.withSession { try await $0.seek(.relative(delta), output: context.output) }
    }
}

struct SetSpeed: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "speed", abstract: "Show or set how fast it plays, 0.5 to 3.5.")
    @Argument(help: "1.5, up or down; without it, the present speed is shown.") var speed: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let expression = try speed.map { text -> LevelExpression in
            guard let expression = LevelExpression(text, unit: "x") else {
                throw Failure(.invalidArgument, "“\(text)” is no speed. Give a number from 0.5 to 3.5, or up or down.")
            }
            return expression
        }
        try await context.withSession { session in
            let player = try await session.view(of: [.playback]).player ?? WirePlaybackState()
            guard let expression else {
                return try context.output.value(
                    .object(["speed": .number(player.speed)]), lines: ["Speed \(NumberText.short(player.speed))."])
            }
            let level = expression.level(
                from: player.speed, step: context.settings.speedStep, range: PlaybackSpeed.range)
            guard let speed = PlaybackSpeed(factor: level) else {
                throw Failure(
                    .invalidArgument, "Speed \(NumberText.short(level)) is out of range; it goes from 0.5 to 3.5.")
            }
            guard abs(speed.factor - player.speed) > 1e-9 else {
                return try context.output.change(
                    player.nowJSON, "No change: the speed is \(NumberText.short(level)) already.")
            }
            let reply = try await session.playback { $0.setSpeed.speed = speed.factor }
            try context.output.change(reply.state.nowJSON, "Speed \(NumberText.short(reply.state.speed)).")
        }
    }
}

struct SetVolume: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "volume", abstract: "Show or set how loud it plays, 0 to 100.")
    @Argument(help: "80, up or down; without it, the present volume is shown.") var volume: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let expression = try volume.map { text -> LevelExpression in
            guard let expression = LevelExpression(text, unit: "%") else {
                throw Failure(.invalidArgument, "“\(text)” is no volume. Give a number from 0 to 100, or up or down.")
            }
            return expression
        }
        try await context.withSession { session in
            let player = try await session.view(of: [.playback]).player ?? WirePlaybackState()
            guard let expression else {
                return try context.output.value(
                    .object(["volume": .number(player.volume)]), lines: ["Volume \(NumberText.short(player.volume)) %."]
                )
            }
            let level = expression.level(from: player.volume, step: context.settings.volumeStep, range: Volume.range)
            guard let volume = Volume(percent: level) else {
                throw Failure(
                    .invalidArgument, "Volume \(NumberText.short(level)) is out of range; it goes from 0 to 100.")
            }
            guard abs(volume.percent - player.volume) > 1e-9 else {
                return try context.output.change(
                    player.nowJSON, "No change: the volume is \(NumberText.short(level)) % already.")
            }
            let reply = try await session.playback { $0.setVolume.volume = volume.percent }
            try context.output.change(reply.state.nowJSON, "Volume \(NumberText.short(reply.state.volume)) %.")
        }
    }
}

struct SetOutput: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "output", abstract: "List the sound devices, or choose one.")
    @Argument(help: "A device's name, a part of one, or `default`; without it, the devices are listed.")
    var device: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            let output = view.output ?? WireOutputState()
            guard let device else { return try Self.list(output, context.output) }
            let name = try Self.resolve(device, in: output)
            guard name != output.chosen else {
                let shown = name.isEmpty ? "the system’s default" : name
                return try context.output.change(output.json, "No change: the output is \(shown) already.")
            }
            let reply = try await session.playback { $0.setOutput.device = name }
            let chosen = reply.output.chosen.isEmpty ? "the system’s default" : reply.output.chosen
            try context.output.change(reply.output.json, "The output is \(chosen).")
        }
    }

    private static func list(_ state: WireOutputState, _ output: Output) throws {
        var table = TextTable([
            .init(heading: ""), .init(heading: "output"), .init(heading: "what it is", flexible: true),
        ])
        table.add([state.chosen.isEmpty ? "*" : "", "default", "The system’s default"])
        for device in state.devices {
            table.add([device.name == state.chosen ? "*" : "", device.name, device.description_p])
        }
        if !state.chosen.isEmpty, !state.devices.contains(where: { $0.name == state.chosen }) {
            table.add(["*", state.chosen, "Not there now"])
        }
        try output.value(state.json, lines: table.lines(width: Output.terminalWidth))
    }

    /// The device that a text means: its name, or a part of a name or description that no other has.
    static func resolve(_ text: String, in state: WireOutputState) throws(Failure) -> String {
        if text == "default" || text.isEmpty { return "" }
        // What is not listed may be plugged in later, or known to the engine alone.
        if state.devices.contains(where: { $0.name == text }) || state.devices.isEmpty { return text }
        let wanted = text.lowercased()
        let found = state.devices.filter {
            $0.name.lowercased().contains(wanted) || $0.description_p.lowercased().contains(wanted)
        }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no sound device “\(text)”. `lockstep output` lists them.")
        }
        guard found.count == 1 else {
            throw Failure.ambiguous(
                "“\(text)” could be \(found.count) sound devices.", found.map { ($0.name, $0.description_p) })
        }
        return first.name
    }
}

struct Status: LockstepCommand {
    static let configuration = CommandConfiguration(abstract: "Show what plays.")
    @Option(help: "Text with {title}, {podcast}, {state}, {position}, {duration}, {remaining} … in it.")
    var format: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let format = try format.map { text throws(Failure) in try StatusFormat(text) }
        try await context.withSession { session in
            let view = try await session.view(of: [.playback])
            let player = view.player ?? WirePlaybackState()
            let snapshot = PlayerSnapshot(view, now: SystemClocks.now(), bootID: SystemClocks.bootID)
            if let format { return try context.output.line(format.filled(snapshot.field)) }
            try context.output.value(player.nowJSON, lines: Self.lines(snapshot))
        }
    }

    private static func lines(_ snapshot: PlayerSnapshot) -> [String] {
        var lines = [Sentence.status(snapshot), Sentence.levels(snapshot)]
        if let chapter = snapshot.chapter {
            lines.append("Chapter \(chapter.number) of \(chapter.count): \(Sentence.stopped(chapter.title))")
        }
        if !snapshot.alerts.isEmpty {
            lines.append("\(NumberText.counted(snapshot.alerts.count, "alert")): see `lockstep alerts`.")
        }
        return lines
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
        case "position": return loaded ? TimeText.clock(position) : ""
        case "duration": return loaded ? TimeText.clock(duration) : ""
        case "remaining": return loaded ? TimeText.clock(remaining) : ""
        case "percent": return duration.map { "\(Int(position / $0 * 100))" } ?? ""
        case "speed": return NumberText.short(speed)
        case "volume": return NumberText.short(volume)
        case "output": return output
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
            code: FailureCode.ambiguous.rawValue, message: message + " Say which by its id:", detail: detail.wireBytes)
    }
}
