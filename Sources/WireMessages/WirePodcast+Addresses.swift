import PodcastModel

extension WirePodcast {
    /// The current and previous addresses of its feed, in the form for comparison (`WebAddress.identity`).
    package var addressIdentities: [String] { ([url] + previousUrls).compactMap { WebAddress($0)?.identity } }
}
