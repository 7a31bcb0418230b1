import FeedParsing
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Measures the parsing of a feed, as the baseline does.
enum Parsing {
    static func measure(_ path: String) throws {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let times = try (0..<15).map { _ in
            let start = monotonicSeconds()
            var parser = FeedParser()
            try parser.feed(bytes)
            let document = try parser.finish()
            guard document.items.count == 3_000 else {
                throw BenchFleet.Failed(description: "\(document.items.count) episodes were read in place of 3000")
            }
            return monotonicSeconds() - start
        }
        Row(name: "parse", value: times.quantile(0.5) * 1e3, unit: "ms", peer: "libxml2.parse", budget: "<= 3x").print()
    }
}

/// Measures a library that grows to 1,000 podcasts and 200,000 episodes, and queries to it.
enum Library {
    /// The numbers of podcasts at which the growth is measured.
    private static let sizes = [10, 100, 1_000]
    private static let episodes = 200
    private static let words = 4_000

    /// Measures the start, the memory, the commands and the database at each size, and the queries at the last one.
    static func measure(_ fleet: BenchFleet) throws {
        try ProcessMeasurements.timeToReady(fleet, "library.0.ready")
        var count = 0
        var seconds = 0.0
        for size in sizes {
            let client = try RawClient(fleet)
            try client.wait(seconds: 120)
            while count < size {
                let part = min(20, size - count)
                let urls = try (count..<count + part).map { "file://" + (try writeFeed($0, fleet.folder)) }
                let start = monotonicSeconds()
                try client.ask(.feeds, WireFeedsRequest.with { $0.subscribe.urls = urls })
                seconds += monotonicSeconds() - start
                count += part
            }
            let name = "library.\(size * episodes)"
            try ProcessMeasurements.timeToReady(fleet, name + ".ready", peer: "library.0.ready", budget: "<= 1.2x")
            try ProcessMeasurements.memory(fleet, name, budget: 100)
            Row(name: name + ".database", value: fleet.databaseMegabytes(), unit: "MB").print()
            try Commands.measureOfLibrary(fleet, name, searching: word(77))
        }
        Row(name: "library.subscribe", value: seconds, unit: "s").print()
        let client = try RawClient(fleet)
        try client.wait(seconds: 120)
        try measureQueries(client)
        try measureLists(client)
        try SmartPlaylists.measure(fleet, client)
    }

    private static func measureQueries(_ client: RawClient) throws {
        let ids = try podcastIDs(client)
        var pages: [Double] = []
        var searches: [Double] = []
        var after = ""
        for round in 0..<400 {
            var query = WireEpisodesQuery()
            query.limit = 50
            // The first page, the next page, one podcast’s episodes, unplayed episodes.
            if round % 4 == 1 { query.after = after }
            if round % 4 == 2 { query.podcast = ids[round * 7 % ids.count] }
            if round % 4 == 3 { query.unplayedOnly = true }
            let page = try ask(client, query, &pages)
            if round % 4 < 2 { after = page.next }
            query = WireEpisodesQuery()
            query.limit = 50
            // One word in a thousand episodes, or two words that few episodes share.
            query.search = word(round * 31) + (round % 2 == 0 ? "" : " " + word(round * 57 + 11))
            _ = try ask(client, query, &searches)
        }
        Row(name: "library.page.p99", value: pages.quantile(0.99) * 1e3, unit: "ms", budget: "<= 10").print()
        Row(name: "library.page.p50", value: pages.quantile(0.5) * 1e3, unit: "ms").print()
        Row(name: "library.search.p99", value: searches.quantile(0.99) * 1e3, unit: "ms", budget: "<= 50").print()
        Row(name: "library.search.p50", value: searches.quantile(0.5) * 1e3, unit: "ms").print()
    }

    /// Measures pages of lists by rule and order, and the totals of a list.
    private static func measureLists(_ client: RawClient) throws {
        let rules = [
            "", "unplayed and length < 20m", "title ~ ba and not title ~ ri", "published < 3000d",
            "started or downloaded",
            "text ~ \(word(77))", "podcast \"Podcast 7\" and length > 30m", "not (season > 2) and added < 7d",
            "length > 119m and title ~ zu",
        ]
        let orders: [WireEpisodeOrder] = [.newest, .oldest, .shortest, .longest, .title, .added, .heard]
        var lists: [Double] = []
        for round in 0..<3 * rules.count * orders.count {
            var query = WireEpisodesQuery()
            query.limit = 50
            query.rule = rules[round % rules.count]
            query.order = orders[round / rules.count % orders.count]
            query.after = try ask(client, query, &lists).next
            if !query.after.isEmpty { _ = try ask(client, query, &lists) }
        }
        Row(name: "library.list.p99", value: lists.quantile(0.99) * 1e3, unit: "ms", budget: "<= 10").print()
        Row(name: "library.list.p50", value: lists.quantile(0.5) * 1e3, unit: "ms").print()
        for (name, rule) in [("all", ""), ("rule", "unplayed and length < 20m")] {
            var totals: [Double] = []
            for _ in 0..<10 {
                _ = try ask(client, .with { ($0.rule, $0.withTotals, $0.limit) = (rule, true, 20) }, &totals)
            }
            Row(name: "library.totals.\(name).p50", value: totals.quantile(0.5) * 1e3, unit: "ms").print()
        }
    }

    private static func ask(_ client: RawClient, _ query: WireEpisodesQuery, _ times: inout [Double]) throws
        -> WireEpisodesPage
    {
        let start = monotonicSeconds()
        let answer = try client.ask(.persistence, WirePersistenceRequest.with { $0.episodes = query })
        let page = try WirePersistenceReply(wireBytes: answer).episodes
        times.append(monotonicSeconds() - start)
        return page
    }

    private static func podcastIDs(_ client: RawClient) throws -> [String] {
        let answer = try client.ask(.persistence, WirePersistenceRequest.with { $0.podcasts = WirePodcastsQuery() })
        return try WirePersistenceReply(wireBytes: answer).podcasts.podcasts.map(\.id)
    }

    private static func word(_ number: Int) -> String {
        let letters = Array("bcdfghklmnprstvz"), vowels = Array("aeiou")
        let number = number % words
        return String([
            letters[number % 16], vowels[number / 16 % 5], letters[number / 80 % 16], vowels[number / 1_280 % 5],
            letters[number % 13],
        ])
    }

    /// Writes a feed whose episodes have titles of six words and show notes of sixty.
    private static func writeFeed(_ number: Int, _ folder: String) throws -> String {
        let path = folder + "/library-\(number).xml"
        var text = "<?xml version=\"1.0\"?><rss version=\"2.0\" "
        text += "xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\"><channel><title>Podcast \(number)</title>"
        var random = SeededGenerator(seed: UInt64(number))
        func sentence(_ count: Int) -> String {
            (0..<count).map { _ in word(Int.random(in: 0..<words, using: &random)) }.joined(separator: " ")
        }
        for episode in 0..<episodes {
            text += "<item><title>\(sentence(6))</title><guid>\(number)/\(episode)</guid>"
            text += "<pubDate>2 Jan \(2_000 + episode % 26) 10:\(10 + episode % 50):00 GMT</pubDate>"
            text += "<itunes:duration>\(Int.random(in: 60..<7_200, using: &random))</itunes:duration>"
            text += "<description>\(sentence(60))</description>"
            text += "<enclosure url=\"https://example.com/\(number)/\(episode).mp3\" type=\"audio/mpeg\""
            text += " length=\"1\"/></item>\n"
        }
        try (text + "</channel></rss>").write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
