package import PodcastModel

extension ChapterMark {
    /// Creates a chapter; nil if the position is invalid.
    package init?(_ wire: WireChapter) {
        guard let start = PlaybackPosition(seconds: wire.start) else { return nil }
        self.init(
            start: start, end: wire.end > 0 ? PlaybackPosition(seconds: wire.end) : nil, title: wire.title,
            url: wire.url, imageURL: wire.imageURL)
    }
}

extension WireChapter {
    package init(_ mark: ChapterMark) {
        self.init()
        start = mark.start.seconds
        end = mark.end?.seconds ?? 0
        title = mark.title
        url = mark.url
        imageURL = mark.imageURL
    }
}

extension [WireChapter] {
    /// The number, from 1, of the chapter at a position in seconds; 0 if there is none. The list must be sorted.
    ///
    /// - Parameter tolerance: the number of seconds by which a chapter begins early.
    package func number(at position: Double, tolerance: Double) -> Int {
        guard let index = lastIndex(where: { $0.start <= position + tolerance }) else { return 0 }
        let end = self[index].end
        return end > self[index].start && position >= end ? 0 : index + 1
    }
}
