import PodcastModel
import Testing

@Suite struct RefusalTests {
    @Test(arguments: [400, 401, 403, 404, 410, 418, 429, 500, 503])
    func `an HTTP status has the same message for audio and chapters, and advice for a feed`(status: Int) {
        let audio = Failure(refusedWith: status, by: "a.example", asking: .audio)
        let chapters = Failure(refusedWith: status, by: "a.example", asking: .chapters)
        let feed = Failure(refusedWith: status, by: "a.example", asking: .feed)
        #expect(audio.message == chapters.message)
        #expect(feed.message.hasPrefix(audio.message.replacing("file", with: "feed").dropLast()))
        #expect(audio.message.contains("HTTP \(status)"))
        #expect(audio.retry == feed.retry && audio.retry == (status == 429 || status >= 500))
        #expect((audio.known == .episodeUnavailable) == (status == 404 || status == 410))
        #expect((feed.known == .notFound) == (status == 404 || status == 410))
    }
}
