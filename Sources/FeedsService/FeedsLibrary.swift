import OwnerKit
import PodcastModel
import WireMessages

/// The podcasts, their current and earlier addresses, and the alerts.
struct FeedsLibrary: Sendable {
    /// A current or former subscription.
    struct Subscription: Sendable {
        var podcast: WirePodcast
        var seen = SeenEpisodes()
    }

    private(set) var all: [PodcastID: Subscription] = [:]
    private var addresses: [String: PodcastID] = [:]
    var alerts = OwnerAlerts(.feeds)

    var sorted: [Subscription] { all.sorted { $0.key < $1.key }.map(\.value) }

    subscript(id: PodcastID) -> Subscription? {
        get { all[id] }
        set {
            let (before, after) = (all[id]?.podcast, newValue?.podcast)
            all[id] = newValue
            guard before?.url != after?.url || before?.previousUrls != after?.previousUrls else { return }
            for identity in before?.addressIdentities ?? [] where addresses[identity] == id {
                addresses[identity] = nil
            }
            for identity in after?.addressIdentities ?? [] where addresses[identity] == nil {
                addresses[identity] = id
            }
        }
    }

    /// Returns the podcast whose feed is, or was, at an address.
    func podcast(at address: WebAddress) -> (PodcastID, Subscription)? {
        let derived = PodcastID.feed(at: address)
        let id = all[derived] == nil ? addresses[address.identity] : derived
        return id.flatMap { id in all[id].map { (id, $0) } }
    }
}
