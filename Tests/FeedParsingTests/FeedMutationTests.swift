import FeedParsing
import PodcastModel
import TestSupport
import Testing

/// Tests thousands of broken variants of feeds: each is parsed or refused, none traps, none exceeds the limits.
@Test(arguments: 0..<8)
func `mutated feeds never crash the parser`(seed: Int) {
    let fragments =
        [
            "<", ">", "&", "]]>", "<![CDATA[", "<!--", "-->", "<item>", "</item>", "</channel>", "</rss>", "<rss", "&#",
            "&#x;",
            "&amp", "\u{0}", "<!DOCTYPE rss [", "<!ENTITY a '&a;'>", "<?xml", "?>", "xmlns=\"\"", "\"", "'", "<image>",
            "<enclosure ",
            "%", "http://", "é", "</title>",
        ].map { Array($0.utf8) } + [[0xff], [0xfe, 0xff], [0xc3], [0xe2, 0x80]]
    var random = SeededGenerator(seed: UInt64(seed) &* 7_919 &+ 1)
    let sample = Array(sampleFeed.utf8)
    var read = 0
    for _ in 0..<400 {
        var bytes = sample
        for _ in 0..<Int.random(in: 1...6, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...40, using: &random)))
            case 2: bytes.insert(contentsOf: fragments.randomElement(using: &random) ?? [], at: place)
            case 3: bytes.removeLast(Int.random(in: 0..<min(200, bytes.count), using: &random))
            default:
                let end = min(bytes.count, place + Int.random(in: 1...300, using: &random))
                bytes.insert(contentsOf: Array(bytes[place..<end]), at: Int.random(in: 0..<bytes.count, using: &random))
            }
        }
        guard let document = try? FeedParser.parse(bytes) else { continue }
        read += 1
        let (items, _) = document.identified()
        #expect(items.count <= document.items.count)
        #expect(Set(items.map(\.identity)).count == items.count)
    }
    #expect(read > 100)
}
