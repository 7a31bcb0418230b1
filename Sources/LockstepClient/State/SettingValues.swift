public import PodcastModel
package import WireMessages

/// A value that holds for a setting.
public struct SettingValue: Sendable, Hashable {
    /// The place where a value is set.
    public enum Source: String, Sendable, Hashable {
        /// For the podcast.
        case podcast
        /// For all podcasts.
        case all
        /// In the settings file of the program that shows it.
        case file
        /// Nowhere: it is the default.
        case standard
    }

    /// The value in its key’s own form.
    public let text: String
    /// The place where it is set.
    public let source: Source

    package init(text: String, source: Source) {
        (self.text, self.source) = (text, source)
    }
}

/// The values that hold for settings: a podcast’s own value, else the one for all podcasts, else that of a file, else the
/// default.
public struct SettingValues: Sendable {
    private let states: [Topic: WireSettingsState]
    private let file: [SettingKey: String]

    /// The values that the owners of settings have published, and those of a file.
    package init(_ states: [Topic: WireSettingsState], file: [SettingKey: String] = [:]) {
        (self.states, self.file) = (states, file)
    }

    /// The same with the values of a file, which hold where nothing is set.
    package func with(file: [SettingKey: String]) -> SettingValues { SettingValues(states, file: file) }

    /// The value that was set for a podcast, or with nil for all; nil: none was.
    public func own(_ key: SettingKey, of podcast: PodcastID?) -> String? {
        states[Topic.settings(key.rule.owner, podcast: podcast?.text ?? "")]?.settings
            .first { $0.key == key.rawValue }?.value
    }

    /// The value that holds for a podcast, or with nil for podcasts that have none of their own.
    public func value(of key: SettingKey, for podcast: PodcastID? = nil) -> SettingValue {
        if let podcast, key.rule.isPerPodcast, let text = own(key, of: podcast) {
            return SettingValue(text: text, source: .podcast)
        }
        if let text = own(key, of: nil) { return SettingValue(text: text, source: .all) }
        if let text = file[key] { return SettingValue(text: text, source: .file) }
        return SettingValue(text: key.rule.defaultValue, source: .standard)
    }

    /// The number that holds; the default where the text isn’t one.
    package func number(_ key: SettingKey, for podcast: PodcastID?) -> Double {
        Double(value(of: key, for: podcast).text) ?? Double(key.rule.defaultValue) ?? 0
    }

    /// The podcasts that have a value of their own, with it, in order of their IDs.
    public func podcasts(with key: SettingKey) -> [(podcast: PodcastID, value: String)] {
        states.values.compactMap { state in
            guard let podcast = PodcastID(state.podcast), let value = own(key, of: podcast),
                states[Topic.settings(key.rule.owner, podcast: state.podcast)] == state
            else { return nil }
            return (podcast, value)
        }.sorted { $0.podcast < $1.podcast }
    }
}
