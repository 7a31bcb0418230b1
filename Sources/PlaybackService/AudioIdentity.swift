import PodcastModel
import WireMessages

/// Identifies the audio of a source by its ETag, or else its size. Different tags of one kind mean different audio;
/// tags of different kinds can’t be compared.
package struct AudioTag: Sendable, Hashable {
    /// `etag:…` or `size:…`; empty if unknown.
    package let text: String

    /// - Parameter size: the size in bytes; 0 if unknown.
    package init(etag: String, size: UInt64) {
        let strong = etag.hasPrefix("W/") ? String(etag.dropFirst(2)) : etag
        text = strong.isEmpty ? size == 0 ? "" : "size:\(size)" : "etag:\(strong.prefix(200))"
    }

    init(stored text: String) { self.text = text }

    /// Whether this tag and `other` certainly identify different audio.
    func differs(from other: AudioTag) -> Bool {
        guard !text.isEmpty, !other.text.isEmpty, text.prefix(5) == other.text.prefix(5) else { return false }
        return text != other.text
    }
}

/// Identifies the loaded episode’s audio and tracks its length: a server may insert different advertisements for each
/// listener, or send an announcement instead.
struct AudioIdentity: Sendable, Hashable {
    /// The result of comparing the source’s tag with the tag of the audio that was begun.
    private enum Match: Sendable, Hashable { case unknown, same, other }

    let announced: EpisodeDuration?
    var measured: MeasuredDuration?
    /// The length that an earlier process measured.
    var recorded: EpisodeDuration?
    /// The tag of the source; nil if it isn’t known yet.
    private var sourceTag: AudioTag?
    private var match = Match.unknown
    /// The open audio isn’t the episode’s, and playback has failed for that reason.
    private(set) var isReplaced = false
    /// Whether the listener has accepted other audio, of any length, as the episode’s.
    var acceptsReplacement = false
    /// Whether the audio was opened beyond its declared end, and nothing has been played there yet.
    private var isBehindEnd = false
    /// The tag in the episode’s state is unsaved.
    private var hasNewTag = false
    /// Whether the episode was loaded at its stored position and has not been opened since.
    private var beginsAtStoredPosition = false

    init(announced: Double, recorded: EpisodeDuration? = nil) {
        self.announced = EpisodeDuration(seconds: announced)
        self.recorded = recorded
    }

    // MARK: Lengths

    /// The length that is shown, and that seeks are checked against.
    func duration(at position: PlaybackPosition) -> EpisodeDuration? {
        if let known = knownDuration(at: position) { return known }
        if let announced, !isPassed(announced, position) { return announced }
        return measured?.source == .partial ? measured?.duration : nil
    }

    /// The length that this or an earlier process has measured; nil if the length is only announced, or partial.
    func knownDuration(at position: PlaybackPosition) -> EpisodeDuration? {
        if let measured, measured.source != .partial, !isPassed(measured.duration, position) {
            return measured.duration
        }
        return recorded.flatMap { isPassed($0, position) ? nil : $0 }
    }

    /// Whether playback is beyond a length, which is then wrong: announced lengths often are, as are estimates from the
    /// beginning of a file with a variable bit rate.
    private func isPassed(_ length: EpisodeDuration, _ position: PlaybackPosition) -> Bool {
        position.seconds > length.seconds + 1
    }

    /// The length that the file declares, or an estimate that agrees with the announced one.
    var confirmedDuration: EpisodeDuration? {
        switch measured?.source {
        case .declared?: return measured?.duration
        case .estimated?:
            guard let measured, let announced, abs(measured.duration.seconds / announced.seconds - 1) < 0.05 else {
                return nil
            }
            return measured.duration
        case .partial?, nil: return nil
        }
    }

    // MARK: The open audio

    /// Records the stored length of the episode that is being loaded.
    ///
    /// - Parameter atStoredPosition: whether the episode begins at its stored position, not at a requested one.
    mutating func begin(_ duration: EpisodeDuration?, atStoredPosition: Bool) {
        recorded = duration
        beginsAtStoredPosition = atStoredPosition
    }

    mutating func opens(isStream: Bool) {
        isReplaced = false
        isBehindEnd = false
        guard isStream else { return }
        sourceTag = nil
        match = .unknown
    }

    /// Returns a failure if the audio is too short to be the episode: less than half of what was measured or played
    /// before. Such audio doesn’t contain the position, and its end isn’t the episode’s end.
    ///
    /// - Parameter isHeard: whether the episode was played up to the position. If nothing else indicates that it is
    ///   that long, a seek may have gone beyond its end, and a retry doesn’t help.
    mutating func replacement(
        _ measured: MeasuredDuration?, playedFrom: PlaybackPosition, isHeard: Bool, title: String
    ) -> Failure? {
        guard let measured, measured.source != .partial, !acceptsReplacement else { return nil }
        let length = measured.duration.seconds
        let recorded = recorded?.seconds ?? 0
        // An estimate from the beginning of a file may be much too short.
        let isHeardBeyond = measured.source == .declared && match != .same
        let heard = isHeardBeyond ? playedFrom.seconds : 0
        guard length < max(recorded, heard) / 2 else { return nil }
        // Audio of the announced length is the episode: the earlier audio was not.
        if let announced, abs(length / announced.seconds - 1) < 0.1 { return nil }
        isReplaced = true
        let isAnnounced = announced.map { !isPassed($0, playedFrom) } ?? false
        guard isHeard || isAnnounced || length < recorded / 2 else {
            var failure = Failure(
                .endedEarly,
                "“\(title)” is \(ClockText.format(length)) long, and its position is \(ClockText.format(heard)). Use `lockstep seek` to choose an earlier position, such as `lockstep seek 0`, then `lockstep resume`."
            )
            failure.retry = false
            return failure
        }
        let before =
            recorded >= heard ? "was \(ClockText.format(recorded)) long" : "was left at \(ClockText.format(heard))"
        return Failure(
            .endedEarly,
            "“\(title)” is \(ClockText.format(length)) long now and \(before); the audio may have been replaced.")
    }

    /// Returns the replacement for a start position at or beyond the end of the open audio; nil if the position is kept.
    ///
    /// A position in the last second becomes the start of that second. A position that was saved for a longer version
    /// of the audio, perhaps with advertisements, moves to half a minute before the end. If nothing indicates another
    /// version, the length may be wrong, and there may be audio at the position.
    mutating func start(insteadOf position: PlaybackPosition) -> PlaybackPosition? {
        defer { beginsAtStoredPosition = false }
        guard let measured, measured.source == .declared else { return nil }
        let end = measured.duration.seconds
        if position.seconds > end + 1 {
            if acceptsReplacement { return .zero }
            if match == .other { return Self.before(end) }
            isBehindEnd = true
        } else if position.seconds > end - 1 {
            // An episode that is loaded at its end starts from the beginning.
            return PlaybackPosition(clamping: beginsAtStoredPosition ? 0 : max(0, end - 1))
        }
        return nil
    }

    /// Returns where to continue if nothing was heard beyond the declared end; nil if the episode has ended.
    mutating func resumption(afterEnd end: ReportedEnd, playedFrom: PlaybackPosition) -> PlaybackPosition? {
        defer { isBehindEnd = false }
        guard isBehindEnd, end.position.seconds < playedFrom.seconds + 1 else { return nil }
        return Self.before(end.measured?.duration.seconds ?? end.position.seconds)
    }

    private static func before(_ end: Double) -> PlaybackPosition { PlaybackPosition(clamping: max(0, end - 30)) }

    // MARK: Comparison with the audio that was begun

    /// Compares the tag of the source with that of the audio that was begun.
    mutating func identify(_ tag: AudioTag, begun: AudioTag) {
        sourceTag = tag
        match = tag.text == begun.text ? .same : tag.differs(from: begun) ? .other : .unknown
    }

    /// Returns the episode’s new tag if the open audio is the episode; nil if the stored tag is kept. The tag of an
    /// accepted replacement doesn’t overwrite a stored tag, so that the original audio is recognised later.
    mutating func newTag(insteadOf stored: String) -> String? {
        guard let tag = sourceTag?.text, tag != stored, !acceptsReplacement || stored.isEmpty else { return nil }
        hasNewTag = true
        return tag
    }

    /// Marks the tag as saved, and returns whether it was unsaved.
    mutating func saved() -> Bool {
        defer { hasNewTag = false }
        return hasNewTag
    }
}
