import ArgumentParser
import LockstepClient
import PodcastModel

struct SleepTimer: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "sleep", abstract: "Show or set the sleep timer, which pauses playback.",
        discussion:
            "15, 15m, 1h30m and 90s are durations, in minutes without a unit; 23:30 is a local time; +10 extends a running "
            + "timer by ten minutes; episode, 3 episodes and chapter pause at their end; off cancels the timer.")
    @Argument(help: "15, 1h30m, 23:30, +10, episode, 3 episodes, chapter or off; without it, the timer is shown.")
    var when: [String] = []
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard !when.isEmpty else { return try await show(context) }
        guard let expression = SleepExpression(when) else {
            throw Failure(
                .invalidArgument,
                "“\(when.joined(separator: " "))” isn’t a sleep time. Give minutes up to a day such as 15, or 1h30m, 23:30, +10, "
                    + "episode, 3 episodes (\(SleepLimits.episodes) at most), chapter or off.")
        }
        try await context.withFleet(observing: expression == .chapter ? .player : .nothing) { fleet in
            let answer = try await Self.set(expression, fleet)
            let state = Sentence.sleep(answer.value.snapshot)
            try context.output.change(
                answer.value.json(), if: answer.changed, Sentence.capitalised(state + "."), else: state)
        }
    }

    private func show(_ context: CommandContext) async throws {
        try await context.withFleet(observing: .player) { fleet in
            let player = try await fleet.current([.player]).player
            try context.output.value(
                .object(["sleep": player.sleepJSON()]),
                lines: [Sentence.capitalised(Sentence.sleep(player.snapshot) + ".")])
        }
    }

    private static func set(
        _ expression: SleepExpression, _ fleet: Fleet
    ) async throws(Failure) -> Answer<PlayerState> {
        switch expression {
        case .off: return try await fleet.player.setSleepTimer(nil)
        case .after(let seconds): return try await fleet.player.setSleepTimer(.time(remaining: seconds))
        case .at(let hour, let minute):
            let seconds = seconds(until: hour, minute, from: Moment.now.wall)
            return try await fleet.player.setSleepTimer(.time(remaining: seconds))
        case .later(let seconds): return try await fleet.player.extendSleepTimer(by: seconds)
        case .episodes(let count): return try await fleet.player.setSleepTimer(.episodes(Int(count)))
        case .chapter:
            guard try await !fleet.current([.player]).player.chapters.isEmpty else {
                throw Failure(.notFound, "This episode has no chapters. `lockstep sleep episode` waits for its end.")
            }
            return try await fleet.player.setSleepTimer(.endOfChapter)
        }
    }

    /// The number of seconds until a local time of the day.
    static func seconds(until hour: Int32, _ minute: Int32, from now: Timestamp) -> Double {
        // The night on which clocks are set back is an hour longer.
        min(LocalTime.seconds(until: hour, minute, from: now), SleepLimits.seconds)
    }
}
