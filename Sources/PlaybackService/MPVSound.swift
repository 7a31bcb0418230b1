import PodcastModel

/// The filters of libmpv that do what an `EngineSound` says.
enum MPVFilters {
    /// The label of the filter that finds silence.
    static let silence = "silence"
    /// What is quieter than this for so long is silence.
    private static let silenceLevel = "-42dB"
    private static let silenceLength = 0.4

    /// The option `af`. Silence is looked for in the sound as it was recorded; the limiter comes last, so that nothing
    /// that was made louder is clipped.
    static func text(for sound: EngineSound) -> String {
        var filters: [String] = []
        if sound.trimSilence {
            filters.append("@\(silence):lavfi=[silencedetect=n=\(silenceLevel):d=\(silenceLength)]")
        }
        // Looks some two seconds ahead, which costs nothing of a file and is in a stream's buffer.
        if sound.normalise { filters.append("@normalise:lavfi=[dynaudnorm=f=250:g=15:p=0.7:m=12]") }
        if sound.boost {
            filters.append("@boost:lavfi=[acompressor=threshold=0.03:ratio=4:attack=10:release=250:makeup=4]")
        }
        if sound.gain != 0 { filters.append("@gain:lavfi=[volume=\(sound.gain)dB]") }
        if sound.gain > 0 || sound.boost { filters.append("@limit:lavfi=[alimiter=limit=0.95:level=0]") }
        return filters.joined(separator: ",")
    }

    /// Whether the filter that finds silence is in one now, by its metadata.
    static func isSilent(_ metadata: MPVValue) -> Bool {
        guard case .map(let map) = metadata, let start = number("lavfi.silence_start", map) else { return false }
        return number("lavfi.silence_end", map).map { $0 < start } ?? true
    }

    private static func number(_ key: String, _ map: [String: MPVValue]) -> Double? {
        map[key]?.text.flatMap { Double($0) }
    }

    /// How fast silence passes in an episode that plays at `speed`.
    static func pace(ofSilenceAt speed: PlaybackSpeed) -> PlaybackSpeed {
        PlaybackSpeed(factor: min(speed.factor * 2.5, PlaybackSpeed.range.upperBound)) ?? speed
    }
}

/// A change of speed on its way to the ear. libmpv gives its output some tenths of a second in advance, which are still
/// heard at the old speed, but reckons its position as if they were played at the new one.
struct PaceTurn: Sendable, Hashable {
    /// Where it was when the speed was changed, and when that was.
    let position: PlaybackPosition
    let at: MonotonicTime
    /// The old speed.
    let pace: PlaybackSpeed
    let isFaster: Bool

    /// How often to look whether the new speed is heard, in seconds.
    static let look = 0.02
    /// Before that libmpv may not have taken the new speed yet.
    private static let shortest = 0.08
    /// Beyond that something else has happened.
    private static let longest = 2.0

    /// Where it would be at the old speed.
    private func line(_ now: MonotonicTime) -> Double {
        position.seconds + max(0, now.since(at) / .seconds(1)) * pace.factor
    }

    /// The position that is heard while libmpv shows `shown`.
    func heard(shown: Double, at now: MonotonicTime) -> Double {
        isOver(shown: shown, at: now) ? shown : line(now)
    }

    /// Whether the new speed is heard: then what libmpv shows is true again.
    func isOver(shown: Double, at now: MonotonicTime) -> Bool {
        let elapsed = now.since(at) / .seconds(1)
        if elapsed < Self.shortest { return false }
        return elapsed > Self.longest || (isFaster ? shown >= line(now) : shown <= line(now))
    }
}
