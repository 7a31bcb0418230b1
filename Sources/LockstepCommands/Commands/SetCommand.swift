import ArgumentParser
import LockstepClient
import PodcastModel

struct SetCommand: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Show or change settings, for all podcasts or for one.",
        usage: """
            lockstep set [<key> [<value>]] [--podcast <podcast>]
            lockstep set --unset <key> [--podcast <podcast>]
            """,
        discussion:
            "Without arguments, all settings are listed. A podcast without its own value uses the one for all podcasts, or "
            + "else the default.")
    @Argument(help: "The setting.", completion: .list(SettingKey.allCases.map(\.rawValue))) var key: String?
    @Argument(help: "Its new value; without it, the current one is shown.") var value: String?
    @Option(help: "The podcast; all by default.", completion: .podcasts) var podcast: String?
    @Option(
        help: "Remove the value of this setting.", completion: .list(SettingKey.allCases.map(\.rawValue)))
    var unset: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard unset == nil || key == nil else {
            throw ValidationError("--unset expects the setting’s name without a value.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        let key = try (unset ?? key).map { text throws(Failure) in try SettingKey.named(text) }
        // The value is validated before the request.
        var text = unset == nil ? nil : ""
        if let key, let value { text = try key.value(typed: CommandLineWords.typed(value)) }
        let wanted = text
        try await context.withFleet(observing: wanted == nil ? .parts([.settings]) : .nothing) { fleet in
            var podcast: Podcast?
            if let name = self.podcast { podcast = try await fleet.library.findPodcast(typed: name) }
            switch (key, wanted) {
            case (let key?, let wanted?): try await Self.change(key, to: wanted, podcast, fleet, context)
            case (let key?, nil): try await Self.show(key, podcast, fleet, context)
            case (nil, _): try await Self.list(podcast, fleet, context)
            }
        }
    }

    private static func list(_ podcast: Podcast?, _ fleet: Fleet, _ context: CommandContext) async throws {
        // Settings of other services are shown even if one service isn’t available.
        let state = await fleet.availableState()
        let values = state.settings.with(file: context.settings.skipDistances)
        let keys = SettingKey.allCases.filter { podcast == nil || $0.rule.isPerPodcast }
        let known = keys.map { key in
            (key, value: state.isReady(key.rule.owner) ? values.value(of: key, for: podcast?.id) : nil)
        }
        let rows = known.map { key, value in
            [
                key.rawValue, value.map { key.shown($0.text) } ?? "?",
                value.map { words($0.source, podcast) } ?? "\(key.rule.owner) isn’t ready", key.rule.meaning,
            ]
        }
        let table = TextTable(["setting", "value", "from", .flexible("what it is")], rows)
        try context.output.value(.array(known.map { json($0, $1, podcast) }), lines: table.printed())
    }

    private static func show(
        _ key: SettingKey, _ podcast: Podcast?, _ fleet: Fleet, _ context: CommandContext
    ) async throws {
        let state = try await fleet.current([.settings], services: [key.rule.owner])
        let values = state.settings.with(file: context.settings.skipDistances)
        let value = values.value(of: key, for: podcast?.id)
        var lines = ["\(key.rawValue) \(key.shown(value.text)) (\(words(value.source, podcast))): \(key.rule.meaning)."]
        let own = podcast == nil ? values.podcasts(with: key) : []
        if !own.isEmpty {
            let podcasts = try await fleet.library.podcasts(includesUnsubscribed: true)
            lines += own.map { own in
                let title = podcasts.first { $0.id == own.podcast }?.title
                return "  \(key.shown(own.value)) for \(title ?? own.podcast.text)"
            }
        }
        try context.output.value(json(key, value, podcast), lines: lines)
    }

    private static func change(
        _ key: SettingKey, to text: String, _ podcast: Podcast?, _ fleet: Fleet, _ context: CommandContext
    ) async throws {
        guard podcast == nil || key.rule.isPerPodcast else {
            throw Failure(.invalidArgument, "\(key.rawValue) applies to all podcasts; omit --podcast.")
        }
        let answer = try await fleet.settings.set(key, to: text, for: podcast?.id)
        var value = answer.value
        if value.source == .default, let text = context.settings.skipDistances[key] {
            value = SettingValue(text: text, source: .file)
        }
        let whose = podcast.map { " for \(DisplayText.quoted($0.title))" } ?? ""
        let origin = text.isEmpty ? " (\(words(value.source, podcast)))" : ""
        let (name, state) = ("\(key.rawValue)\(whose) is", "\(key.shown(value.text))\(origin)")
        try context.output.change(
            json(key, value, podcast), if: answer.changed, "\(name) \(state).", else: "\(name) already \(state)")
    }

    private static func words(_ source: SettingValue.Source, _ podcast: Podcast?) -> String {
        switch source {
        case .podcast: "set for this podcast"
        case .all: podcast == nil ? "set" : "set for all"
        case .file: "config.yaml"
        case .default: "default"
        }
    }

    private static func json(_ key: SettingKey, _ value: SettingValue?, _ podcast: Podcast?) -> JSONValue {
        .object([
            "key": .string(key.rawValue), "value": value.map { key.json($0.text) } ?? .null,
            "from": value.map { .string($0.source.rawValue) } ?? .null,
            "podcast": podcast.map { .string($0.id.text) } ?? .null, "standard": key.json(key.rule.defaultValue),
            "perPodcast": .bool(key.rule.isPerPodcast), "owner": .string(key.rule.owner.text),
            "meaning": .string(key.rule.meaning),
        ])
    }
}
