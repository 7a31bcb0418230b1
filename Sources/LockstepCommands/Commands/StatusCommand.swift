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
        if let chapter = snapshot.chapterName { lines.append(Sentence.stopped(chapter)) }
        if snapshot.sleep != nil { lines.append(Sentence.capitalised(Sentence.sleep(snapshot) + ".")) }
        return lines + (Sentence.alerts(snapshot.alerts).map { [$0] } ?? [])
    }
}

extension PlayerSnapshot {
    /// The value of a field of `status --format`.
    func field(_ name: String) -> String {
        let duration = player.duration
        switch name {
        case "state": return player.statusWord
        case "title": return episode?.title ?? ""
        case "podcast": return episode?.podcast ?? ""
        case "id": return episode?.id.text ?? ""
        case "position": return episode != nil ? ClockText.format(position) : ""
        case "duration": return episode != nil ? ClockText.format(duration) : ""
        case "remaining": return episode != nil ? ClockText.format(remaining) : ""
        case "percent": return duration.map { "\(Int(position / $0 * 100))" } ?? ""
        case "speed": return NumberText.short(speed)
        case "volume": return NumberText.short(volume)
        case "output": return player.output ?? ""
        case "chapter": return chapter.map { chapters[$0].title } ?? ""
        case "sleep": return Sentence.sleepTime(sleep)
        case "retry": return retry.map(Sentence.retry) ?? ""
        default: return ""
        }
    }
}
