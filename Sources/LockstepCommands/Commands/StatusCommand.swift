import ArgumentParser
import LockstepClient
import PodcastModel

struct Status: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show what is playing.")
    @Option(help: "A text in which {title}, {state}, {position}, {remaining} and others are replaced.")
    var format: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard format == nil || !options.json else {
            throw ValidationError("--format and --json can’t be used together.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        let format = try format.map { text throws(Failure) in try StatusFormat(text) }
        try await context.withFleet(observing: .parts([.player, .alerts])) { fleet in
            let state = try await fleet.current([.player, .alerts])
            if let format {
                let snapshot = state.player.snapshot
                return try context.output.line(format.filled { $0.value(in: snapshot) })
            }
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
