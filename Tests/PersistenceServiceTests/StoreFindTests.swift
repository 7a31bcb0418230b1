import Foundation
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreFindTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
        try store.apply(
            "feeds",
            [
                .podcast("pa1", title: "Night Radio"), .podcast("pa2", title: "Radio"),
                .podcast("pb1", title: "Gone", subscribed: false),
                .episode("eaa1", of: "pa1", title: "Pilot"), .episode("eaa2", of: "pa1", title: "Pilot, part two"),
                .episode("ebb1", of: "pa2", title: "The Müller Interview"),
                .episode("ebb2", of: "pa2", title: "100% _sure_"), .episode("ecc1", of: "pa2", title: "pilot light"),
            ])
    }

    private func episode(_ text: String, in podcast: String = "") throws -> WireEpisode {
        var query = WireFindEpisode()
        query.text = text
        query.podcast = podcast
        let page = try store.find(query)
        return try #require(page.episodes.first)
    }

    @Test func `a title can’t take over the qualified name of another podcast’s episode`() throws {
        try store.apply(
            "feeds",
            [
                .episode("edd1", of: "pa1", title: "Radio: The Müller Interview"),
                .episode("edd2", of: "pa2", title: "Radio: Extra"), .episode("edd3", of: "pa2", title: "Extra"),
            ])
        for text in ["radio: the Müller interview", "radio: the müller"] {
            let failure = #expect(throws: Failure.self) { try episode(text) }
            #expect(failure?.known == .ambiguous)
            let candidates = try WireCandidates(serializedBytes: failure?.detail ?? []).candidates
            #expect(candidates.map(\.id) == ["edd1", "ebb1"], "\(text)")
        }
        // Both are of the same podcast.
        #expect(try episode("radio: extra").id == "edd2")
        #expect(try episode("night radio: pilot, part").id == "eaa2")
    }

    @Test(arguments: [
        ("eaa1", "eaa1"), ("ebb2", "ebb2"), ("ec", "ecc1"), ("EC", "ecc1"), ("pilot", "eaa1"), ("PILOT", "eaa1"),
        ("  pilot  light ", "ecc1"), ("müller", "ebb1"), ("MÜLLER int", "ebb1"), ("100%", "ebb2"), ("_sure_", "ebb2"),
        ("part two", "eaa2"),
    ])
    func `an episode is found by its ID, its exact title or a part of it`(text: String, id: String) throws {
        #expect(try episode(text).id == id)
    }

    @Test func `a search can be limited to one podcast`() throws {
        #expect(try episode("light", in: "pa2").id == "ecc1")
        #expect(throws: Failure.self) { try episode("light", in: "pa1") }
        #expect(try episode("two", in: "pa1").podcastTitle == "Night Radio")
    }

    @Test(arguments: [
        ("Night Radio: two", "eaa2"), ("night radio:pilot", "eaa1"), ("NIGHT: two", "eaa2"), ("pa1: part", "eaa2"),
        ("Radio: light", "ecc1"), ("Radio: Müller", "ebb1"), ("night radio: eaa2", "eaa2"),
    ])
    func `an episode is found by its podcast and a part of its title`(text: String, id: String) throws {
        #expect(try episode(text).id == id)
    }

    @Test(arguments: ["Night Radio: light", "Night Radio:", "No show: two"])
    func `a podcast without a matching episode isn’t found`(text: String) throws {
        let failure = #expect(throws: Failure.self) { try episode(text) }
        #expect(failure?.code == "notFound")
    }

    @Test(arguments: [
        ("the muller inter", "ebb1"), ("don't look", "ed1"), ("DON’T LOOK", "ed1"), ("look - down", "ed1"),
        ("cafe", "ed2"), ("Cafe\u{301}", "ed2"), ("cafe ol", "ed3"), ("Les nuits d'ete: ole", "ed3"),
        ("pilot part", "eaa2"), ("大阪", "ed4"),
    ])
    func `accents, apostrophes and other punctuation don’t matter if nothing else matches`(
        text: String, id: String
    ) throws {
        try store.apply(
            "feeds",
            [
                .podcast("pa3", title: "Les nuits d’été"), .episode("ed1", of: "pa3", title: "Don’t look down"),
                .episode("ed2", of: "pa3", title: "Café"), .episode("ed3", of: "pa3", title: "Café Olé"),
                .episode("ed4", of: "pa3", title: "東京、大阪"),
            ])
        #expect(try episode(text).id == id)
        #expect(try store.find(WireFindPodcast.with { $0.text = "nuits d'ete" }).podcasts.map(\.id) == ["pa3"])
        #expect(throws: Failure.self) { try episode("ook down dont") }
    }

    @Test func `a title with a colon is found although a podcast has its beginning`() throws {
        try store.apply("feeds", [.episode("ed1", of: "pa2", title: "Night Radio: two friends")])
        #expect(try episode("Night Radio: two friends").id == "ed1")
    }

    @Test(arguments: ["nothing like it", "e4f", "%%", "10_0", ":"])
    func `an unknown name is not found`(text: String) throws {
        let failure = #expect(throws: Failure.self) { try episode(text) }
        #expect(failure?.code == "notFound")
    }

    @Test func `an ambiguous name lists its candidates`() throws {
        let failure = try #require(#expect(throws: Failure.self) { try episode("pil") })
        #expect(failure.code == "ambiguous")
        let candidates = try WireCandidates(serializedBytes: failure.detail).candidates
        #expect(Set(candidates.map(\.id)) == ["eaa1", "eaa2", "ecc1"])
        #expect(candidates.contains { $0.id == "eaa2" && $0.title.hasPrefix("Pilot, part two") })
        #expect(failure.message.contains("more than one episode"))
        #expect(throws: Failure.self) { try episode("ea") }
    }

    @Test func `no more than ten candidates are listed`() throws {
        try store.apply("feeds", (0..<30).map { .episode("ef\($0)", of: "pa1", title: "Same name \($0)") })
        let failure = try #require(#expect(throws: Failure.self) { try episode("same") })
        #expect(try WireCandidates(serializedBytes: failure.detail).candidates.count == 10)
        #expect(failure.message.contains("these are not all"))
    }

    @Test(arguments: ["", "   "])
    func `an empty name is refused`(text: String) throws {
        let failure = #expect(throws: Failure.self) { try episode(text) }
        #expect(failure?.code == "invalidArgument")
    }

    @Test(arguments: [("radio", "pa2"), ("night", "pa1"), ("pb", "pb1"), ("gone", "pb1"), ("pa2", "pa2")])
    func `a podcast is found by its ID or title`(text: String, id: String) throws {
        var query = WireFindPodcast()
        query.text = text
        let page = try store.find(query)
        #expect(page.podcasts.map(\.id) == [id])
    }

    @Test(arguments: [
        ("https://example.org/pa2", "pa2"), ("http://EXAMPLE.org/pa2", "pa2"), ("https://example.org/pb1", "pb1"),
    ])
    func `a podcast is found by the address of its feed`(address: String, id: String) throws {
        let page = try store.find(WireFindPodcast.with { $0.text = address })
        #expect(page.podcasts.map(\.id) == [id])
    }

    @Test func `a podcast whose feed has moved is found by its earlier address`() throws {
        let moved = WirePodcast.with {
            $0.id = "pz1"
            $0.title = "Moved"
            $0.url = "https://example.org/new"
            $0.previousUrls = ["https://example.org/old"]
        }
        try store.apply("feeds", [WireChange.with { $0.putPodcast = moved }])
        let page = try store.find(WireFindPodcast.with { $0.text = "http://example.org/old" })
        #expect(page.podcasts.map(\.id) == ["pz1"])
    }

    @Test func `an address that no podcast has is reported without its password`() throws {
        let failure = try #require(
            #expect(throws: Failure.self) {
                try store.find(WireFindPodcast.with { $0.text = "https://me:secret@example.org/pa" })
            })
        #expect(failure.known == .notFound)
        #expect(failure.message == "No podcast has the address https://example.org/pa.")
    }

    @Test func `a found podcast has its counts`() throws {
        let page = try store.find(WireFindPodcast.with { $0.text = "pa2" })
        #expect(page.podcasts[0].episodeCount == 3)
        let failure = #expect(throws: Failure.self) { try store.find(WireFindPodcast.with { $0.text = "pa" }) }
        #expect(failure?.code == "ambiguous")
    }

    @Test func `candidates of one title are distinguished by their addresses`() throws {
        try store.apply("feeds", [.podcast("pd1", title: "Waves"), .podcast("pd2", title: "Waves")])
        let failure = try #require(
            #expect(throws: Failure.self) { try store.find(WireFindPodcast.with { $0.text = "waves" }) })
        let candidates = try WireCandidates(serializedBytes: failure.detail).candidates
        #expect(candidates.map(\.title) == ["Waves", "Waves"])
        #expect(Set(candidates.map(\.detail)) == ["https://example.org/pd1", "https://example.org/pd2"])
    }
}
