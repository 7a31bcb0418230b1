import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import WireMessages

struct SetCommand: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Show settings, or set one, for all podcasts or for one.",
        usage: """
            lockstep set [<key> [<value>]] [--podcast <podcast>]
            lockstep set --unset <key> [--podcast <podcast>]
            """,
        discussion:
            "Without arguments it lists all settings. What isn’t set for a podcast is as for all podcasts; what isn’t "
            + "set there either has its default.")
    @Argument(help: "Which setting.", completion: .list(SettingKey.allCases.map(\.rawValue))) var key: String?
    @Argument(help: "Its new value; without it, the current one is shown.") var value: String?
    @Option(help: "For this podcast only.", completion: .podcasts) var podcast: String?
    @Option(
        help: "Remove its value, as if it had never been set.", completion: .list(SettingKey.allCases.map(\.rawValue)))
    var unset: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard unset == nil || key == nil else {
            throw ValidationError("--unset takes the setting’s name, and no value.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        let key = try (unset ?? key).map { text throws(Failure) in try SettingKey.named(text) }
        // Checked before anybody is asked.
        var text = unset == nil ? nil : ""
        if let key, let value { text = try key.value(typed: CommandLineWords.typed(value)) }
        let wanted = text
        try await context.withSession { session in
            let podcast: WirePodcast?
            if let name = self.podcast {
                podcast = try await session.findPodcast(name)
            } else {
                podcast = nil
            }
            guard let key else { return try await Self.list(podcast, session, context.output) }
            guard let wanted else { return try await Self.show(key, podcast, session, context.output) }
            try await Self.change(key, to: wanted, podcast, session, context.output)
        }
    }

    private static func list(_ podcast: WirePodcast?, _ session: Session, _ output: Output) async throws {
        // One service that is away does not keep the others' settings from being read.
        let view = await session.presentView()
        let values = SettingValues(view.settings, settings: session.settings)
        let keys = SettingKey.allCases.filter { podcast == nil || $0.rule.isPerPodcast }
        var table = TextTable([
            .init(heading: "setting"), .init(heading: "value"), .init(heading: "from"),
            .init(heading: "what it is", flexible: true),
        ])
        for key in keys {
            let isKnown = !view.isStale(key.rule.owner)
            let value = values.value(of: key, podcast: podcast?.id ?? "")
            table.add([
                key.rawValue, isKnown ? key.shown(value.text) : "?",
                isKnown ? words(value.source, podcast) : "\(key.rule.owner) is not ready", key.rule.meaning,
            ])
        }
        let shown = keys.map { key in
            json(
                key, view.isStale(key.rule.owner) ? nil : values.value(of: key, podcast: podcast?.id ?? ""),
                podcast)
        }
        try output.value(.array(shown), lines: table.lines(width: Output.terminalWidth))
    }

    private static func show(
        _ key: SettingKey, _ podcast: WirePodcast?, _ session: Session, _ output: Output
    ) async throws {
        let view = try await session.view(of: [key.rule.owner])
        let values = SettingValues(view.settings, settings: session.settings)
        let value = values.value(of: key, podcast: podcast?.id ?? "")
        var lines = ["\(key.rawValue) \(key.shown(value.text)) (\(words(value.source, podcast))): \(key.rule.meaning)."]
        if podcast == nil {
            lines += values.podcasts(with: key).map { own in
                let title = view.podcasts[own.podcast]?.title ?? own.podcast
                return "  \(key.shown(own.value)) for \(DisplayText.sanitised(title))"
            }
        }
        try output.value(json(key, value, podcast), lines: lines)
    }

    private static func change(
        _ key: SettingKey, to text: String, _ podcast: WirePodcast?, _ session: Session, _ output: Output
    ) async throws {
        guard podcast == nil || key.rule.isPerPodcast else {
            throw Failure(.invalidArgument, "\(key.rawValue) holds for all podcasts alike; leave --podcast out.")
        }
        let id = podcast?.id ?? ""
        let before = SettingValues(
            try await session.view(of: [key.rule.owner]).settings, settings: session.settings)
        let isSame = (before.own(key, podcast: id) ?? "") == text
        if !isSame { try await session.set(key, to: text, podcast: id) }
        let view = isSame ? nil : try await session.view(of: [key.rule.owner])
        let now = view.map { SettingValues($0.settings, settings: session.settings) } ?? before
        let value = now.value(of: key, podcast: id)
        let whose = podcast.map { " for “\(DisplayText.sanitised($0.title))”" } ?? ""
        let state = "\(key.rawValue)\(whose) is \(key.shown(value.text))"
        let origin = text.isEmpty ? " (\(words(value.source, podcast)))" : ""
        try output.change(
            json(key, value, podcast),
            isSame
                ? "No change: \(state)\(origin) already." : "\(state)\(origin).")
    }

    private static func words(_ source: SettingValues.Source, _ podcast: WirePodcast?) -> String {
        switch source {
        case .podcast: "set for this podcast"
        case .all: podcast == nil ? "set" : "set for all"
        case .file: "config.yaml"
        case .standard: "default"
        }
    }

    private static func json(_ key: SettingKey, _ value: SettingValues.Value?, _ podcast: WirePodcast?) -> JSONValue {
        .object([
            "key": .string(key.rawValue), "value": value.map { key.json($0.text) } ?? .null,
            "from": value.map { .string($0.source.rawValue) } ?? .null,
            "podcast": podcast.map { .string($0.id) } ?? .null, "standard": key.json(key.rule.standard),
            "perPodcast": .bool(key.rule.isPerPodcast), "owner": .string(key.rule.owner.text),
            "meaning": .string(key.rule.meaning),
        ])
    }
}

extension Session {
    /// Has a setting's owner set it, or with an empty text forget it.
    fileprivate func set(_ key: SettingKey, to text: String, podcast: String) async throws(Failure) {
        var setting = WireSetSetting()
        setting.key = key.rawValue
        setting.value = text
        setting.podcast = podcast
        guard let request = ServiceCatalog[key.rule.owner]?.request as? any SettingRequest.Type else {
            throw Failure(.internalError, "\(key.rule.owner) takes no settings.")
        }
        try await set(setting, at: key.rule.owner, request)
    }

    private func set<Request: SettingRequest>(
        _ setting: WireSetSetting, at owner: ServiceName, _: Request.Type
    ) async throws(Failure) {
        let request = Request.with { $0.setSetting = setting }
        _ = try await ask(owner, request, reply: Request.Reply.self)
    }
}
