import LockstepClient
import PodcastModel

/// The settings in `config.yaml`, in the environment (`skip.forward` as `LOCKSTEP_SKIP_FORWARD`) and in flags of some
/// commands. A flag overrides the environment, the environment overrides the file.
///
/// For an invalid value the default applies, and `problems` reports it: no fleet can be started then, but commands
/// reach a running one.
struct Settings: Sendable, Hashable {
    /// The skip distances, also of the arrow keys, in seconds, if the player’s settings have none; nil if not set.
    var skipForward: Double?
    var skipBack: Double?
    var skipDistances: [SettingKey: String] {
        [SettingKey.skipForward: skipForward, .skipBack: skipBack].compactMapValues { $0.map(NumberText.short) }
    }
    /// The step of `speed up`, which selects the next multiple.
    var speedStep = 0.1
    /// The step of `volume up`, which selects the next multiple, in percent.
    var volumeStep = 5.0
    /// Whether players print plain text.
    var plain = false
    var serviceEnvironment: [String: String] = [:]
    var problems: [String] = []

    static let keys = [
        "skip.forward", "skip.back", "speed.step", "volume.step", "plain", "feeds.refreshMinutes", "log.level", "ao",
    ]

    init() {}

    /// Reads the file, which need not exist, and the environment.
    init(file: String, environment: [String: String]) {
        var source = SettingsSource(file: SettingsFile(path: file, keys: Self.keys), environment: environment)
        skipForward = source.number("skip.forward", in: 1...3_600)
        skipBack = source.number("skip.back", in: 1...3_600)
        speedStep = source.number("speed.step", in: 0.01...1) ?? speedStep
        volumeStep = source.number("volume.step", in: 1...50) ?? volumeStep
        plain = source.value("plain", "true or false", Self.flag) ?? plain
        let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
        let services = [
            "feeds.refreshMinutes": source.value("feeds.refreshMinutes", "a whole number from 0 to 43200") { text in
                Int(text).flatMap { (0...43_200).contains($0) ? String($0) : nil }
            },
            "log.level": source.value("log.level", "one of \(levels.joined(separator: ", "))") { text in
                levels.contains(text) ? text : nil
            },
            "ao": source.value("ao", "a text") { $0 },
        ]
        for (key, value) in services { serviceEnvironment[SettingsSource.variable(key)] = value }
        problems = source.problems
    }

    private static func flag(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "1", "true", "yes", "on": true
        case "0", "false", "no", "off": false
        default: nil
        }
    }

    /// - Throws: `badConfiguration` with all problems.
    func requireUsable() throws(Failure) {
        guard problems.isEmpty else { throw Failure(.badConfiguration, problems.joined(separator: "\n")) }
    }
}

/// Reads single settings from the file and the environment, and records the source of each invalid value.
private struct SettingsSource {
    private let file: SettingsFile
    private let environment: [String: String]
    private(set) var problems: [String]

    init(file: SettingsFile, environment: [String: String]) {
        self.file = file
        self.environment = environment
        problems = file.problems + Self.unknownVariables(environment)
    }

    /// The environment variable of a key: `LOCKSTEP_SKIP_FORWARD` for `skip.forward`, and `refreshMinutes` becomes
    /// `REFRESH_MINUTES`.
    static func variable(_ key: String) -> String {
        "LOCKSTEP_"
            + key.reduce(into: "") { name, character in
                if character.isUppercase { name += "_" }
                name += character == "." ? "_" : character.uppercased()
            }
    }

    /// Reports variables that resemble a setting’s. Others may belong to other programs.
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

    /// Returns a key’s value; nil if it isn’t set or isn’t valid.
    mutating func value<Value>(_ key: String, _ expected: String, _ parse: (String) -> Value?) -> Value? {
        let variable = Self.variable(key)
        let (text, location): (String, String)
        if let set = environment[variable], !set.isEmpty {
            (text, location) = (set, "The environment variable \(variable)")
        } else if let entry = file.entries[key] {
            (text, location) = (entry.text, "\(key) in \(file.location(entry.line))")
        } else {
            return nil
        }
        if let value = parse(text) { return value }
        problems.append("\(location) is “\(text)”; it must be \(expected).")
        return nil
    }

    mutating func number(_ key: String, in range: ClosedRange<Double>) -> Double? {
        let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
        return value(key, "a number from \(limits)") { text in
            DurationText.number(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}
