import ArgumentParser
import LockstepClient
import PodcastModel

struct SetSpeed: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "speed", abstract: "Show or set the playback speed, 0.5 to 3.5.",
        discussion:
            "`up` and `down` select the next multiple of speed.step in config.yaml (0.1). If the loaded podcast has its own "
            + "speed (`lockstep set --podcast P speed`), that setting is changed, otherwise the one for all podcasts.")
    @Argument(help: "1.5, +0.2, -0.2, up or down; without it, the current speed is shown.") var speed: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard let speed else {
            return try await context.withFleet(observing: .parts([.player, .settings])) { fleet in
                let state = try await fleet.current([.player])
                let podcast = state.player.episode?.podcastID
                let isOwn = podcast.map { state.settings.own(.speed, of: $0) != nil } ?? false
                let others = isOwn ? state.settings.value(of: .speed).text : nil
                try context.output.value(
                    .object(["speed": .number(state.player.speed)]),
                    lines: [Self.sentence(state.player, others: others)])
            }
        }
        let change = try PlayerClient.LevelChange(
            speed, "speed", unit: "x", PlaybackSpeed.range, examples: "+0.2 or -0.2", step: context.settings.speedStep)
        try await context.withFleet { fleet in
            let answer = try await fleet.player.setSpeed(change)
            let player = answer.value.player
            let others = answer.value.forOthers
            let comma = others == nil ? "" : ","
            try context.output.change(
                player.json(), if: answer.changed, Self.sentence(player, others: others),
                else:
                    "the speed is already \(NumberText.short(player.speed))\(comma)\(Self.suffix(player, others))")
        }
    }

    private static func sentence(_ player: PlayerState, others: String?) -> String {
        "Speed \(NumberText.short(player.speed))\(suffix(player, others))."
    }

    /// The speed of other podcasts, if the speed applies only to the loaded one.
    private static func suffix(_ player: PlayerState, _ others: String?) -> String {
        others.map { " for “\(player.episode?.podcast ?? "")” only; other podcasts play at \($0)" } ?? ""
    }
}

struct SetVolume: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "volume", abstract: "Show or set the volume, 0 to 100.",
        discussion: "`up` and `down` select the next multiple of volume.step in config.yaml (5): 45 after 42.")
    @Argument(help: "80, +10, -10, up or down; without it, the current volume is shown.") var volume: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard let volume else {
            return try await context.withFleet(observing: .player) { fleet in
                let player = try await fleet.current([.player]).player
                try context.output.value(
                    .object(["volume": .number(player.volume)]),
                    lines: ["Volume \(NumberText.short(player.volume)) %."])
            }
        }
        let change = try PlayerClient.LevelChange(
            volume, "volume", unit: "%", Volume.range, examples: "+10 or -10", step: context.settings.volumeStep)
        try await context.withFleet { fleet in
            let answer = try await fleet.player.setVolume(change)
            let shown = "\(NumberText.short(answer.value.volume)) %"
            try context.output.change(
                answer.value.json(), if: answer.changed, "Volume \(shown).", else: "the volume is already \(shown)")
        }
    }
}
