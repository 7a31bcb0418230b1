import PodcastModel
import Testing

struct ChapterMarkTests {
    @Test(arguments: [
        (starts: [5.0, 1, 3], expected: [1.0, 3, 5]), ([0, 0, 2], [0, 2]), ([0, 99, 100, 101], [0, 99]), ([], []),
    ])
    func `a list is sorted, without duplicates and chapters beyond the end`(starts: [Double], expected: [Double]) {
        let marks = starts.map { ChapterMark(start: PlaybackPosition(clamping: $0)) }
        let list = ChapterMark.normalised(marks, duration: EpisodeDuration(seconds: 100))
        #expect(list.map(\.start.seconds) == expected)
    }

    @Test
    func `texts are single lines without control characters, addresses are web addresses, and ends are after starts`() {
        let start = PlaybackPosition.zero
        let list = ChapterMark.normalised([
            ChapterMark(
                start: start, end: start, title: " A\u{1b}[31m\nred\u{2028}\ttitle ", url: "javascript:alert(1)",
                imageURL: "https://example.org/a.png")
        ])
        #expect(list.map(\.title) == ["A [31m red title"])
        #expect(list.map(\.url) == [""])
        #expect(list.map(\.imageURL) == ["https://example.org/a.png"])
        #expect(list.map(\.end) == [nil])
    }

    @Test func `a list is limited to the first thousand chapters`() {
        let marks = (0..<3_000).map { ChapterMark(start: PlaybackPosition(clamping: Double(2_999 - $0))) }
        let list = ChapterMark.normalised(marks)
        #expect(list.count == 1_000)
        #expect(list.last?.start.seconds == 999)
    }
}
