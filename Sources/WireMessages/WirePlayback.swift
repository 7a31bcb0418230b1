package import PodcastModel

extension PlaybackAnchor {
    /// The anchor of a player’s state; nil if nothing is loaded.
    package init?(_ state: WirePlaybackState) {
        guard state.hasEpisode, state.hasAnchor else { return nil }
        let anchor = state.anchor
        self.init(
            position: PlaybackPosition(clamping: anchor.position),
            speed: PlaybackSpeed(reported: anchor.speed) ?? PlaybackSpeed(reported: state.speed) ?? .normal,
            at: MonotonicTime(nanoseconds: anchor.at), bootID: anchor.bootID, running: anchor.running,
            wall: Timestamp(milliseconds: anchor.wall))
    }
}

extension WireSleepState {
    /// The remaining seconds of the sleep timer; nil if it doesn’t end at a time.
    package func remaining(at now: Moment, bootID: String) -> Double? {
        guard endsAt > 0 else { return nil }
        let end = BootTime(
            at: MonotonicTime(nanoseconds: endsAt), bootID: self.bootID, wall: Timestamp(milliseconds: endsAtWall))
        return end.remaining(at: now, bootID: bootID)
    }
}
