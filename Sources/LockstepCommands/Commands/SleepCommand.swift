import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct SleepTimer: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "sleep", abstract: "Show or set the sleep timer, which pauses playback.",
        discussion:
            "15, 15m and 15 minutes are minutes, 1h30m and 90s what they say, 23:30 is a time of the day; +10 extends it "
            + "by ten minutes; episode, 3 episodes and chapter wait for their end; off turns it off.")
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
        try await context.withSession(observing: .player) { session in
            let player = try await session.view(of: [.playback]).player ?? WirePlaybackState()
            let wanted = try Self.request(expression, player, now: SystemClocks.now(), bootID: SystemClocks.bootID)
            guard let wanted else {
                let state = Sentence.sleep(session.snapshot(player).sleep)
                return try context.output.change(player.nowJSON, "No change: \(state).")
            }
            let reply = try await session.playback { $0.setSleep = wanted }
            let state = Sentence.sleep(session.snapshot(reply.state).sleep)
            try context.output.change(reply.state.nowJSON, Sentence.capitalised(state + "."))
        }
    }

    private func show(_ context: CommandContext) async throws {
        try await context.withSession(observing: .player) { session in
            let player = try await session.view(of: [.playback]).player ?? WirePlaybackState()
            let snapshot = session.snapshot(player)
            try context.output.value(
                .object(["sleep": player.sleepJSON(at: SystemClocks.now(), bootID: SystemClocks.bootID)]),
                lines: [Sentence.capitalised(Sentence.sleep(snapshot.sleep) + ".")])
        }
    }

    /// What to ask for; nil: it is so already.
    ///
    /// - Throws: `invalidArgument` where there is no time that could be longer.
    static func request(
        _ expression: SleepExpression, _ player: WirePlaybackState, now: Moment, bootID: String
    ) throws(Failure) -> WireSetSleep? {
        var request = WireSetSleep()
        let present = player.hasSleep ? player.sleep : WireSleepState()
        switch expression {
        case .off: return player.hasSleep ? request : nil
        case .after(let seconds): request.seconds = seconds
        case .at(let hour, let minute):
            // The night on which clocks are set back has an hour more.
            request.seconds = min(LocalTime.seconds(until: hour, minute, from: now.wall), SleepLimits.seconds)
        case .later(let seconds):
            guard player.hasSleep, let remaining = player.sleep.remaining(at: now, bootID: bootID) else {
                throw Failure(
                    .invalidArgument,
                    "There is no sleep timer to extend. Start one with `lockstep sleep \(NumberText.short(seconds / 60))`."
                )
            }
            let total = remaining + seconds
            guard total <= SleepLimits.seconds else {
                throw Failure(.invalidArgument, "The sleep timer can’t be extended by more than a day.")
            }
            request.seconds = total
        case .episodes(let count):
            if player.hasSleep, present.endsAt == 0, !present.endOfChapter, present.episodes == count { return nil }
            request.episodes = count
        case .chapter:
            if player.hasSleep, present.endOfChapter { return nil }
            guard !player.chapters.isEmpty else {
                throw Failure(
                    .notFound, "This episode has no chapters. `lockstep sleep episode` waits for its end.")
            }
            request.endOfChapter = true
        }
        return request
    }
}
