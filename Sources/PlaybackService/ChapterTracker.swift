import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The chapters of the loaded episode, and those of other episodes’ files as they were when they were opened last.
struct ChapterTracker: Sendable {
    /// The chapters out of files, by episode.
    private(set) var files = KeyedRecords<WirePlaybackChaptersRecord>("chapters", limit: 64) { $0.at }
    /// The loaded episode’s chapters out of the library, which come from its feed.
    private var stored: [WireChapter] = []
    /// Those that its file carries.
    private var ofFile: [WireChapter] = []
    /// The number of the present chapter, from 1, as it was published last; 0: none.
    private(set) var number = 0

    var chapters: [WireChapter] { stored.isEmpty ? ofFile : stored }

    /// Where the present chapter ends, in seconds; nil: with the episode, or there is none.
    var end: Double? {
        // The chapters may have changed since the number was computed.
        guard chapters.indices.contains(number - 1) else { return nil }
        let chapter = chapters[number - 1]
        if chapter.end > 0 { return chapter.end }
        return number < chapters.count ? chapters[number].start : nil
    }

    mutating func restore(_ record: StoredRecord) throws -> Bool { try files.restore(record) }

    func fill(_ state: inout WirePlaybackState) {
        state.chapters = chapters
        state.chapter = UInt32(number)
    }

    /// Begins with the loaded episode, whose file’s chapters may be known from before.
    mutating func load(_ episode: String) {
        stored = []
        ofFile = files[episode]?.chapters ?? []
        number = 0
    }

    /// Takes the loaded episode’s chapters out of the library.
    ///
    /// - Returns: whether they have changed.
    mutating func found(_ episode: WireEpisode, duration: EpisodeDuration?) -> Bool {
        // Those of the file were reported from here.
        let found = episode.chaptersOfFile ? [] : episode.chapters
        let chapters = Self.shown(found.compactMap(ChapterMark.init), duration: duration)
        guard stored != chapters else { return false }
        stored = chapters
        return true
    }

    /// The file of the loaded episode is open.
    ///
    /// - Returns: the records that are to be saved.
    mutating func opened(
        _ marks: [ChapterMark], _ duration: MeasuredDuration?, of episode: WireEpisodeSummary, now: Timestamp
    ) -> OwnerChange {
        ofFile = Self.shown(marks, duration: duration.flatMap { $0.source == .growing ? nil : $0.duration })
        guard files[episode.id]?.chapters ?? [] != ofFile else { return OwnerChange() }
        var record = WirePlaybackChaptersRecord()
        record.podcast = episode.podcastID
        record.chapters = ofFile
        record.at = now.milliseconds
        var change = OwnerChange()
        if ofFile.isEmpty {
            files.remove(episode.id, &change.changes)
        } else {
            files.put(episode.id, record, &change.changes)
        }
        return change
    }

    /// - Returns: the records that are to be deleted.
    mutating func forget(podcast: String) -> OwnerChange {
        var change = OwnerChange()
        for (episode, file) in files.sorted where file.podcast == podcast { files.remove(episode, &change.changes) }
        return change
    }

    /// The episode has moved to a position; nil: to its end.
    ///
    /// - Returns: whether it is in another chapter now.
    mutating func moved(to position: PlaybackPosition?) -> Bool {
        // A chapter that is sought to begins there, whatever is lost in converting.
        let number = position.map { chapters.number(at: $0.seconds, tolerance: 0.001) } ?? 0
        defer { self.number = number }
        return number != self.number
    }

    /// The first position after another one where a chapter begins or ends, in seconds.
    func nextBoundary(after position: Double) -> Double? {
        chapters.flatMap { [$0.start, $0.end] }.filter { $0 > position + 0.001 }.min()
    }

    /// Chapters as the state shows them: in order and sound, without their addresses, which are in the library and would
    /// make each change of the state many times larger.
    private static func shown(_ marks: [ChapterMark], duration: EpisodeDuration?) -> [WireChapter] {
        let titled = marks.map { ChapterMark(start: $0.start, end: $0.end, title: $0.title) }
        return ChapterMark.normalised(titled, duration: duration).map(WireChapter.init)
    }
}
