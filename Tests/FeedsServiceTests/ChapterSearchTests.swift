import BusKit
import FeedParsing
import OwnerHarness
import OwnerKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import FeedsService

/// Tests that chapters files are requested, read, stored and published.
struct ChapterSearchTests {
    private func withEpisode(chapters: String) throws -> (FeedsRig, String) {
        let rig = FeedsRig()
        _ = rig.subscribe("http://a/feed")
        try rig.deliver(rss([("1", "http://a/1.mp3", "One")]))
        let id = try #require(rig.episodes.keys.first)
        rig.episodes[id]?.chaptersURL = chapters
        return (rig, id)
    }

    @Test
    func
        `a chapters file is fetched once a day, stored separately from the feed’s chapters and published, and every request is answered`()
        throws
    {
        let (rig, id) = try withEpisode(chapters: "http://a/chapters.json")
        let first = rig.send { $0.fetchChapters.episode = id }
        let second = rig.send { $0.fetchChapters.episode = id }
        #expect(rig.chapterFetches.map(\.address.text) == ["http://a/chapters.json"])
        let mark = ChapterMark(start: try #require(PlaybackPosition(seconds: 5)), title: "Five")
        rig.handle(.input(.chapters(rig.chapterFetches[0].number, .success([mark]))))
        #expect([first, second].allSatisfy { rig.replies[$0].map { (try? $0.get()) != nil } ?? false })
        let podcast = try #require(rig.episodes[id]?.podcastID)
        let record = try #require(rig.documents["chapters/\(podcast)/\(id)"])
        #expect(try WireChaptersRecord(wireBytes: record).chapters.map(\.title) == ["Five"])
        let news = try #require(rig.published.last)
        #expect(try WireEpisodesChanged(wireBytes: news.payload).updated == [id])
        rig.send { $0.fetchChapters.episode = id }
        #expect(rig.chapterFetches.count == 1)
        rig.advance(.seconds(25 * 3_600))
        rig.send { $0.fetchChapters.episode = id }
        #expect(rig.chapterFetches.count == 2)
    }

    @Test func `a request is answered and nothing changes if the chapters file is missing or malformed`()
        throws
    {
        let (rig, id) = try withEpisode(chapters: "")
        #expect((try? rig.reply(to: rig.send { $0.fetchChapters.episode = id })?.get()) != nil)
        rig.episodes[id]?.chaptersURL = "file:///etc/passwd"
        rig.send { $0.fetchChapters.episode = id }
        #expect(rig.chapterFetches.isEmpty)
        rig.episodes[id]?.chaptersURL = "http://a/c.json"
        let command = rig.send { $0.fetchChapters.episode = id }
        rig.handle(.input(.chapters(rig.chapterFetches[0].number, .failure(Failure(.fetchFailed, "404")))))
        #expect((try? rig.replies[command]?.get()) != nil)
        for (episode, code) in [("e77", FailureCode.notFound), ("x", .invalidArgument)] {
            let bad = rig.send { $0.fetchChapters.episode = episode }
            guard case .failure(let failure) = rig.replies[bad] else {
                Issue.record("\(episode) was not refused")
                continue
            }
            #expect(failure.known == code)
        }
    }

    @Test(arguments: [
        (
            #"{"version":"1.2.0","chapters":[{"startTime":0,"title":"A"},{"startTime":"60.5","title":"B"}]}"#,
            ["A", "B"]
        ),
        (#"{"chapters":[{"startTime":9,"title":"Late"},{"startTime":1,"title":"Early"}]}"#, ["Early", "Late"]),
        (#"{"chapters":[{"title":"Nowhere"},7,null,{"startTime":-1},{"startTime":2,"title":"Here"}]}"#, ["Here"]),
        (#"{"chapters":[{"startTime":1,"title":"Ad","toc":false},{"startTime":2,"title":"B"}]}"#, ["B"]),
        (#"{"chapters":[]}"#, []),
    ])
    func `the valid chapters of a file are parsed`(text: String, titles: [String]) throws {
        #expect(try ChaptersFile.parse(Array(text.utf8)).map(\.title) == titles)
    }

    @Test(arguments: ["", "<html>", "[]", "{}", #"{"chapters":1}"#])
    func `a file without chapters is refused`(text: String) {
        #expect(throws: Failure.self) { try ChaptersFile.parse(Array(text.utf8)) }
    }

    @Test func `a chapters file is fetched through redirects, and other content is a failure`()
        async throws
    {
        let fetcher = FeedFetcher()
        try await HTTPTestServer.with { server in
            let text = #"{"chapters":[{"startTime":3,"title":"Three"}]}"#
            server.route("/old", .redirect(to: "/chapters", status: 302))
            server.route("/chapters", HTTPTestResponse(body: .bytes(Array(text.utf8))))
            server.route("/page", HTTPTestResponse(body: .bytes(Array("<html>".utf8))))
            server.route("/huge", HTTPTestResponse(body: .repeated([0x20], total: ChaptersFile.limit + 1)))
            server.route("/circle", .redirect(to: "/circle"))
            let found = try await fetcher.fetchChapters(#require(WebAddress(server.url("/old"))))
            #expect(try found.get().map(\.title) == ["Three"])
            for path in ["/page", "/huge", "/circle", "/none"] {
                let outcome = try await fetcher.fetchChapters(#require(WebAddress(server.url(path))))
                #expect(throws: Failure.self) { try outcome.get() }
            }
        }
        await fetcher.shutdown()
    }
}
