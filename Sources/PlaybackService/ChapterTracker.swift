import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The chapters of the loaded episode, and the chapters that other episodes’ files had when they were last opened.
struct ChapterTracker: Sendable {
    /// The chapters from files, by episode.
    private(set) var files = KeyedRecords<WirePlaybackChaptersRecord>("chapters", limit: 64) { $0.at }
    /// The loaded episode’s chapters from the library, which its feed provides.
    private var stored: [WireChapter] = []
    /// The chapters that the loaded episode’s file contains.
    private var ofFile: [WireChapter] = []
    /// The number of the current chapter, from 1, as last published; 0 if there is none.
    private(set) var number = 0

    var chapters: [WireChapter] { stored.isEmpty ? ofFile : stored }

    /// The end of the current chapter, in seconds; nil if the chapter ends with the episode, or there is no chapter.
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

    /// Resets the chapters for a newly loaded episode; its file’s chapters may be known from an earlier load.
    mutating func load(_ episode: String) {
        stored = []
        ofFile = files[episode]?.chapters ?? []
        number = 0
    }

    /// Sets the loaded episode’s chapters from the library.
    ///
    /// - Returns: whether they have changed.
    mutating func found(_ episode: WireEpisode, duration: EpisodeDuration?) -> Bool {
        // The chapters of the file were reported by the player.
        let found = episode.chaptersOfFile ? [] : episode.chapters
        let chapters = Self.shown(found.compactMap(ChapterMark.init), duration: duration)
        guard stored != chapters else { return false }
        stored = chapters
        return true
    }

    /// Handles the opening of the loaded episode’s file.
    ///
    /// - Returns: the records to save.
    mutating func opened(
        _ marks: [ChapterMark], _ duration: MeasuredDuration?, of episode: WireEpisodeSummary, now: Timestamp
    ) -> OwnerChange {
        ofFile = Self.shown(marks, duration: duration.flatMap { $0.source == .partial ? nil : $0.duration })
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

    /// - Returns: the records to delete.
    mutating func forget(podcast: String) -> OwnerChange {
        var change = OwnerChange()
        for (episode, file) in files.sorted where file.podcast == podcast { files.remove(episode, &change.changes) }
        return change
    }

    /// Handles a move to a position; nil means to the episode’s end.
    ///
    /// - Returns: whether the current chapter has changed.
    mutating func moved(to position: PlaybackPosition?) -> Bool {
        // A seek to a chapter’s start is in that chapter, despite rounding.
        let number = position.map { chapters.number(at: $0.seconds, tolerance: 0.001) } ?? 0
        defer { self.number = number }
        return number != self.number
    }

    /// Returns the first position after `position` at which a chapter begins or ends, in seconds.
    func nextBoundary(after position: Double) -> Double? {
        chapters.flatMap { [$0.start, $0.end] }.filter { $0 > position + 0.001 }.min()
    }

    /// Returns the chapters for the published state: valid, in order, and without their addresses, which are in the
    /// library and would make each change of the state many times larger.
    private static func shown(_ marks: [ChapterMark], duration: EpisodeDuration?) -> [WireChapter] {
        let titled = marks.map { ChapterMark(start: $0.start, end: $0.end, title: $0.title) }
        return ChapterMark.normalised(titled, duration: duration).map(WireChapter.init)
    }
}
