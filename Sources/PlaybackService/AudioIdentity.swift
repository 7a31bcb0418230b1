import PodcastModel
import WireMessages

/// Which audio a source has, as far as it says: an ETag, or else a size. Two that differ are not the same audio; of
/// different kinds they say nothing about each other.
package struct AudioTag: Sendable, Hashable {
    /// `etag:…` or `size:…`; empty: not known.
    package let text: String

    /// A source of this ETag (weak or strong) and size in bytes; 0: unknown.
    package init(etag: String, size: UInt64) {
        let strong = etag.hasPrefix("W/") ? String(etag.dropFirst(2)) : etag
        text = strong.isEmpty ? size == 0 ? "" : "size:\(size)" : "etag:\(strong.prefix(200))"
    }

    /// A tag as it was stored.
    init(stored text: String) { self.text = text }

    /// Whether it is known to be other audio than `other`.
    func differs(from other: AudioTag) -> Bool {
        guard !text.isEmpty, !other.text.isEmpty, text.prefix(5) == other.text.prefix(5) else { return false }
        return text != other.text
    }
}

/// Which audio the loaded episode has, and how long it is: a server may put other advertisements in for each listener, or
/// an announcement in its place.
struct AudioIdentity: Sendable, Hashable {
    /// Whether what is open is the audio that was begun, as far as its source tells.
    private enum Match: Sendable, Hashable { case unknown, same, other }

    /// The length that came with the load.
    let announced: EpisodeDuration?
    private(set) var measured: MeasuredDuration?
    /// The length of an earlier life's measurement.
    private(set) var recorded: EpisodeDuration?
    /// Which audio the source has, as far as it says; the episode's once it is open and not replaced.
    private var sourceTag: AudioTag?
    private var match = Match.unknown
    /// The open audio seems to be something else in its place, for which it has failed.
    private(set) var isReplaced = false
    /// Its listener has said that what is there now is the episode, as long or short as it is.
    private(set) var acceptsReplacement = false
    /// It was opened at a position behind the end that its file declares, and has not been heard there.
    private var isBehindEnd = false
    /// The tag in its state is not stored yet.
    private var hasNewTag = false
    /// It has been loaded at the position where it was left, and not been open since.
    private var beginsAnew = false

    init(announced: Double, recorded: EpisodeDuration? = nil) {
        self.announced = EpisodeDuration(seconds: announced)
        self.recorded = recorded
    }

    // MARK: Lengths

    /// The length as it is shown, and as seeks are checked against.
    func duration(at position: PlaybackPosition) -> EpisodeDuration? {
        if let known = knownDuration(at: position) { return known }
        if let announced, !isPassed(announced, position) { return announced }
        return measured?.source == .growing ? measured?.duration : nil
    }

    /// The length as it is or was measured; nil: only announced, or growing.
    func knownDuration(at position: PlaybackPosition) -> EpisodeDuration? {
        if let measured, measured.source != .growing, !isPassed(measured.duration, position) {
            return measured.duration
        }
        return recorded.flatMap { isPassed($0, position) ? nil : $0 }
    }

    /// Whether it has played on beyond a length, which is wrong then: announced ones often are, and those that the first
    /// moments of a file with a changing bit rate lead to.
    private func isPassed(_ length: EpisodeDuration, _ position: PlaybackPosition) -> Bool {
        position.seconds > length.seconds + 1
    }

    /// The length as the file declares it, or as it was reckoned and announced alike; nil: there is only one word for it.
    var provenDuration: EpisodeDuration? {
        switch measured?.source {
        case .declared?: return measured?.duration
        case .estimated?:
            guard let measured, let announced, abs(measured.duration.seconds / announced.seconds - 1) < 0.05 else {
                return nil
            }
            return measured.duration
        case .growing?, nil: return nil
        }
    }

    /// The length that is stored of it is known.
    mutating func restore(_ duration: EpisodeDuration?) { recorded = duration }

    /// The engine has measured it; nil: it can’t.
    mutating func measured(_ duration: MeasuredDuration?) { measured = duration }

    // MARK: What is open

    /// It is about to be opened.
    ///
    /// - Parameters:
    ///   - duration: its stored length.
    ///   - isAnew: whether it begins where it was left, and not where somebody wants it to.
    mutating func begins(_ duration: EpisodeDuration?, isAnew: Bool) {
        recorded = duration
        beginsAnew = isAnew
    }

    /// The engine opens it.
    mutating func opens(isStream: Bool) {
        isReplaced = false
        isBehindEnd = false
        guard isStream else { return }
        sourceTag = nil
        match = .unknown
    }

    /// Its listener has said that what is there now is the episode.
    mutating func acceptReplacement() { acceptsReplacement = true }

    /// Why what is open is not the episode: it is less than half as long as the audio that was measured before, or as what
    /// was heard of it. To hear that to its end proves nothing, and the position is not in it.
    mutating func replacement(
        _ measured: MeasuredDuration?, playedFrom: PlaybackPosition, title: String
    ) -> Failure? {
        guard let measured, measured.source != .growing, !acceptsReplacement else { return nil }
        let length = measured.duration.seconds
        let recorded = recorded?.seconds ?? 0
        // A length that is only reckoned from the first moments may be much too short.
        let isHeardBeyond = measured.source == .declared && match != .same
        let heard = isHeardBeyond ? playedFrom.seconds : 0
        guard length < max(recorded, heard) / 2 else { return nil }
        // One that is as long as its feed says is the episode: what was there before was not.
        if let announced, abs(length / announced.seconds - 1) < 0.1 { return nil }
        isReplaced = true
        let before =
            recorded >= heard ? "was \(ClockText.format(recorded)) long" : "was left at \(ClockText.format(heard))"
        return Failure(
            .endedEarly,
            "“\(title)” is \(ClockText.format(length)) long now and \(before); something else may stand in its place.")
    }

    /// Where to begin instead of at a position that is at the end of what is open, or behind it; nil: there.
    ///
    /// A position in its last moment is heard out; one that was saved for a longer version of the audio, where
    /// advertisements may have been, leads to half a minute before the end. Where nobody says that it is another version,
    /// the length may be what is wrong: then there is something to hear there.
    mutating func start(insteadOf position: PlaybackPosition) -> PlaybackPosition? {
        defer { beginsAnew = false }
        guard let measured, measured.source == .declared else { return nil }
        let end = measured.duration.seconds
        if position.seconds > end + 1 {
            if acceptsReplacement { return .zero }
            if match == .other { return Self.before(end) }
            isBehindEnd = true
        } else if position.seconds > end - 1 {
            // Who plays it anew does not want its last moment.
            return PlaybackPosition(clamping: beginsAnew ? 0 : max(0, end - 1))
        }
        return nil
    }

    /// Where to go on when it ends where nothing was heard behind its declared end; nil: it has ended.
    mutating func resumption(afterEnd end: EndOfFile, playedFrom: PlaybackPosition) -> PlaybackPosition? {
        defer { isBehindEnd = false }
        // The file is as long as it declares.
        guard isBehindEnd, end.position.seconds < playedFrom.seconds + 1 else { return nil }
        return Self.before(end.measured?.duration.seconds ?? end.position.seconds)
    }

    /// Half a minute before an end, in seconds.
    private static func before(_ end: Double) -> PlaybackPosition { PlaybackPosition(clamping: max(0, end - 30)) }

    // MARK: The same audio

    /// The source has said which audio it has, which is compared with what was begun.
    mutating func identify(_ tag: AudioTag, begun: AudioTag) {
        sourceTag = tag
        match = tag.text == begun.text ? .same : tag.differs(from: begun) ? .other : .unknown
    }

    /// The tag that the episode is known by from now on, as what is open is the episode; nil: the one that is stored. What
    /// its listener has let stand in its place has none, so that the audio that was begun is known when it is back.
    mutating func newTag(insteadOf stored: String) -> String? {
        guard let tag = sourceTag?.text, tag != stored, !acceptsReplacement || stored.isEmpty else { return nil }
        hasNewTag = true
        return tag
    }

    /// Its state is saved.
    ///
    /// - Returns: whether its tag was not.
    mutating func saved() -> Bool {
        defer { hasNewTag = false }
        return hasNewTag
    }
}
