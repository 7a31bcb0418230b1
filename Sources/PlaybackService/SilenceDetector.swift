/// The loudness of a short window of a file.
struct AudioLevel: Sendable, Hashable {
    /// The beginning of the window, in seconds.
    let start: Double
    /// Its root mean square in dBFS; −∞: digital silence.
    let decibels: Double

    /// The length of a window in samples, and its maximum in seconds.
    static let window = 800
    static let longest = 0.2
}

/// Finds the silence in a file by its levels, which are measured some time before they are heard, and selects the part
/// that is shortened: all but its edges, because the time at which a speed takes effect is only known to some
/// hundredths of a second.
struct SilenceDetector {
    /// The level below which sound is silence, in dBFS (root mean square): that of a room, not of breath and
    /// consonants.
    static let threshold = -45.0
    /// The parts of a silence that are kept after and before speech, and the minimum part that is trimmed, in seconds
    /// of the file.
    static let lead = 0.1
    static let tail = 0.35
    static let shortest = 0.2
    /// The duration for which silences are kept, in seconds of the file.
    private static let memory = 30.0

    private var silences: [Range<Double>] = []
    /// The latest level; its window ends where the next window begins.
    private var latest: AudioLevel?
    /// The position up to which the speed has been decided.
    private var decided = 0.0

    /// Adds the next level. A level that doesn’t follow the previous one is from another position and resets the
    /// detector.
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

    mutating func reset() {
        silences = []
        latest = nil
        decided = 0
    }

    /// Whether the sound at a position plays fast. Earlier decisions are kept: the position of the output is only known
    /// roughly, and changes with each speed.
    mutating func isTrimmed(at position: Double) -> Bool {
        decided = max(decided, position)
        return passages.contains { $0.contains(decided) }
    }

    /// Returns the next known position at which fast playback begins or ends.
    func nextChange(after position: Double) -> Double? {
        let position = max(decided, position)
        return passages.lazy.flatMap { [$0.lowerBound, $0.upperBound] }.first { $0 > position }
    }

    /// The ranges that play fast; a silence without a known end counts up to the latest level.
    private var passages: some Sequence<Range<Double>> {
        silences.lazy.compactMap { silence in
            let (start, end) = (silence.lowerBound + Self.lead, silence.upperBound - Self.tail)
            return end - start >= Self.shortest ? start..<end : nil
        }
    }
}
