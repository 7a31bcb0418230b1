import LockstepClient
import PodcastModel

/// A format for `status`: text with fields such as `{title}`.
struct StatusFormat: Sendable {
    enum Field: String, CaseIterable {
        case state, title, podcast, id, position, duration, remaining, percent, speed, volume, output, chapter, sleep
        case retry

        func value(in snapshot: PlayerSnapshot) -> String {
            let (episode, duration) = (snapshot.episode, snapshot.player.duration)
            return switch self {
            case .state: snapshot.player.statusWord
            case .title: episode?.title ?? ""
            case .podcast: episode?.podcast ?? ""
            case .id: episode?.id.text ?? ""
            case .position: episode != nil ? ClockText.format(snapshot.position) : ""
            case .duration: episode != nil ? ClockText.format(duration) : ""
            case .remaining: episode != nil ? ClockText.format(snapshot.remaining) : ""
            case .percent: duration.map { "\(Int(snapshot.position / $0 * 100))" } ?? ""
            case .speed: NumberText.short(snapshot.speed)
            case .volume: NumberText.short(snapshot.volume)
            case .output: snapshot.player.output ?? ""
            case .chapter: snapshot.chapter.map { snapshot.chapters[$0].title } ?? ""
            case .sleep: Sentence.sleepTime(snapshot.sleep)
            case .retry: snapshot.retry.map(Sentence.retry) ?? ""
            }
        }
    }

    private enum Part {
        case text(Character)
        case field(Field)
    }

    private var parts: [Part] = []

    /// Reads a format: `{name}` is a field, `{{` and `}}` are braces, `\n` and `\t` are a line break and a tab.
    ///
    /// - Throws: `invalidArgument` naming the fields.
    init(_ format: String) throws(Failure) {
        var rest = format[...]
        while let character = rest.popFirst() {
            switch (character, rest.first) {
            case ("{", "{"), ("}", "}"): parts.append(.text(rest.removeFirst()))
            case ("\\", "n"), ("\\", "t"): parts.append(.text(rest.removeFirst() == "n" ? "\n" : "\t"))
            case ("{", _):
                let name = rest.prefix { $0 != "}" }
                guard name.endIndex < format.endIndex else {
                    throw Failure(
                        .invalidArgument,
                        "“{\(name)” in the format has no closing brace. Write {{ for a brace that isn’t a field.")
                }
                guard let field = Field(rawValue: String(name)) else {
                    let names = Field.allCases.map { "{\($0)}" }.joined(separator: ", ")
                    throw Failure(.invalidArgument, "{\(name)} is an unknown field. The fields are \(names).")
                }
                rest = rest.dropFirst(name.count + 1)
                parts.append(.field(field))
            default: parts.append(.text(character))
            }
        }
    }

    /// The format with the fields filled in; unknown values are empty.
    func filled(_ value: (Field) -> String) -> String {
        parts.map { part in
            switch part {
            case .text(let character): String(character)
            case .field(let field): value(field)
            }
        }.joined()
    }
}
