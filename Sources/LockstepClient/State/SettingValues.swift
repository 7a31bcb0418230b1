public import PodcastModel
package import WireMessages

/// The effective value of a setting.
public struct SettingValue: Sendable, Hashable {
    /// The source of a value.
    public enum Source: String, Sendable, Hashable {
        /// The value is set for the podcast.
        case podcast
        /// The value is set for all podcasts.
        case all
        /// The value is in the settings file of the program that shows it.
        case file
        /// The value isn’t set; the default applies.
        case `default` = "standard"
    }

    /// The value in its key’s format.
    public let text: String
    /// The source of the value.
    public let source: Source

    package init(text: String, source: Source) {
        (self.text, self.source) = (text, source)
    }
}

/// The effective values of settings: a podcast’s own value, else the one for all podcasts, else that of a file, else
/// the default.
public struct SettingValues: Sendable {
    private let states: [Topic: WireSettingsState]
    private let file: [SettingKey: String]

    /// Combines the published values of the services with those of a file.
    package init(_ states: [Topic: WireSettingsState], file: [SettingKey: String] = [:]) {
        (self.states, self.file) = (states, file)
    }

    /// Returns the same settings with the values of a file, which apply if no other value is set.
    package func with(file: [SettingKey: String]) -> SettingValues { SettingValues(states, file: file) }

    /// Returns the value that is set for a podcast, or with nil for all; nil if none is.
    public func own(_ key: SettingKey, of podcast: PodcastID?) -> String? {
        states[Topic.settings(key.rule.owner, podcast: podcast?.text ?? "")]?.settings
            .first { $0.key == key.rawValue }?.value
    }

    /// Returns the effective value for a podcast, or with nil for podcasts without their own.
    public func value(of key: SettingKey, for podcast: PodcastID? = nil) -> SettingValue {
        if let podcast, key.rule.isPerPodcast, let text = own(key, of: podcast) {
            return SettingValue(text: text, source: .podcast)
        }
        if let text = own(key, of: nil) { return SettingValue(text: text, source: .all) }
        if let text = file[key] { return SettingValue(text: text, source: .file) }
        return SettingValue(text: key.rule.defaultValue, source: .default)
    }

    /// Returns the effective number; the default if the text isn’t a number.
    package func number(_ key: SettingKey, for podcast: PodcastID?) -> Double {
        Double(value(of: key, for: podcast).text) ?? Double(key.rule.defaultValue) ?? 0
    }

    /// Returns the podcasts with their own value, in order of their IDs.
    public func podcasts(with key: SettingKey) -> [(podcast: PodcastID, value: String)] {
        states.values.compactMap { state in
            guard let podcast = PodcastID(state.podcast), let value = own(key, of: podcast),
                states[Topic.settings(key.rule.owner, podcast: state.podcast)] == state
            else { return nil }
            return (podcast, value)
        }.sorted { $0.podcast < $1.podcast }
    }
}
