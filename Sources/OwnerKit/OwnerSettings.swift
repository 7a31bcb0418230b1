package import BusKit
package import PodcastModel
package import WireMessages

/// The settings that one owner keeps: for all podcasts, and for single ones, which inherit from those for all what they
/// do not set themselves. Pure: the owner commits and publishes what a change gives.
package struct OwnerSettings: Sendable {
    /// The collections of its records begin so; the podcast's id, or `all`, follows.
    private static let collection = "setting/"

    private let owner: ServiceName
    /// By podcast (empty: for all), then by key. A later version's keys are carried along.
    private var values: [String: [String: String]] = [:]

    /// An owner's settings with nothing set.
    package init(_ owner: ServiceName) {
        self.owner = owner
    }

    /// Takes a stored record over, if it is one of a setting.
    /// - Returns: whether it was.
    package mutating func restore(_ record: StoredRecord) -> Bool {
        guard record.collection.hasPrefix(Self.collection) else { return false }
        let podcast = String(record.collection.dropFirst(Self.collection.count))
        values[podcast == "all" ? "" : podcast, default: [:]][record.key] = String(
            decoding: record.value, as: UTF8.self)
        return true
    }

    // MARK: What holds

    /// What holds for a podcast (empty: for none in particular): its own value, else that for all, else the standard.
    package func value(_ key: SettingKey, podcast: String = "") -> String {
        own(key, podcast: podcast) ?? own(key, podcast: "") ?? key.rule.standard
    }

    /// What is set there and nowhere else.
    package func own(_ key: SettingKey, podcast: String) -> String? { values[podcast]?[key.rawValue] }

    /// A number that holds for a podcast.
    package func number(_ key: SettingKey, podcast: String = "") -> Double {
        Double(value(key, podcast: podcast)) ?? Double(key.rule.standard) ?? 0
    }

    /// Whether a flag is on for a podcast.
    package func isOn(_ key: SettingKey, podcast: String = "") -> Bool { value(key, podcast: podcast) == "on" }

    /// The podcasts that have settings of their own.
    package var podcasts: [String] { values.keys.filter { !$0.isEmpty }.sorted() }

    // MARK: Changing

    /// Sets a value, or (an empty one) takes it back. Nil: it was so already.
    ///
    /// - Throws: `invalidArgument` for a key of another owner or of none, a value that it cannot take, a podcast's id that
    ///   is none, and a key that podcasts cannot have.
    package mutating func set(_ setting: WireSetSetting) throws(Failure) -> OwnerChange? {
        guard let key = SettingKey(rawValue: setting.key), key.rule.owner == owner else {
            throw Failure(.invalidArgument, "There is no setting “\(setting.key)” of \(owner).")
        }
        if !setting.podcast.isEmpty {
            guard PodcastID(setting.podcast) != nil else {
                throw Failure(.invalidArgument, "“\(setting.podcast)” isn’t a valid podcast ID.")
            }
            guard key.rule.isPerPodcast else {
                throw Failure(.invalidArgument, "\(key.rawValue) holds for all podcasts; one cannot have its own.")
            }
        }
        let value = setting.value.isEmpty ? nil : try key.value(of: setting.value)
        guard value != own(key, podcast: setting.podcast) else { return nil }
        values[setting.podcast, default: [:]][key.rawValue] = value
        if values[setting.podcast]?.isEmpty == true { values[setting.podcast] = nil }
        return OwnerChange(
            changes: [record(setting.podcast, key.rawValue)], publications: [publication(of: setting.podcast)])
    }

    /// The reply to a request that has been carried out; `changed`: whether it changed anything.
    package func reply(to setting: WireSetSetting, changed: Bool) -> WireSettingReply {
        var reply = WireSettingReply()
        reply.changed = changed
        guard let key = SettingKey(rawValue: setting.key) else { return reply }
        reply.value = value(key, podcast: setting.podcast)
        reply.valueForAll = value(key)
        let isOwn = !setting.podcast.isEmpty && own(key, podcast: setting.podcast) != nil
        reply.source = isOwn ? .podcast : own(key, podcast: "") != nil ? .all : .default
        return reply
    }

    /// Drops what is set for a podcast that was forgotten. Nil: nothing was.
    package mutating func forget(podcast: String) -> OwnerChange? {
        guard !podcast.isEmpty, let keys = values.removeValue(forKey: podcast)?.keys.sorted() else { return nil }
        return OwnerChange(changes: keys.map { record(podcast, $0) }, publications: [publication(of: podcast)])
    }

    /// A setting as it is now, for the database; deleted if it is not set.
    package func record(_ podcast: String, _ key: String) -> WireChange {
        let collection = Self.collection + (podcast.isEmpty ? "all" : podcast)
        guard let value = values[podcast]?[key] else { return .deleting(collection, key) }
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value.append(contentsOf: value.utf8)
        return change
    }

    // MARK: All of it

    /// Everything, for a database that has lost some.
    package var everything: [WireChange] {
        values.sorted { $0.key < $1.key }.flatMap { podcast, keys in keys.keys.sorted().map { record(podcast, $0) } }
    }

    /// Everything, for the stream.
    package var retained: [Publication] { values.keys.sorted().map(publication) }

    private func publication(of podcast: String) -> Publication {
        let topic = Topic.settings(owner, podcast: podcast)
        guard let keys = values[podcast] else { return Publication(.delete, topic) }
        var state = WireSettingsState()
        state.podcast = podcast
        state.settings = keys.sorted { $0.key < $1.key }.map { key, value in
            var setting = WireSettingsState.Setting()
            setting.key = key
            setting.value = value
            return setting
        }
        return Publication(.put, topic, state.wireBytes)
    }
}
