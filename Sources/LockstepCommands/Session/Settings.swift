import LockstepClient
import PodcastModel

/// What can be set in `config.yaml`, in the environment (`skip.forward` as `LOCKSTEP_SKIP_FORWARD`) and, where a command
/// has one, by a flag. The flag wins over the environment, the environment over the file.
///
/// A setting that cannot be used leaves its default in force and is one of the `problems`: they keep a fleet from being
/// started, but no command from reaching one that runs.
struct Settings: Sendable, Hashable {
    /// The distance of `skip forward` and the right arrow, in seconds, unless the player's own settings say so; nil: not set.
    var skipForward: Double?
    /// The distance of `skip back` and the left arrow, in seconds, unless the player's own settings say so; nil: not set.
    var skipBack: Double?
    /// The distances of skips, where the file or the environment sets them.
    var skipDistances: [SettingKey: String] {
        [SettingKey.skipForward: skipForward, .skipBack: skipBack].compactMapValues { $0.map(NumberText.short) }
    }
    /// `speed up` goes to the next multiple of it.
    var speedStep = 0.1
    /// `volume up` goes to the next multiple of it, in per cent.
    var volumeStep = 5.0
    /// Whether screens are lines of words.
    var plain = false
    /// The variables of the environment that the services read.
    var serviceEnvironment: [String: String] = [:]
    /// The problems, a sentence each: it names the key, the file and line or the variable, and what would be right.
    var problems: [String] = []

    /// The keys that are read.
    static let keys = [
        "skip.forward", "skip.back", "speed.step", "volume.step", "plain", "feeds.refreshMinutes", "log.level", "ao",
    ]

    init() {}

    /// Reads the file, which need not be there, and the environment.
    init(file: String, environment: [String: String]) {
        var source = SettingsSource(file: SettingsFile(path: file, keys: Self.keys), environment: environment)
        skipForward = source.number("skip.forward", in: 1...3_600) ?? skipForward
        skipBack = source.number("skip.back", in: 1...3_600) ?? skipBack
        speedStep = source.number("speed.step", in: 0.01...1) ?? speedStep
        volumeStep = source.number("volume.step", in: 1...50) ?? volumeStep
        plain = source.flag("plain") ?? plain
        let words = [
            source.wholeNumber("feeds.refreshMinutes", in: 0...43_200),
            source.word("log.level", among: ["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            source.text("ao"),
        ]
        serviceEnvironment = Dictionary(words.compactMap { $0 }) { first, _ in first }
        problems = source.problems
    }

    /// Refuses settings that cannot be used.
    ///
    /// - Throws: `badConfiguration` with everything that is wrong.
    func requireUsable() throws(Failure) {
        guard problems.isEmpty else { throw Failure(.badConfiguration, problems.joined(separator: "\n")) }
    }
}

/// The two places that settings come from, asked one by one so that a bad value can be traced.
private struct SettingsSource {
    private let file: SettingsFile
    private let environment: [String: String]
    private(set) var problems: [String]

    init(file: SettingsFile, environment: [String: String]) {
        self.file = file
        self.environment = environment
        problems = file.problems + Self.unknownVariables(environment)
    }

    /// The environment variable of a key: `LOCKSTEP_SKIP_FORWARD` for `skip.forward`, and `refreshMinutes` is
    /// `REFRESH_MINUTES`.
    static func variable(_ key: String) -> String {
        "LOCKSTEP_"
            + key.reduce(into: "") { name, character in
                if character.isUppercase { name += "_" }
                name += character == "." ? "_" : character.uppercased()
            }
    }

    /// Variables that are almost a setting's. Others may be anybody's and are left alone.
    private static func unknownVariables(_ environment: [String: String]) -> [String] {
        let prefix = variable("")
        let known = Settings.keys.map { String(variable($0).dropFirst(prefix.count)) }
        let names = environment.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
        return names.filter { !known.contains($0) }.sorted().compactMap { name in
            NearestWord.among(known, to: name).map {
                "The environment variable \(prefix)\(name) isn’t a setting. Did you mean \(prefix)\($0)?"
            }
        }
    }

    /// A value as text, with the words for where it stands.
    private func value(_ key: String) -> (text: String, place: String)? {
        let variable = Self.variable(key)
        if let text = environment[variable], !text.isEmpty { return (text, "The environment variable \(variable)") }
        return file.entries[key].map { ($0.text, "\(key) in \(file.place(of: key))") }
    }

    private mutating func refuse<Value>(_ value: (text: String, place: String), _ expected: String) -> Value? {
        problems.append("\(value.place) is “\(value.text)”; it must be \(expected).")
        return nil
    }

    /// A variable of the environment and its value, for a service that reads it; nil where nothing is set.
    func text(_ key: String) -> (String, String)? {
        value(key).map { (Self.variable(key), $0.text) }
    }

    mutating func word(_ key: String, among words: [String]) -> (String, String)? {
        guard let value = value(key) else { return nil }
        guard words.contains(value.text) else { return refuse(value, "one of \(words.joined(separator: ", "))") }
        return (Self.variable(key), value.text)
    }

    mutating func wholeNumber(_ key: String, in range: ClosedRange<Int>) -> (String, String)? {
        guard let value = value(key) else { return nil }
        guard let number = Int(value.text), range.contains(number) else {
            return refuse(value, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return (Self.variable(key), String(number))
    }

    mutating func number(_ key: String, in range: ClosedRange<Double>) -> Double? {
        guard let value = value(key) else { return nil }
        guard let number = TimeText.number(value.text), range.contains(number) else {
            let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
            return refuse(value, "a number from \(limits)")
        }
        return number
    }

    mutating func flag(_ key: String) -> Bool? {
        guard let value = value(key) else { return nil }
        switch value.text.lowercased() {
        case "1", "true", "yes", "on": return true
        case "0", "false", "no", "off": return false
        default: return refuse(value, "true or false")
        }
    }
}
