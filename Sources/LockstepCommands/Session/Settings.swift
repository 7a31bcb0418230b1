import BusKit
import Configuration
import FoundationEssentials
import PodcastModel

/// What can be set in `config.yaml`, in the environment (`skip.forward` as `LOCKSTEP_SKIP_FORWARD`) and, where a command
/// has one, by a flag. The flag wins over the environment, the environment over the file.
struct Settings: Sendable, Hashable {
    /// How far `skip forward` and the right arrow go, in seconds.
    var skipForward = 30.0
    /// How far `skip back` and the left arrow go, in seconds.
    var skipBack = 10.0
    /// How much `speed up` adds.
    var speedStep = 0.1
    /// How much `volume up` adds, in per cent.
    var volumeStep = 5.0
    /// Whether screens are lines of words.
    var plain = false
    /// What the services are told, by the variables of the environment that they read.
    var serviceEnvironment: [String: String] = [:]

    /// The defaults.
    init() {}

    /// Reads the file, which need not be there, and the environment.
    ///
    /// - Throws: `badConfiguration` naming the file or variable, the key and the reason.
    init(file: String, environment: [String: String]) async throws(Failure) {
        let source = try await SettingsSource(file: file, environment: environment)
        skipForward = try source.number("skip.forward", in: 1...3_600, else: skipForward)
        skipBack = try source.number("skip.back", in: 1...3_600, else: skipBack)
        speedStep = try source.number("speed.step", in: 0.01...1, else: speedStep)
        volumeStep = try source.number("volume.step", in: 1...50, else: volumeStep)
        plain = try source.flag("plain", else: plain)
        let words = [
            try source.wholeNumber("feeds.refreshMinutes", in: 0...43_200),
            try source.word(
                "log.level", among: ["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            source.text("ao"),
        ]
        serviceEnvironment = Dictionary(words.compactMap { $0 }) { first, _ in first }
    }
}

/// The two places that settings come from, asked one by one so that a bad value can be traced.
private struct SettingsSource {
    private let file: String
    private let fileReader: ConfigReader
    private let environmentReader: ConfigReader

    init(file: String, environment: [String: String]) async throws(Failure) {
        self.file = file
        environmentReader = ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: environment))
        guard Self.saysAnything(file) else {
            fileReader = ConfigReader(provider: InMemoryProvider(values: [:]))
            return
        }
        let place = ConfigReader(
            provider: InMemoryProvider(values: [
                "filePath": .init(.string(file), isSecret: false), "allowMissing": .init(.bool(true), isSecret: false),
            ]))
        do {
            fileReader = ConfigReader(
                provider: try await FileProvider<YAMLSnapshot>(snapshotType: YAMLSnapshot.self, config: place))
        } catch {
            throw Failure(.badConfiguration, "The settings in \(file) cannot be read: \(error). Correct the file.")
        }
    }

    /// Whether there is more in the file than comments: the reader refuses one without a key, such as a fresh sample.
    private static func saysAnything(_ file: String) -> Bool {
        guard let text = try? String(contentsOf: URL(filePath: file), encoding: .utf8) else { return true }
        return text.split(whereSeparator: \.isNewline).contains { line in
            let words = line.drop { $0.isWhitespace }
            return !words.isEmpty && words.first != "#" && words != "---" && words != "..."
        }
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

    /// A value as text, with the words for where it stands.
    private func value(_ key: String) -> (text: String, place: String)? {
        if let text = environmentReader.string(forKey: ConfigKey("lockstep." + key)), !text.isEmpty {
            return (text, "the environment variable \(Self.variable(key))")
        }
        return fileReader.string(forKey: ConfigKey(key)).map { ($0, "\(key) in \(file)") }
    }

    /// A variable of the environment and its value, for a service that reads it; nil where nothing is set.
    func text(_ key: String) -> (String, String)? {
        value(key).map { (Self.variable(key), $0.text) }
    }

    func word(_ key: String, among words: [String]) throws(Failure) -> (String, String)? {
        guard let (text, place) = value(key) else { return nil }
        guard words.contains(text) else {
            throw Failure(
                .badConfiguration,
                "\(place.capitalisedFirst) is “\(text)”; it must be one of \(words.joined(separator: ", ")).")
        }
        return (Self.variable(key), text)
    }

    func wholeNumber(_ key: String, in range: ClosedRange<Int>) throws(Failure) -> (String, String)? {
        guard let (text, place) = value(key) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Failure(
                .badConfiguration,
                "\(place.capitalisedFirst) is “\(text)”; it must be a whole number from \(range.lowerBound) to \(range.upperBound)."
            )
        }
        return (Self.variable(key), String(number))
    }

    func number(_ key: String, in range: ClosedRange<Double>, else other: Double) throws(Failure) -> Double {
        guard let (text, place) = value(key) else { return other }
        guard let number = TimeText.number(text), range.contains(number) else {
            let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
            throw Failure(
                .badConfiguration, "\(place.capitalisedFirst) is “\(text)”; it must be a number from \(limits).")
        }
        return number
    }

    func flag(_ key: String, else other: Bool) throws(Failure) -> Bool {
        guard let (text, place) = value(key) else { return other }
        switch text.lowercased() {
        case "1", "true", "yes", "on": return true
        case "0", "false", "no", "off": return false
        default: throw Failure(.badConfiguration, "\(place.capitalisedFirst) is “\(text)”; it must be true or false.")
        }
    }
}

extension String {
    /// With a capital at the beginning, for a sentence; a path or a key stays as it is.
    fileprivate var capitalisedFirst: String {
        hasPrefix("the ") ? "T" + dropFirst() : self
    }
}
