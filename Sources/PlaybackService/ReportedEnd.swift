package import PodcastModel

/// An end of audio that the engine reports; it decides whether the episode was played to its end.
///
/// libmpv reports a cut connection as an ordinary end, so its report alone isn’t sufficient. `PlaybackSession.ended`
/// acts on the decision: an end that isn’t confirmed is retried like a broken stream.
package struct ReportedEnd: Sendable, Hashable {
    package var position: PlaybackPosition
    package var measured: MeasuredDuration?
    /// The stream was cut and not reconnected, or the file is truncated.
    package var cut: Bool
    /// Whether the source has declared its size. If not, a cut can’t be distinguished from the end, and a declared
    /// length may cover only the data that had arrived when the file was opened.
    package var hasSize: Bool

    package init(position: PlaybackPosition, measured: MeasuredDuration?, cut: Bool = false, hasSize: Bool = true) {
        self.position = position
        self.measured = measured
        self.cut = cut
        self.hasSize = hasSize
    }

    /// Whether this is the episode’s end.
    ///
    /// A declared length takes precedence: announced ones are often wrong, for example if advertisements are inserted
    /// on delivery. But without a size, an end far from the announced length isn’t the end. Otherwise an end near an
    /// estimate or the announced length is enough, except after a cut. A partial length confirms nothing.
    ///
    /// - Parameter announced: the length in the feed.
    package func isConfirmed(announced: EpisodeDuration?) -> Bool {
        switch measured?.source {
        case .declared?:
            if !hasSize, announced != nil, !isNear(announced, fraction: 0.1) { return false }
            return isNear(measured?.duration, fraction: cut ? 0 : 0.01, atMost: 15)
        case .estimated?:
            return !cut && (isNear(measured?.duration, fraction: 0.01) || isNear(announced, fraction: 0.01))
        case .partial?, nil:
            guard !cut, position > .zero else { return false }
            return announced == nil || isNear(announced, fraction: 0.01)
        }
    }

    /// Whether the end is within a tolerance of `duration`: 2 s (encoders pad, players round), or a fraction of the
    /// duration if that is more.
    private func isNear(_ duration: EpisodeDuration?, fraction: Double, atMost limit: Double = .infinity) -> Bool {
        guard let duration else { return false }
        let tolerance = max(2, min(duration.seconds * fraction, limit))
        return position.seconds > 0 && position.seconds >= duration.seconds - min(tolerance, duration.seconds / 2)
    }
}
