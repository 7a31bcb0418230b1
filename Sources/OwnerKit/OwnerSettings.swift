package import BusKit
package import PodcastModel
package import WireMessages

/// The settings of one owner: for all podcasts, and for single ones, which inherit the values that they don’t set. The
/// owner commits and publishes the changes that it returns.
package struct OwnerSettings: Sendable {
    /// The prefix of its collections, followed by the podcast’s ID or `all`.
    private static let collection = "setting/"

    private let owner: ServiceName
    /// The values by podcast (empty: for all), then by key. Unknown keys of later versions are kept.
    private var values: [String: [String: String]] = [:]

    package init(_ owner: ServiceName) {
        self.owner = owner
    }

    /// Restores a record; false if it is of another kind.
    package mutating func restore(_ record: StoredRecord) -> Bool {
        guard record.collection.hasPrefix(Self.collection) else { return false }
        let podcast = String(record.collection.dropFirst(Self.collection.count))
        values[podcast == "all" ? "" : podcast, default: [:]][record.key] = String(
            decoding: record.value, as: UTF8.self)
        return true
    }

    // MARK: Effective values

    /// The effective value for a podcast (empty: for all): its own value, or the value for all, or the default.
    package func value(_ key: SettingKey, podcast: String = "") -> String {
        own(key, podcast: podcast) ?? own(key, podcast: "") ?? key.rule.defaultValue
    }

    /// The value that is set for this podcast itself (empty: for all).
    package func own(_ key: SettingKey, podcast: String) -> String? { values[podcast]?[key.rawValue] }

    package func number(_ key: SettingKey, podcast: String = "") -> Double {
        Double(value(key, podcast: podcast)) ?? Double(key.rule.defaultValue) ?? 0
    }

    package func isOn(_ key: SettingKey, podcast: String = "") -> Bool { value(key, podcast: podcast) == "on" }

    /// The podcasts with settings of their own.
    package var podcasts: [String] { values.keys.filter { !$0.isEmpty }.sorted() }

    // MARK: Changes

    /// Sets a value; an empty one removes it.
    ///
    /// - Returns: nil if nothing changed.
    /// - Throws: `invalidArgument` for an unknown key, a key of another owner or one that podcasts can’t have, an
    ///   invalid value, and an invalid podcast ID.
    package mutating func set(_ setting: WireSetSetting) throws(Failure) -> OwnerChange? {
        guard let key = SettingKey(rawValue: setting.key), key.rule.owner == owner else {
            throw Failure(.invalidArgument, "The \(owner) service has no setting “\(setting.key)”.")
        }
        if !setting.podcast.isEmpty {
            guard PodcastID(setting.podcast) != nil else {
                throw Failure(.invalidArgument, "“\(setting.podcast)” isn’t a valid podcast ID.")
            }
            guard key.rule.isPerPodcast else {
                throw Failure(
                    .invalidArgument, "“\(key.rawValue)” applies to all podcasts; a podcast can’t have its own.")
            }
        }
        let value = setting.value.isEmpty ? nil : try key.value(of: setting.value)
        guard value != own(key, podcast: setting.podcast) else { return nil }
        values[setting.podcast, default: [:]][key.rawValue] = value
        if values[setting.podcast]?.isEmpty == true { values[setting.podcast] = nil }
        return OwnerChange(
            changes: [record(setting.podcast, key.rawValue)], publications: [publication(of: setting.podcast)])
    }

    /// The reply to a successful request.
    /// - Parameter changed: whether the request changed the setting.
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

    /// Removes the settings of a forgotten podcast; returns nil if it had none.
    package mutating func forget(podcast: String) -> OwnerChange? {
        guard !podcast.isEmpty, let keys = values.removeValue(forKey: podcast)?.keys.sorted() else { return nil }
        return OwnerChange(changes: keys.map { record(podcast, $0) }, publications: [publication(of: podcast)])
    }

    /// The write of a setting’s current value for the database; a deletion if it isn’t set.
    package func record(_ podcast: String, _ key: String) -> WireChange {
        let collection = Self.collection + (podcast.isEmpty ? "all" : podcast)
        guard let value = values[podcast]?[key] else { return .deleting(collection, key) }
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value.append(contentsOf: value.utf8)
        return change
    }

    // MARK: Records

    package var everything: [WireChange] {
        values.sorted { $0.key < $1.key }.flatMap { podcast, keys in keys.keys.sorted().map { record(podcast, $0) } }
    }

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
