public import ArgumentParser
public import LockstepClient
import PodcastModel

struct HistoryCommand: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "List what you have heard, the newest first.",
        discussion: """
            What is heard now is saved every ten seconds; it has the mark “playing”. A pause of less than a minute \
            doesn’t begin another row.
            """)
    @Option(help: "Only this episode.", completion: .episodes) var episode: String?
    @Option(parsing: .unconditional, help: "The maximum number of rows; 20 by default.") var limit: Int?
    @Flag(help: "List everything.") var all = false
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .player }

    func validate() throws { try ListLength.validate(limit: limit, all: all) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        var named: Episode?
        if let episode { named = try await fleet.library.findEpisode(typed: episode) }
        // The history is listed without the mark while the player isn’t available.
        _ = await fleet.availableState(of: [.playback])
        let sessions = try await fleet.library.history(
            of: named?.id, limit: all ? nil : limit ?? ListLength.defaultLimit)
        let playing = fleet.state.isStale(.player) ? nil : fleet.state.player.episode
        let isBeginning =
            sessions.isEmpty && fleet.state.player.isPlaying && playing != nil
            && named.map { $0.id == playing?.id } ?? true
        try output.list(
            sessions.map(\.episode), .array(sessions.map(\.json)),
            lines: isBeginning
                ? ["\(DisplayText.quoted(playing?.title ?? "")) is playing; what you hear is listed after ten seconds."]
                : Self.lines(sessions, of: named?.title))
    }

    static func lines(_ sessions: [PlaySession], of episode: String?) -> [String] {
        guard !sessions.isEmpty else {
            return [episode.map { "You haven’t heard “\($0)” yet." } ?? "You haven’t heard anything yet."]
        }
        let rows = sessions.enumerated().map { index, session in
            [
                "\(index + 1)", Removed.episode(session.title), Removed.podcast(session.podcast),
                TimeText.minute(milliseconds: session.started.milliseconds), ClockText.format(session.positions.from),
                ClockText.format(session.positions.to), ClockText.format(session.heard),
                session.isPlaying ? "playing" : "",
            ]
        }
        return TextTable(
            [
                .right("%"), .flexible("episode"), .flexible("podcast"), "started", .right("from"), .right("to"),
                .right("heard"), "",
            ], rows
        ).printed()
    }
}

struct StatsCommand: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show how much you have heard, and the time that speed and silence saved.",
        discussion: """
            In a terminal, a bar shows each row’s share; --plain, and output to a file, is a table. By day, the table \
            has the days on which you heard something, and the bars also show the days between them.
            """)
    @Option(help: "The rows: \(ListeningStatistics.Grouping.allCases.map(\.rawValue).joined(separator: ", ")).")
    var by = ListeningStatistics.Grouping.podcast
    @Option(help: "The beginning: a date such as 2026-01-31, or an age such as 7d; 30d by default.")
    var since = "30d"
    @Option(
        parsing: .unconditional,
        help:
            "The maximum number of podcasts or episodes, 20 by default; by day, only the newest days on which you heard something."
    )
    var limit: Int?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        try ListLength.validate(limit: limit, all: false)
        guard let first = Self.moment(since, now: SystemClocks.wall()), first <= SystemClocks.wall() else {
            throw ValidationError(
                "--since “\(since)” isn’t a past date such as 2026-01-31, or an age such as 7d or 12h.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        let now = SystemClocks.wall()
        try await context.withFleet { fleet in
            let all = try await fleet.library.statistics(
                by: by, since: Self.moment(since, now: now) ?? now, limit: limit ?? ListLength.defaultLimit, now: now)
            let statistics = limit.map(all.limited) ?? all
            let width = context.plain ? nil : Output.terminalWidth
            try context.output.value(statistics.json, lines: Self.lines(statistics, chartWidth: width))
        }
    }

    /// The beginning of a date, or the time of an age. An age in days counts whole days, today included.
    static func moment(_ text: String, now: Timestamp) -> Timestamp? {
        if let day = CalendarDay(text) { return LocalTime.startOfDay(day) }
        guard let age = DurationText.spelled(text, DurationText.days), age <= DurationText.limit else { return nil }
        let isDays = age >= 86_400 && age.truncatingRemainder(dividingBy: 86_400) == 0
        guard isDays, let today = CalendarDay(LocalTime.calendar(now).dayText) else {
            return Timestamp(milliseconds: max(0, now.milliseconds - Int64(age * 1_000)))
        }
        // From noon, because days have 23 to 25 hours.
        let noon = LocalTime.startOfDay(today).milliseconds + 43_200_000
        let first = noon - Int64((age - 86_400) * 1_000)
        guard first > 0 else { return Timestamp(milliseconds: 0) }
        return CalendarDay(LocalTime.calendar(Timestamp(milliseconds: first)).dayText).map(LocalTime.startOfDay)
    }

    /// - Parameter chartWidth: the width of the terminal that shows bars; nil for a table without them.
    static func lines(_ statistics: ListeningStatistics, chartWidth: Int?) -> [String] {
        let since = LocalTime.calendar(statistics.period.from).dayText
        guard statistics.total.sessions > 0 else { return ["You haven’t heard anything since \(since)."] }
        let rows = chartWidth.map { chart(statistics, width: $0) } ?? table(statistics).printed()
        let (count, kind) = (statistics.rows.count, statistics.grouping.rawValue)
        let rest =
            statistics.grouping == .day || count == statistics.groups
            ? [] : ["The \(count) most heard of \(statistics.groups) \(kind)s; `--limit` shows more."]
        return rows + rest + [sentence(statistics.total, since: since)]
    }

    /// `Heard 2 h in 1 h 30 min since 2026-10-25, in 4 sessions; 25 min saved by speed, 5 min by skipped silence.`
    private static func sentence(_ total: ListeningStatistics.Sums, since: String) -> String {
        let savings = [(total.savedBySpeed, "by speed"), (total.savedBySilence, "by skipped silence")]
            .filter { $0.0 >= 1 }.map { "\(TimeText.span($0.0)) \($0.1)" }
        return "Heard \(TimeText.span(total.heard)) in \(TimeText.span(total.wall)) since \(since), in "
            + NumberText.counted(total.sessions, "session")
            + (savings.isEmpty ? "." : "; saved \(savings.joined(separator: ", ")).")
    }

    private static func names(
        _ grouping: ListeningStatistics.Grouping
    ) -> [(column: TextTable.Column, cell: (ListeningStatistics.Sums) -> String)] {
        switch grouping {
        case .podcast: [(.flexible("podcast"), { Removed.podcast($0.title) })]
        case .episode:
            [
                (.flexible("episode"), { Removed.episode($0.title) }),
                (.flexible("podcast"), { Removed.podcast($0.podcast) }),
            ]
        case .day: [("day", { LocalTime.calendar($0.day).dayText })]
        }
    }

    private static func table(_ statistics: ListeningStatistics) -> TextTable {
        let names = names(statistics.grouping)
        let rows = statistics.rows.filter { $0.sessions > 0 }.map { row in
            names.map { $0.cell(row) } + [
                ClockText.format(row.heard), ClockText.format(row.wall), ClockText.format(max(0, row.savedBySpeed)),
                ClockText.format(row.savedBySilence), "\(row.sessions)",
            ]
        }
        return TextTable(
            names.map(\.column) + [
                .right("heard"), .right("time"), .right("saved by speed"), .right("by silence"), .right("sessions"),
            ], rows)
    }

    private static func chart(_ statistics: ListeningStatistics, width: Int) -> [String] {
        let names = names(statistics.grouping).prefix(1)
        let longest = max(1, statistics.rows.map(\.heard).max() ?? 1)
        // Also the days without a session, between the first and the last one with a session.
        let first = statistics.rows.firstIndex { $0.sessions > 0 } ?? 0
        let last = statistics.rows.lastIndex { $0.sessions > 0 } ?? -1
        let rows = statistics.rows[first..<(last + 1)].map { row in
            let length = Int((row.heard / longest * Double(max(5, width / 3))).rounded(.up))
            return names.map { $0.cell(row) } + [
                row.heard > 0 ? TimeText.span(row.heard) : "-", String(repeating: "█", count: max(0, length)),
            ]
        }
        return TextTable(names.map(\.column) + [.right("heard"), ""], rows).lines(width: width)
    }
}

extension ListeningStatistics.Grouping: ExpressibleByArgument {}

/// The names of what is no longer in the library.
private enum Removed {
    static func podcast(_ title: String) -> String { title.isEmpty ? "(removed podcast)" : title }
    static func episode(_ title: String) -> String { title.isEmpty ? "(removed episode)" : title }
}
