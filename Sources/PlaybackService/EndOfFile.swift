package import PodcastModel

/// An end of audio as the engine met it: what there is to judge whether the episode was heard to its end.
///
/// The engine's library reports a connection that was cut as an ordinary end, so an end proves nothing by itself.
package struct EndOfFile: Sendable, Hashable {
    /// Where it ended.
    package var position: PlaybackPosition
    /// The length as the engine knows it.
    package var measured: MeasuredDuration?
    /// The stream was cut and not taken up again, or the file is cut off.
    package var cut: Bool
    /// Whether the source has said how many bytes it has: else a cut cannot be told from the end, and a length that the
    /// engine takes for declared may be that of what had come when the file was opened.
    package var hasSize: Bool

    /// An end of audio.
    package init(position: PlaybackPosition, measured: MeasuredDuration?, cut: Bool = false, hasSize: Bool = true) {
        self.position = position
        self.measured = measured
        self.cut = cut
        self.hasSize = hasSize
    }

    /// Whether it is the episode's end, whose feed announced a length of `announced`.
    ///
    /// A length that the file declares is believed before any other: announced ones are often wrong, as
    /// when advertisements are put in on delivery; but where the source has no size, an end that is far from what was
    /// announced is none: nobody can tell it from a cut. Next come one that was reckoned from the file's size, and the
    /// announced one: to be near either is enough, but not after a cut. What has been read so far proves nothing.
    package func isProven(announced: EpisodeDuration?) -> Bool {
        switch measured?.source {
        case .declared?:
            if !hasSize, announced != nil, !isNear(announced, fraction: 0.1) { return false }
            return isNear(measured?.duration, fraction: cut ? 0 : 0.01, atMost: 15)
        case .estimated?:
            return !cut && (isNear(measured?.duration, fraction: 0.01) || isNear(announced, fraction: 0.01))
        case .growing?, nil:
            guard !cut, position > .zero else { return false }
            return announced == nil || isNear(announced, fraction: 0.01)
        }
    }

    /// Whether the end is at least `duration` less a tolerance: 2 s (encoders pad, players round), or a fraction
    /// of the whole if that is more.
    private func isNear(_ duration: EpisodeDuration?, fraction: Double, atMost limit: Double = .infinity) -> Bool {
        guard let duration else { return false }
        let tolerance = max(2, min(duration.seconds * fraction, limit))
        return position.seconds > 0 && position.seconds >= duration.seconds - min(tolerance, duration.seconds / 2)
    }
}
