import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The chapters of the loaded episode, and those that the files of others carried when they were opened last.
struct ChapterTracker: Sendable {
    /// The maximum number of episodes whose files' chapters are kept.
    private static let filesKept = 64

    /// The chapters out of files, by episode, as they are stored.
    private(set) var files: [String: WirePlaybackChaptersRecord] = [:]
    /// The loaded episode's chapters out of the library, which come from its feed.
    private var stored: [WireChapter] = []
    /// Those that its file carries.
    private var ofFile: [WireChapter] = []
    /// The number of the present chapter, from 1, as it was published last; 0: none.
    private(set) var number = 0

    /// The chapters in force.
    var chapters: [WireChapter] { stored.isEmpty ? ofFile : stored }

    /// Where the present chapter ends, in seconds; nil: with the episode, or there is none.
    var end: Double? {
        // The chapters may have become others since the number was taken.
        guard chapters.indices.contains(number - 1) else { return nil }
        let chapter = chapters[number - 1]
        if chapter.end > 0 { return chapter.end }
        return number < chapters.count ? chapters[number].start : nil
    }

    /// Takes over a stored record.
    mutating func restore(_ record: WirePlaybackChaptersRecord, of episode: String) { files[episode] = record }

    /// Fills in the published state.
    func fill(_ state: inout WirePlaybackState) {
        state.chapters = chapters
        state.chapter = UInt32(number)
    }

    /// A record as it is stored.
    func change(_ episode: String) -> WireChange {
        files[episode].map { .putting("chapters", episode, $0) } ?? .deleting("chapters", episode)
    }

    /// All records, for the database.
    var everything: [WireChange] { files.keys.sorted().map(change) }

    /// An episode is loaded, of whose file something may be known before it is open.
    mutating func load(_ episode: String) {
        stored = []
        ofFile = files[episode]?.chapters ?? []
        number = 0
    }

    /// The library has told of the loaded episode.
    ///
    /// - Returns: whether its chapters are others now.
    mutating func found(_ episode: WireEpisode, duration: EpisodeDuration?) -> Bool {
        // Those of the file it has from here.
        let found = episode.chaptersOfFile ? [] : episode.chapters
        let chapters = Self.shown(found.compactMap(ChapterMark.init), duration: duration)
        guard stored != chapters else { return false }
        stored = chapters
        return true
    }

    /// The file of the loaded episode is open.
    ///
    /// - Returns: the episodes whose records are to be saved.
    mutating func opened(_ audio: OpenedAudio, of episode: WireEpisodeSummary, now: Timestamp) -> [String] {
        let marks = audio.chapters.map { ChapterMark(start: $0.start, title: $0.title) }
        let duration = audio.duration.flatMap { $0.source == .growing ? nil : $0.duration }
        ofFile = Self.shown(marks, duration: duration)
        guard files[episode.id]?.chapters ?? [] != ofFile else { return [] }
        guard !ofFile.isEmpty else {
            files[episode.id] = nil
            return [episode.id]
        }
        var record = WirePlaybackChaptersRecord()
        record.podcast = episode.podcastID
        record.chapters = ofFile
        record.at = now.milliseconds
        files[episode.id] = record
        guard files.count > Self.filesKept,
            let oldest = files.min(by: { ($0.value.at, $0.key) < ($1.value.at, $1.key) })?.key
        else { return [episode.id] }
        files[oldest] = nil
        return [episode.id, oldest]
    }

    /// Forgets the files of a podcast's episodes.
    ///
    /// - Returns: the episodes whose records are to be deleted.
    mutating func forget(podcast: String) -> [String] {
        let gone = files.filter { $0.value.podcast == podcast }.map(\.key)
        for episode in gone { files[episode] = nil }
        return gone
    }

    /// The chapter is published when it changes, and only then.
    ///
    /// - Parameter position: where it is; nil: at its end.
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
        let titled = marks.map { mark in
            var mark = mark
            mark.url = ""
            mark.imageURL = ""
            return mark
        }
        return ChapterMark.normalised(titled, duration: duration).map(WireChapter.init)
    }
}
