/// A setting of the listener, for one podcast or for all; its `rule` describes its meaning and its default value.
///
/// Values are sent and stored as text in a normal form (`value(of:)`), so that an older version keeps the keys and
/// values of a later one.
public enum SettingKey: String, Sendable, CaseIterable {
    // The settings of playback.
    case speed, gain, skipIntro, skipOutro, skipForward, skipBack, trimSilence, boost, normalise, rewindOnResume
    case playedThreshold, autoPlay, sleepFade
    // The settings of the queue.
    case autoEnqueue, autoEnqueueQueue, onFailure
    // The settings of downloads.
    case autoDownload, autoDownloadHours, autoDownloadNetworks, keepDownloads, deletePlayed, downloadsAtOnce
    case downloadsPerHost, bandwidthLimit, downloadLimit

    /// The form of a value.
    public enum Form: Sendable, Hashable {
        case number(ClosedRange<Double>)
        case wholeNumber(ClosedRange<Int>)
        /// The word `on` or `off`.
        case flag
        /// One of these words.
        case word([String])
        /// The word `off`, a part of the length such as `95%`, or seconds before the end such as `30`.
        case threshold
        /// The word `always`, or a range of hours in local time such as `22-6`, which excludes the second hour.
        case hours
        /// The word `any`, or names of network interfaces, separated by commas.
        case interfaces
        case queueName
        /// The word `off`, or a number of bytes with its unit, such as `5GB`.
        case bytes
    }

    /// The properties of a key.
    public struct Rule: Sendable, Hashable {
        /// The service that owns the setting.
        public let owner: ServiceName
        /// The form of its value.
        public let form: Form
        /// The value that applies if none is set.
        public let defaultValue: String
        /// Whether a podcast can have its own value.
        public let isPerPodcast: Bool
        /// The effect in words, with the unit.
        public let meaning: String
    }

    /// The properties of this key.
    public var rule: Rule {
        switch self {
        case .speed: rule(.playback, .number(PlaybackSpeed.range), "1", "the playback speed")
        case .gain: rule(.playback, .number(-20...20), "0", "the gain over the recorded volume, in dB")
        case .skipIntro: rule(.playback, .number(0...600), "0", "seconds to skip at the start")
        case .skipOutro: rule(.playback, .number(0...600), "0", "seconds to skip at the end")
        case .skipForward: rule(.playback, .number(1...3_600), "30", "seconds that `skip forward` skips")
        case .skipBack: rule(.playback, .number(1...3_600), "10", "seconds that `skip back` skips")
        case .trimSilence: rule(.playback, .flag, "off", "shorten silence")
        case .boost: rule(.playback, .flag, "off", "make quiet passages louder")
        case .normalise: rule(.playback, .flag, "off", "bring all episodes to the same loudness")
        case .rewindOnResume:
            rule(.playback, .number(0...120), "10", "maximum seconds to rewind when resuming after a pause")
        case .playedThreshold:
            rule(.playback, .threshold, "off", "when it counts as played: off, 95%, or 30s before the end")
        case .autoPlay: global(.playback, .flag, "off", "resume automatically when the fleet starts")
        case .sleepFade: global(.playback, .number(0...120), "10", "seconds of fading out before sleep")
        case .autoEnqueue:
            rule(
                .queue, .word(["off", "top", "bottom", "next"]), "off",
                "where new episodes enter a queue: off, top, bottom, or next (after the current one)")
        case .autoEnqueueQueue: rule(.queue, .queueName, QueueName.default, "the queue that new episodes enter")
        case .onFailure:
            rule(
                .queue, .word(["auto", "skip", "stop"]), "auto",
                "an episode that can’t be played: auto (skip it if a retry can’t help), skip (also if its server doesn’t answer) or stop"
            )
        case .autoDownload: rule(.downloads, .wholeNumber(0...1_000), "0", "how many newest episodes to download")
        case .autoDownloadHours:
            rule(.downloads, .hours, "always", "when to download automatically: always, or hours such as 22-6")
        case .autoDownloadNetworks:
            rule(.downloads, .interfaces, "any", "interfaces for automatic downloads: any, or wlan0,eth0")
        case .keepDownloads: rule(.downloads, .wholeNumber(0...10_000), "0", "how many files to keep; 0: all")
        case .deletePlayed: rule(.downloads, .flag, "off", "delete the file of an episode that has been played")
        case .downloadsAtOnce: global(.downloads, .wholeNumber(1...16), "2", "how many files to fetch at once")
        case .downloadsPerHost: global(.downloads, .wholeNumber(1...16), "2", "how many files at once from one host")
        case .bandwidthLimit:
            global(.downloads, .wholeNumber(0...10_000_000), "0", "total download rate in kB/s; 0: no limit")
        case .downloadLimit:
            global(
                .downloads, .bytes, "off",
                "the size, such as 5GB, above which automatic downloads are deleted, played and old ones first")
        }
    }

    private func rule(_ owner: ServiceName, _ form: Form, _ defaultValue: String, _ meaning: String) -> Rule {
        Rule(owner: owner, form: form, defaultValue: defaultValue, isPerPodcast: true, meaning: meaning)
    }

    private func global(_ owner: ServiceName, _ form: Form, _ defaultValue: String, _ meaning: String) -> Rule {
        Rule(owner: owner, form: form, defaultValue: defaultValue, isPerPodcast: false, meaning: meaning)
    }

    /// The normal form of a value: `1.50` becomes `1.5`, `YES` becomes `on`.
    ///
    /// - Throws: `invalidArgument`, with the key, the value and the valid values.
    public func value(of text: String) throws(Failure) -> String {
        let word = text.lowercased()
        switch rule.form {
        case .number(let range):
            if let number = Double(text), range.contains(number) { return Self.text(number) }
            throw refusal(text, "a number from \(Self.text(range.lowerBound)) to \(Self.text(range.upperBound))")
        case .wholeNumber(let range):
            if let number = Int(text), range.contains(number) { return String(number) }
            throw refusal(text, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        case .flag:
            if ["on", "true", "yes", "1"].contains(word) { return "on" }
            if ["off", "false", "no", "0"].contains(word) { return "off" }
            throw refusal(text, "on or off")
        case .word(let words):
            guard words.contains(word) else { throw refusal(text, WordList.or(words)) }
            return word
        case .threshold:
            if word == "off" || PlayedThreshold(word) != nil { return word }
            throw refusal(text, "off, a part of the length from 1% to 100%, or seconds before the end, up to 3600")
        case .hours:
            if word == "always" || HoursOfDay(word) != nil { return word }
            throw refusal(text, "always, or hours such as 22-6")
        case .interfaces:
            if word == "any" { return word }
            let names = text.split(separator: ",", omittingEmptySubsequences: false)
            let isName = { (name: Substring) in
                (1...15).contains(name.utf8.count) && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x2f }
            }
            guard names.allSatisfy(isName) else { throw refusal(text, "any, or interfaces such as wlan0,eth0") }
            return text
        case .bytes:
            if word == "off" || word == "0" { return "off" }
            guard let count = ByteCount(text) else {
                throw refusal(text, "off, or a size from 1MB to 1000TB, such as 5GB")
            }
            return count.text
        case .queueName:
            guard QueueName.isValid(text) else { throw refusal(text, QueueName.rule) }
            return text
        }
    }

    private func refusal(_ text: String, _ expected: String) -> Failure {
        Failure(.invalidArgument, "\(rawValue) can’t be “\(text)”; it must be \(expected).")
    }

    private static func text(_ number: Double) -> String {
        number == number.rounded() && abs(number) < 1e9 ? String(Int(number)) : String(number)
    }
}

/// The point at which an episode counts as played before its end.
public enum PlayedThreshold: Sendable, Hashable {
    /// A part of its length; above 0, at most 1.
    case part(Double)
    /// The number of seconds before its end.
    case secondsBeforeEnd(Double)

    /// Parses `95%` or `30`; nil for anything else.
    public init?(_ text: String) {
        if text.hasSuffix("%") {
            guard let percent = Double(text.dropLast()), (1...100).contains(percent) else { return nil }
            self = .part(percent / 100)
        } else {
            guard let seconds = Double(text), (0...3_600).contains(seconds) else { return nil }
            self = .secondsBeforeEnd(seconds)
        }
    }

    /// The position of the threshold in an episode of this length; with a number of seconds, at least its middle.
    public func position(in duration: EpisodeDuration) -> PlaybackPosition {
        switch self {
        case .part(let part): PlaybackPosition(clamping: duration.seconds * part)
        case .secondsBeforeEnd(let seconds):
            PlaybackPosition(clamping: max(duration.seconds - seconds, duration.seconds / 2))
        }
    }
}

/// The hours of the day from `first` until before `end`; past midnight if `end` isn’t larger.
public struct HoursOfDay: Sendable, Hashable {
    /// The first hour, 0 to 23.
    public let first: Int
    /// The hour that ends the range, 0 to 24.
    public let end: Int

    /// Parses `22-6`; nil for anything else, and for two equal hours.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = Int(parts[0]), let end = Int(parts[1]), (0...23).contains(first),
            (0...24).contains(end), first != end
        else { return nil }
        (self.first, self.end) = (first, end)
    }

    /// Whether the range contains an hour of the day, 0 to 23.
    public func contains(_ hour: Int) -> Bool {
        first < end ? hour >= first && hour < end : hour >= first || hour < end
    }
}

/// A number of bytes as users write it: `5GB`, `1.5 TB`, `500MB`.
public struct ByteCount: Sendable, Hashable {
    private static let units = ["MB": 1e6, "GB": 1e9, "TB": 1e12]

    /// The number of bytes, from a million on.
    public let bytes: UInt64
    /// The number with its unit, without spaces.
    public let text: String

    /// Parses a number with the unit MB, GB or TB; nil for anything else.
    public init?(_ text: String) {
        let word = text.filter { $0 != " " }.uppercased()
        guard let unit = Self.units[String(word.suffix(2))], let number = Double(word.dropLast(2)),
            word.dropLast(2).allSatisfy({ $0.isNumber || $0 == "." }), number.isFinite,
            (1e6...1e15).contains(number * unit)
        else { return nil }
        bytes = UInt64((number * unit).rounded())
        self.text = word
    }
}
