import FeedParsing
import OwnerHarness
import OwnerKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import FeedsService

@Test func `hostile addresses in any field of a feed are omitted or become usable`() throws {
    let base = try #require(WebAddress("http://feed.example/a/feed.xml"))
    let addresses = HostileAddresses.addresses(10_000, seed: 3)
    for start in stride(from: 0, to: addresses.count, by: 500) {
        let items = addresses[start..<min(start + 500, addresses.count)].enumerated().map { number, address in
            let text = escaped(address)
            return """
                <item><title>\(number)</title><guid>\(start + number)</guid><link>\(text)</link>
                <enclosure url="\(text)" type="audio/mpeg"/><itunes:image href="\(text)"/>
                <podcast:chapters url="\(text)"/><podcast:transcript url="\(text)" type="text/vtt"/><psc:chapters><psc:chapter start="1" title="a" href="\(text)"/>
                </psc:chapters></item>
                """
        }
        let first = escaped(addresses[start])
        let feed = """
            <rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:psc="http://podlove.org/simple-chapters"
              xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>x</title><link>\(first)</link>
            <itunes:image href="\(first)"/><itunes:new-feed-url>\(first)</itunes:new-feed-url>\(items.joined())
            </channel></rss>
            """
        let document = try FeedParser.parse(Array(feed.utf8))
        let fetched = FetchedFeed(document, base: base, address: base, podcast: nil, seen: SeenEpisodes())
        for episode in fetched.changed.map(\.episode) {
            let optional =
                [episode.link, episode.imageURL, episode.chaptersURL, episode.transcriptURL]
                + episode.chapters.map(\.url)
            for text in [episode.enclosureURL] + optional.filter({ !$0.isEmpty }) {
                let address = WebAddress(text)
                #expect(address?.isFile == false, "\(text.debugDescription)")
            }
            #expect(throws: Never.self) { try AudioSource(enclosure: episode.enclosureURL) }
        }
    }
}

/// Returns the part of a text that an XML document can contain.
private func escaped(_ text: String) -> String {
    let allowed = text.unicodeScalars.filter { scalar in
        scalar.value >= 0x20 && scalar.value != 0xfffe && scalar.value != 0xffff || scalar.value == 9
    }
    return String(String.UnicodeScalarView(allowed)).replacing("&", with: "&amp;").replacing("<", with: "&lt;")
        .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
}

@Test func `a podcast with an unusable stored address reports a failure and doesn’t block other podcasts`() throws {
    let rig = FeedsRig()
    _ = rig.subscribe("https://a.example/feed")
    try rig.deliver(rss([("1", "1.mp3", "One")]))
    var podcast = try #require(rig.podcasts.values.first)
    podcast.url = "http://]/feed"
    rig.owner.records["podcast", default: [:]][podcast.id] = podcast.wireBytes
    let next = rig.restarted()
    let count = next.owner.committed.count
    next.advance(.seconds(86_400 * 3))
    #expect(next.orders.isEmpty)
    #expect(next.podcasts[podcast.id]?.errorCode == "badURL")
    #expect(next.podcasts[podcast.id]?.errorMessage.contains("“http://]/feed” isn’t a usable address") == true)
    #expect(next.owner.committed.count == count + 1)
    let refresh = next.send { $0.refresh.podcasts = [podcast.id] }
    #expect(next.results(refresh).map(\.failure.code) == ["badURL"])
}
