import PodcastModel

/// The filters of libmpv that do what an `EngineSound` says.
enum MPVFilters {
    /// A filter that changes nothing of the sound, but keeps 16 frames of 50 ms: so far ahead of what is given to the output
    /// silence is looked for.
    private static let lookahead = "dynaudnorm=f=50:g=17:enable=0"

    /// The option `af`. Silence is looked for in the sound as it was recorded; the limiter comes last, so that nothing
    /// that was made louder is clipped.
    ///
    /// - Parameter meter: the filter that measures levels, where silence is to be passed over.
    static func text(for sound: EngineSound, meter: String? = nil) -> String {
        var filters: [String] = []
        if sound.trimSilence, let meter { filters.append("@silence:lavfi=[\(meter),\(lookahead)]") }
        // Looks some two seconds ahead, which costs nothing of a file and is in a stream's buffer.
        if sound.normalise { filters.append("@normalise:lavfi=[dynaudnorm=f=250:g=15:p=0.7:m=12]") }
        if sound.boost {
            filters.append("@boost:lavfi=[acompressor=threshold=0.03:ratio=4:attack=10:release=250:makeup=4]")
        }
        if sound.gain != 0 { filters.append("@gain:lavfi=[volume=\(sound.gain)dB]") }
        if sound.gain > 0 || sound.boost { filters.append("@limit:lavfi=[alimiter=limit=0.95:level=0]") }
        return filters.joined(separator: ",")
    }

    /// How fast silence passes in an episode that plays at `speed`.
    static func pace(ofSilenceAt speed: PlaybackSpeed) -> PlaybackSpeed {
        PlaybackSpeed(factor: min(speed.factor * 2.5, PlaybackSpeed.range.upperBound)) ?? speed
    }
}
