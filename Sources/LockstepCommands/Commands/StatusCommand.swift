import ArgumentParser
import LockstepClient
import PodcastModel

struct Status: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show what is playing.")
    @Option(help: "Text with {title}, {podcast}, {state}, {position}, {duration}, {remaining} … in it.")
    var format: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let format = try format.map { text throws(Failure) in try StatusFormat(text) }
        try await context.withFleet(observing: .parts([.player, .alerts])) { fleet in
            let state = try await fleet.current([.player, .alerts])
            if let format { return try context.output.line(format.filled(state.player.snapshot.field)) }
            try context.output.value(
                state.player.json().adding("alerts", .array(state.alerts.map(\.json))), lines: Self.lines(state))
        }
    }

    private static func lines(_ state: FleetState) -> [String] {
        let snapshot = PlayerSnapshot(state, now: .now)
        var lines = [state.player.sentenceWithQueue, Sentence.levels(snapshot)]
        if let chapter = snapshot.chapter { lines.append(Sentence.chapter(chapter)) }
        if snapshot.sleep != nil { lines.append(Sentence.capitalised(Sentence.sleep(snapshot.sleep) + ".")) }
        return lines + (Sentence.alerts(snapshot.alerts).map { [$0] } ?? [])
    }
}

extension PlayerSnapshot {
    /// The value of a field of `status --format`.
    func field(_ name: String) -> String {
        let loaded = hasEpisode && status != .idle
        switch name {
        case "state": return status.rawValue
        case "title": return title
        case "podcast": return podcast
        case "id": return episodeID?.text ?? ""
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
