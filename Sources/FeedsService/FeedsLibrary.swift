import OwnerKit
import PodcastModel
import WireMessages

/// The podcasts, which of them is, or was, at which address, and the alerts.
struct FeedsLibrary: Sendable {
    /// A podcast, subscribed to or not.
    struct Subscription: Sendable {
        var podcast: WirePodcast
        var seen = SeenEpisodes()
    }

    private(set) var all: [PodcastID: Subscription] = [:]
    private var addresses: [String: PodcastID] = [:]
    var alerts = OwnerAlerts(.feeds)

    /// The podcasts in order of their IDs.
    var sorted: [Subscription] { all.sorted { $0.key < $1.key }.map(\.value) }

    subscript(id: PodcastID) -> Subscription? {
        get { all[id] }
        set {
            let old = all.updateValue(newValue, forKey: id)
            if (old?.podcast.url, old?.podcast.previousUrls) == (newValue?.podcast.url, newValue?.podcast.previousUrls)
            {
                return
            }
            for identity in old?.podcast.addressIdentities ?? [] where addresses[identity] == id {
                addresses[identity] = nil
            }
            for identity in newValue?.podcast.addressIdentities ?? [] where addresses[identity] == nil {
                addresses[identity] = id
            }
        }
    }

    /// The podcast whose feed is, or was, at an address.
    func podcast(at address: WebAddress) -> (PodcastID, Subscription)? {
        let derived = PodcastID.feed(at: address)
        let id = all[derived] == nil ? addresses[address.identity] : derived
        return id.flatMap { id in all[id].map { (id, $0) } }
    }
}

extension Dictionary {
    /// Sets or removes a value, and gives the one before.
    fileprivate mutating func updateValue(_ value: Value?, forKey key: Key) -> Value? {
        if let value { return updateValue(value, forKey: key) }
        return removeValue(forKey: key)
    }
}
