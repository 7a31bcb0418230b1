import LockstepClient
import PodcastModel
import WireMessages

/// What holds of the settings, out of what has been set: a podcast's own value, else the one for all podcasts, else (how
/// far to skip) the one of `config.yaml`, else the standard. Pure.
struct SettingValues: Sendable {
    /// Where a value comes from.
    enum Source: String, Sendable {
        case podcast, all, file, standard
    }

    /// A value in its key's own writing.
    struct Value: Sendable, Hashable {
        var text: String
        var source: Source
    }

    private let states: [Topic: WireSettingsState]
    private let settings: Settings

    /// What the stream retains of the owners' settings, beside what the settings' file says.
    init(_ states: [Topic: WireSettingsState], settings: Settings) {
        self.states = states
        self.settings = settings
    }

    /// What has been set for a podcast, or with an empty id for all; nil: nothing.
    func own(_ key: SettingKey, podcast: String) -> String? {
        states[Topic.settings(key.rule.owner, podcast: podcast)]?.settings
            .first { $0.key == key.rawValue }?.value
    }

    /// What holds for a podcast, or with an empty id where a podcast has nothing of its own.
    func value(of key: SettingKey, podcast: String) -> Value {
        if !podcast.isEmpty, key.rule.isPerPodcast, let text = own(key, podcast: podcast) {
            return Value(text: text, source: .podcast)
        }
        if let text = own(key, podcast: "") { return Value(text: text, source: .all) }
        let file: Double? =
            switch key {
            case .skipForward: settings.skipForward
            case .skipBack: settings.skipBack
            default: nil
            }
        if let file { return Value(text: NumberText.short(file), source: .file) }
        return Value(text: key.rule.standard, source: .standard)
    }

    /// A number that holds; the key's standard where the text is none.
    func number(_ key: SettingKey, podcast: String) -> Double {
        Double(value(of: key, podcast: podcast).text) ?? Double(key.rule.standard) ?? 0
    }

    /// The podcasts that have a value of their own, with it, in order of their ids.
    func podcasts(with key: SettingKey) -> [(podcast: String, value: String)] {
        states.values.compactMap { state in
            guard !state.podcast.isEmpty, let value = own(key, podcast: state.podcast),
                states[Topic.settings(key.rule.owner, podcast: state.podcast)] == state
            else { return nil }
            return (state.podcast, value)
        }.sorted { $0.podcast < $1.podcast }
    }
}

extension SettingKey {
    /// The key that somebody means: capitals, dashes and underscores do not count.
    ///
    /// - Throws: `notFound`, which names the nearest one.
    static func named(_ text: String) throws(Failure) -> SettingKey {
        let names = allCases.map(\.rawValue)
        if let name = NearestWord.among(names, to: text, within: 0), let key = SettingKey(rawValue: name) { return key }
        let advice = NearestWord.among(names, to: text).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no setting “\(text)”. \(advice)`lockstep set` lists them.")
    }

    /// A value as somebody types it: of a threshold, seconds have their unit, because 95 may as well be meant as per cent.
    ///
    /// - Throws: `invalidArgument`, which names the key, the value and what it may be.
    func value(typed text: String) throws(Failure) -> String {
        guard self == .playedThreshold else { return try value(of: text) }
        if let number = TimeText.number(text) {
            let shown = NumberText.short(number)
            throw Failure(
                .invalidArgument,
                "\(rawValue) \(shown) could mean two things. Write \(shown)% for a part of the length, or \(shown)s for seconds before the end."
            )
        }
        return try value(of: TimeText.spelled(text.lowercased()).map(NumberText.short) ?? text)
    }

    /// A value as `value(typed:)` takes it.
    func shown(_ text: String) -> String {
        self == .playedThreshold && TimeText.number(text) != nil ? text + "s" : text
    }
}
