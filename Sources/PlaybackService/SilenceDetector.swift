/// How loud a short window of a file is.
struct AudioLevel: Sendable, Hashable {
    /// Where the window begins, in seconds.
    let start: Double
    /// Its root mean square in dBFS; −∞: digital silence.
    let decibels: Double

    /// The length of a window, in samples, and the longest there is, in seconds.
    static let window = 800
    static let longest = 0.2
}

/// Finds the silence in a file by its levels, which are measured some time before they are heard, and decides what of it
/// is passed over quickly: all but its edges, so that the speech on both sides plays at its own speed although the moment
/// at which a speed takes effect is only known to some hundredths of a second.
struct SilenceDetector {
    /// The level below which sound is silence, in dBFS (root mean square): that of a room, not of breath and consonants.
    static let threshold = -45.0
    /// What is left of a silence as it is behind the speech, and before it, and the shortest that is worth the effort, all
    /// in seconds of the file.
    static let lead = 0.1
    static let tail = 0.35
    static let shortest = 0.2
    /// How long levels are remembered after they were heard, in seconds of the file.
    private static let memory = 30.0

    private var silences: [Range<Double>] = []
    /// The latest level: its window ends where the next one begins.
    private var latest: AudioLevel?
    /// Up to where it has been decided.
    private var decided = 0.0

    /// Handles the next level. One that doesn’t follow the one before is of another position: then nothing is known yet.
    mutating func add(_ level: AudioLevel) {
        defer { latest = level }
        guard let latest else { return }
        guard level.start > latest.start, level.start - latest.start <= AudioLevel.longest else { return reset() }
        guard latest.decibels < Self.threshold else { return }
        if let last = silences.last, last.upperBound == latest.start {
            silences[silences.count - 1] = last.lowerBound..<level.start
        } else {
            silences.append(latest.start..<level.start)
        }
        silences.removeAll { $0.upperBound < level.start - Self.memory }
    }

    /// Forgets everything, before another file or position.
    mutating func reset() {
        silences = []
        latest = nil
        decided = 0
    }

    /// Whether the sound at a position plays fast. The sound before a position that was asked for is decided: where
    /// the output is, is known roughly, and changes with each speed.
    mutating func isTrimmed(at position: Double) -> Bool {
        decided = max(decided, position)
        return passages.contains { $0.contains(decided) }
    }

    /// The next position after this one where that changes, as far as is known.
    func nextChange(after position: Double) -> Double? {
        let position = max(decided, position)
        return passages.lazy.flatMap { [$0.lowerBound, $0.upperBound] }.first { $0 > position }
    }

    /// The ranges that play fast; a silence whose end isn’t known yet counts up to where it is known.
    private var passages: some Sequence<Range<Double>> {
        silences.lazy.compactMap { silence in
            let (start, end) = (silence.lowerBound + Self.lead, silence.upperBound - Self.tail)
            return end - start >= Self.shortest ? start..<end : nil
        }
    }
}
