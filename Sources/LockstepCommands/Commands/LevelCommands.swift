import ArgumentParser
import BusKit
import FoundationEssentials
import LockstepClient
import PodcastModel
import WireMessages

struct SetSpeed: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "speed", abstract: "Show or set the playback speed, 0.5 to 3.5.",
        discussion:
            "`up` and `down` go to the next multiple of speed.step of config.yaml, 0.1. Where the podcast that is loaded "
            + "has a speed of its own (`lockstep set --podcast P speed`), that one is set, else the one for all.")
    @Argument(help: "1.5, +0.2, -0.2, up or down; without it, the current speed is shown.") var speed: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await PlayerLevel.speed.perform(speed, context)
    }
}

struct SetVolume: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "volume", abstract: "Show or set the volume, 0 to 100.",
        discussion: "`up` and `down` go to the next multiple of volume.step of config.yaml, 5: from 42 up to 45.")
    @Argument(help: "80, +10, -10, up or down; without it, the current volume is shown.") var volume: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await PlayerLevel.volume.perform(volume, context)
    }
}

/// A level of the player that is shown, set, or moved by a step.
enum PlayerLevel: String, Sendable {
    case speed
    case volume

    /// Shows the level, or sets it to what `text` says.
    func perform(_ text: String?, _ context: CommandContext) async throws {
        let expression = try text.map { text throws(Failure) in
            guard let expression = LevelExpression(text, unit: unit) else {
                throw Failure(
                    .invalidArgument, "“\(text)” isn’t a valid \(rawValue). Give \(limits), \(example), up or down.")
            }
            return expression
        }
        try await context.withSession(observing: .player) { session in
            let view = try await session.view(of: [.playback])
            let player = view.player ?? WirePlaybackState()
            let others = others(than: player, in: SettingValues(view.settings, settings: context.settings))
            guard let expression else {
                return try context.output.value(
                    .object([.init(name: rawValue, value: .number(value(in: player)))]),
                    lines: [sentence(player, others)])
            }
            let level = expression.level(from: value(in: player), step: step(context.settings), range: range)
            guard let accepted = accepted(level) else {
                throw Failure(
                    .invalidArgument,
                    "\(rawValue.capitalized) \(NumberText.short(level)) is out of range; it goes from \(limits).")
            }
            guard abs(accepted - value(in: player)) > 1e-9 else {
                return try context.output.change(
                    player.nowJSON,
                    "No change: the \(rawValue) is \(shown(accepted)) already\(others == nil ? "" : ",")\(Self.suffix(player, others))."
                )
            }
            let reply = try await session.playback { set(accepted, in: &$0) }
            try context.output.change(reply.state.nowJSON, sentence(reply.state, others))
        }
    }

    /// The speed of other podcasts, where that of what is loaded holds for its podcast alone.
    private func others(than player: WirePlaybackState, in values: SettingValues) -> String? {
        let podcast = player.episode.podcastID
        guard self == .speed, !podcast.isEmpty, values.own(.speed, podcast: podcast) != nil else { return nil }
        return values.value(of: .speed, podcast: "").text
    }

    private func sentence(_ player: WirePlaybackState, _ others: String?) -> String {
        "\(rawValue.capitalized) \(shown(value(in: player)))\(Self.suffix(player, others))."
    }

    private static func suffix(_ player: WirePlaybackState, _ others: String?) -> String {
        others.map { " for “\(DisplayText.sanitised(player.episode.podcastTitle))” alone; others play at \($0)" } ?? ""
    }

    private func shown(_ level: Double) -> String { NumberText.short(level) + (self == .volume ? " %" : "") }

    private var unit: Character { self == .speed ? "x" : "%" }

    private var range: ClosedRange<Double> { self == .speed ? PlaybackSpeed.range : Volume.range }

    private var limits: String { "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))" }

    private var example: String { self == .speed ? "+0.2 or -0.2" : "+10 or -10" }

    private func step(_ settings: Settings) -> Double { self == .speed ? settings.speedStep : settings.volumeStep }

    private func value(in player: WirePlaybackState) -> Double { self == .speed ? player.speed : player.volume }

    private func accepted(_ level: Double) -> Double? {
        self == .speed ? PlaybackSpeed(factor: level)?.factor : Volume(percent: level)?.percent
    }

    private func set(_ level: Double, in request: inout WirePlaybackRequest) {
        if self == .speed { request.setSpeed.speed = level } else { request.setVolume.volume = level }
    }
}
