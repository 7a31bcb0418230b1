import PodcastModel
import SwiftProtobuf
import Testing

@testable import WireMessages

@Suite struct RequestLimitsTests {
    private static let long = String(repeating: "x", count: 2 << 20)

    private static func refusal(_ request: some SwiftProtobuf.Message, _ service: ServiceName) -> Failure? {
        RequestLimits.refusal(origin: "cli", payload: request.wireBytes, service: service)
    }

    static let queueRequests: [WireQueueRequest] = [
        .with { $0.queue = long },
        .with { $0.add.episodes = ["e1", long] },
        .with { $0.remove.entries = [long] },
        .with { $0.move.entry = long },
        .with { $0.move.before = long },
        .with { $0.move.after = long },
        .with { $0.play.episode = long },
        .with { $0.play.entry = long },
        .with { $0.playNamed.entryText = long },
        .with { $0.remove.texts = ["a", long] },
        .with { $0.move.entryText = long },
        .with { $0.move.beforeText = long },
        .with { $0.move.afterText = long },
        .with { $0.next.from = long },
        .with { $0.previous.from = long },
        .with { $0.setSetting.key = long },
        .with { $0.setSetting.value = long },
        .with { $0.setSetting.podcast = long },
        .with { $0.answerAlert.alert = long },
        .with { $0.answerAlert.action = long },
    ]

    static let playbackRequests: [WirePlaybackRequest] = [
        .with { $0.load.loadID = long },
        .with { $0.load.queueEntry = long },
        .with { $0.load.queue = long },
        .with { $0.load.episode.id = long },
        .with { $0.load.episode.title = long },
        .with { $0.load.episode.podcastID = long },
        .with { $0.load.episode.podcastTitle = long },
        .with { $0.load.episode.enclosureURL = long },
        .with { $0.load.episode.enclosureType = long },
        .with { $0.load.episode.imageURL = long },
        .with { $0.prepare.load.episode.imageURL = long },
        .with { $0.prepare.afterLoad = long },
        .with { $0.seek.loadID = long },
        .with { $0.seekRelative.loadID = long },
        .with { $0.unload.loadID = long },
        .with { $0.setOutput.device = long },
        .with { $0.setPlayed.episode = long },
        .with { $0.setBookmark.id = long },
        .with { $0.setBookmark.episode = long },
        .with { $0.setBookmark.note = long },
        .with { $0.removeBookmark.id = long },
        .with { $0.bookmarks.episode = long },
        .with { $0.refreshEpisode.episode = long },
    ]

    static let feedsRequests: [WireFeedsRequest] = [
        .with { $0.subscribe.urls = ["https://a.example/feed", "https://a.example/" + long] },
        .with { $0.subscribe.user = long },
        .with { $0.subscribe.password = long },
        .with { $0.unsubscribe.podcasts = [long] },
        .with { $0.refresh.podcasts = [long] },
        .with { $0.fetchChapters.episode = long },
        .with { $0.check.urls = [long] },
    ]

    static let downloadsRequests: [WireDownloadsRequest] = [
        .with { $0.add.episodes = [long] },
        .with { $0.pause.episodes = [long] },
        .with { $0.resume.episodes = [long] },
        .with { $0.cancel.episodes = [long] },
        .with { $0.remove.episodes = [long] },
        .with { $0.why.episode = long },
    ]

    @Test(arguments: queueRequests.indices)
    func `a text of two megabytes in a request to the queue is too large`(_ index: Int) {
        #expect(Self.refusal(Self.queueRequests[index], .queue)?.known == .tooLarge)
    }

    @Test(arguments: playbackRequests.indices)
    func `a text of two megabytes in a request to the player is too large`(_ index: Int) {
        #expect(Self.refusal(Self.playbackRequests[index], .playback)?.known == .tooLarge)
    }

    @Test(arguments: feedsRequests.indices)
    func `a text of two megabytes in a request to feeds is too large`(_ index: Int) {
        #expect(Self.refusal(Self.feedsRequests[index], .feeds)?.known == .tooLarge)
    }

    @Test(arguments: downloadsRequests.indices)
    func `a text of two megabytes in a request to downloads is too large`(_ index: Int) {
        #expect(Self.refusal(Self.downloadsRequests[index], .downloads)?.known == .tooLarge)
    }

    @Test func `an unknown field of two megabytes is too large`() throws {
        var summary = WireEpisodeSummary()
        let unknown: [UInt8] = [0xfa, 0x07, 0x80, 0x80, 0x80, 0x01] + [UInt8](repeating: 0x78, count: 2 << 20)
        try summary.merge(serializedBytes: unknown)
        let request = WirePlaybackRequest.with { $0.load.episode = summary }
        #expect(Self.refusal(request, .playback)?.known == .tooLarge)
    }

    @Test func `an origin of two megabytes is too large`() {
        #expect(RequestLimits.refusal(origin: Self.long, payload: [], service: .queue)?.known == .tooLarge)
        #expect(RequestLimits.refusal(origin: String(repeating: "o", count: 64), payload: [], service: .queue) == nil)
    }

    @Test func `texts at their limits are accepted`() {
        let request = WirePlaybackRequest.with {
            $0.load.loadID = String(repeating: "l", count: 512)
            $0.load.episode.title = String(repeating: "t", count: 4_096)
            $0.load.episode.podcastTitle = String(repeating: "t", count: 4_096)
            $0.load.episode.enclosureURL = String(repeating: "u", count: 8_192)
            $0.load.episode.imageURL = String(repeating: "u", count: 8_192)
        }
        #expect(Self.refusal(request, .playback) == nil)
        let many = WireQueueRequest.with { $0.remove.entries = (0..<10_000).map { "q\($0)" } }
        #expect(Self.refusal(many, .queue) == nil)
    }

    @Test func `the limits don’t apply to a request that can’t be decoded`() {
        let bytes = [UInt8](repeating: 0xff, count: 4_000)
        #expect(RequestLimits.refusal(origin: "cli", payload: bytes, service: .queue) == nil)
    }
}
