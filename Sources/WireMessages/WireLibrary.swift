import PodcastModel

extension WirePodcast {
    /// The addresses that its feed has and had, in the form in which `WebAddress.identity` compares them.
    package var addressIdentities: [String] { ([url] + previousUrls).compactMap { WebAddress($0)?.identity } }
}
